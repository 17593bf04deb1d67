"""One engine in a process of its own: takes a JSON command a line on stdin, answers with one on stdout.

    python -m tests.benchmarks.peers.engine NAME FOLDER CORPUS VECTORS

{"do": "build", "count": N}, {"do": "open"}, {"do": "ask", "questions": [i, ...]}, {"do": "insert", "count": N},
{"do": "update", "count": N}, {"do": "weigh"}: each answers with its seconds, or with {"error": ...}.
"""

import json
import os
import sys
import time
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402


class Process:
    """Holds the engine and the texts, and does the commands."""

    def __init__(self, name: str, folder: Path, corpus: Path, vectors: Path):
        texts = json.loads(corpus.read_text())
        self._texts, self._questions = texts["texts"], texts["questions"]
        arrays = np.load(vectors)
        self._vectors, self._asked = arrays["vectors"], arrays["questions"]
        self._folder = folder
        self._engine = _engine(name, folder, self._vectors.shape[1])
        self._built = 0

    def build(self, count: int) -> dict:
        self._built = count
        return _timed(self._engine.add, list(range(count)), self._texts[:count], self._vectors[:count])

    def open(self) -> dict:
        return _timed(self._engine.open)

    def ask(self, questions: list[int]) -> dict:
        seconds, found = [], []
        for number in questions:
            began = time.perf_counter()
            found.append(self._engine.ask(self._questions[number], self._asked[number]))
            seconds.append(time.perf_counter() - began)
        return {"seconds": seconds, "found": found}

    def insert(self, count: int) -> dict:
        new = slice(self._built, self._built + count)
        ids = list(range(new.start, new.stop))
        return _timed(self._engine.add, ids, self._texts[new], self._vectors[new])

    def update(self, count: int) -> dict:
        began = time.perf_counter()
        for number in range(count):
            self._engine.update(number, self._texts[-1 - number], self._vectors[-1 - number])
        return {"seconds": time.perf_counter() - began}

    def weigh(self) -> dict:
        """Return the bytes on disk and this process's share of memory, less what the texts of the benchmark take."""
        files = [path.stat().st_size for path in self._folder.rglob("*") if path.is_file()]
        rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
        pss = next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Pss:"))
        return {"disk_bytes": sum(files), "memory_bytes": pss}


def _engine(name: str, folder: Path, dimensions: int):
    if name.startswith("sitewise"):
        from tests.benchmarks.peers.ours import Sitewise

        return Sitewise(name, folder, dimensions)
    from tests.benchmarks.peers import engines

    return engines.make(name, folder, dimensions)


def _timed(call, *arguments) -> dict:
    began = time.perf_counter()
    call(*arguments)
    return {"seconds": time.perf_counter() - began}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an engine prints of its own accord is no answer
    name, *paths = sys.argv[1:]
    process = Process(name, *map(Path, paths))
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(process, command.pop("do"))(**command)
        except Exception as error:  # an engine's own: the others go on
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
