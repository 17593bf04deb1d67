"""Says why a snippet is, or is not, among what a question finds: its rank and score in each leg, and what cut it.

Asks the index the very question that retrieval asks, and once more with all cutoffs and depths open. The budget of an
answer is no matter of retrieval: who packs the context adds that cause.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import floor

from models_app import index
from models_app.asked_words import AskedWord, asked_words
from models_app.embedder import EmbeddingError, EmbeddingSpace, answering_space, fits_window
from models_app.index import IndexHit, IndexQuestion
from models_app.index.explain import matched_share, term_shares, vector_count
from models_app.models import MLModel, Retrieval, TrainingSnippet
from models_app.retrieval import LEAST_MATCHED, Prepared, cutoffs, prepare
from models_app.terms import MAX_QUESTION_TERMS
from tenants.store import tenant_snapshot

MOST_TERMS = f"So long a question is searched by its first {MAX_QUESTION_TERMS} words and spellings."
BEGINNING_ONLY = "The question is longer than the embedding model reads: its beginning alone was compared."
MOST_DIGITS = 4


class Cause(StrEnum):
    """What keeps a snippet out of an answer's context."""

    THRESHOLD = "threshold"
    RELATIVE_CUTOFF = "relative cutoff"
    TOO_FEW_WORDS = "too few words"
    DEPTH = "depth"
    BUDGET = "budget"
    NO_VECTOR = "no vector"
    NO_SHARED_TERM = "no shared term"


# A snippet that both legs of a retrieval cut is said to be cut where it came farthest.
FARTHEST_FIRST = (
    (Cause.DEPTH,),
    (Cause.THRESHOLD, Cause.RELATIVE_CUTOFF, Cause.TOO_FEW_WORDS),
    (Cause.NO_VECTOR,),
    (Cause.NO_SHARED_TERM,),
)


@dataclass(frozen=True)
class Cut:
    """A cause with its numbers in words; and the threshold from which on it cuts, where it cuts by that (else 0)."""

    cause: Cause
    words: str
    cuts_above: float = 0.0

    @property
    def reach(self) -> tuple[int, float]:
        """How far the snippet came: the smaller, the farther."""
        return next(place for place, causes in enumerate(FARTHEST_FIRST) if self.cause in causes), -self.cuts_above


@dataclass(frozen=True)
class KeywordStanding:
    """The snippet among all that share a term with the question; rank and score are None if it does not."""

    rank: int | None
    bm25: float | None
    best: float | None  # the best hit's BM25
    found_count: int
    matched_share: float  # how much of the question's weight it has words of, from 0 to 1
    question: str
    words: tuple[AskedWord, ...]
    note: str = ""

    @property
    def matched(self) -> list[AskedWord]:
        return sorted((word for word in self.words if word.points), key=lambda word: -word.points)

    @property
    def lacking(self) -> list[AskedWord]:
        """The words it does not have, without those that would be two of the question's written as one."""
        return [word for word in self.words if not word.is_in_snippet and word.word in self.question]

    @property
    def unread(self) -> list[AskedWord]:
        return [word for word in self.words if word.is_in_snippet and not word.points]


@dataclass(frozen=True)
class SemanticStanding:
    """The snippet among all that have a vector; all is None where there is no vector of it, or of the question."""

    rank: int | None = None
    cosine: float | None = None
    relevance: float | None = None
    best: float | None = None  # the nearest snippet's relevance
    compared_count: int = 0
    vector_count: int = 0
    away: str = ""  # why the question has no vector
    note: str = ""

    @property
    def distance(self) -> float | None:
        """1 - relevance, as hits are told with."""
        return None if self.relevance is None else 1 - self.relevance


@dataclass(frozen=True)
class Finding:
    """What one retrieval made of the snippet: its place among the hits, or what cut it, in each leg and all in all."""

    mode: str
    rank: int | None
    fused_score: float | None
    keyword_cut: Cut | None
    semantic_cut: Cut | None
    cut: Cut | None
    passing_threshold: float | None = None  # the largest, to two digits, at which it would be found, if there is one


@dataclass(frozen=True)
class Explanation:
    """Where a snippet stands for a question in each leg, and in each of the three retrievals."""

    question: str
    keyword: KeywordStanding
    semantic: SemanticStanding
    findings: dict[str, Finding]


