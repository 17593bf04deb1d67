"""Ranks a model's snippets for a question: by meaning, by words, or by both fused.

Test page, API, widget and benchmark all come through here. A leg that is away is left out and named, never silently.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from django.db import DatabaseError

from models_app import index
from models_app.calibration import calibration_of
from models_app.embedder import (
    EmbeddingError,
    EmbeddingSpace,
    answering_space,
    embed_question,
)
from models_app.index import IndexHit, IndexQuestion
from models_app.models import MLModel, Retrieval, TrainingSnippet, is_web_address
from models_app.terms import MAX_QUESTION_LENGTH, question_terms
from tenants.store import active_store, tenant_snapshot

logger = logging.getLogger(__name__)

NO_VECTORS = "There are no vectors yet, so words alone were searched: press Vectorise."
OTHER_SIZE = (
    "The embedding service has another model under its name than the one that made the vectors, so words alone were "
    "searched: the vectors have to be made anew."
)
UNREADABLE = {
    Retrieval.SEMANTIC: (
        "The index of words cannot be read, so meaning alone was searched: `manage.py rebuild_index {0}` makes it anew."
    ),
    Retrieval.KEYWORD: (
        "The vectors cannot be read, so words alone were searched: `manage.py vectorise {0}/{1} --anew` makes them "
        "anew."
    ),
}
LIMIT = 50
# When nothing is close by meaning, Hybrid keeps what has words of at least this times the threshold of the question's
# weight: .6 at the default. Foreign questions that find nothing in stackfaq: 26 % at 0, 83 % at 1, 89 % at 2, as under
# Semantic. Right answers lost in xquad en: .3 % at 2, .7 % at 3 (bench_calibration, the half that chooses).
LEAST_MATCHED = 2.0


@dataclass(frozen=True)
class RetrievedSnippet:
    """One hit: its rank (from 1), its text, and what each leg said of it (None: that leg did not find it)."""

    rank: int
    id: int
    title: str
    text: str
    uri: str
    token_count: int
    keyword_rank: int | None
    bm25: float | None
    semantic_rank: int | None
    cosine: float | None
    distance: float | None  # 1 - calibrated cosine: what the threshold is compared with
    fused_score: float | None
    source: str = TrainingSnippet.Source.MANUAL.value  # where the snippet comes from: a page, the site around its pages

    @property
    def address(self) -> str:
        """Where it can be read; empty for what comes from a file, whose name its uri is, or was written by hand."""
        return self.uri if is_web_address(self.uri) else ""


@dataclass(frozen=True)
class Retrieved:
    """The hits, best first, the retrieval they come from, and what was away (empty: nothing)."""

    hits: tuple[RetrievedSnippet, ...]
    mode: str
    degraded: str = ""


def retrieve(model: MLModel, question: str, mode: str | None = None, limit: int = LIMIT) -> Retrieved:
    """Return the model's snippets ranked for the question, under its own retrieval or the one given.

    When no vector is there or embeddings cannot be made, the keyword leg answers and `degraded` says so.
    """
    while True:
        space = answering_space(model)
        retrieved = _retrieve_in(space, model, question, mode or model.retrieval, limit)
        # Other vectors may have begun to answer meanwhile, and those of this space may be gone: once in an age.
        if answering_space(model) == space:
            return retrieved


@dataclass(frozen=True)
class Prepared:
    """A question as the index is asked it, and what was away (empty: nothing)."""

    asked: IndexQuestion
    degraded: str

    @property
    def opened(self) -> IndexQuestion:
        """The same question without any cutoff or depth: what ranks and scores a hit would have had."""
        everything = max(index.snippet_count(), 1)
        return replace(self.asked, min_relevance=-inf, keyword_share=0.0, pool=everything, limit=everything)


def prepare(space: EmbeddingSpace, model: MLModel, question: str, mode: str, limit: int = LIMIT) -> Prepared:
    """Return what the index is asked for a question under one retrieval, in the space whose vectors answer."""
    question = question[:MAX_QUESTION_LENGTH]  # the embedder would take seconds for a megabyte it knows no piece of
    vector, degraded = _question_vector(space, model, question, mode)
    legs = mode if vector is not None or mode == Retrieval.KEYWORD else Retrieval.KEYWORD
    asked = IndexQuestion(
        model_id=model.pk,
        mode=legs,
        terms=tuple(question_terms(question)),
        vector=vector,
        space=space.name,
        **cutoffs(model.threshold),
        calibration=calibration_of(model, space),
        limit=limit,
    )
    return Prepared(asked, degraded)


def cutoffs(threshold: float) -> dict[str, float]:
    """Return what a threshold makes the index cut by; a retrieval of one leg heeds its own part of it alone."""
    return {
        "min_relevance": threshold,
        "keyword_share": threshold,
        "least_matched": LEAST_MATCHED * threshold,
    }


def _retrieve_in(space: EmbeddingSpace, model: MLModel, question: str, mode: str, limit: int) -> Retrieved:
    prepared = prepare(space, model, question, mode, limit)
    with tenant_snapshot():  # else a snippet that is replaced in between would be found, and have no text
        found, unreadable = _search(model, question, prepared.asked)
        hits = _with_texts(found, prepared)
    return Retrieved(hits=tuple(hits), mode=mode, degraded=prepared.degraded or unreadable)


def _search(model: MLModel, question: str, asked: IndexQuestion) -> tuple[list[IndexHit], str]:
    """Return what the index finds, and what of it cannot be read (empty: nothing): then the other leg answers."""
    try:
        return index.search(asked), ""
    except DatabaseError as error:
        for leg in _legs_beside(asked.mode):
            with suppress(DatabaseError):
                if found := index.search(replace(asked, mode=leg)):  # nothing may mean that all is damaged
                    logger.exception("Only the %s leg answered “%s”, the other cannot be read.", leg, question[:200])
                    return found, UNREADABLE[leg].format(active_store().slug, model.slug)
        raise error


def _legs_beside(mode: str) -> tuple[str, ...]:
    """Return which legs may answer alone where a retrieval fails; Keyword has made no vector for the other one."""
    return {
        Retrieval.HYBRID: (Retrieval.SEMANTIC, Retrieval.KEYWORD),
        Retrieval.SEMANTIC: (Retrieval.KEYWORD,),
    }.get(mode, ())


def _question_vector(space: EmbeddingSpace, model: MLModel, question: str, mode: str) -> tuple[np.ndarray | None, str]:
    """Return the question's vector, or None and the reason why the semantic leg is left out."""
    if mode == Retrieval.KEYWORD or not question.strip():
        return None, ""
    size = index.dimensions_of(model.pk, space.name)
    if size is None:
        return None, NO_VECTORS if model.snippets.exists() else ""
    try:
        vector = embed_question(space, question)
    except EmbeddingError as error:
        logger.warning("Semantic leg left out: %s", error)
        return None, f"There are no embeddings for now, so words alone were searched: {error}"
    return (vector, "") if vector.size == size else (None, OTHER_SIZE)


def _with_texts(hits: list[IndexHit], prepared: Prepared) -> list[RetrievedSnippet]:
    snippets = TrainingSnippet.objects.in_bulk([hit.id for hit in hits])
    found = [hit for hit in hits if hit.id in snippets]
    return [_retrieved(rank, hit, snippets[hit.id], prepared) for rank, hit in enumerate(found, start=1)]


def _retrieved(rank: int, hit: IndexHit, snippet: TrainingSnippet, prepared: Prepared) -> RetrievedSnippet:
    return RetrievedSnippet(
        rank=rank,
        id=snippet.pk,
        title=snippet.prompt,
        text=snippet.completion,
        uri=snippet.uri,
        token_count=snippet.token_count,
        keyword_rank=hit.keyword_rank,
        bm25=hit.bm25,
        semantic_rank=hit.semantic_rank,
        cosine=hit.cosine,
        distance=None if hit.cosine is None else 1 - hit.relevance,
        fused_score=hit.fused_score,
        source=snippet.source,
    )
