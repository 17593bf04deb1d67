"""What the default threshold drops and keeps may not fall below what it reached; lowering a floor needs a reason.

Asked are the questions that chose no constant; foreign are those of the other set.
"""

import json
from pathlib import Path

import pytest

from tests.conftest import needs_local_embedder

FLOORS = json.loads((Path(__file__).parent / "floors.json").read_text())["calibration"]

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def bench(shared):
    from tests.benchmarks import bench_calibration

    return bench_calibration


@pytest.mark.parametrize("name", FLOORS)
def test_foreign_questions_find_nothing_and_right_answers_stay(bench, name):
    needs_local_embedder()
    part, others = bench.Part.all_of(bench.QuestionSet(name)), [bench.QuestionSet(other) for other in FLOORS]
    own, foreign = bench.own_questions(part, bench.TELLING), bench.foreign_questions(part, bench.TELLING, others)
    assert foreign
    with bench.taught(part, bench.everyday()) as known:
        for mode in (bench.SEMANTIC, bench.HYBRID):
            told = bench.worth(known, mode, own, foreign, bench.THRESHOLD)
            assert told.nothing >= FLOORS[name]["nothing_found"], (mode, told)
            assert told.lost <= FLOORS[name]["lost_at_most"], (mode, told)
