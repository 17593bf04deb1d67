"""Measures the index beside what a user would install instead, and draws docs/bench.svg: `make bench-peers`.

    make bench-peers [PEERS="--quick"]
    python -m tests.benchmarks.peers [--sizes N ...] [--dimensions N ...] [--engines NAME ...] [--quick]

Every engine gets the same texts and vectors, runs in a process of its own on one core, and is asked in turns with the
others. Ours has the stores of 1,000 other tenants beside it. A time is the median over the questions of the quickest
of a question's repeats; of two cold starts the quicker counts. An engine that fails, takes too long or too much memory
is named with the reason, and the others go on. All sizes take about an hour and 15 GB of disk, given back at the end.

"right 10": of the first ten, those that are exactly nearest, or rank best by plain BM25; for both legs, either.
"fresh": of the rows just changed, the share that a question finds at once.
"""

import argparse
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks.peers.chart import draw
from tests.benchmarks.peers.collection import Collection
from tests.benchmarks.peers.engines import ENGINES, environment_of
from tests.benchmarks.peers.environments import PROJECT, NotInstalled, own_python, python_of
from tests.benchmarks.peers.measuring import Figures, measure
from tests.benchmarks.peers.report import table

OURS = ("sitewise hybrid", "sitewise semantic", "sitewise keyword")
ALL_POSTINGS, POSTINGS_TEXTS = "sitewise all postings", 100_000  # smaller collections keep within the budget
FIGURES = PROJECT / "var" / "peers" / "figures.json"
PREFIX = "run-"
QUICK = {"sizes": [1_000, 10_000], "dimensions": [384], "questions": 15}


def main() -> None:
    given = _arguments()
    pythons = {**dict.fromkeys((*OURS, ALL_POSTINGS), own_python()), **_installed(given.engines)}
    if given.install:
        return
    kept = json.loads(FIGURES.read_text()) if given.add and FIGURES.exists() else {}
    for dimensions in given.dimensions:
        for size in given.sizes:
            able = {name: python for name, python in pythons.items() if _is_able(name, size)}
            found = run(size, dimensions, given.questions, given.rounds, able)
            print(table(size, dimensions, found), flush=True)
            kept[f"{size} x {dimensions}"] = [{**asdict(each), "found": None} for each in found]
            FIGURES.parent.mkdir(parents=True, exist_ok=True)
            FIGURES.write_text(json.dumps(kept, indent=1))
            given.chart.write_text(draw(kept))
    print(f"\ndrawn: {given.chart}")


def run(size: int, dimensions: int, questions: int, rounds: int, pythons: dict[str, Path]) -> list[Figures]:
    """Return the figures of these engines on a collection of that size, in a folder that is gone afterwards."""
    _sweep()
    with tempfile.TemporaryDirectory(dir=FIGURES.parent, prefix=f"{PREFIX}{os.getpid()}-") as folder:
        collection = Collection(Path(folder), size, dimensions, questions)
        collection.write()
        return measure(collection, pythons, Path(folder), rounds)


def _sweep() -> None:
    """Remove what a run that was killed has left: gigabytes."""
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    for folder in FIGURES.parent.glob(f"{PREFIX}*"):
        process = folder.name.removeprefix(PREFIX).split("-")[0]
        if not Path("/proc", process).exists():
            shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000], metavar="N")
    parser.add_argument("--dimensions", nargs="+", type=int, default=[384, 1_536], metavar="N")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=list(ENGINES), metavar="NAME")
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5, help="how often each question is asked")
    parser.add_argument("--quick", action="store_true", help="the smaller collections alone, in a few minutes")
    parser.add_argument("--install", action="store_true", help="make the environments, and stop")
    parser.add_argument("--add", action="store_true", help="keep the figures of other sizes from the run before")
    parser.add_argument("--chart", type=Path, default=PROJECT / "docs" / "bench.svg")
    given = parser.parse_args()
    if given.quick:
        vars(given).update(QUICK)
    return given


def _installed(names: list[str]) -> dict[str, Path]:
    """Return the Python of each peer; tells which cannot be installed, and why."""
    pythons = {}
    for name in names:
        try:
            pythons[name] = python_of(environment_of(name))
        except NotInstalled as error:
            print(f"{name} is left out: {error}", flush=True)
    return pythons


def _is_able(name: str, size: int) -> bool:
    if name == ALL_POSTINGS:
        return size >= POSTINGS_TEXTS
    most = getattr(ENGINES.get(name), "most_texts", size)
    if most < size:
        print(f"{name} is left out at {size:,}: it is not made for more than {most:,}", flush=True)
    return most >= size


if __name__ == "__main__":
    main()
