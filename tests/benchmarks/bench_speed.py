"""Measures the index and the local embedder as ratios in one run, each pair of figures timed in turns.

    python -m tests.benchmarks.bench_speed [--sizes N ...] [--dimensions N ...]

The semantic scan against a numpy matrix that is in memory, hybrid against its two legs, what the budget of postings
costs in the first ten hits, what 1,000 other tenants and models change, and how fast texts are embedded.
"""

import argparse
import os

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before numpy is imported
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import shutil  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from pathlib import Path  # noqa: E402

import django  # noqa: E402
import numpy as np  # noqa: E402
from django.test import override_settings  # noqa: E402

django.setup()

from models_app import index  # noqa: E402
from models_app.index import IndexQuestion  # noqa: E402
from models_app.index.statement import POSTINGS_BUDGET  # noqa: E402
from models_app.local_embedder import local_embedder  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.terms import question_terms  # noqa: E402
from tenants.store import Store, activated, create_store  # noqa: E402
from tests.benchmarks.synthetic import Text, make_question_vectors, make_questions, make_texts, make_vectors  # noqa: E402

SIZES, DIMENSIONS = (1_000, 10_000, 100_000), (384, 1_536)
LIMIT = 50
QUESTIONS = 40
OTHERS = 1_000
OTHER_TEXTS = 50
BATCH = 2_000
EXACT = 10**12  # a budget of postings that no question reaches
BENCH = Store(1, "bench")


def interleaved(calls: dict[str, Callable[[int], object]], rounds: int, warm: int = 3) -> dict[str, float]:
    """Return the median time of each call in ms; they are timed in turns, with the number of the round.

    This thread's own time is taken, so that what else runs on the machine counts less: nothing here waits or forks.
    """
    seconds = {name: [] for name in calls}
    for turn in range(-warm, rounds):
        for name, call in calls.items():
            began = time.thread_time()
            call(abs(turn))
            if turn >= 0:
                seconds[name].append(time.thread_time() - began)
    return {name: 1000 * float(np.median(each)) for name, each in seconds.items()}


@contextmanager
def store_folder() -> Iterator[Path]:
    """Give a folder with an empty store in it."""
    with tempfile.TemporaryDirectory() as folder, override_settings(STORES_DIR=Path(folder)):
        create_store(BENCH)
        yield Path(folder)


def teach(slug: str, texts: list[Text], vectors: np.ndarray, space: str = "bench") -> MLModel:
    """Return a new model of the active store that knows these texts, with a vector each."""
    model = MLModel.objects.create(slug=slug, name=slug)
    for start in range(0, len(texts), BATCH):
        rows = [TrainingSnippet(model=model, prompt=each.title, completion=each.text) for each in texts[start:][:BATCH]]
        TrainingSnippet.objects.bulk_create(rows, batch_size=500)
        terms = [index.terms_of(row.prompt, row.completion) for row in rows]
        index.add_terms(model.pk, [(row.pk, each) for row, each in zip(rows, terms, strict=True)])
        if len(vectors):
            index.put_vectors(model.pk, space, [row.pk for row in rows], vectors[start:][:BATCH])
    return model


def question(model: MLModel, mode: str, text: str, vector: np.ndarray | None, **changes) -> IndexQuestion:
    fields = {"space": "bench", "min_relevance": -1.0, "keyword_share": 0.0, "limit": LIMIT, **changes}
    return IndexQuestion(model_id=model.pk, mode=mode, terms=tuple(question_terms(text)), vector=vector, **fields)


