"""Asks questions of any kind, hostile ones above all: none may raise, and none may take over a second.

    python -m tests.benchmarks.bench_questions [--sizes N ...] [--questions N ...]

Asked is as the product asks, under the three retrievals in turn, with the local embedder where its files are. Prints,
for each kind of question, how long the slowest took. Ends with status 1 when one raised, or took over a second of the
processor's time: what else runs on the machine counts in the time on the clock only.
"""

import argparse
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before numpy is imported
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import random  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import traceback  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from itertools import chain, islice, zip_longest  # noqa: E402
from pathlib import Path  # noqa: E402

import django  # noqa: E402
from django.test import override_settings  # noqa: E402

django.setup()

import numpy as np  # noqa: E402
from hypothesis import Phase, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from models_app.collection import Collection, read_collection  # noqa: E402
from models_app.models import LOCAL_EMBEDDING, MLModel, Retrieval  # noqa: E402
from models_app.retrieval import retrieve  # noqa: E402
from tenants.store import activated, create_store  # noqa: E402
from tests.benchmarks.bench_speed import BENCH, teach  # noqa: E402
from tests.benchmarks.synthetic import Text, make_questions, make_texts, make_vectors  # noqa: E402
from tests.conftest import SHARED  # noqa: E402

SIZES, QUESTIONS = (1_000, 100_000), (10_000, 1_000)
DIMENSIONS = 384
MOST_SECONDS = 1.0
MEGABYTE = 1_000_000
MEGABYTES_SHARE = 0.01  # of the questions: they take as long as the rest together
SETS = ("xquad/en", "xquad/de", "xquad/zh", "stackfaq", "squad-articles", "awsdocs", "scifact")
SYNTAX = (
    *("AND", "OR", "NOT", "NEAR(", "NEAR/2", '"', "'", "*", "^", "+", "-", "(", ")", "{", "}", ":", ",", ";", "--"),
    *("prompt:", "completion :", "-prompt:", "{prompt completion} :", "rank", "ret_fts", "00000", "=-", "%s", "%(x)s"),
    *("refund", "the", "C++", ".NET", "ERR-1234", "退款", "คืนเงิน", "Rückgabebedingungen", "🎉", "DROP TABLE ret_fts"),
)
CONTROLS = [*map(chr, range(32)), *map(chr, range(127, 160)), *"\u200b\u200d\u202e\u2066\ufeff\ufffd\ufffe\ud800\udfff"]
REPEATED = (
    *("a b c ", "\0", '" OR 1=1 --', "\ud800", "退款", "NEAR(", "x" * 500 + " ", "%s %(x)s ", "a", "a.", "1,", "](a"),
    *("the of and ", "ERR-1 ", "aB", "\u0301", "คืนเงิน", "Rückgabe", "👩‍👩‍👧", "\\(", "-", "\n", "+", "é", "İ", "ﷺ"),
)


def read_sets() -> list[Collection]:
    """Return the shared collections; none where they are not laid beside the project."""
    folders = [SHARED / "data" / "retrieval" / name for name in SETS]
    return [read_collection(folder) for folder in folders if folder.is_dir()]


def in_turn(lists: list) -> Iterator:
    """Yield from each of the lists in turn, until all are at their ends."""
    return (each for round_ in zip_longest(*lists) for each in round_ if each is not None)


def corpus_of(sets: list[Collection], size: int) -> list[Text]:
    """Return so many texts: the sets' own, filled up with made ones."""
    own = (Text(each.title[:1_000], each.text) for each in in_turn([one.documents for one in sets]))
    return list(islice(chain(own, make_texts(size)), size))


def generated_texts(count: int) -> list[str]:
    """Return texts as hypothesis thinks them up: any characters, also halves of surrogate pairs."""
    found = []

    @settings(max_examples=count, database=None, derandomize=True, deadline=None, phases=[Phase.generate])
    @given(
        st.text() | st.text(st.characters(codec=None), max_size=200) | st.lists(st.sampled_from(SYNTAX)).map("".join)
    )
    def collect(text: str) -> None:
        found.append(text)

    collect()
    return found


