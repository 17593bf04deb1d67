"""Runs engines side by side on one collection, each in a process of its own, asked in turns."""

import contextlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.benchmarks.peers.collection import INSERTED, UPDATED, Collection
from tests.benchmarks.peers.environments import PROJECT

WARM = 3  # questions before the clock counts
UPDATE_SECONDS = 4.0
TENANTS = 1_000
TOP = 10


class EngineFailed(Exception):
    """An engine answered with an error, or not at all."""


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
    insert: float | None = None
    update: float | None = None
    disk: int | None = None
    memory: int | None = None
    agrees: float | None = None
    found: list[list[int]] = field(default_factory=list, repr=False)


class Engine:
    """The process of an engine, as a caller sees it."""

    def __init__(self, name: str, python: Path, folder: Path, data: Path):
        command = [python, "-m", "tests.benchmarks.peers.engine", name, folder, data]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

    def __call__(self, do: str, **arguments) -> dict:
        """Return the answer to a command; raises EngineFailed."""
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._process.stdout.readline() or '{"error": "its process has ended"}')
        except BrokenPipeError:
            answer = {"error": "its process has ended"}
        if "error" in answer:
            raise EngineFailed(f"{do}: {answer['error']}")
        return answer

    def close(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def measure(
    collection: Collection, pythons: dict[str, Path], place: Path, rounds: int, tenants: int = TENANTS
) -> list[Figures]:
    """Return the figures of the engines, given the Python that each runs in; ours has so many other tenants beside."""
    figures = {name: Figures(name) for name in pythons}
    with ExitStack() as stack:
        opened = {}
        for name, python in pythons.items():
            folder = place / name.replace(" ", "-")
            folder.mkdir()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            with _noting_errors(figures[name]):
                opened[name] = _built(stack, figures[name], python, folder, collection, tenants)
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
        print(f"  {figures.name} is left out: {error}", flush=True)


def _built(
    stack: ExitStack, figures: Figures, python: Path, folder: Path, collection: Collection, tenants: int
) -> Engine:
    """Return the engine with its rows, asked once while they were cold."""

    def start() -> Engine:
        engine = Engine(figures.name, python, folder, collection.folder)
        stack.callback(engine.close)
        return engine

    engine = start()
    about = engine("load")
    figures.leg, figures.keeps = about["leg"], about["keeps"]
    figures.build = engine("build", count=collection.texts)["seconds"]
    if about["opens"]:
        engine("crowd", tenants=tenants)
        figures.disk = engine("weigh")["disk_bytes"]
        engine("chill")
        engine.close()
        engine = start()
        engine("load")
        opening = engine("open")["seconds"]
        figures.cold = opening + engine("ask", question=0)["seconds"]
        figures.disk = engine("weigh")["disk_bytes"]
    return engine


def _ask_in_turns(collection: Collection, opened: dict[str, Engine], figures: dict[str, Figures], rounds: int) -> None:
    """Ask all questions of all engines so often, in turns: what slows the machine down hits them all."""
    seconds = {name: np.full((rounds, collection.questions), np.inf) for name in opened}
    found = {name: [[] for _ in range(collection.questions)] for name in opened}
    for turn in range(-WARM, rounds * collection.questions):
        repeat, question = divmod(max(turn, 0), collection.questions)
        for name, engine in opened.items():
            if figures[name].error:
                continue
            with _noting_errors(figures[name]):
                answer = engine("ask", question=question)
                if turn >= 0:
                    seconds[name][repeat, question] = answer["seconds"]
                    found[name][question] = answer["found"]
    for name, engine in opened.items():
        if not figures[name].error:
            best = seconds[name].min(axis=0)  # a question's quickest time: others work on the machine, too
            figures[name].warm, figures[name].slow = float(np.median(best)), float(np.quantile(best, 0.95))
            figures[name].found = found[name]
            figures[name].memory = engine("weigh")["memory_bytes"]


def _change(engine: Engine, figures: Figures, collection: Collection) -> None:
    inserted = engine("insert", first=collection.texts, count=INSERTED)
    updated = engine("update", count=UPDATED, seconds=UPDATE_SECONDS)
    figures.insert = inserted["seconds"] / INSERTED
    figures.update = updated["seconds"] / updated["count"]


def _compare(collection: Collection, figures: list[Figures]) -> None:
    """Note how many of the first ten are the nearest (vectors), or those of our own leg (words, and both)."""
    ours = {each.leg: each.found for each in figures if each.name.startswith("sitewise") and each.found}
    ours["vector"] = collection.nearest(TOP)
    for each in figures:
        if each.found and each.leg in ours:
            pairs = zip(each.found, ours[each.leg], strict=True)
            each.agrees = float(np.mean([len({*some} & {*others}) for some, others in pairs])) / TOP