def explain(model: MLModel, question: str, snippet: TrainingSnippet) -> Explanation:
    """Return why the model's snippet is, or is not, found for the question as it is searched for.

    Of a follow-up give what was searched for, not its bare words.
    """
    while True:
        space = answering_space(model)
        explanation = _explain_in(space, model, question, snippet)
        if answering_space(model) == space:  # else other vectors have begun to answer meanwhile
            return explanation


def _explain_in(space: EmbeddingSpace, model: MLModel, question: str, snippet: TrainingSnippet) -> Explanation:
    prepared = {mode: prepare(space, model, question, mode) for mode in Retrieval.values}
    with tenant_snapshot():
        keyword = _keyword_standing(prepared[Retrieval.KEYWORD], question, snippet)
        semantic = _semantic_standing(prepared[Retrieval.SEMANTIC], space, question, snippet)
        judged = _Judged(model.threshold, keyword, semantic, snippet.pk)
        findings = {mode: judged.finding(mode, prepared[mode].asked) for mode in prepared}
    return Explanation(question, keyword, semantic, findings)


def _keyword_standing(prepared: Prepared, question: str, snippet: TrainingSnippet) -> KeywordStanding:
    hits = index.search(prepared.opened)
    mine = _of(hits, snippet.pk)
    return KeywordStanding(
        rank=mine and mine.keyword_rank,
        bm25=mine and mine.bm25,
        best=hits[0].bm25 if hits else None,
        found_count=len(hits),
        matched_share=matched_share(prepared.asked, snippet.pk),
        question=question,
        words=asked_words(question, term_shares(prepared.asked, snippet.pk)),
        note=MOST_TERMS if len(prepared.asked.terms) == MAX_QUESTION_TERMS else "",
    )


def _semantic_standing(
    prepared: Prepared, space: EmbeddingSpace, question: str, snippet: TrainingSnippet
) -> SemanticStanding:
    vectors = vector_count(prepared.asked.model_id, prepared.asked.space, snippet.pk)
    if prepared.asked.mode != Retrieval.SEMANTIC:
        return SemanticStanding(vector_count=vectors, away=prepared.degraded or "The question is empty.")
    hits = index.search(prepared.opened)
    mine = _of(hits, snippet.pk)
    return SemanticStanding(
        rank=mine and mine.semantic_rank,
        cosine=mine and mine.cosine,
        relevance=mine and mine.relevance,
        best=max((hit.relevance for hit in hits), default=None),
        compared_count=len(hits),
        vector_count=vectors,
        note="" if _is_read_whole(space, question) else BEGINNING_ONLY,
    )


def _is_read_whole(space: EmbeddingSpace, question: str) -> bool:
    try:
        return fits_window(space, question)
    except EmbeddingError:
        return True  # it was embedded a moment ago: what is away now says nothing of it


def _of(hits: Iterable[IndexHit], snippet_id: int) -> IndexHit | None:
    return next((hit for hit in hits if hit.id == snippet_id), None)


