"""Writes the semantic leg: the vectors of a model's snippets, apart for each embedding space, packed in chunks.

A snippet may have several vectors in a space, one for each window of a long text: they come, and go, all together.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from models_app.index.chunks import (
    IDS,
    REMOVED,
    Chunk,
    VectorsRefused,
    checked,
    chunks_to_merge,
    cut,
    joined,
    unpack_ids,
    usable,
)
from models_app.index.connection import id_list, rows, write
from tenants.store import tenant_atomic

SPACES = "SELECT id, name, dimensions FROM ret_space WHERE model_id = %(model)s ORDER BY name"
DIMENSIONS = """
SELECT dimensions
FROM ret_space
WHERE model_id = %(model)s
AND name = %(name)s
AND EXISTS (SELECT 1 FROM ret_chunk WHERE space_id = ret_space.id)
"""
ADD_SPACE = """
INSERT INTO ret_space (model_id, name, dimensions)
VALUES (%(model)s, %(name)s, %(dimensions)s)
"""
INDEXED_IDS = """
SELECT id
FROM ret_snippet
WHERE model_id = %(model)s
AND id IN (SELECT value FROM json_each(%(ids)s))
"""
CHUNK_IDS = "SELECT id, ids FROM ret_chunk WHERE space_id = %(space)s ORDER BY id"
CHUNK_SIZES = "SELECT id, size FROM ret_chunk WHERE space_id = %(space)s"
CHUNKS = """
SELECT chunk.id, chunk.ids, packed.vectors
FROM ret_chunk AS chunk
JOIN ret_vectors AS packed ON packed.chunk_id = chunk.id
WHERE chunk.id IN (SELECT value FROM json_each(%(ids)s))
ORDER BY chunk.id
"""
STORED_IDS = """
SELECT chunk.id
FROM ret_space AS space
JOIN ret_chunk AS chunk ON chunk.space_id = space.id
WHERE space.model_id = %(model)s
ORDER BY chunk.id
"""
STORED = """
SELECT chunk.id, space.id, space.name, space.dimensions, chunk.size, chunk.ids, coalesce(packed.vectors, x'')
FROM ret_chunk AS chunk
JOIN ret_space AS space ON space.id = chunk.space_id
LEFT JOIN ret_vectors AS packed ON packed.chunk_id = chunk.id
WHERE chunk.id = %(chunk)s
"""
GONE_MODELS = "SELECT DISTINCT model_id FROM ret_space WHERE model_id NOT IN (SELECT id FROM models_app_mlmodel)"
STRAY_CHUNKS = "FROM ret_chunk WHERE space_id NOT IN (SELECT id FROM ret_space)"
STRAY_VECTORS = "FROM ret_vectors WHERE chunk_id NOT IN (SELECT id FROM ret_chunk)"
ADD_CHUNK = "INSERT INTO ret_chunk (space_id, size, ids) VALUES (%(space)s, %(size)s, %(ids)s)"
ADD_VECTORS = "INSERT INTO ret_vectors (chunk_id, vectors) VALUES (%(chunk)s, %(vectors)s)"
SET_CHUNK_IDS = "UPDATE ret_chunk SET ids = %(ids)s WHERE id = %(chunk)s"
DELETE_VECTORS = "DELETE FROM ret_vectors WHERE chunk_id IN (SELECT value FROM json_each(%(ids)s))"
CHUNKS_AT_ONCE = 20  # up to 10 MiB
DELETE_CHUNKS = "DELETE FROM ret_chunk WHERE id IN (SELECT value FROM json_each(%(ids)s))"


class NotIndexed(ValueError):
    """Vectors came for snippets that the model does not have."""

    def __init__(self, model_id: int, ids: Sequence[int]):
        super().__init__(f"Model {model_id} does not have {len(ids)} of these snippets, the first is {ids[0]}.")


@dataclass(frozen=True)
class StoredChunk:
    """A chunk as it is stored, whatever has become of it."""

    id: int
    space_id: int
    space: str
    dimensions: int
    size: int
    packed_ids: bytes
    packed_vectors: bytes

    @cached_property
    def tells_ids(self) -> bool:
        return len(self.packed_ids) > 0 and len(self.packed_ids) % IDS.itemsize == 0

    @cached_property
    def ids(self) -> np.ndarray:
        """The snippets of its rows, REMOVED ones too; none if it does not tell them."""
        return unpack_ids(self.packed_ids if self.tells_ids else b"")

    @cached_property
    def is_usable(self) -> np.ndarray:
        """Which of its rows can be compared, shape of ids."""
        return usable(self.ids, self.packed_vectors, self.dimensions)

    @cached_property
    def lost(self) -> np.ndarray:
        """The snippets of which a vector here cannot be used, ascending."""
        return np.unique(self.ids[(self.ids != REMOVED) & ~self.is_usable])

    @property
    def fault(self) -> str:
        """What is wrong with it; empty if nothing."""
        if not self.tells_ids:
            return "it does not tell whose its vectors are"
        if self.lost.size:
            return f"of {self.lost.size:,} of its snippets a vector cannot be used"
        return "" if self.size == self.ids.size else f"it counts {self.size:,} vectors and has {self.ids.size:,}"

    def without(self, ids: np.ndarray) -> Chunk:
        """Return what can be used of it, but for these snippets."""
        kept = self.is_usable & (self.ids != REMOVED) & ~np.isin(self.ids, ids)
        if not kept.any():
            return Chunk(np.empty(0, IDS), np.empty((0, self.dimensions), np.float32))
        return Chunk(self.ids[kept], Chunk.unpack(self.packed_ids, self.packed_vectors).vectors[kept])


def put_vectors(model_id: int, space: str, ids: Sequence[int], vectors: np.ndarray) -> None:
    """Store the unit vectors of the model's snippets, in place of all those they have in this space.

    Shape of vectors: (len(ids), dimensions); an id stands once for each vector of its snippet. Raises NotIndexed, and
    VectorsRefused for anything but unit rows of the size that the space has.
    """
    given = checked(vectors, len(ids))
    keys = np.asarray(ids, IDS)
    snippets = np.unique(keys)
    with tenant_atomic():
        known = {row[0] for row in rows(INDEXED_IDS, model=model_id, ids=id_list(snippets))}
        if missing := [key for key in snippets.tolist() if key not in known]:
            raise NotIndexed(model_id, missing)
        space_id = _space_for(model_id, space, given.shape[1])
        _drop(space_id, snippets)
        _add(space_id, Chunk(keys, given))
        _merge(space_id, given.shape[1])


def drop_vectors(model_id: int, space: str, ids: Iterable[int]) -> None:
    """Remove the vectors of snippets from one space."""
    with tenant_atomic():
        for space_id, _ in _spaces(model_id, space):
            _drop(space_id, np.fromiter(ids, IDS))


def drop_from_all_spaces(model_id: int, ids: Iterable[int]) -> None:
    """Remove the vectors of snippets from every space of the model."""
    keys = np.fromiter(ids, IDS)
    for space_id, _ in _spaces(model_id):
        _drop(space_id, keys)


def drop_space(model_id: int, space: str) -> None:
    """Remove all vectors of the model in one space, some chunks in a transaction, so that no writer waits for long."""
    for space_id, _ in _spaces(model_id, space):
        while chunk_ids := [chunk_id for chunk_id, _ in rows(CHUNK_SIZES, space=space_id)][:CHUNKS_AT_ONCE]:
            with tenant_atomic():
                _delete_chunks(chunk_ids)
        with tenant_atomic():
            _remove_space(space_id)


def drop_all_spaces(model_id: int) -> None:
    """Remove all vectors of the model."""
    for space_id, _ in _spaces(model_id):
        _remove_space(space_id)


def stored_chunks(model_id: int) -> Iterator[StoredChunk]:
    """Yield the chunks of all spaces of the model, one at a time, as there may be gigabytes of them."""
    for (chunk_id,) in rows(STORED_IDS, model=model_id):
        yield from _stored([chunk_id])


def mend(model_id: int) -> None:
    """Drop the vectors of the model that cannot be used, or belong to no snippet of it.

    A snippet loses all of its vectors in a space if one of them cannot be used, and is to be embedded again. Where a
    chunk does not tell whose its vectors are, that concerns every snippet of the space.
    """
    broken: dict[int, list[StoredChunk]] = {}
    for chunk in stored_chunks(model_id):
        if not chunk.tells_ids:
            drop_space(model_id, chunk.space)
        elif chunk.fault:
            broken.setdefault(chunk.space_id, []).append(chunk)
    for space_id, chunks in broken.items():
        with tenant_atomic():
            _mend_chunks(space_id, [chunk.id for chunk in chunks])
    for space_id, _ in _spaces(model_id):
        with tenant_atomic():
            ids = _ids_in(space_id)
            known = [row[0] for row in rows(INDEXED_IDS, model=model_id, ids=id_list(ids))]
            _drop(space_id, np.setdiff1d(ids, known))


def stray_count() -> int:
    """Return how many spaces, chunks and packs of vectors belong to nothing that is there."""
    return sum(len(rows(sql)) for sql in (GONE_MODELS, f"SELECT 1 {STRAY_CHUNKS}", f"SELECT 1 {STRAY_VECTORS}"))


def drop_all_strays() -> None:
    """Remove the vectors of models that are gone, and what belongs to no space or chunk."""
    for (model_id,) in rows(GONE_MODELS):
        with tenant_atomic():
            drop_all_spaces(model_id)
    with tenant_atomic():
        write(f"DELETE {STRAY_CHUNKS}")
        write(f"DELETE {STRAY_VECTORS}")


def space_names(model_id: int) -> list[str]:
    """Return the spaces in which the model has vectors, or had some."""
    return [name for _, name, _ in rows(SPACES, model=model_id)]


def dimensions_of(model_id: int, space: str) -> int | None:
    """Return how many numbers a vector of the model has in this space; None where it has no vector there."""
    found = rows(DIMENSIONS, model=model_id, name=space)
    return found[0][0] if found else None


def ids_with_vectors(model_id: int, space: str) -> np.ndarray:
    """Return the ids of the model's snippets with vectors in this space, ascending, each once."""
    return np.concatenate([np.empty(0, IDS), *(_ids_in(space_id) for space_id, _ in _spaces(model_id, space))])


