"""Measures what a threshold keeps: right answers that are cut, and questions of other collections that find nothing.

    python -m tests.benchmarks.bench_calibration [SET ...] [--threshold T] [--all] [--tiny] [--models] [--sweep]

Asks the product's own index under its own calibration. The constants were chosen on one half of each set's questions;
the other half is printed (--all: both). --tiny takes samples of 5 to 200 documents, --models changes the vectors into
those of models whose unrelated texts lie elsewhere, --sweep tells what other constants do, on the half that chooses.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType

import numpy as np

# Sets Django up, which what follows needs.
from tests.benchmarks.bench_retrieval import BIG_SETS, SMALL_SETS, SPACE, QuestionSet, taught_model

# isort: split
from models_app import calibration, index
from models_app.embedder import LOCAL_SPACE, embed_questions
from models_app.everyday import QUESTIONS
from models_app.index import HYBRID, SEMANTIC, Calibration, IndexQuestion
from models_app.index import relevance as rule
from models_app.models import MLModel
from models_app.retrieval import cutoffs
from models_app.terms import question_terms

THRESHOLD = 0.3
SAMPLES = (5, 20, 50, 200)
DRAWN = 6  # samples of a size, of each set
SAMPLED_SETS = ("stackfaq", "xquad/en", "xquad/zh")
# Where unrelated texts lie in the spaces that --models makes of the local model's; none: where they are.
MADE_STARTS = (None, 0.1, 0.5, 0.85)
SWEPT = (
    (rule, "QUESTION_SHARE", (0.0, 0.5, 0.7, 0.85, 1.0)),
    (rule, "MOST_SHIFT", (0.04, 0.08, 0.14, 0.3)),
    (calibration, "NEAREST", ({"e5-": 0.22}, {"e5-": 0.236}, {"e5-": 0.25})),
)
TOP = 10
MEASURES = ("recall", "lost", "nothing")
OTHERS = SMALL_SETS + BIG_SETS
OWN_AT_MOST, FOREIGN_AT_MOST = 1_200, 300  # questions of a set, evenly drawn, so that none decides alone
CHOOSING, TELLING, BOTH = slice(0, None, 2), slice(1, None, 2), slice(None)
# Articles that stand in both squad-articles and xquad, whose languages are one text: by how ids begin.
SHARED_ARTICLES = ("a10-", "a25-", "a27-", "Huguenot-", "Genghis_Khan-", "Immune_system-")

Alter = Callable[[np.ndarray], np.ndarray]  # of unit rows


def _as_it_is(vectors: np.ndarray) -> np.ndarray:
    return vectors


@dataclass(frozen=True)
class Part:
    """Some documents of a set, by their places, with the questions that those answer, as another model sees them."""

    whole: QuestionSet
    places: tuple[int, ...]
    alter: Alter = _as_it_is

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def answers(self) -> dict:
        return self.whole.answers

    @cached_property
    def documents(self) -> list[dict]:
        return [self.whole.documents[place] for place in self.places]

    @cached_property
    def _asked(self) -> list[int]:
        there = {document["id"] for document in self.documents}
        asked = enumerate(self.whole.questions)
        return [row for row, question in asked if there.issuperset(self.answers[question["id"]])]

    @cached_property
    def questions(self) -> list[dict]:
        return [self.whole.questions[row] for row in self._asked]

    @cached_property
    def question_vectors(self) -> np.ndarray:
        return self.alter(self.whole.question_vectors[self._asked])

    @cached_property
    def _windows(self) -> np.ndarray:
        return np.concatenate([np.flatnonzero(self.whole.owners == place) for place in self.places])

    @cached_property
    def owners(self) -> np.ndarray:
        """Which document each of the vectors belongs to, as its place among those of the part."""
        return np.searchsorted(self.places, self.whole.owners[self._windows])

    @cached_property
    def document_vectors(self) -> np.ndarray:
        return self.alter(self.whole.document_vectors[self._windows])

    @classmethod
    def all_of(cls, whole: QuestionSet, alter: Alter = _as_it_is) -> "Part":
        """Return all that a set has."""
        return cls(whole, tuple(range(len(whole.documents))), alter)


@dataclass(frozen=True)
class Asked:
    """A question with its vector, and the numbers of the snippets that answer it; none: it is of another collection."""

    text: str
    vector: np.ndarray
    answers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Worth:
    """Recall@10 without a cutoff and with one, and the share of foreign questions that find nothing, by their set."""

    recall: float
    kept: float
    empty: dict[str, float]

    @property
    def lost(self) -> float:
        return self.recall - self.kept

    @property
    def nothing(self) -> float:
        return float(np.mean(list(self.empty.values())))

    def __str__(self) -> str:
        by_set = ", ".join(f"{name} {share:.2f}" for name, share in self.empty.items())
        return f"{self.recall:.3f} {self.lost:6.3f}  {self.nothing:.3f} ({by_set})"


def own_questions(own: QuestionSet, half: slice) -> list[Asked]:
    """Return a half of the set's questions."""
    numbers = {document["id"]: number for number, document in enumerate(own.documents, start=1)}
    rows = evenly(len(own.questions), OWN_AT_MOST)[half]
    picked = [(own.questions[row], own.question_vectors[row]) for row in rows]
    return [Asked(each["text"], v, frozenset(numbers[key] for key in own.answers[each["id"]])) for each, v in picked]


