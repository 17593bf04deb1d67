"""What a cosine is worth, before a space is calibrated and after."""

import numpy as np
import pytest

from models_app.calibration import prior
from models_app.index.relevance import NEAREST_UNRELATED, UNCALIBRATED, Calibration, QuestionScale

SPACES = ("multilingual-e5-small", "text-embedding-3-small", "text-embedding-ada-002", "tiny")
COSINES = np.linspace(-1, 1, 81, dtype=np.float32)


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, np.float32)
    return vector / np.linalg.norm(vector)


def calibrated(vectors: int = 1_000) -> Calibration:
    """A space where unrelated texts lie at .8, in two languages that lie apart."""
    return Calibration(0.8, 0.25, vectors, np.stack([unit(1, 0, 0.2), unit(0, 1, 0.2)]) * 0.9, (0.8, 0.75))


def read(scale: QuestionScale, cosines: np.ndarray, base: float, mean: float, count: int = 1_000) -> np.ndarray:
    return scale.relevance(cosines, np.full(len(cosines), base, np.float32), mean, count)


def test_a_cosine_is_its_own_relevance_where_nothing_is_known():
    scale = UNCALIBRATED.for_question(unit(1, 0, 0))
    assert read(scale, COSINES, 0.0, 0.0) == pytest.approx(COSINES, abs=1e-6)


@pytest.mark.parametrize("name", SPACES)
def test_unrelated_texts_are_worth_nothing_and_equal_ones_everything_in_every_space(name):
    usual = prior(name)
    scale = usual.for_question(unit(1, 0, 0))
    unrelated, equal = read(scale, np.array([usual.start, 1.0], np.float32), usual.start, usual.start)
    assert (unrelated, equal) == (pytest.approx(0, abs=1e-6), pytest.approx(1))


@pytest.mark.parametrize("calibration", [UNCALIBRATED, *map(prior, SPACES), calibrated(), calibrated(3)])
def test_the_nearer_of_two_snippets_is_worth_more(calibration):
    scale = calibration.for_question(unit(1, 0, 0.1))
    base = calibration.start
    assert (np.diff(read(scale, COSINES, base, base)) > 0).all()


def test_the_nearest_text_of_another_subject_lies_at_the_default_threshold():
    calibration = calibrated()
    scale = calibration.for_question(unit(1, 0, 0))
    nearest = scale.start + (1 - scale.start) * calibration.nearest
    assert read(scale, np.array([nearest]), scale.start, scale.start)[0] == pytest.approx(NEAREST_UNRELATED, abs=1e-6)


def test_a_question_is_measured_with_those_of_its_own_language():
    assert calibrated().for_question(unit(0.1, 1, 0)).start == pytest.approx(0.75)
    assert calibrated().for_question(unit(1, 0.1, 0)).start == pytest.approx(0.8)


def test_a_snippet_near_to_everything_is_worth_less_at_the_same_cosine():
    scale = calibrated().for_question(unit(1, 0, 0))
    cosine = np.array([0.9], np.float32)
    assert read(scale, cosine, 0.86, 0.8) < read(scale, cosine, 0.8, 0.8)


def test_a_question_near_to_the_whole_collection_finds_less_by_that():
    scale = calibrated().for_question(unit(1, 0, 0))
    cosine = np.array([0.9], np.float32)
    assert read(scale, cosine, 0.8, 0.815) < read(scale, cosine, 0.8, 0.8)
    assert read(scale, cosine, 0.8, 0.99) == read(scale, cosine, 0.8, 0.95), "a subject of its own keeps its answers"


def test_a_calibration_comes_back_from_the_store_as_it_was():
    for calibration in (calibrated(), prior("tiny")):
        again = Calibration.from_json(calibration.to_json())
        assert again == calibration
        question = unit(0.3, 0.5, 0.1)
        assert again.for_question(question).pack() == calibration.for_question(question).pack()
        scale = QuestionScale.unpack(calibration.for_question(question).pack())
        assert scale.start == pytest.approx(calibration.for_question(question).start)
