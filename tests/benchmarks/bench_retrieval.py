"""Measures retrieval on the question sets of ../shared/data/retrieval: nDCG@10, recall@10, MRR@10, hit@1, time.

    python -m tests.benchmarks.bench_retrieval [SET ...] [--keyword] [--sweep]

Runs the product's own index in a store of its own: each leg alone, plain reciprocal rank fusion of what the legs found,
and the index's own hybrid, without any cutoff. Vectors of the local model are kept under var/bench. --sweep compares
ways to fuse, chosen on every other question and told on the rest.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SETS_FOLDER = PROJECT.parent / "shared" / "data" / "retrieval"
CACHE = PROJECT / "var" / "bench"
SMALL_SETS = ("stackfaq", "xquad/en", "xquad/de", "xquad/zh", "squad-articles")
BIG_SETS = ("scifact", "awsdocs")  # an hour to embed: keyword alone unless named, or embedded before
SPACE = "multilingual-e5-small"
KEYWORD, SEMANTIC, RRF, HYBRID = "keyword", "semantic", "plain RRF", "hybrid"
PART = 250  # texts embedded between two savings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
sys.path[:0] = [str(PROJECT), str(SETS_FOLDER)]

import django  # noqa: E402
import numpy as np  # noqa: E402
from django.test import override_settings  # noqa: E402

django.setup()

from baseline import load  # noqa: E402  (the sets' own loader)

from models_app import index  # noqa: E402
from models_app.evaluate import Scores, mean, score  # noqa: E402
from models_app.index import IndexHit, IndexQuestion, SnippetText  # noqa: E402
from models_app.index.statement import POOL  # noqa: E402
from models_app.local_embedder import local_embedder  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.sections import Section  # noqa: E402
from models_app.terms import question_terms  # noqa: E402
from models_app.windows import windows_of  # noqa: E402
from tenants.store import Store, activated, create_store  # noqa: E402
from tests.benchmarks.fusions import DEPTH, Legs, by_ranks, told_sweep  # noqa: E402


@dataclass(frozen=True)
class QuestionSet:
    """A collection, its questions and which documents answer them."""

    name: str

    @cached_property
    def _loaded(self):
        corpus, questions, answers = load(self.name)
        return corpus, [question for question in questions if question["id"] in answers], answers

    @property
    def documents(self) -> list[dict]:
        return self._loaded[0]

    @property
    def questions(self) -> list[dict]:
        return self._loaded[1]

    @property
    def answers(self) -> dict:
        return self._loaded[2]

    @cached_property
    def _windows(self) -> list[list[str]]:
        """The texts to embed for each document, cut as the product cuts a snippet's."""
        fits = local_embedder().fits_window
        return [windows_of(Section(document["title"], document["text"]), fits) for document in self.documents]

    @cached_property
    def owners(self) -> np.ndarray:
        """Which document each of the vectors belongs to, as its place among them."""
        return np.repeat(np.arange(len(self._windows)), [len(own) for own in self._windows])

    @property
    def _window_texts(self) -> list[str]:
        return [window for own in self._windows for window in own]

    @cached_property
    def document_vectors(self) -> np.ndarray:
        return _embedded(f"{self.name} documents", self._window_texts, local_embedder().embed_passages)

    @cached_property
    def question_vectors(self) -> np.ndarray:
        texts = [question["text"] for question in self.questions]
        return _embedded(f"{self.name} questions", texts, lambda texts: [local_embedder().embed_question(texts[0])])

    @property
    def is_embedded(self) -> bool:
        """Whether its documents' vectors are kept from an earlier run."""
        return _cached(f"{self.name} documents", self._window_texts).exists()

    def cosines(self, questions: "QuestionSet") -> np.ndarray:
        """Return how near the questions of a set are to these documents, shape (questions, documents)."""
        cosines = questions.question_vectors @ self.document_vectors.T
        return np.maximum.reduceat(cosines, np.flatnonzero(np.diff(self.owners, prepend=-1)), axis=1)


def _cached(what: str, texts: list[str]) -> Path:
    key = sha256("\0".join([SPACE, what, *texts]).encode()).hexdigest()[:16]
    return CACHE / f"{key}.npy"


def _embedded(what: str, texts: list[str], embed) -> np.ndarray:
    """Return one row for each text, from the cache or from the local model; what was begun is gone on with."""
    file = _cached(what, texts)
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"embedding {len(texts):,} {what} ...", file=sys.stderr, flush=True)
        parts = [CACHE / f"{file.stem}-{start}.npy" for start in range(0, len(texts), PART)]
        for number, part in enumerate(parts):
            if not part.exists():
                own = texts[number * PART : (number + 1) * PART]
                np.save(part, np.stack([row for text in own for row in embed([text])]))
        np.save(file, np.concatenate([np.load(part) for part in parts]))
        for part in parts:
            part.unlink()
    return np.load(file)


