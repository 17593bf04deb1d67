"""Runs engines side by side on one collection, each in a process of its own, asked in turns."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.benchmarks.peers import machine
from tests.benchmarks.peers.caller import Engine, EngineFailed
from tests.benchmarks.peers.collection import INSERTED, UPDATED, Collection

WARM = 3  # questions before the clock counts
COLD_STARTS = 2  # the quicker one counts
ASK_SECONDS = 30.0  # a slow engine is asked no more after so long, but once at least
UPDATE_SECONDS = 4.0
TRACED = 5  # changed rows that are looked for
TENANTS = 1_000
TOP = 10


@dataclass
class Figures:
    """What was measured of one engine: seconds and bytes; None where it cannot be."""

    name: str
    leg: str = ""
    keeps: str = ""
    error: str = ""
    build: float | None = None
    cold: float | None = None
    warm: float | None = None
    slow: float | None = None
    busy: float | None = None  # of the processor, for a question: what else the machine does counts less
    insert: float | None = None
    update: float | None = None
    disk: int | None = None
    memory: int | None = None
    agrees: float | None = None  # of the first ten, how many are right: see _compare
    fresh: float | None = None  # of the changed rows, how many a question for them finds at once
    found: dict[int, list[int]] = field(default_factory=dict, repr=False)

    @property
    def is_in_step(self) -> bool:
        """Whether a change of a row is on disk, and found, as soon as it is made."""
        return self.keeps.startswith("on disk") and "out of step" not in self.keeps


def measure(
    collection: Collection, pythons: dict[str, Path], place: Path, rounds: int, tenants: int = TENANTS
) -> list[Figures]:
    """Return the figures of the engines, given the Python that each runs in; ours has so many other tenants beside."""
    figures = {name: Figures(name) for name in pythons}
    with ExitStack() as stack:
        opened = {}
        for name, python in pythons.items():
            with _noting_errors(figures[name]):
                opened[name] = _built(stack, figures[name], python, place, collection, tenants)
        _ask_in_turns(collection, opened, figures, rounds)
        for name, engine in opened.items():
            if not figures[name].error:
                with _noting_errors(figures[name]):
                    _change(engine, figures[name], collection)
    _compare(collection, list(figures.values()))
    return list(figures.values())


@contextlib.contextmanager
def _noting_errors(figures: Figures) -> Iterator[None]:
    try:
        yield
    except EngineFailed as error:
        figures.error = str(error)
        print(f"  {figures.name}: {error}", flush=True)


def _built(
    stack: ExitStack, figures: Figures, python: Path, place: Path, collection: Collection, tenants: int
) -> Engine:
    """Return the engine with its rows, asked once while they were cold."""
    if machine.lacks_disk(place, collection.texts, collection.dimensions):
        raise EngineFailed("the disk has no room for it")
    folder = place / figures.name.replace(" ", "-")
    folder.mkdir()
    stack.callback(shutil.rmtree, folder, ignore_errors=True)

    def start() -> Engine:
        engine = Engine(figures.name, python, folder, collection.folder, place / f"{folder.name}.log")
        stack.callback(engine.close)
        return engine

    engine = start()
    about = engine("load")
    figures.leg, figures.keeps = about["leg"], about["keeps"]
    figures.build = engine("build", count=collection.texts)["seconds"]
    if about["opens"]:
        engine("crowd", tenants=tenants)
        engine, figures.cold = _reopened(engine, start, folder)
        figures.disk = engine("weigh")["disk_bytes"]
    if machine.lacks_memory():
        engine.close()
        raise EngineFailed("with it, the machine's memory runs short")
    return engine


def _reopened(engine: Engine, start: Callable[[], Engine], folder: Path) -> tuple[Engine, float]:
    """Return the engine in another process, and the seconds that it took there to open and to answer, from disk."""
    took = []
    for _ in range(COLD_STARTS):
        engine.close()
        machine.chill(folder)
        engine = start()
        engine("load")
        took.append(engine("open")["seconds"] + engine("ask", question=0)["seconds"])
    return engine, min(took)


def _ask_in_turns(collection: Collection, opened: dict[str, Engine], figures: dict[str, Figures], rounds: int) -> None:
    """Ask all questions of all engines so often, in turns: what slows the machine down hits them all."""
    took = {name: np.full((2, rounds, collection.questions), np.inf) for name in opened}
    spent = dict.fromkeys(opened, 0.0)
    for turn in range(-WARM, rounds * collection.questions):
        repeat, question = divmod(max(turn, 0), collection.questions)
        for name, engine in opened.items():
            if figures[name].error or (turn > 0 and spent[name] > ASK_SECONDS):
                continue
            with _noting_errors(figures[name]):
                answer = engine("ask", question=question)
                spent[name] += answer["seconds"]
                if turn >= 0:
                    took[name][:, repeat, question] = answer["seconds"], answer["busy"]
                    figures[name].found[question] = answer["found"]
    for name, engine in opened.items():
        if not figures[name].error:
            best, busy = took[name].min(axis=1)  # a question's quickest time: others work on the machine, too
            best, busy = best[np.isfinite(best)], busy[np.isfinite(busy)]
            figures[name].warm, figures[name].slow = float(np.median(best)), float(np.quantile(best, 0.95))
            figures[name].busy = float(np.median(busy))
            figures[name].memory = engine("weigh")["memory_bytes"]


def _change(engine: Engine, figures: Figures, collection: Collection) -> None:
    inserted = engine("insert", first=collection.texts, count=INSERTED)
    figures.insert = inserted["seconds"] / INSERTED
    updated = engine("update", count=UPDATED, seconds=UPDATE_SECONDS)
    figures.update = updated["seconds"] / updated["count"]
    figures.fresh = engine("trace", count=min(TRACED, updated["count"]))["fresh"]


def _compare(collection: Collection, figures: list[Figures]) -> None:
    """Note how many of an engine's first ten are the exact first ten of its leg, or of either leg if it has both."""
    nearest, best = collection.nearest(TOP), collection.best_by_words(TOP)
    right = {"vector": nearest, "keyword": best, "hybrid": [[*a, *b] for a, b in zip(nearest, best, strict=True)]}
    for each in figures:
        if each.found:
            shares = [len({*found} & {*right[each.leg][question]}) / TOP for question, found in each.found.items()]
            each.agrees = float(np.mean(shares))
