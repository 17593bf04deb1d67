"""Keeps the calibration of each embedding space of a model beside its vectors."""

import numpy as np

from models_app.index.chunks import Chunk
from models_app.index.connection import rows, write
from models_app.index.relevance import Calibration

STORED = """
SELECT calibration
FROM ret_space
WHERE model_id = %(model)s
AND name = %(name)s
AND calibration <> ''
"""
STORE = "UPDATE ret_space SET calibration = %(calibration)s WHERE model_id = %(model)s AND name = %(name)s"
CHUNK_IDS = """
SELECT chunk.id
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
WHERE space.model_id = %(model)s
AND space.name = %(name)s
ORDER BY chunk.id
"""
CHUNK = """
SELECT chunk.ids, packed.vectors
FROM ret_chunk AS chunk
JOIN ret_vectors AS packed ON packed.chunk_id = chunk.id
WHERE chunk.id = %(chunk)s
"""
COUNT = """
SELECT coalesce(sum(chunk.size), 0)
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
WHERE space.model_id = %(model)s
AND space.name = %(name)s
"""


def calibration_of(model_id: int, space: str) -> Calibration | None:
    """Return the calibration that is stored for a space of the model, None before the first."""
    stored = rows(STORED, model=model_id, name=space)
    return Calibration.from_json(stored[0][0]) if stored else None


def put_calibration(model_id: int, space: str, calibration: Calibration) -> None:
    """Store the calibration of a space; nothing happens when the space is gone."""
    write(STORE, model=model_id, name=space, calibration=calibration.to_json())


def vector_count(model_id: int, space: str) -> int:
    """Return how many vectors the space holds, about: those that were just removed may be among them."""
    return rows(COUNT, model=model_id, name=space)[0][0]


def mean_vector(model_id: int, space: str) -> np.ndarray | None:
    """Return the mean of the vectors of a space, shape (dimensions,); None if it has none."""
    total, count = 0.0, 0
    for (chunk_id,) in rows(CHUNK_IDS, model=model_id, name=space):
        for packed in rows(CHUNK, chunk=chunk_id):  # a writer may have merged it away meanwhile
            vectors = Chunk.unpack(*packed).living().vectors
            total, count = total + vectors.sum(axis=0, dtype=float), count + len(vectors)
    return total / count if count else None