def _ids_in(space_id: int) -> np.ndarray:
    ids = np.concatenate([np.empty(0, IDS), *(unpack_ids(packed) for _, packed in rows(CHUNK_IDS, space=space_id))])
    return np.unique(ids[ids != REMOVED])


def _spaces(model_id: int, name: str | None = None) -> list[tuple[int, int]]:
    """Return (space id, dimensions) of the model's spaces, or of the one with this name."""
    found = rows(SPACES, model=model_id)
    return [(space_id, dimensions) for space_id, its_name, dimensions in found if name in (None, its_name)]


def _space_for(model_id: int, name: str, dimensions: int) -> int:
    """Return the id of the space, made if it is not there; raises VectorsRefused if its vectors have another size."""
    for space_id, its_dimensions in _spaces(model_id, name):
        if its_dimensions == dimensions:
            return space_id
        if rows(CHUNK_SIZES, space=space_id):
            raise VectorsRefused(f"{name} holds vectors of {its_dimensions} numbers here, these have {dimensions}")
        _remove_space(space_id)
    return write(ADD_SPACE, model=model_id, name=name, dimensions=dimensions)


def _remove_space(space_id: int) -> None:
    _delete_chunks([chunk_id for chunk_id, _ in rows(CHUNK_SIZES, space=space_id)])
    write("DELETE FROM ret_space WHERE id = %(space)s", space=space_id)


