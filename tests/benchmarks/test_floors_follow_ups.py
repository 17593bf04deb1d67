"""Follow-ups may not find less than they did with the conversation; lowering a floor needs a commit that says why."""

import json
from pathlib import Path

import pytest

from tests.conftest import needs_local_embedder

FLOORS = json.loads((Path(__file__).parent / "floors.json").read_text())["follow_ups"]
LEAST_GAIN = 0.2  # of hit@1 over the bare words
MOST_LOST = 1  # of the changes of subject, by a leg alone; Hybrid loses none

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_conversation_helps_its_follow_ups_and_leaves_other_subjects_alone(acme_store, shared, settings):
    needs_local_embedder()
    from tests.benchmarks import bench_follow_ups as bench

    settings.SITEWISE_ALLOW_LOOPBACK = True
    models = bench.imported_sites()
    turns = bench.load()
    follow_ups = [turn for turn in turns if not turn.get("changes_subject")]
    changes = [turn for turn in turns if turn.get("changes_subject")]
    assert (len(follow_ups) >= 40, len(changes) >= 15, len({turn["language"] for turn in turns}) >= 3) == (True,) * 3
    for mode, floor in FLOORS.items():
        bare, found = (
            bench.share_right(models, follow_ups, mode, way) for way in (bench.by_own_words, bench.in_conversation)
        )
        assert found >= max(floor, bare + LEAST_GAIN), (mode, bare, found)
        bare, found = (
            bench.share_right(models, changes, mode, way) for way in (bench.by_own_words, bench.in_conversation)
        )
        lost = 0 if mode == "hybrid" else MOST_LOST
        assert round((bare - found) * len(changes)) <= lost, (mode, bare, found)
