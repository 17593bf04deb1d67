"""Writes to one store from four processes while four others ask it, and looks at every answer.

    python -m tests.benchmarks.bench_concurrency [--seconds N]

What is written are pairs of snippets, each pair in one transaction and version after version: a reader has to see both
of one version or, where that version is a deletion, none; and none that was gone before the question began, or had not
begun when it was answered. At the end the index has to be what a rebuild makes. Anything else ends it with status 1.
"""

import argparse
import multiprocessing
import os
import random
import re
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import django

from tests import environment  # noqa: F401  the benchmark has settings and a data folder of its own

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

import numpy as np  # noqa: E402
import openai.resources.embeddings  # noqa: E402, F401  slow to import: once, before the processes are forked
from django.db import connections  # noqa: E402

from models_app import index, snippets, vectors  # noqa: E402
from models_app.embedder import space_of  # noqa: E402
from models_app.index.connection import rows  # noqa: E402
from models_app.models import MLModel, TrainingSnippet  # noqa: E402
from models_app.retrieval import retrieve  # noqa: E402
from models_app.switching import begin_answering  # noqa: E402
from tenants import installation  # noqa: E402
from tenants.models import Tenant  # noqa: E402
from tenants.store import activated, tenant_atomic  # noqa: E402
from tests.benchmarks.synthetic import make_texts  # noqa: E402
from tests.fakes.embedding_server import CLASSES, EmbeddingServer, vector_of  # noqa: E402

SECONDS = 60
WRITERS = READERS = 4
SLOTS = 16  # pairs: so few that a question often meets one that is being written
CYCLE = 6  # versions of a pair until it is deleted again
OTHERS = 1_000  # snippets that nobody asks for or changes
PATIENCE_SECONDS = 90  # until all have started, on a busy machine
REBUILD_EVERY = 250  # writes of the first writer
EMBEDDING = "first"
VERSION = re.compile(r"^slot(\d+) version(\d+) (left|right)$")
# All that the index holds: what a rebuild must not change.
INDEX = (
    "SELECT term, doc, col, offset FROM ret_posting ORDER BY term, doc, col, offset",
    "SELECT id, model_id, terms, digest FROM ret_snippet ORDER BY id",
    "SELECT model_id, snippets, terms, terms_version FROM ret_model ORDER BY model_id",
)
forked = multiprocessing.get_context("fork")


def is_there(version: int) -> bool:
    """Return whether a pair of this version stands in the store, or is deleted: all know without being told."""
    return version % CYCLE != 0


@dataclass
class Told:
    """What a process did: the seconds each of its steps took, by kind, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds.setdefault(kind, []).append(time.perf_counter() - began)


class Board:
    """What all processes see: of each pair the version whose writing has begun, and the last one that is committed."""

    def __init__(self):
        self.begun = forked.Array("q", SLOTS, lock=False)
        self.committed = forked.Array("q", SLOTS, lock=False)
        self.ready = forked.Barrier(WRITERS + READERS + 1)
        self.over = forked.Event()


def drafts_of(slot: int, version: int, names: tuple[str, str] = ("left", "right")) -> list[TrainingSnippet]:
    """Return the pair: unlike any other by words, and in a class of its own by meaning."""
    common = f"slot{slot} slot{slot}version{version} refund of a parcel that came back"
    return [
        TrainingSnippet(prompt=f"slot{slot} version{version} {name}", completion=f"{common}, {name} half " * 5)
        for name in names
    ]


def write_page(model: MLModel, slot: int, version: int) -> None:
    """Bring a pair to its next version as an import does."""
    uri = f"https://acme.test/{slot}"
    if not is_there(version):
        snippets.retire_pages(model, [uri])
        return
    drafts = drafts_of(slot, version)
    ahead = vectors.vectors_ahead(model, uri, drafts)
    with tenant_atomic():
        snippets.replace_page_snippets(model, uri, drafts)
        vectors.store_vectors(model, uri, ahead)
        give_vectors(model, model.snippets.filter(uri=uri, embedded_in=""))


def write_by_hand(model: MLModel, slot: int, version: int) -> None:
    """Bring a pair to its next version as the owner does: by adding, editing, or deleting and adding again."""
    standing = list(model.snippets.filter(prompt__startswith=f"slot{slot} ").order_by("id"))
    drafts = drafts_of(slot, version)
    with tenant_atomic():
        if not is_there(version) or version % 2:
            snippets.delete(model, [row.pk for row in standing])
            standing = []
        if is_there(version):
            for row, draft in zip(standing, drafts, strict=False):
                snippets.edit(row, draft.prompt, draft.completion, uri="")
            if not standing:
                snippets.add_many(model, drafts, TrainingSnippet.Source.MANUAL)
        give_vectors(model, model.snippets.filter(prompt__startswith=f"slot{slot} "))


def give_vectors(model: MLModel, lacking) -> None:
    """Give snippets their vectors as the API would make them, in the caller's transaction."""
    made = {row.pk: vector_of(EMBEDDING, row.prompt) for row in lacking}
    if made:
        space = space_of(model)
        index.put_vectors(model.pk, space.name, list(made), np.array(list(made.values())))
        TrainingSnippet.objects.filter(pk__in=list(made)).update(embedded_in=space.name)
        begin_answering(model, space)


def write_on(number: int, board: Board, told: Told) -> None:
    """Bring one pair after another to its next version; the first writer makes the whole index anew at times."""
    model, chance, written = MLModel.objects.get(), random.Random(number), 0
    own = range(number, SLOTS, WRITERS)
    while not board.over.is_set():
        slot = chance.choice(own)
        version = board.begun[slot] + 1
        board.begun[slot] = version
        with told.timed("page written" if slot % 8 < 4 else "written by hand"):
            (write_page if slot % 8 < 4 else write_by_hand)(model, slot, version)
        board.committed[slot] = version
        written += 1
        if number == 0 and written % REBUILD_EVERY == 0:
            with told.timed("index made anew"):
                index.rebuild_store([model.pk])