def _add(space_id: int, chunk: Chunk) -> None:
    for piece in cut(chunk):
        chunk_id = write(ADD_CHUNK, space=space_id, size=len(piece.ids), ids=piece.ids.tobytes())
        write(ADD_VECTORS, chunk=chunk_id, vectors=piece.vectors.tobytes())


def _drop(space_id: int, ids: np.ndarray) -> None:
    """Mark vectors as removed; a chunk is written anew once most of it is gone."""
    for chunk_id, packed in rows(CHUNK_IDS, space=space_id):
        standing = unpack_ids(packed)
        left = np.where(np.isin(standing, ids), REMOVED, standing)
        if (left == standing).all():
            continue
        write(SET_CHUNK_IDS, chunk=chunk_id, ids=left.astype(IDS).tobytes())
        if np.count_nonzero(left != REMOVED) * 2 < len(left):
            _rewrite(space_id, [chunk_id])


def _merge(space_id: int, dimensions: int) -> None:
    while chunk_ids := chunks_to_merge(dict(rows(CHUNK_SIZES, space=space_id)), dimensions):
        _rewrite(space_id, chunk_ids)


def _rewrite(space_id: int, chunk_ids: Sequence[int]) -> None:
    """Put the living vectors of these chunks into new ones."""
    chunks = [Chunk.unpack(ids, vectors) for _, ids, vectors in rows(CHUNKS, ids=id_list(chunk_ids))]
    _delete_chunks(chunk_ids)
    _add(space_id, joined(chunks))


def _stored(chunk_ids: Iterable[int]) -> list[StoredChunk]:
    """Return those of the chunks that are still there: a writer may have merged some meanwhile."""
    return [StoredChunk(*row) for chunk_id in chunk_ids for row in rows(STORED, chunk=chunk_id)]


def _mend_chunks(space_id: int, chunk_ids: Sequence[int]) -> None:
    """Write these chunks of a space anew, without the snippets that have a vector in them which cannot be used."""
    chunks = _stored(chunk_ids)
    lost = np.unique(np.concatenate([np.empty(0, IDS), *(chunk.lost for chunk in chunks)]))
    _delete_chunks([chunk.id for chunk in chunks])
    for chunk in chunks:
        _add(space_id, chunk.without(lost))
    _drop(space_id, lost)  # what other chunks have of them


def _delete_chunks(chunk_ids: Sequence[int]) -> None:
    write(DELETE_VECTORS, ids=id_list(chunk_ids))
    write(DELETE_CHUNKS, ids=id_list(chunk_ids))
