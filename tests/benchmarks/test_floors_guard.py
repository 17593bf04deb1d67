"""The guard may not see less than it did, nor raise more false alarms; lowering a floor needs a commit."""

import json
from pathlib import Path

from tests.benchmarks.bench_guard import measure

FLOORS = json.loads((Path(__file__).parent / "floors.json").read_text())["guard"]


def test_wrong_facts_are_flagged_and_right_ones_are_not():
    counts, mistakes = measure()
    assert (counts["wrong"], counts["right"]) == (120, 240)
    assert counts["wrong flagged"] >= FLOORS["recall"] * counts["wrong"], mistakes
    assert counts["right flagged"] <= FLOORS["false_alarms_at_most"] * counts["right"], mistakes
