"""Measures retrieval on the question sets of ../shared/data/retrieval: nDCG@10, recall@10, MRR@10, hit@1, time.

    python -m tests.benchmarks.bench_retrieval [SET ...] [--keyword] [--calibration]

Runs the product's own index in a store of its own. Vectors of the local model are kept under var/bench. With
--calibration it prints what a semantic cutoff keeps of the right answers, and of questions from another set.
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
BIG_SETS = ("awsdocs", "scifact")  # a quarter of an hour to embed: keyword alone unless named
SPACE = "multilingual-e5-small"
FUSION_POOL = 50
PART = 250  # texts embedded between two savings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
sys.path[:0] = [str(PROJECT), str(SETS_FOLDER)]

import django  # noqa: E402
import numpy as np  # noqa: E402
from django.test import override_settings  # noqa: E402

django.setup()

from baseline import load, score  # noqa: E402  (the sets' own loader and scorer)

from models_app import index  # noqa: E402
from models_app.index import IndexQuestion, SnippetText  # noqa: E402
from models_app.local_embedder import local_embedder  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.sections import Section  # noqa: E402
from models_app.terms import question_terms  # noqa: E402
from models_app.windows import windows_of  # noqa: E402
from tenants.store import Store, activated, create_store  # noqa: E402


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

    @cached_property
    def document_vectors(self) -> np.ndarray:
        texts = [window for own in self._windows for window in own]
        return _embedded(f"{self.name} documents", texts, local_embedder().embed_passages)

    @cached_property
    def question_vectors(self) -> np.ndarray:
        texts = [question["text"] for question in self.questions]
        return _embedded(f"{self.name} questions", texts, lambda texts: [local_embedder().embed_question(texts[0])])

    def cosines(self, questions: "QuestionSet") -> np.ndarray:
        """Return how near the questions of a set are to these documents, shape (questions, documents)."""
        cosines = questions.question_vectors @ self.document_vectors.T
        return np.maximum.reduceat(cosines, np.flatnonzero(np.diff(self.owners, prepend=-1)), axis=1)


def _embedded(what: str, texts: list[str], embed) -> np.ndarray:
    """Return one row for each text, from the cache or from the local model; what was begun is gone on with."""
    key = sha256("\0".join([SPACE, what, *texts]).encode()).hexdigest()[:16]
    file = CACHE / f"{key}.npy"
    if not file.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        print(f"embedding {len(texts):,} {what} ...", file=sys.stderr, flush=True)
        parts = [CACHE / f"{key}-{start}.npy" for start in range(0, len(texts), PART)]
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


def measure(questions: QuestionSet, modes: tuple[str, ...]) -> None:
    """Print one line for each retrieval."""
    with_vectors = modes != ("keyword",)
    with taught_model(questions, with_vectors) as model:
        for mode in modes:
            run, seconds = {}, []
            for number, question in enumerate(questions.questions):
                vector = questions.question_vectors[number] if with_vectors else None
                began = time.perf_counter()
                hits = index.search(_question(model, mode, question["text"], vector))
                seconds.append(time.perf_counter() - began)
                run[question["id"]] = [questions.documents[hit.id - 1]["id"] for hit in hits]
            gain, recall, reciprocal = score(run, questions.answers)
            first = np.mean([bool(run[key]) and run[key][0] in right for key, right in questions.answers.items()])
            figures = f"{gain:.3f} {recall:.3f} {reciprocal:.3f} {first:.3f} {1000 * np.median(seconds):7.2f}"
            print(f"{questions.name:16} {mode:9} {figures}", flush=True)


def _question(model: MLModel, mode: str, text: str, vector) -> IndexQuestion:
    return IndexQuestion(
        model_id=model.pk,
        mode=mode,
        terms=tuple(question_terms(text)),
        vector=vector,
        space=SPACE,
        min_relevance=-1.0,
        keyword_share=0.0,
        limit=10,
        pool=FUSION_POOL,
    )


def calibrate(sets: list[QuestionSet]) -> None:
    """Print what semantic cutoffs do: recall@10 lost in each set, and questions of other sets left without a hit."""
    cutoffs = np.arange(0.74, 0.90, 0.01)
    print(
        "\ncosines at 5/50/95 %: of the right document, of the best wrong one, of the best one for a foreign question"
    )
    for own in sets:
        right, wrong = _right_and_best_wrong(own)
        foreign = np.concatenate([own.cosines(other).max(1) for other in _foreign_to(own, sets)])
        quantiles = (np.quantile(each, [0.05, 0.5, 0.95]).round(3).tolist() for each in (right, wrong, foreign))
        print(f"{own.name:16}", *quantiles)
    print("\nraw cutoff: recall@10 lost / foreign questions left without a hit")
    print(f"{'':16}", *(f"   {cutoff:.2f}  " for cutoff in cutoffs))
    for own in sets:
        cells = [f"{_recall_lost(own, cutoff):.3f}/{_foreign_dropped(own, sets, cutoff):.2f}" for cutoff in cutoffs]
        print(f"{own.name:16}", *cells, flush=True)


def _foreign_to(own: QuestionSet, sets: list[QuestionSet]) -> list[QuestionSet]:
    """Return the sets whose questions the documents cannot answer: squad's languages are one text, and of its kind."""
    family = own.name.split("/")[0]
    return [other for other in sets if other.name.split("/")[0] != family]


def _right_and_best_wrong(own: QuestionSet) -> tuple[np.ndarray, np.ndarray]:
    cosines = own.cosines(own)
    columns = {document["id"]: column for column, document in enumerate(own.documents)}
    right, wrong = [], []
    for row, question in enumerate(own.questions):
        answers = [columns[key] for key in own.answers[question["id"]]]
        right.append(cosines[row, answers].max())
        wrong.append(np.delete(cosines[row], answers).max())
    return np.array(right), np.array(wrong)


def _recall_lost(own: QuestionSet, cutoff: float) -> float:
    return _recall(own, -1.0) - _recall(own, cutoff)


def _recall(own: QuestionSet, cutoff: float) -> float:
    cosines = own.cosines(own)
    best = np.argsort(-cosines, axis=1, kind="stable")[:, :10]
    run = {
        question["id"]: [own.documents[column]["id"] for column in best[row] if cosines[row, column] >= cutoff]
        for row, question in enumerate(own.questions)
    }
    return score(run, own.answers)[1]


def _foreign_dropped(own: QuestionSet, sets: list[QuestionSet], cutoff: float) -> float:
    best = np.concatenate([own.cosines(other).max(1) for other in _foreign_to(own, sets)])
    return float((best < cutoff).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {' '.join(SMALL_SETS + BIG_SETS)}")
    parser.add_argument("--keyword", action="store_true", help="measure the keyword leg alone, without the local model")
    parser.add_argument("--calibration", action="store_true", help="print what semantic cutoffs do")
    given = parser.parse_args()
    names = given.sets or [*SMALL_SETS, *([] if given.calibration else BIG_SETS)]
    if given.calibration:
        calibrate([QuestionSet(name) for name in names])
        return
    print(f"{'set':16} {'retrieval':9} nDCG  rec.  MRR   hit@1 ms a question (median)")
    for name in names:
        keyword_only = given.keyword or (name in BIG_SETS and not given.sets)
        measure(QuestionSet(name), ("keyword",) if keyword_only else ("keyword", "semantic", "hybrid"))


if __name__ == "__main__":
    main()
