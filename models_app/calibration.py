"""Calibrates the embedding spaces of a model, so that a threshold means the same under every embedding model.

Everyday questions are embedded and compared with the model's own vectors: they tell where texts lie that do not answer.
"""

import logging

import numpy as np

from models_app import index
from models_app.embedder import EmbeddingError, EmbeddingSpace, embed_questions
from models_app.everyday import QUESTIONS
from models_app.index import Calibration, IndexQuestion
from models_app.index.relevance import NEAREST_UNRELATED, reach
from models_app.models import MLModel
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

# By a part of the space's name. How far up the best of unrelated texts reach, where it was measured: of e5 chosen by
# bench_calibration on one half of the questions. Other models are measured with the everyday questions.
NEAREST = {"e5-": 0.236}
# At which cosine unrelated texts lie, until the space is calibrated: e5's a little below what was measured (.71 to
# .75), since a right answer lost is worse than a wrong one shown. 0 in the others.
STARTS = {"e5-": 0.72, "text-embedding-ada-002": 0.7}
USUAL_NEAREST = 0.236
# Foreign questions come nearer than the middle one of few everyday questions does, and all the more where unrelated
# texts lie low, since cosines spread wider there: 1.2 times from LOW_START on, 1.5 at 0. Among xquad en's texts in the
# space of all-MiniLM-L6-v2, where they lie at .02, 60 % of the foreign questions find nothing and 1.7 % of the right
# answers are cut; with 1.2 there, too, 29 and 0 %. Spaces made of e5's, at .1 to .85 (bench_calibration --models): 41
# to 56 and .7 to 1 %.
NEAREST_PER_MEDIAN = 1.2
LOW_START = 0.3
# A handful of snippets, or one that is all about everyday things, says little. No space lost an answer by .2.
LEAST_NEAREST, MOST_NEAREST = 0.2, 0.4
LOOKED_AT = 10  # hits: the nearest snippet may be one that is near to everything
GROWTH = 2  # it is made anew once there are twice as many vectors, or half as many


def calibration_of(model: MLModel, space: EmbeddingSpace) -> Calibration:
    """Return what the model's cosines in a space are worth; before the first calibration, what is usual there."""
    return index.calibration_of(model.pk, space.name) or prior(space.name)


def prior(space: str) -> Calibration:
    """Return what holds in a space until it is calibrated."""
    return Calibration(start=_named(STARTS, space, 0.0), nearest=_named(NEAREST, space, USUAL_NEAREST))


def refresh(model: MLModel, space: EmbeddingSpace) -> None:
    """Calibrate the model's vectors of a space, if that was not done yet or when there were far fewer or far more.

    A service that is away leaves the calibration as it was: nothing is raised.
    """
    count = index.vector_count(model.pk, space.name)
    stored = index.calibration_of(model.pk, space.name)
    if not count or (stored and stored.vectors <= count * GROWTH and count <= stored.vectors * GROWTH):
        return
    try:
        asked = embed_questions(space, [text for texts in QUESTIONS.values() for text in texts])
    except EmbeddingError as error:
        logger.warning("%s is not calibrated for %s for now: %s", space.name, model, error)
        return
    made = measured(model, space.name, asked.reshape(len(QUESTIONS), -1, asked.shape[1]))
    if made:
        with tenant_atomic():
            index.put_calibration(model.pk, space.name, made)


def measured(model: MLModel, space: str, asked: np.ndarray) -> Calibration | None:
    """Return the calibration of the model's vectors in a space; None where it has none, or of another size.

    `asked` holds the vectors of the everyday questions, shape (languages, questions, dimensions).
    """
    count, mean = index.vector_count(model.pk, space), index.mean_vector(model.pk, space)
    if mean is None or mean.size != asked.shape[2]:
        return None
    unrelated = asked.mean(axis=1)
    starts = unrelated @ mean
    # The closest language is the collection's own.
    known, start = _named(NEAREST, space, None), float(starts.max())
    plain = NEAREST_UNRELATED / reach(count)  # reads what has risen as it is
    flat = Calibration(start, plain, count, unrelated, tuple(starts.tolist()))
    nearest = known or _nearest(model, space, asked[int(starts.argmax())], flat)
    return Calibration(start, nearest, count, unrelated, flat.starts)


def _nearest(model: MLModel, space: str, questions: np.ndarray, plain: Calibration) -> float:
    """Return how far up the best snippets for unrelated questions reach."""
    best = []  # on the plain scale, where `nearest` bends nothing
    for vector in questions:
        asked = IndexQuestion(model.pk, index.SEMANTIC, (), vector, space, calibration=plain, limit=LOOKED_AT)
        best.append(max((hit.relevance for hit in index.search(asked)), default=0.0))
    times = NEAREST_PER_MEDIAN + max(LOW_START - plain.start, 0.0)
    return float(np.clip(times * np.median(best) / reach(plain.vectors), LEAST_NEAREST, MOST_NEAREST))


def _named(values: dict[str, float], space: str, otherwise):
    return next((value for part, value in values.items() if part in space.lower()), otherwise)