def ask_on(number: int, board: Board, told: Told) -> None:
    """Ask for one pair after another, under each retrieval in turn, and say which answers no state of the store has."""
    model, chance = MLModel.objects.get(), random.Random(100 + number)
    while not board.over.is_set() and len(told.wrong) < 5:
        slot, mode = chance.randrange(SLOTS), chance.choice(["keyword", "semantic", "hybrid", "exact version"])
        first = board.committed[slot]
        wanted = first if mode == "exact version" else None
        question = f"Which is slot{slot}?" if wanted is None else f"slot{slot}version{wanted}"
        with told.timed(mode):
            retrieved = retrieve(model, question, mode="keyword" if wanted is not None else mode)
        last = board.begun[slot]
        found = sorted((hit.title, hit.text) for hit in retrieved.hits)
        if retrieved.degraded or found not in [expected(slot, each, wanted) for each in range(first, last + 1)]:
            told.wrong.append(f"{mode}, slot {slot}, versions {first} to {last}: {found} {retrieved.degraded}")


def expected(slot: int, version: int, wanted: int | None = None) -> list[tuple[str, str]]:
    """Return what a question for the pair, or for one version of it, finds while this version stands."""
    is_found = is_there(version) and wanted in (None, version)
    return sorted((draft.prompt, draft.completion) for draft in drafts_of(slot, version)) if is_found else []


def run_apart(work, number: int, board: Board, results) -> None:
    """Do the work in this process, with connections of its own, and tell what came of it."""
    told = Told()
    try:
        with activated(Tenant.objects.get()):
            retrieve(MLModel.objects.get(), "Which is slot0?", mode="hybrid")  # imports what it takes
            board.ready.wait(PATIENCE_SECONDS)
            work(number, board, told)
    except Exception:
        told.wrong.append(traceback.format_exc())
    results.send(told)


def serve_embeddings(pipe) -> None:
    with EmbeddingServer() as server:
        pipe.send(server.url)
        pipe.recv()


def work_on(board: Board, seconds: float) -> tuple[list[Told], list[Told]]:
    """Let writers and readers work for so long; returns what each of them tells."""
    connections.close_all()  # a connection must not be shared with a forked process
    pipes, processes = [], []
    for work, count in ((write_on, WRITERS), (ask_on, READERS)):
        for number in range(count):
            receiver, sender = forked.Pipe(duplex=False)
            processes.append(forked.Process(target=run_apart, args=(work, number, board, sender)))
            pipes.append(receiver)
    for process in processes:
        process.start()
    board.ready.wait(PATIENCE_SECONDS)
    time.sleep(seconds)
    board.over.set()
    told = [pipe.recv() for pipe in pipes]
    for process in processes:
        process.join()
    return told[:WRITERS], told[WRITERS:]


def teach(url: str) -> MLModel:
    """Return acme's model, with snippets that nobody asks for."""
    model = MLModel(slug="support", name="Support", embedding_model=EMBEDDING, provider_base_url=url)
    model.provider_key = "sk-own"
    model.save()
    texts = [TrainingSnippet(prompt=each.title, completion=each.text) for each in make_texts(OTHERS)]
    snippets.add_many(model, texts)
    for start in range(0, OTHERS, snippets.BATCH):
        with tenant_atomic():
            give_vectors(model, model.snippets.order_by("id")[start : start + snippets.BATCH])
    return model


def different_after_rebuild(model: MLModel) -> list[str]:
    """Return in what the index is not what a rebuild makes of its snippets."""
    problems = index.check_model(model.pk)
    before = [rows(sql) for sql in INDEX]
    index.rebuild_store([model.pk])
    return problems + [f"A rebuild changes: {sql}" for sql, had in zip(INDEX, before, strict=True) if rows(sql) != had]


def print_figures(told: list[Told], what: str, seconds: float) -> None:
    kinds = sorted({kind for each in told for kind in each.seconds})
    for kind in kinds:
        took = np.sort(np.concatenate([each.seconds.get(kind, []) for each in told]))
        rate = len(took) / seconds
        print(
            f"{what} {kind:<16} {len(took):>7,}  {rate:>7.1f} a second   p50 {1000 * np.median(took):>6.1f} ms   "
            f"p99 {1000 * np.quantile(took, 0.99):>6.1f} ms   slowest {1000 * took[-1]:>7.1f} ms"
        )
    total = sum(len(times) for each in told for times in each.seconds.values())
    print(f"{what} in all {total:>17,}  {total / seconds:>7.1f} a second", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    ours, theirs = forked.Pipe()
    server = forked.Process(target=serve_embeddings, args=(theirs,), daemon=True)
    server.start()
    installation.prepare()
    tenant = installation.create_tenant("acme", "Acme")
    with activated(tenant):
        model = teach(ours.recv())
    board = Board()
    writers, readers = work_on(board, given.seconds)
    ours.send("over")
    server.join()
    print(f"{WRITERS} writers and {READERS} readers, {OTHERS + 2 * SLOTS:,} snippets, {given.seconds:g} seconds")
    print_figures(writers, "writers:", given.seconds)
    print_figures(readers, "readers:", given.seconds)
    wrong = [each for told in (*writers, *readers) for each in told.wrong]
    with activated(tenant):
        wrong += different_after_rebuild(model)
    print("\n".join(wrong) or "no error, no stale or half answer, and the index is what a rebuild makes")
    sys.exit(1 if wrong else 0)


assert SLOTS < CLASSES

if __name__ == "__main__":
    main()