def foreign_questions(own: QuestionSet, half: slice, others: Sequence[QuestionSet]) -> dict[str, list[Asked]]:
    """Return, by their set, questions that the documents do not answer: not those on an article that is in both."""
    found = {}
    for other in others:
        if own.name.split("/")[0] != other.name.split("/")[0]:
            rows = [row for row in range(len(other.questions)) if not _is_shared(own, other, row)]
            rows = [rows[place] for place in evenly(len(rows), FOREIGN_AT_MOST)]
            found[other.name] = [Asked(other.questions[row]["text"], other.question_vectors[row]) for row in rows][half]
    return found


def _is_shared(own: QuestionSet, other: QuestionSet, row: int) -> bool:
    return all("squad" in each.name for each in (own, other)) and any(
        answer.startswith(SHARED_ARTICLES) for answer in other.answers[other.questions[row]["id"]]
    )


def evenly(count: int, at_most: int) -> list[int]:
    """Return the places of at most so many of `count`, evenly spread."""
    return np.linspace(0, count - 1, min(count, at_most)).astype(int).tolist()


@cache
def everyday() -> np.ndarray:
    """Return the everyday questions' vectors of the local model, shape (languages, questions, dimensions)."""
    texts = [text for own in QUESTIONS.values() for text in own]
    return embed_questions(LOCAL_SPACE, texts).reshape(len(QUESTIONS), -1, LOCAL_SPACE.dimensions)


@dataclass(frozen=True)
class Taught:
    """A model that knows a part's documents, with its calibration."""

    model: MLModel
    space: str
    scale: Calibration

    def found(self, mode: str, question: Asked, threshold: float) -> list[int]:
        """Return the snippets that the index finds, as retrieval.py asks it, best first; 0: without any cutoff."""
        asked = IndexQuestion(
            model_id=self.model.pk,
            mode=mode,
            terms=tuple(question_terms(question.text)),
            vector=question.vector,
            space=self.space,
            **(cutoffs(threshold) if threshold else {}),
            calibration=self.scale,
            limit=TOP,
        )
        return [hit.id for hit in index.search(asked)]

    def recall(self, mode: str, questions: Sequence[Asked], threshold: float) -> float:
        """Return recall@10."""
        found = ((self.found(mode, question, threshold), question.answers) for question in questions)
        return float(np.mean([len(answers.intersection(ids)) / len(answers) for ids, answers in found]))

    def nothing(self, mode: str, questions: Sequence[Asked], threshold: float) -> float:
        """Return the share of questions that find nothing."""
        return float(np.mean([not self.found(mode, question, threshold) for question in questions]))


@contextmanager
def taught(part: Part, everyday_vectors: np.ndarray, space: str = SPACE) -> Iterator[Taught]:
    """Give a model that was taught a part's documents, and is calibrated as the product does it."""
    with taught_model(part, with_vectors=False) as model:
        index.put_vectors(model.pk, space, part.owners + 1, part.document_vectors)
        yield Taught(model, space, calibration.measured(model, space, everyday_vectors))


def worth(known: Taught, mode: str, own: Sequence[Asked], foreign: dict[str, list[Asked]], threshold: float) -> Worth:
    """Return what a threshold keeps of the right answers, and what it leaves of foreign questions."""
    empty = {name: known.nothing(mode, questions, threshold) for name, questions in foreign.items()}
    return Worth(known.recall(mode, own, 0), known.recall(mode, own, threshold), empty)


def tell_sets(sets: Sequence[QuestionSet], threshold: float, half: slice) -> None:
    """Print a line for each set and retrieval."""
    others = [QuestionSet(name) for name in OTHERS]
    print(f"{'set':15} {'retrieval':9} recall  lost  nothing found, by the set that foreign questions are from")
    for own in sets:
        part = Part.all_of(own)
        asked, foreign = own_questions(part, half), foreign_questions(part, half, others)
        with taught(part, everyday()) as known:
            for mode in (SEMANTIC, HYBRID):
                told = worth(known, mode, asked, foreign, threshold)
                print(f"{own.name:15} {mode:9} {told}", flush=True)


