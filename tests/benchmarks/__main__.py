"""Runs all benchmarks, one after the other: `make bench`. Figures are printed, never asserted; floors are tests."""

import runpy
from pathlib import Path

for script in sorted(Path(__file__).parent.glob("bench_*.py")):
    print(f"\n== {script.stem} ==", flush=True)
    runpy.run_module(f"tests.benchmarks.{script.stem}", run_name="__main__")
