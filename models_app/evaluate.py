"""Says how good a ranking is: scores of one, and of the product's own retrieval over a collection in a throwaway store.

The scores know ids only, so that they also judge what an answer was built on.
"""

import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log2
from pathlib import Path

import numpy as np

from models_app.collection import Collection, Document, Question
from models_app.models import LOCAL_EMBEDDING, MLModel, Retrieval, TrainingSnippet
from models_app.retrieval import retrieve
from models_app.rewriting import index_rows
from models_app.sections import Section
from models_app.vectors import vectorise_missing
from tenants.store import Store, activated, create_store, delete_store, tenant_atomic

DEPTH = 10  # the ranks that are looked at
BATCH = 500  # rows a transaction
NO_TENANT = 0  # ids of tenants start at 1


class NotMeasured(Exception):
    """A retrieval could not be asked as it is in the product."""


@dataclass(frozen=True)
class Scores:
    """What a ranking is worth, each from 0 to 1: its first ten ranks, or for `hit` the first."""

    ndcg: float
    recall: float
    mrr: float
    hit: float


@dataclass(frozen=True)
class Measured:
    """The mean scores of a retrieval over all questions, and how long one took."""

    scores: Scores
    p50_ms: float
    p95_ms: float

    def as_report(self) -> dict[str, float]:
        """Return the figures under the names that the field has for them."""
        scores = self.scores
        return {
            f"ndcg@{DEPTH}": round(scores.ndcg, 4),
            f"recall@{DEPTH}": round(scores.recall, 4),
            f"mrr@{DEPTH}": round(scores.mrr, 4),
            "hit@1": round(scores.hit, 4),
            "p50_ms": round(self.p50_ms, 3),
            "p95_ms": round(self.p95_ms, 3),
        }


def score(ranked: Iterable[Hashable], judged: Mapping[Hashable, int]) -> Scores:
    """Return what the ranking (best first; an id counts where it first stands) is worth, given the relevance of ids.

    At least one id is judged over 0. nDCG: linear gains, each divided by log2(rank + 1), as trec_eval's ndcg_cut.
    """
    relevant = {key: relevance for key, relevance in judged.items() if relevance > 0}
    gains = [relevant.get(key, 0) for key in dict.fromkeys(ranked)][:DEPTH]
    best_gains = sorted(relevant.values(), reverse=True)[:DEPTH]
    ranks = [rank for rank, gain in enumerate(gains, start=1) if gain]
    return Scores(
        ndcg=_discounted(gains) / _discounted(best_gains),
        recall=len(ranks) / len(relevant),
        mrr=1 / ranks[0] if ranks else 0.0,
        hit=float(ranks[:1] == [1]),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """Return the mean of the scores of at least one ranking."""
    columns = zip(*((each.ndcg, each.recall, each.mrr, each.hit) for each in scores), strict=True)
    return Scores(*(sum(column) / len(scores) for column in columns))


def _discounted(gains: Iterable[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def evaluate(
    collection: Collection,
    threshold: float,
    with_vectors: bool = True,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> dict[str, Measured]:
    """Return how each retrieval does on the collection, by its name; without vectors, Keyword alone.

    The documents become a model with the local embedder, made as the product makes one, in a store that is deleted
    afterwards. `progress` gets a step's name, how much of it is done, and of how much. Raises EmbeddingError, and
    NotMeasured.
    """
    retrievals = (Retrieval.KEYWORD, *([Retrieval.SEMANTIC, Retrieval.HYBRID] if with_vectors else []))
    with _throwaway_store():
        model = MLModel.objects.create(
            slug="evaluate", name="Evaluate", threshold=threshold, embedding_model=LOCAL_EMBEDDING
        )
        names = _teach(model, collection.documents)
        if with_vectors:
            vectorise_missing(model, progress=lambda done, total: progress("Embedding", done, total))
        return {each.value: _measure(model, names, collection.questions, each, progress) for each in retrievals}


@dataclass(frozen=True)
class _ThrowawayStore(Store):
    """A store of no tenant, in a folder of its own."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "store.sqlite3"


@contextmanager
def _throwaway_store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="sitewise-evaluate-") as folder:
        store = create_store(_ThrowawayStore(NO_TENANT, "evaluate", Path(folder)))
        try:
            with activated(store):
                yield store
        finally:
            delete_store(store)


def _teach(model: MLModel, documents: Sequence[Document]) -> dict[int, str]:
    """Make a snippet of each document; returns the documents' ids by the snippets'. No tenant, so no quota."""
    names = {}
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        sections = [Section(document.title, document.text) for document in batch]
        rows = [
            TrainingSnippet(model=model, prompt=each.prompt, completion=each.completion, token_count=each.token_count)
            for each in sections
        ]
        with tenant_atomic():
            TrainingSnippet.objects.bulk_create(rows)
            index_rows(list(zip(rows, sections, strict=True)))
        names |= {row.pk: document.id for row, document in zip(rows, batch, strict=True)}
    return names


def _measure(
    model: MLModel, names: Mapping[int, str], questions: Sequence[Question], retrieval: Retrieval, progress
) -> Measured:
    retrieve(model, questions[0].text, mode=retrieval)  # what is loaded at the first question is not the question's
    scores, seconds = [], []
    for done, question in enumerate(questions, start=1):
        began = time.perf_counter()
        retrieved = retrieve(model, question.text, mode=retrieval)
        seconds.append(time.perf_counter() - began)
        if retrieved.degraded:
            raise NotMeasured(f"{retrieval.label}: {retrieved.degraded}")
        scores.append(score((names[hit.id] for hit in retrieved.hits), question.judged))
        progress(f"Asking {retrieval.value}", done, len(questions))
    p50, p95 = np.percentile(seconds, [50, 95]) * 1000
    return Measured(mean(scores), float(p50), float(p95))
