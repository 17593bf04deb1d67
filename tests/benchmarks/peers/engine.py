"""One engine in a process of its own: takes a JSON command a line on stdin, answers with one on stdout.

    python -m tests.benchmarks.peers.engine NAME FOLDER DATA

{"do": "load"}, {"do": "build", "count": N}, {"do": "open"}, {"do": "ask", "question": i}, {"do": "insert", "first": N,
"count": N}, {"do": "update", "count": N, "seconds": S}, {"do": "trace", "count": N}, {"do": "weigh"}: each answers with
what it measured, or with {"error": ...}. DATA is the folder that collection.py fills.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path

for threads in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "LANCE_CPU_THREADS",
    "TOKIO_WORKER_THREADS",
):
    os.environ[threads] = "1"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import numpy as np  # noqa: E402

from tests.benchmarks.peers.machine import bound_own_memory  # noqa: E402


class Process:
    """Holds the engine, and does the commands."""

    def __init__(self, name: str, folder: Path, data: Path):
        self._name, self._folder, self._data = name, folder, data
        self._questions = json.loads((data / "questions.json").read_text())
        self._asked = np.load(data / "questions.npy")
        # Mapped, so that the vectors which the benchmark holds are no memory of the engine's.
        self._vectors = np.load(data / "vectors.npy", mmap_mode="r")

    def load(self) -> dict:
        """Import the engine's library: what that takes is no cost of a question."""
        self._made_by = _engine_class(self._name)
        for module in getattr(self._made_by, "modules", ()):
            importlib.import_module(module)
        self._memory_before = _memory()
        return {
            "leg": self._made_by.leg,
            "keeps": self._made_by.keeps,
            "opens": self._made_by.open is not None,
        }

    def build(self, count: int) -> dict:
        self._make()
        texts, vectors = self._texts()[:count], np.array(self._vectors[:count])
        return _timed(self._engine.add, list(range(count)), texts, vectors)

    def crowd(self, tenants: int) -> dict:
        """Lay other tenants beside the engine's rows, where it knows such."""
        if hasattr(self._engine, "crowd"):
            self._engine.crowd(tenants)
        return {}

    def open(self) -> dict:
        """Open what a process before has built."""
        began = time.perf_counter()
        self._make()
        self._engine.open()
        return {"seconds": time.perf_counter() - began}

    def ask(self, question: int) -> dict:
        text, vector = self._questions[question], self._asked[question]
        began, began_busy = time.perf_counter(), time.process_time()
        found = self._engine.ask(text, vector)
        return {"seconds": time.perf_counter() - began, "busy": time.process_time() - began_busy, "found": found}

    def insert(self, first: int, count: int) -> dict:
        """Add rows that the engine has not, all at once."""
        part = slice(first, first + count)
        texts, vectors = self._texts()[part], np.array(self._vectors[part])
        return _timed(self._engine.add, list(range(first, first + count)), texts, vectors)

    def update(self, count: int, seconds: float) -> dict:
        """Change rows one by one, so many or for so long."""
        texts, vectors = self._texts(), np.array(self._vectors[-count:])
        began, done = time.perf_counter(), 0
        while done < count and time.perf_counter() - began < seconds:
            self._engine.update(done, texts[-1 - done], vectors[-1 - done])
            done += 1
        return {"seconds": time.perf_counter() - began, "count": done}

    def weigh(self) -> dict:
        """Return the bytes on disk, and the memory that came with the engine's rows."""
        disk = sum(path.stat().st_size for path in _files(self._engine, self._folder))
        return {"disk_bytes": disk, "memory_bytes": _memory() - self._memory_before}

    def trace(self, count: int) -> dict:
        """Ask for rows that update() changed, by what they say now; return the share of those that are found."""
        texts = self._texts()
        found = [self._engine.ask(texts[-1 - each], self._vectors[-1 - each]) for each in range(count)]
        return {"fresh": sum(each in ids for each, ids in enumerate(found)) / count}

    def close(self) -> None:
        if hasattr(getattr(self, "_engine", None), "close"):
            self._engine.close()

    def _make(self) -> None:
        self._engine = self._made_by(self._folder, self._vectors.shape[1])

    def _texts(self) -> list[str]:
        return json.loads((self._data / "texts.json").read_text())


def _engine_class(name: str) -> type:
    if name.startswith("sitewise"):
        from tests.benchmarks.peers.ours import SITEWISE

        return SITEWISE[name]
    from tests.benchmarks.peers.engines import ENGINES

    return ENGINES[name]


def _files(engine: object, folder: Path) -> list[Path]:
    found = engine.files() if hasattr(engine, "files") else folder.rglob("*")
    return [path for path in found if path.is_file()]


def _memory() -> int:
    """Return the bytes that this process and those it started hold and that are no file's.

    What maps a file leaves it to the machine's cache.
    """
    return sum(map(_anonymous, _family("self")))


def _family(process: str) -> list[str]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    children = [child for each in lists for child in each.read_text().split()]
    return [process, *(member for child in children for member in _family(child))]


def _anonymous(process: str) -> int:
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Anonymous:"))


def _timed(call, *arguments) -> dict:
    began = time.perf_counter()
    call(*arguments)
    return {"seconds": time.perf_counter() - began}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints of its own accord is no answer
    # One core for all of its threads, and always the same one, so that engines differ by what they do alone.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    bound_own_memory()
    name, *paths = sys.argv[1:]
    process = Process(name, *map(Path, paths))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(process, command.pop("do"))(**command)
        except Exception as error:  # an engine's own: the others go on
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)
    process.close()
    os._exit(0)  # some engines wait for threads of theirs that never end


if __name__ == "__main__":
    main()
