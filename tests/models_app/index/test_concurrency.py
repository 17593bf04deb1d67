"""One store under four writers and four readers, each a process of its own: what the benchmark of them looks at."""

import subprocess
import sys

from tests.conftest import PROJECT

SECONDS = 8
PATIENCE_SECONDS = 180  # for a step that hangs; it is no measure of how long anything should take


def test_every_answer_is_of_one_state_of_the_store_and_the_index_is_what_a_rebuild_makes():
    command = [sys.executable, "-m", "tests.benchmarks.bench_concurrency", "--seconds", str(SECONDS)]
    run = subprocess.run(command, check=False, cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "readers: in all" in run.stdout
