"""The comparison with other engines runs, with ours alone: it needs nothing that is not installed for the tests."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.benchmarks.peers.__main__ import OURS
from tests.benchmarks.peers.chart import draw
from tests.benchmarks.peers.collection import Collection
from tests.benchmarks.peers.engines import ENGINES, ENVIRONMENTS, environment_of
from tests.benchmarks.peers.environments import REQUIREMENTS, own_python
from tests.benchmarks.peers.measuring import measure
from tests.benchmarks.peers.report import table

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def figures(tmp_path_factory) -> dict:
    place: Path = tmp_path_factory.mktemp("peers")
    collection = Collection(place, 200, 16, questions=3)
    collection.write()
    pythons = {**dict.fromkeys(OURS, own_python()), "numpy": own_python()}
    return {each.name: each for each in measure(collection, pythons, place, rounds=1, tenants=2)}


def test_each_engine_is_measured_in_everything(figures):
    assert list(figures) == [*OURS, "numpy"]
    for each in figures.values():
        assert not each.error
        assert min(each.build, each.cold, each.warm, each.slow, each.insert, each.update, each.disk) > 0


def test_the_semantic_leg_finds_what_is_nearest(figures):
    assert figures["sitewise semantic"].agrees == figures["numpy"].agrees == 1


def test_the_table_tells_each_peer_as_a_ratio(figures):
    lines = table(200, 16, list(figures.values())).splitlines()
    assert any(re.match(r"numpy +\d+\.\d\dx", line) for line in lines)
    assert any(re.match(r"our hybrid takes \d+\.\d\d times its two legs", line) for line in lines)


def test_an_engine_that_fails_is_left_out_and_the_others_are_measured(tmp_path):
    collection = Collection(tmp_path, 50, 8, questions=1)
    collection.write()
    found = measure(collection, {"nobody's": own_python(), "numpy": own_python()}, tmp_path, rounds=1)
    assert [bool(each.error) for each in found] == [True, False]


def test_the_chart_is_an_image_with_a_labelled_bar_for_each_engine(figures):
    root = ElementTree.fromstring(draw({"200 x 16": [vars(each) for each in figures.values()]}))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {*figures} <= {*texts}
    bars = [bar for bar in root.iter(f"{SVG}rect") if float(bar.get("width")) > 0]
    assert len(bars) == len(figures) + 3  # the legend has three
    assert all(float(bar.get("x")) + float(bar.get("width")) < float(root.get("width")) for bar in bars)


def test_each_peer_has_an_environment_to_run_in():
    assert all((REQUIREMENTS / f"{environment_of(name)}.txt").is_file() for name in ENGINES)
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == set(ENVIRONMENTS)
