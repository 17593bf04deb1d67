"""The comparison with other engines runs, with ours alone: it needs nothing that is not installed for the tests."""

import re
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.benchmarks.peers.__main__ import OURS
from tests.benchmarks.peers.caller import Engine, EngineFailed
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


def test_each_leg_finds_what_it_should_and_what_was_just_changed(figures):
    assert figures["sitewise semantic"].agrees == figures["numpy"].agrees == 1
    assert figures["sitewise keyword"].agrees > 0.5  # with roots, and without stop words
    assert {each.fresh for each in figures.values()} == {1}


def test_the_table_tells_each_peer_as_a_ratio(figures):
    lines = table(200, 16, list(figures.values())).splitlines()
    assert any(re.match(r"numpy .* \d+\.\d\dx  in memory", line) for line in lines)
    assert any(re.match(r"our hybrid takes \d+\.\d\d times as long as its two legs", line) for line in lines)


def test_an_engine_that_fails_is_named_with_the_reason_and_the_others_are_measured(tmp_path):
    collection = Collection(tmp_path, 50, 8, questions=1)
    collection.write()
    found = measure(collection, {"nobody's": own_python(), "numpy": own_python()}, tmp_path, rounds=1)
    assert [bool(each.error) for each in found] == [True, False]
    assert "nobody's: load: KeyError" in table(50, 8, found)


def test_an_engine_that_takes_too_long_is_given_up(tmp_path):
    collection = Collection(tmp_path, 50, 8, questions=1)
    collection.write()
    engine = Engine("numpy", own_python(), tmp_path, tmp_path, tmp_path / "numpy.log", limits={"load": 0.01})
    with closing(engine), pytest.raises(EngineFailed, match=r"^load: took over 0\.01 seconds$"):
        engine("load")


def test_the_chart_is_an_image_with_a_name_and_a_dot_for_each_engine_and_size(figures):
    rows = [vars(each) for each in figures.values()]
    root = ElementTree.fromstring(draw({"200 x 16": rows, "1000 x 16": rows}))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {*figures} <= {*texts}
    dots = [float(dot.get("cx")) for dot in root.iter(f"{SVG}circle")]
    assert len(dots) == 2 * len(figures) + 5  # the legend has five
    assert all(0 < dot < float(root.get("width")) for dot in dots)
    assert "numpy" not in root.find(f"{SVG}desc").text  # it tells those with both legs
    assert "sitewise hybrid" in root.find(f"{SVG}desc").text


def test_each_peer_has_an_environment_to_run_in():
    assert all((REQUIREMENTS / f"{environment_of(name)}.txt").is_file() for name in ENGINES)
    assert {path.stem for path in REQUIREMENTS.glob("*.txt")} == set(ENVIRONMENTS)
