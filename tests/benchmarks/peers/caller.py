"""The process of an engine, as a caller sees it: commands with a time limit each."""

import contextlib
import json
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.peers.environments import PROJECT

# The most seconds that a command may take before the engine is given up.
LIMITS = {"load": 120, "build": 1_200, "crowd": 300, "open": 300, "ask": 60, "insert": 300, "update": 300, "trace": 120}
OTHER_LIMIT = 60


class EngineFailed(Exception):
    """An engine answered with an error, or not at all."""


class Engine:
    """The process of an engine; `log` takes what it prints, `limits` are seconds for each command."""

    def __init__(
        self, name: str, python: Path, folder: Path, data: Path, log: Path, limits: Mapping[str, float] = LIMITS
    ):
        command = [python, "-m", "tests.benchmarks.peers.engine", name, folder, data]
        self._log, self._limits, self._is_late = log, limits, False
        with log.open("a") as printed:
            self._process = subprocess.Popen(
                command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, text=True
            )

    def __call__(self, do: str, **arguments) -> dict:
        """Return the answer to a command; raises EngineFailed."""
        seconds = self._limits.get(do, OTHER_LIMIT)
        clock = threading.Timer(seconds, self._give_up)
        clock.start()
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            clock.cancel()
        answer = json.loads(line or "{}")
        if not line:
            answer["error"] = f"took over {seconds} seconds" if self._is_late else self._last_words()
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

    def _give_up(self) -> None:
        self._is_late = True
        self._process.kill()

    def _last_words(self) -> str:
        printed = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip()]
        return f"its process has ended ({self._process.wait()}): {(printed or ['it said nothing'])[-1][:200]}"
