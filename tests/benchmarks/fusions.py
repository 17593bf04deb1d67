"""Ways to make one ranking of two legs: the product's, as its statement has it, plain RRF, and what was tried."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from models_app.index.statement import LEAST_SPAN, POOL

RRF_K = 60  # Cormack, Clarke and Büttcher 2009, Reciprocal Rank Fusion
RRF_POOL = 50
DEPTH = 10
TOLD = 8  # the best ways of a sweep
OWN, PLAIN = "hybrid, as it is", "plain RRF"


@dataclass(frozen=True)
class Legs:
    """What each leg found for one question: (document, score), best first; and the documents of the index's hybrid."""

    keyword: list[tuple[int, float]]
    semantic: list[tuple[int, float]]
    hybrid: list[int]


Ranking = Callable[[Legs], list[int]]
Gains = dict[str, list[float]]  # of a set's questions, in their order


def by_ranks(legs: Legs, pool: int = RRF_POOL, k: int = RRF_K, keyword_weight: float = 1.0) -> list[int]:
    """Return the first ten documents by the sum of their reciprocal ranks."""
    weighed = ((legs.keyword, keyword_weight), (legs.semantic, 1.0))
    return _best(
        (document, weight / (k + place))
        for leg, weight in weighed
        for place, (document, _) in enumerate(leg[:pool], start=1)
    )


def by_shares(legs: Legs, pool: int = POOL, keyword_weight: float = 1.0, least_span: float = LEAST_SPAN) -> list[int]:
    """Return the first ten by what the statement adds up, but with one weight of the keyword leg for all questions."""
    words = [(document, keyword_weight * score / legs.keyword[0][1]) for document, score in legs.keyword[:pool]]
    near = legs.semantic[:pool]
    if near:
        farthest = near[-1][1] - least_span
        span = near[0][1] - farthest
        near = [(document, (cosine - farthest) / span) for document, cosine in near]
    return _best(words + near)


def by_cosine_and_share(legs: Legs, pool: int = POOL, keyword_weight: float = 0.1) -> list[int]:
    """Return the first ten by the cosine as it is and the weighed share: a convex sum without a look at the pool."""
    words = [(document, keyword_weight * score / legs.keyword[0][1]) for document, score in legs.keyword[:pool]]
    near = legs.semantic[:pool]
    return _best(words + [(document, cosine - near[-1][1]) for document, cosine in near])


def only_keyword(legs: Legs) -> list[int]:
    """Return the first ten of the keyword leg."""
    return [document for document, _ in legs.keyword[:DEPTH]]


def only_semantic(legs: Legs) -> list[int]:
    """Return the first ten of the semantic leg."""
    return [document for document, _ in legs.semantic[:DEPTH]]


def as_it_is(legs: Legs) -> list[int]:
    """Return the first ten of the index's own hybrid."""
    return legs.hybrid[:DEPTH]


def tried() -> Iterator[tuple[str, Ranking]]:
    """Yield each way to fuse that a sweep compares, by its name."""
    for pool in (20, 50, 100):
        for weight in (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0):
            for span in (0.0025, 0.005, 0.01, 0.02):
                name = f"shares, pool {pool}, weight {weight}, span {span}"
                yield name, partial(by_shares, pool=pool, keyword_weight=weight, least_span=span)
        for weight in (0.025, 0.05, 0.075, 0.1, 0.15, 0.2):
            name = f"cosine and share, pool {pool}, weight {weight}"
            yield name, partial(by_cosine_and_share, pool=pool, keyword_weight=weight)
        for weight in (0.5, 1.0, 2.0):
            for k in (5, 20, 60):
                name = f"reciprocal ranks, pool {pool}, weight {weight}, k {k}"
                yield name, partial(by_ranks, pool=pool, k=k, keyword_weight=weight)


def told_sweep(gains: Callable[[Ranking], Gains]) -> Iterator[str]:
    """Yield the lines that tell a sweep: the best ways on half of each set's questions, then each on the other half.

    `gains` gives the nDCG@10 of each question of each set under a ranking.
    """
    every = {name: gains(ranking) for name, ranking in tried()}
    best_first = sorted(every, key=lambda name: -_mean(every[name], 0))
    fixed = {"keyword": only_keyword, "semantic": only_semantic, PLAIN: by_ranks, OWN: as_it_is}
    told = {name: gains(ranking) for name, ranking in fixed.items()} | {name: every[name] for name in best_first[:TOLD]}
    yield f"{len(every)} ways; nDCG@10, mean of the sets: on the half that chooses, on the other half; each set there"
    for name, own in told.items():
        sets = ", ".join(f"{set_name} {fmean(of_set[1::2]):.3f}" for set_name, of_set in own.items())
        yield f"{name:44} {_mean(own, 0):.4f} {_mean(own, 1):.4f}  {sets}"


def _mean(gains: Gains, half: int) -> float:
    return fmean(fmean(of_set[half::2]) for of_set in gains.values())


def _best(scores: Iterable[tuple[int, float]]) -> list[int]:
    """Return the documents by the sum of their scores, equal ones by number."""
    sums: dict[int, float] = defaultdict(float)
    for document, score in scores:
        sums[document] += score
    return sorted(sums, key=lambda document: (-sums[document], document))[:DEPTH]