@dataclass(frozen=True)
class _Judged:
    """A snippet with its standing in both legs, before each retrieval's cutoffs and depth."""

    threshold: float
    keyword: KeywordStanding
    semantic: SemanticStanding
    snippet_id: int

    def finding(self, mode: str, asked: IndexQuestion) -> Finding:
        """Return what a retrieval makes of it, given what the index is asked there."""
        is_hybrid = asked.mode == Retrieval.HYBRID
        depth = asked.pool if is_hybrid else asked.limit
        # Hybrid's legs hand on up to twice their depth: so many ranks are fused, of which the first are taken.
        hits = index.search(replace(asked, limit=max(asked.limit, 2 * asked.pool)) if is_hybrid else asked)
        found = ((place, hit) for place, hit in enumerate(hits, start=1) if hit.id == self.snippet_id)
        rank, hit = next(found, (None, None))
        is_any_near = any(hit.semantic_rank for hit in hits)
        keyword_cut = semantic_cut = None
        if asked.mode != Retrieval.SEMANTIC and not (hit and hit.keyword_rank):
            keyword_cut = self._keyword_cut(asked, depth, words_stand_alone=is_hybrid and not is_any_near)
        if mode != Retrieval.KEYWORD and not (hit and hit.semantic_rank):
            semantic_cut = self._semantic_cut(depth)
        cut = min((cut for cut in (keyword_cut, semantic_cut) if cut), key=lambda cut: cut.reach, default=None)
        if rank is not None:
            cut = None if rank <= asked.limit else _too_deep(rank, asked.limit)
        passing = self._passing_threshold(asked) if cut and cut.cuts_above else None
        return Finding(mode, rank, hit and hit.fused_score, keyword_cut, semantic_cut, cut, passing)

    def _passing_threshold(self, asked: IndexQuestion) -> float | None:
        """Ask the index anew at each threshold from which on a leg would keep it: another cutoff may still cut it."""
        edges = [self.semantic.relevance or 0.0, self.semantic.best or 0.0]
        if self.keyword.bm25 is not None:
            edges += [self.keyword.bm25 / self.keyword.best, self.keyword.matched_share / LEAST_MATCHED]
        thresholds = {floor(100 * edge) / 100 for edge in edges}
        for threshold in sorted(thresholds, reverse=True):
            is_lower = 0 < threshold < self.threshold
            if is_lower and _of(index.search(replace(asked, **cutoffs(threshold))), self.snippet_id):
                return threshold
        return None

    def _keyword_cut(self, asked: IndexQuestion, depth: int, words_stand_alone: bool) -> Cut:
        """Return what cut it in the keyword leg, which did not find it."""
        if self.keyword.bm25 is None:
            return Cut(Cause.NO_SHARED_TERM, self._nothing_shared())
        score, best = self.keyword.bm25, self.keyword.best
        share = asked.keyword_share if asked.mode == Retrieval.HYBRID else 0.0
        if score < share * best:
            score_shown, best_shown = _told_apart(score, best, digits=2)
            words = f"Its words score {score_shown}, the best hit’s {best_shown}: under {share:g} of it."
            return Cut(Cause.RELATIVE_CUTOFF, words, cuts_above=score / best)
        if words_stand_alone and (self.keyword.rank <= depth or self.keyword.matched_share < asked.least_matched):
            cuts_above = self.keyword.matched_share / LEAST_MATCHED
            return Cut(Cause.TOO_FEW_WORDS, self._too_little_matched(asked.least_matched), cuts_above)
        return _too_deep(self.keyword.rank, depth)

    def _nothing_shared(self) -> str:
        if self.keyword.unread:
            common = ", ".join(f"“{word.word}”" for word in self.keyword.unread)
            return f"What it shares with the question is too common for so long a one and was not searched: {common}."
        if not self.keyword.words:
            return "The question has no word to search for."
        return "It shares no word with the question."

    def _too_little_matched(self, least: float) -> str:
        """Say that a few words are not enough where the semantic leg, which would bear them out, keeps nothing."""
        share, wanted = _told_apart(100 * self.keyword.matched_share, 100 * least, digits=0)
        return (
            "Nothing is near the question in meaning, so the words have to answer it alone: "
            f"it has {share} % of their weight, {wanted} % are needed."
        )

    def _semantic_cut(self, depth: int) -> Cut:
        """Return what cut it in the semantic leg, which did not find it."""
        if self.semantic.relevance is None:
            return Cut(Cause.NO_VECTOR, self.semantic.away or "It has no vector yet: press Vectorise.")
        if self.semantic.rank > depth and self.semantic.relevance >= self.threshold:
            return _too_deep(self.semantic.rank, depth)
        relevance, threshold = _told_apart(self.semantic.relevance, self.threshold, digits=2)
        words = f"Its relevance is {relevance}, the threshold {threshold}."
        return Cut(Cause.THRESHOLD, words, cuts_above=self.semantic.relevance)


def _too_deep(rank: int, depth: int) -> Cut:
    return Cut(Cause.DEPTH, f"It ranks {ordinal(rank)}; {depth:,} are taken.")


def _told_apart(one: float, other: float, digits: int) -> tuple[str, str]:
    """Return both numbers with as many digits as it takes to see which is the larger."""
    while digits < MOST_DIGITS and f"{one:.{digits}f}" == f"{other:.{digits}f}":
        digits += 1
    return f"{one:.{digits}f}", f"{other:.{digits}f}"


def ordinal(number: int) -> str:
    """Return 1st, 2nd, 3rd, 11th."""
    ending = "th" if 10 < number % 100 < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"
