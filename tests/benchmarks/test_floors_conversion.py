"""Conversion and extraction may not fall below what they reached; lowering a floor needs a commit that says why."""

import json
from pathlib import Path

import pytest

from tests.benchmarks import bench_convert, bench_extraction

# Some cases are a bare word, which the parser would rather have as the name of a file.
pytestmark = pytest.mark.filterwarnings("ignore::bs4.UnusualUsageWarning")

FLOORS = json.loads((Path(__file__).parent / "floors.json").read_text())


@pytest.mark.parametrize("suite", FLOORS["conversion"])
def test_cases_of_a_peers_suite_render_as_its_authors_want(shared, suite):
    missed, total = bench_convert.misses(suite)
    assert total - len(missed) >= FLOORS["conversion"][suite]
    names = {name for name, *_ in missed}
    assert [name for name in sorted(names) if not bench_convert.rules_of(suite, name)] == []
    assert [name for name in bench_convert.names_ruled(suite) if name not in names] == []


@pytest.mark.parametrize("name", FLOORS["extraction"])
def test_annotated_pages_hold_what_they_must_and_little_else(shared, name):
    scores = bench_extraction.measure(name)[name, "all"]
    floor = FLOORS["extraction"][name]
    assert scores["errors"] == 0
    assert scores["must"] >= floor["must"]
    assert scores["leak"] <= floor["leak_at_most"]
    assert scores.get("f1", 1) >= floor.get("f1", 0)