def random_texts(chance: random.Random, pieces, count: int, joint: str) -> list[str]:
    return [joint.join(chance.choices(pieces, k=chance.randint(1, 60))) for _ in range(count)]


def make_kinds(count: int, sets: list[Collection], size: int) -> dict[str, list[str]]:
    """Return about so many questions in all, by their kind."""
    chance, share = random.Random(count), count // 5
    asked = list(islice(in_turn([one.questions for one in sets]), 2 * share))
    longest = [chance.choice(REPEATED) for _ in range(max(len(REPEATED), int(count * MEGABYTES_SHARE)))]
    kinds = {
        "the sets' own": [question.text for question in asked],
        "made ones": make_questions(share, size),
        "syntax of FTS5": random_texts(chance, SYNTAX, share, " "),
        "control characters": random_texts(chance, [*CONTROLS, "refund", "price"], share, ""),
        "a megabyte": [piece * (MEGABYTE // len(piece)) for piece in longest],
    }
    left = count - sum(map(len, kinds.values()))
    return kinds | {"any characters": generated_texts(max(left, share // 2))}


@dataclass(frozen=True)
class Asked:
    """A question that was asked: its beginning, and the seconds it took on the clock and of the processor."""

    mode: str
    text: str
    clock: float
    processor: float
    error: str = ""


def ask_all(model: MLModel, kinds: dict[str, list[str]]) -> dict[str, list[Asked]]:
    """Ask all questions, each under one retrieval; returns what came of them by their kind."""
    retrieve(model, "warm", mode=Retrieval.HYBRID)
    told = defaultdict(list)
    for kind, questions in kinds.items():
        for number, question in enumerate(questions):
            told[kind].append(ask(model, question, Retrieval.values[number % len(Retrieval.values)]))
    return told


def ask(model: MLModel, question: str, mode: str) -> Asked:
    clock, processor, error = time.perf_counter(), time.process_time(), ""
    try:
        retrieve(model, question, mode=mode)
    except Exception:
        error = traceback.format_exc()
    return Asked(mode, question[:60], time.perf_counter() - clock, time.process_time() - processor, error)


def teach_texts(texts: list[Text]) -> MLModel:
    """Return a model of the active store that knows these texts, with vectors of the local embedder's size."""
    return teach("bench", texts, make_vectors(len(texts), DIMENSIONS), LOCAL_EMBEDDING)


def told_at(size: int, count: int, sets: list[Collection]) -> dict[str, list[Asked]]:
    """Return what came of so many questions to so many snippets, in a store of their own."""
    with tempfile.TemporaryDirectory() as folder, override_settings(STORES_DIR=Path(folder)):
        store = create_store(BENCH)
        with activated(store):
            return ask_all(teach_texts(corpus_of(sets, size)), make_kinds(count, sets, size))


def print_slowest(told: dict[str, list[Asked]]) -> list[Asked]:
    """Print how long the questions of each kind took; returns those that went wrong."""
    for kind, asked in told.items():
        took = np.sort([each.processor for each in asked])
        slowest = max(asked, key=lambda each: each.processor)
        print(
            f"{kind:<20} {len(asked):>6,}   p50 {1000 * np.median(took):>6.1f} ms   p99 "
            f"{1000 * np.quantile(took, 0.99):>6.1f} ms   slowest {1000 * took[-1]:>6.1f} ms "
            f"({1000 * max(each.clock for each in asked):.0f} on the clock): {slowest.mode}, {slowest.text[:30]!a}"
        )
    return [each for each in chain(*told.values()) if each.error or each.processor > MOST_SECONDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, metavar="N")
    parser.add_argument("--questions", nargs="*", type=int, default=QUESTIONS, metavar="N", help="one for each size")
    given_ = parser.parse_args()
    sets, wrong = read_sets(), []
    for size, count in zip(given_.sizes, given_.questions, strict=True):
        told = told_at(size, count, sets)
        print(f"\n{sum(map(len, told.values())):,} questions at {size:,} snippets (time of the processor)")
        wrong += print_slowest(told)
    for each in wrong[:20]:
        print(f"\nwrong: {each.mode}, {each.text!a}: {1000 * each.processor:.0f} ms {each.error}")
    print("" if wrong else "\nnone raised, none took over a second")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
