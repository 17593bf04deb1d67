"""Answers questions as the index promises to, from plain texts and vectors: no SQL, nothing kept between writes."""

import math
import re
from dataclasses import dataclass, field

import numpy as np

from models_app.index import HYBRID, KEYWORD, SEMANTIC, IndexHit, IndexQuestion
from models_app.terms import index_terms

ROUNDING = 1e-6  # by so much a cosine may fall short of a threshold
ALIKE = 50  # of so many nearest ones, none is worth less than a farther one


@dataclass
class Knowledge:
    """What a model knows: its snippets' title and text by id, and by space the rows of each snippet's vectors."""

    texts: dict[int, tuple[str, str]] = field(default_factory=dict)
    vectors: dict[str, dict[int, np.ndarray]] = field(default_factory=dict)

    def answer(self, question: IndexQuestion) -> list[IndexHit]:
        """Return what the index should find."""
        is_hybrid = question.mode == HYBRID
        pool = question.pool if is_hybrid else question.limit
        near = [] if question.mode == KEYWORD or question.vector is None else self._nearest(question, pool)
        kept = [hit for hit in near if hit.relevance >= question.min_relevance - ROUNDING]
        words = _Words(self.texts, () if question.mode == SEMANTIC else question.terms, question.postings_budget)
        least_share = question.keyword_share if is_hybrid else 0.0
        is_alone = is_hybrid and question.vector is not None and not kept
        by_words = words.best(pool, least_share, question.least_matched * words.whole if is_alone else 0.0)
        scores = dict.fromkeys([hit.id for hit in (*kept, *by_words)], 0.0)
        for hit in by_words:
            scores[hit.id] += words.trust * hit.bm25 / by_words[0].bm25
        for hit in kept:
            last, first = near[-1].cosine - 0.005, near[0].cosine
            scores[hit.id] += (hit.cosine - last) / (first - last)
        best = sorted(scores, key=lambda key: (-scores[key], key))[: question.limit]
        return [_joined(key, scores[key] if is_hybrid else None, by_words, kept) for key in best]

    def _nearest(self, question: IndexQuestion, pool: int) -> list[IndexHit]:
        """Return the nearest snippets, each at the nearest of its vectors, with what that is worth."""
        rows = self.vectors.get(question.space, {})
        if not rows or next(iter(rows.values())).shape[1] != question.vector.size:
            return []
        cosines = {key: np.vecdot(mine, question.vector) for key, mine in rows.items()}
        every = np.concatenate(list(cosines.values()))
        best = sorted(cosines, key=lambda key: (-cosines[key].max(), key))[:pool]
        scale = question.calibration.for_question(question.vector)
        bases = scale.bases(np.stack([rows[key][cosines[key].argmax()] for key in best]))
        nearest = np.array([cosines[key].max() for key in best])
        worth = scale.relevance(nearest, bases, float(every.mean(dtype=float)), len(every)).tolist()
        worth[:ALIKE] = [max(worth[place:ALIKE]) for place in range(len(worth[:ALIKE]))]
        told = zip(best, nearest.tolist(), worth, strict=True)
        return [IndexHit(key, None, None, None, place, *told) for place, (key, *told) in enumerate(told, start=1)]


class _Words:
    """The keyword leg: BM25 over these texts alone."""

    def __init__(self, texts: dict[int, tuple[str, str]], asked: tuple[str, ...], budget: int):
        self._titles = {key: index_terms(title) for key, (title, _) in texts.items()}
        self._bodies = {key: index_terms(text) for key, (_, text) in texts.items()}
        self._lengths = {
            key: sum(not term.startswith("=-") for term in self._titles[key] + self._bodies[key]) for key in texts
        }
        self._weights = self._weigh(asked, budget)
        lacking = [term for term in asked if not self._holders(term) and not term.startswith("=-")]
        unknown = sum(map(_kind_weight, lacking))
        self.whole = sum(self._weights.values()) + math.log(2 + 2 * len(texts)) * unknown
        scored = {key: round(self._bm25(key), 10) for key in texts if self._matched(key)}
        self._scored = dict(sorted(scored.items(), key=lambda pair: (-pair[1], pair[0])))
        self.trust = min(1, 0.4 + self._matched(next(iter(self._scored))) / self.whole) if self._scored else 0

    def best(self, pool: int, least_share: float, least_matched: float) -> list[IndexHit]:
        least = least_share * max(self._scored.values(), default=0)
        kept = [key for key, bm25 in self._scored.items() if bm25 >= least and self._matched(key) >= least_matched]
        return [
            IndexHit(key, None, place, self._scored[key], None, None, None)
            for place, key in enumerate(kept[:pool], start=1)
        ]

    def _holders(self, term: str) -> list[int]:
        return [key for key, title in self._titles.items() if term in title or term in self._bodies[key]]

    def _weigh(self, asked: tuple[str, ...], budget: int) -> dict[str, float]:
        """Return the weight of each term that is read: the rarest ones within the budget, and at least two."""
        count = {term: len(self._holders(term)) for term in asked}
        weights, spent = {}, 0
        for place, term in enumerate(sorted(filter(count.get, asked), key=lambda term: (count[term], term))):
            spent += count[term]
            if place < 2 or spent <= budget:
                idf = math.log(1 + (len(self._titles) - count[term] + 0.5) / (count[term] + 0.5))
                weights[term] = idf * _kind_weight(term)
        return weights

    def _matched(self, key: int) -> float:
        has = {*self._titles[key], *self._bodies[key]}
        return sum(weight for term, weight in self._weights.items() if term in has)

    def _bm25(self, key: int) -> float:
        length = self._lengths[key] / (sum(self._lengths.values()) / len(self._lengths))
        frequencies = [
            (weight, 3 * self._titles[key].count(term) + self._bodies[key].count(term))
            for term, weight in self._weights.items()
        ]
        return sum(weight * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length)) for weight, often in frequencies)


def _kind_weight(term: str) -> float:
    """Return what a term counts: an ending a quarter, an exact spelling half, a root 1, what is both 1.5."""
    if term.startswith("=-"):
        return 0.25
    if term.startswith("="):
        return 0.5
    return 1.5 if re.search(r"[0-9+#.&]", term) else 1.0


def _joined(key: int, fused: float | None, *legs: list[IndexHit]) -> IndexHit:
    """Return the hit with what each leg says of it."""
    by_words, by_meaning = (next((hit for hit in leg if hit.id == key), None) for leg in legs)
    return IndexHit(
        key,
        fused,
        by_words and by_words.keyword_rank,
        by_words and by_words.bm25,
        by_meaning and by_meaning.semantic_rank,
        by_meaning and by_meaning.cosine,
        by_meaning and by_meaning.relevance,
    )
