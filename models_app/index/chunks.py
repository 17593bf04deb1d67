"""Packs unit vectors into chunks that a database row can hold, and finds the nearest of them. Knows no database.

A chunk is up to half a megabyte: large enough that numpy scans it at memory speed, small enough to rewrite.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from models_app.index.relevance import FLOATS, QuestionScale

IDS = np.dtype("<i8")
REMOVED = 0  # the id of a vector that is gone; snippet ids start at 1
CHUNK_BYTES = 512 * 1024  # smaller ones scan slower, larger ones scan no faster and cost more to rewrite
MERGED_AT_ONCE = 8
ROUNDING = 1e-6  # float32: the cosine of equal vectors may fall this much short of 1
UNIT_TOLERANCE = 1e-3

# glibc gives blocks of a chunk's size back to the system as soon as they are free, and gets them cleared the next time:
# two thirds of a scan of 1,000 vectors. A larger one that comes and goes teaches it to keep them (elsewhere: nothing).
bytes(8 * CHUNK_BYTES)


class VectorsRefused(ValueError):
    """These vectors cannot be stored or compared."""

    def __init__(self, reason: str):
        super().__init__(f"Vectors refused: {reason}.")
        self.reason = reason


@dataclass(frozen=True)
class Chunk:
    """Vectors of shape (size, dimensions) and the snippets they belong to, shape (size,)."""

    ids: np.ndarray
    vectors: np.ndarray

    @classmethod
    def unpack(cls, ids: bytes, vectors: bytes) -> "Chunk":
        """Return the chunk of two blobs; raises VectorsRefused when they do not fit each other."""
        unpacked = unpack_ids(ids)
        if not unpacked.size or len(vectors) % (unpacked.size * FLOATS.itemsize):
            raise VectorsRefused(f"{len(vectors):,} bytes hold no {unpacked.size} rows")
        return cls(unpacked, np.frombuffer(vectors, FLOATS).reshape(unpacked.size, -1))

    def living(self) -> "Chunk":
        """Return the chunk without what was removed."""
        lives = self.ids != REMOVED
        return Chunk(self.ids[lives], self.vectors[lives])


def unpack_ids(ids: bytes) -> np.ndarray:
    """Return the ids of a chunk; some may be REMOVED."""
    return np.frombuffer(ids, IDS)


def checked(vectors: np.ndarray, rows: int) -> np.ndarray:
    """Return the vectors as float32 of shape (rows, dimensions); raises VectorsRefused if they are not unit rows."""
    given = np.asarray(vectors)
    if given.ndim != 2 or given.shape[0] != rows or not given.shape[1] or given.dtype.kind not in "fiu":
        raise VectorsRefused(f"{rows} rows of numbers were expected, shape {given.shape} of {given.dtype} came")
    given = np.ascontiguousarray(given, FLOATS)
    lengths = np.linalg.norm(given, axis=1)
    if not np.isfinite(lengths).all():
        raise VectorsRefused("a number in them is infinite or none at all")
    if rows and np.abs(lengths - 1).max() > UNIT_TOLERANCE:
        raise VectorsRefused(f"their length has to be 1, one is {lengths[np.abs(lengths - 1).argmax()]:.3f}")
    return given


def usable(ids: np.ndarray, vectors: bytes, dimensions: int) -> np.ndarray:
    """Return which rows of a stored chunk are vectors of this size that can be compared, shape of ids."""
    if len(vectors) != ids.size * dimensions * FLOATS.itemsize:
        return np.zeros(ids.size, bool)
    with np.errstate(all="ignore"):  # whatever the numbers are
        lengths = np.linalg.norm(np.frombuffer(vectors, FLOATS).reshape(ids.size, dimensions), axis=1)
        return np.abs(lengths - 1) <= UNIT_TOLERANCE


def capacity(dimensions: int) -> int:
    """Return how many vectors a chunk holds."""
    return max(MERGED_AT_ONCE, CHUNK_BYTES // (FLOATS.itemsize * dimensions))


def cut(chunk: Chunk) -> Iterator[Chunk]:
    """Yield the vectors in chunks of the proper size."""
    step = capacity(chunk.vectors.shape[1])
    for start in range(0, len(chunk.ids), step):
        yield Chunk(chunk.ids[start : start + step], chunk.vectors[start : start + step])


def joined(chunks: Iterable[Chunk]) -> Chunk:
    """Return one chunk of all, without what was removed."""
    living = [chunk.living() for chunk in chunks]
    return Chunk(np.concatenate([chunk.ids for chunk in living]), np.concatenate([chunk.vectors for chunk in living]))


def chunks_to_merge(sizes: dict[int, int], dimensions: int) -> list[int]:
    """Return eight chunks of about one size that should become one (key -> size given), or none.

    Chunks of a size are merged as soon as there are eight, so that a vector is rewritten a few times in its life,
    however small the steps in which a model grows.
    """
    tiers = defaultdict(list)
    for key, size in sorted(sizes.items()):
        if size < capacity(dimensions) * 3 // 4:
            tiers[_tier(size)].append(key)
    return next((keys[:MERGED_AT_ONCE] for _, keys in sorted(tiers.items()) if len(keys) >= MERGED_AT_ONCE), [])


def _tier(size: int) -> int:
    tier = 0
    while size >= MERGED_AT_ONCE:
        size //= MERGED_AT_ONCE
        tier += 1
    return tier


class TopK:
    """The SQL aggregate topk(question, k, scale, ids, vectors) over chunks; the scale is a packed QuestionScale.

    Returns JSON [[id, cosine, relevance], ...] of the k best ids, best cosine first, equal ones by id: an id counts
    once, with the nearest of its vectors. Exact, no index of neighbours. Of the first COMPARED none is worth less than
    a farther one: a threshold that keeps a hit keeps what ranks before it.
    """

    BUFFER_BYTES = CHUNK_BYTES * 3 // 4  # small ones are scanned together; joining full ones would only copy them
    COMPARED = 50  # as many as anybody asks for at least, so that a hit is worth the same in each mode
    SELECTED = 4  # times k: to look for the best after each chunk takes as long as a chunk's cosines

    def __init__(self):
        self._question: np.ndarray | None = None
        self._buffered: list[tuple[bytes, bytes]] = []
        self._buffered_bytes = self._near_rows = 0
        self._near: list[_Found] = []
        self._best = _Found(np.empty(0, IDS), np.empty(0, FLOATS), np.empty(0, FLOATS))
        self._least = -inf  # what is farther is not among the best
        self._sum, self._count = 0.0, 0

    def step(self, question: bytes, k: int, scale: bytes, ids: bytes, vectors: bytes) -> None:
        if self._question is None:
            self._question = np.frombuffer(question, FLOATS)
            self._k, self._scale = k, QuestionScale.unpack(scale)
        self._buffered.append((ids, vectors))
        self._buffered_bytes += len(vectors)
        if self._buffered_bytes >= self.BUFFER_BYTES:
            self._scan()

    def finalize(self) -> str:
        self._scan()
        self._select()
        best = self._best
        if not len(best.ids):
            return "[]"
        mean = self._sum / self._count
        relevances = self._scale.relevance(best.cosines, best.bases, mean, self._count)
        nearest = relevances[: self.COMPARED]
        nearest[:] = np.maximum.accumulate(nearest[::-1])[::-1]
        return json.dumps(list(zip(best.ids.tolist(), best.cosines.tolist(), relevances.tolist(), strict=True)))

    def _scan(self) -> None:
        """Keep of what is buffered what may be among the best, and no vectors.

        To keep them until the best are looked for took four times as long: memory that goes back and forth between the
        process and the machine is cleared each time.
        """
        if not self._buffered:
            return
        ids = unpack_ids(b"".join(ids for ids, _ in self._buffered))
        vectors = np.frombuffer(b"".join(vectors for _, vectors in self._buffered), FLOATS)
        self._buffered, self._buffered_bytes = [], 0
        vectors = vectors.reshape(len(ids), self._question.size)
        # Not `@`: on a busy machine its threads can stall for milliseconds. vecdot runs on one.
        cosines = np.vecdot(vectors, self._question)
        lives = ids != REMOVED
        self._sum += float(cosines.sum(where=lives))
        self._count += int(np.count_nonzero(lives))
        near = _nearest(ids, cosines, np.flatnonzero(lives & (cosines >= self._least)), self._k)
        self._near.append(_Found(ids[near], cosines[near], self._scale.bases(vectors[near])))
        self._near_rows += len(near)
        if self._near_rows >= self.SELECTED * self._k:
            self._select()

    def _select(self) -> None:
        """Join what is near to the best k ids, each with its best cosine."""
        self._best = self._best.joined(self._near, self._k)
        self._near, self._near_rows = [], 0
        if len(self._best.ids) == self._k:
            self._least = self._best.cosines[-1]


@dataclass(frozen=True)
class _Found:
    """Ids with the cosine of a vector of theirs, and its base, each of shape (size,)."""

    ids: np.ndarray
    cosines: np.ndarray
    bases: np.ndarray

    def joined(self, others: Iterable["_Found"], k: int) -> "_Found":
        """Return the best k ids of all, best first, each once."""
        parts = zip(*((each.ids, each.cosines, each.bases) for each in (self, *others)), strict=True)
        ids, cosines, bases = map(np.concatenate, parts)
        best_first = np.lexsort((ids, -cosines))
        firsts = best_first[np.sort(np.unique(ids[best_first], return_index=True)[1])[:k]]
        return _Found(ids[firsts], cosines[firsts], bases[firsts])


def _nearest(ids: np.ndarray, cosines: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """Leave out, before they are sorted, rows that cannot be among the best of k ids."""
    if len(rows) > 4 * k > 0:
        near = rows[cosines[rows] >= np.partition(cosines[rows], -2 * k)[-2 * k]]
        if len(np.unique(ids[near])) >= k:  # an id has a vector for each of its windows
            return near
    return rows