def nearest(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the rows nearest to the vector, best first: what the semantic leg is compared with."""
    cosines = matrix @ vector
    best = np.argpartition(-cosines, LIMIT)[:LIMIT]
    return best[np.argsort(-cosines[best])]


def measure_scan(size: int, dimensions: int, rounds: int) -> None:
    """Print the semantic leg against a matrix in memory, and hybrid against its legs."""
    matrix = make_vectors(size, dimensions)
    asked, vectors = make_questions(QUESTIONS, size), make_question_vectors(QUESTIONS, dimensions, size)
    with store_folder(), activated(BENCH):
        model = teach("bench", make_texts(size), matrix)

        def ask(mode: str) -> Callable[[int], object]:
            return lambda turn: index.search(question(model, mode, asked[turn % QUESTIONS], vectors[turn % QUESTIONS]))

        calls = {mode: ask(mode) for mode in (index.SEMANTIC, index.KEYWORD, index.HYBRID)}
        took = interleaved({"numpy": lambda turn: nearest(matrix, vectors[turn % QUESTIONS]), **calls}, rounds)
        legs = took[index.SEMANTIC] + took[index.KEYWORD]
        times = "".join(f"{each:9.2f}" for each in took.values())
        ratios = f"{took[index.SEMANTIC] / took['numpy']:10.2f}x {took[index.HYBRID] / legs:10.2f}x"
        print(f"{size:>8,} x {dimensions:<6,}{times}{ratios}", flush=True)


def measure_budget(size: int, rounds: int) -> None:
    """Print what the budget of postings saves, and how many of the first ten hits it changes."""
    asked = make_questions(QUESTIONS, size)
    with store_folder(), activated(BENCH):
        model = teach("bench", make_texts(size), np.empty((0, 1)))

        def ask(budget: int, turn: int) -> list[int]:
            text = asked[turn % QUESTIONS]
            found = index.search(question(model, index.KEYWORD, text, None, limit=10, postings_budget=budget))
            return [hit.id for hit in found]

        calls = {"budget": lambda turn: ask(POSTINGS_BUDGET, turn), "exact": lambda turn: ask(EXACT, turn)}
        took = interleaved(calls, rounds)
        same = [len({*ask(POSTINGS_BUDGET, turn)} & {*ask(EXACT, turn)}) for turn in range(QUESTIONS)]
        print(
            f"keyword, {size:,} snippets: {took['budget']:.1f} ms under the budget of {POSTINGS_BUDGET:,} postings, "
            f"{took['exact']:.1f} ms without; of its first ten hits {np.mean(same):.1f} are the exact ones",
            flush=True,
        )


def measure_others(rounds: int) -> None:
    """Print hybrid at 1,000 snippets alone, among 1,000 other tenants' stores, and with 1,000 other models beside."""
    size, dimensions = 1_000, 384
    asked, vectors = make_questions(QUESTIONS, size), make_question_vectors(QUESTIONS, dimensions, size)
    few, few_vectors = make_texts(OTHER_TEXTS, 10**6), make_vectors(OTHER_TEXTS, dimensions, 10**6)
    texts, matrix = make_texts(size), make_vectors(size, dimensions)
    with store_folder() as alone, store_folder() as crowded, store_folder() as shared:
        places = {"alone": alone, "1,000 other tenants": crowded, "1,000 other models in the store": shared}
        models = {}
        for name, folder in places.items():
            with override_settings(STORES_DIR=folder), activated(BENCH):
                models[name] = teach("bench", texts, matrix)
                for number in range(OTHERS if folder == shared else 0):
                    teach(f"other-{number}", few, few_vectors)
        _add_tenants(crowded, few, few_vectors)

        def request(name: str) -> Callable[[int], object]:
            """Ask as a request does: the store is opened for it."""

            def ask(turn: int) -> None:
                own, place = models[name], turn % QUESTIONS
                with override_settings(STORES_DIR=places[name]), activated(BENCH):
                    index.search(question(own, index.HYBRID, asked[place], vectors[place]))

            return ask

        took = interleaved({name: request(name) for name in places}, rounds)
    for name, each in took.items():
        print(f"hybrid, {size:,} snippets, {name}: {each:.2f} ms ({each / took['alone']:.2f}x)", flush=True)


def _add_tenants(folder: Path, texts: list[Text], vectors: np.ndarray) -> None:
    """Lay 1,000 other stores beside the one of the folder, each with a small model."""
    with override_settings(STORES_DIR=folder):
        first = create_store(Store(2, "other"))
        with activated(first):
            teach("other", texts, vectors)
        for number in range(3, OTHERS + 2):
            shutil.copyfile(first.path, Store(number, "other").path)


def measure_embedder(rounds: int) -> None:
    """Print how many passages of 256 tokens a second are embedded, and how long a question of ten words takes."""
    embedder = local_embedder()
    passage = "The workshop repairs bicycles of every make while you wait, and lends you another one until then. " * 40
    while embedder.count_tokens(passage) > 256:
        passage = passage.rpartition(" ")[0]
    asked = "How much is a full service of my bicycle?"
    calls = {
        "passage": lambda turn: embedder.embed_passages([f"{passage} {turn}"]),
        "question": lambda turn: embedder.embed_question(f"{asked} {turn}"),
    }
    took = interleaved(calls, rounds)
    rate = 1000 / took["passage"]
    print(f"local embedder: {rate:.1f} passages of 256 tokens a second and core, {took['question']:.1f} ms a query")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, metavar="N")
    parser.add_argument("--dimensions", nargs="*", type=int, default=DIMENSIONS, metavar="N")
    parser.add_argument("--rounds", type=int, default=QUESTIONS)
    given = parser.parse_args()
    measure_embedder(given.rounds)
    print(f"{'snippets x dim.':17}{'numpy':>9}{'semantic':>9}{'keyword':>9}{'hybrid':>9}  scan/numpy hybrid/legs  (ms)")
    for size in given.sizes:
        for dimensions in given.dimensions:
            measure_scan(size, dimensions, given.rounds)
    for size in given.sizes[-1:]:
        measure_budget(size, given.rounds)
    measure_others(given.rounds)


if __name__ == "__main__":
    main()