@contextmanager
def taught_model(questions: QuestionSet, with_vectors: bool) -> Iterator[MLModel]:
    """Give a model that knows the documents of a set, document i being snippet i + 1, in a store of its own."""
    with tempfile.TemporaryDirectory() as folder, override_settings(STORES_DIR=Path(folder)):
        store = create_store(Store(1, "bench"))
        with activated(store):
            model = MLModel.objects.create(slug="bench", name="Bench")
            rows = [
                TrainingSnippet(pk=number, model=model, prompt=document["title"], completion=document["text"])
                for number, document in enumerate(questions.documents, start=1)
            ]
            TrainingSnippet.objects.bulk_create(rows, batch_size=200)
            index.add_snippets(model.pk, (SnippetText(row.pk, row.prompt, row.completion) for row in rows))
            if with_vectors:
                index.put_vectors(model.pk, SPACE, questions.owners + 1, questions.document_vectors)
            yield model


@dataclass(frozen=True)
class Answered:
    """What one retrieval found for each of a set's questions, best first, and the seconds each took."""

    found: list[list[IndexHit]]
    seconds: list[float]

    @property
    def median_ms(self) -> float:
        return 1000 * float(np.median(self.seconds))

    def leg(self, number: int) -> list[tuple[int, float]]:
        """Return one question's hits of a single leg as (snippet, score)."""
        return [(hit.id, hit.cosine if hit.bm25 is None else hit.bm25) for hit in self.found[number]]


def ask(questions: QuestionSet, model: MLModel, mode: str, limit: int = DEPTH) -> Answered:
    """Ask the index all questions of a set, without cutoffs."""
    answered = Answered([], [])
    for number, question in enumerate(questions.questions):
        asked = IndexQuestion(
            model_id=model.pk,
            mode=mode,
            terms=tuple(question_terms(question["text"])),
            vector=None if mode == KEYWORD else questions.question_vectors[number],
            space=SPACE,
            limit=limit,
        )
        began = time.perf_counter()
        answered.found.append(index.search(asked))
        answered.seconds.append(time.perf_counter() - began)
    return answered


def ask_all(questions: QuestionSet, model: MLModel) -> dict[str, Answered]:
    """Ask the questions of each leg, as deep as any fusion looks, and of the index's own hybrid."""
    depths = {KEYWORD: POOL, SEMANTIC: POOL, HYBRID: DEPTH}
    return {mode: ask(questions, model, mode, depth) for mode, depth in depths.items()}


def legs_of(answered: dict[str, Answered]) -> list[Legs]:
    """Return for each question what the legs found, and what the index made of both."""
    hybrid = answered[HYBRID].found
    return [
        Legs(answered[KEYWORD].leg(number), answered[SEMANTIC].leg(number), [hit.id for hit in hits])
        for number, hits in enumerate(hybrid)
    ]


def scores_of(questions: QuestionSet, rankings: list[list[int]]) -> list[Scores]:
    """Return what the rankings of snippets are worth, one for each question."""
    ids = [document["id"] for document in questions.documents]
    pairs = zip(rankings, questions.questions, strict=True)
    return [score([ids[key - 1] for key in ranking], questions.answers[asked["id"]]) for ranking, asked in pairs]


def measured(questions: QuestionSet, keyword_only: bool = False) -> dict[str, tuple[Scores, float | None]]:
    """Return the mean scores of each retrieval, and the median milliseconds of a question if the index answers it."""
    with taught_model(questions, with_vectors=not keyword_only) as model:
        answered = {KEYWORD: ask(questions, model, KEYWORD)} if keyword_only else ask_all(questions, model)
    figures = {}
    for mode, each in answered.items():
        rankings = [[hit.id for hit in hits] for hits in each.found]
        figures[mode] = (mean(scores_of(questions, rankings)), each.median_ms)
    if not keyword_only:
        figures[RRF] = (mean(scores_of(questions, [by_ranks(legs) for legs in legs_of(answered)])), None)
    return figures


def sweep(sets: list[QuestionSet]) -> None:
    """Print which way to fuse is best on every other question of the sets, and what it is worth on the rest."""
    legs = {}
    for own in sets:
        with taught_model(own, with_vectors=True) as model:
            legs[own] = legs_of(ask_all(own, model))

    def gains(rank) -> dict[str, list[float]]:
        return {own.name: [worth.ndcg for worth in scores_of(own, [rank(each) for each in legs[own]])] for own in sets}

    print("\n".join(told_sweep(gains)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {' '.join(SMALL_SETS + BIG_SETS)}")
    parser.add_argument("--keyword", action="store_true", help="measure the keyword leg alone, without the local model")
    parser.add_argument("--sweep", action="store_true", help="compare ways to fuse the legs")
    given = parser.parse_args()
    sets = [QuestionSet(name) for name in given.sets or SMALL_SETS + BIG_SETS]
    with_vectors = [] if given.keyword else [own for own in sets if given.sets or _is_cheap(own)]
    if given.sweep:
        sweep(with_vectors)
        return
    print(f"{'set':16} {'retrieval':9} nDCG  rec.  MRR   hit@1 ms a question (median)")
    for own in sets:
        figures = measured(own, keyword_only=own not in with_vectors)
        for name in (each for each in (KEYWORD, SEMANTIC, RRF, HYBRID) if each in figures):
            worth, median = figures[name]
            time_taken = "      -" if median is None else f"{median:7.2f}"
            told = f"{worth.ndcg:.3f} {worth.recall:.3f} {worth.mrr:.3f} {worth.hit:.3f} {time_taken}"
            print(f"{own.name:16} {name:9} {told}", flush=True)


def _is_cheap(own: QuestionSet) -> bool:
    return own.name in SMALL_SETS or own.is_embedded


if __name__ == "__main__":
    main()
