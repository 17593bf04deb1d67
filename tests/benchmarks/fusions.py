"""Ways to make one ranking of two legs: the product's, as its statement has it, plain RRF, and what was tried."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

RRF_K = 60  # Cormack, Clarke and Büttcher 2009, Reciprocal Rank Fusion
RRF_POOL = 50
DEPTH = 10


@dataclass(frozen=True)
class Legs:
    """What each leg found for one question: (document, score), best first."""

    keyword: list[tuple[int, float]]
    semantic: list[tuple[int, float]]


def by_ranks(legs: Legs, pool: int = RRF_POOL, k: int = RRF_K) -> list[int]:
    """Return the first ten documents by the sum of their reciprocal ranks."""
    places = [
        (document, 1 / (k + place)) for leg in (legs.keyword, legs.semantic) for place, (document, _) in _top(leg, pool)
    ]
    return _best(places)


def by_shares(legs: Legs, pool: int, keyword_weight: float = 1.0, least_span: float = 0.005) -> list[int]:
    """Return the first ten by what the statement adds up, but with a weight of the keyword leg."""
    words = [(document, keyword_weight * score / legs.keyword[0][1]) for document, score in legs.keyword[:pool]]
    near = legs.semantic[:pool]
    if near:
        farthest = near[-1][1] - least_span
        span = near[0][1] - farthest
        near = [(document, (cosine - farthest) / span) for document, cosine in near]
    return _best(words + near)


def by_cosine_and_share(legs: Legs, pool: int, keyword_weight: float) -> list[int]:
    """Return the first ten by the cosine as it is and the weighed share: a convex sum without a look at the pool."""
    words = [(document, keyword_weight * score / legs.keyword[0][1]) for document, score in legs.keyword[:pool]]
    near = legs.semantic[:pool]
    return _best(words + [(document, cosine - near[-1][1]) for document, cosine in near])


def _top(leg: list[tuple[int, float]], pool: int) -> Iterable[tuple[int, tuple[int, float]]]:
    return enumerate(leg[:pool], start=1)


def _best(scores: Iterable[tuple[int, float]]) -> list[int]:
    """Return the documents by the sum of their scores, equal ones by number."""
    sums: dict[int, float] = defaultdict(float)
    for document, score in scores:
        sums[document] += score
    return sorted(sums, key=lambda document: (-sums[document], document))[:DEPTH]