def tell_tiny(threshold: float) -> None:
    """Print, for each size of sample, the mean over some samples of some sets."""
    others = [QuestionSet(name) for name in SAMPLED_SETS]
    print("documents retrieval recall  lost  nothing found")
    for size in SAMPLES:
        told = {SEMANTIC: [], HYBRID: []}
        for own, seed in ((own, seed) for own in others for seed in range(DRAWN)):
            drawn = np.random.default_rng(seed).choice(len(own.documents), size, replace=False)
            part = Part(own, tuple(sorted(drawn.tolist())))
            asked, foreign = own_questions(part, BOTH), foreign_questions(part, TELLING, others)
            if not asked:  # each of these documents answers a question only along with others
                continue
            with taught(part, everyday()) as known:
                for mode, figures in told.items():
                    figures.append(worth(known, mode, asked, foreign, threshold))
        for mode, figures in told.items():
            recall, lost, nothing = (np.mean([getattr(each, of) for each in figures]) for of in MEASURES)
            print(f"{size:9} {mode:9} {recall:.3f} {lost:6.3f}  {nothing:.3f}", flush=True)


def tell_models(sets: Sequence[QuestionSet], threshold: float, half: slice) -> None:
    """Print a line for each set and each space in which unrelated texts lie elsewhere; none is known by its name."""
    print(f"{'set':15} unrelated nearest recall  lost  nothing found")
    for own in sets:
        for start in MADE_STARTS:
            alter = _as_it_is if start is None else moved_to(start)
            part, others = Part.all_of(own, alter), [Part.all_of(QuestionSet(name), alter) for name in OTHERS]
            asked, foreign = own_questions(part, half), foreign_questions(part, half, others)
            with taught(part, alter(everyday()), "made") as known:
                told, scale = worth(known, SEMANTIC, asked, foreign, threshold), known.scale
                print(f"{own.name:15} {scale.start:9.3f} {scale.nearest:7.3f} {told}", flush=True)


def moved_to(start: float) -> Alter:
    """Return what moves vectors so that the everyday questions of a language lie at this cosine to each other."""
    questions = everyday()[0]
    common = questions.mean(axis=0) / np.linalg.norm(questions.mean(axis=0))

    def moved(vectors: np.ndarray, by: float) -> np.ndarray:
        changed = vectors + by * common
        return (changed / np.linalg.norm(changed, axis=-1, keepdims=True)).astype(np.float32)

    least, most = -float((questions @ common).mean()), 20.0
    for _ in range(40):
        middle = (least + most) / 2
        cosines = np.triu(moved(questions, middle) @ moved(questions, middle).T, 1)
        is_below = cosines.sum() / (len(questions) * (len(questions) - 1) / 2) < start
        least, most = (middle, most) if is_below else (least, middle)
    return lambda vectors: moved(vectors, most)


def tell_sweep(sets: Sequence[QuestionSet], threshold: float) -> None:
    """Print what each constant does when it alone is another one, on the half that chooses."""
    others = [QuestionSet(name) for name in OTHERS]
    print(f"{'constant':30} lost / nothing found: {', '.join(own.name for own in sets)}")
    for module, name, values in SWEPT:
        for value in values:
            with changed(module, name, value):
                cells = [_cell(Part.all_of(own), others, threshold) for own in sets]
            print(f"{f'{name} {value}':30} {'  '.join(cells)}", flush=True)


def _cell(part: Part, others: Sequence[QuestionSet], threshold: float) -> str:
    asked, foreign = own_questions(part, CHOOSING), foreign_questions(part, CHOOSING, others)
    with taught(part, everyday()) as known:
        told = worth(known, SEMANTIC, asked, foreign, threshold)
    return f"{told.lost:.3f}/{told.nothing:.3f}"


@contextmanager
def changed(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """Let a constant have another value for a while."""
    usual = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, usual)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"default: {' '.join(SMALL_SETS)}")
    parser.add_argument("--threshold", type=float, default=THRESHOLD)
    parser.add_argument("--all", action="store_true", help="ask all questions, also those that chose the constants")
    parser.add_argument("--tiny", action="store_true", help="take samples of few documents")
    parser.add_argument("--models", action="store_true", help="change the vectors into those of other models")
    parser.add_argument("--sweep", action="store_true", help="tell what other constants do")
    given = parser.parse_args()
    sets, half = [QuestionSet(name) for name in given.sets or SMALL_SETS], BOTH if given.all else TELLING
    if given.tiny:
        tell_tiny(given.threshold)
    elif given.models:
        tell_models(sets, given.threshold, half)
    elif given.sweep:
        tell_sweep(sets, given.threshold)
    else:
        tell_sets(sets, given.threshold, half)


if __name__ == "__main__":
    main()
