"""Packs unit vectors into chunks that a database row can hold, and finds the nearest of them. Knows no database.

A chunk is up to half a megabyte: large enough that numpy scans it at memory speed, small enough to rewrite.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

IDS, FLOATS = np.dtype("<i8"), np.dtype("<f4")
REMOVED = 0  # the id of a vector that is gone; snippet ids start at 1
CHUNK_BYTES = (
    512 * 1024
)  # design/retrieval.md section 2: smaller ones scan slower, larger ones only cost more to rewrite
MERGED_AT_ONCE = 8
ROUNDING = 1e-6  # float32: the cosine of equal vectors may fall this much short of 1
UNIT_TOLERANCE = 1e-3


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
    """The SQL aggregate topk(question, k, min_cosine, ids, vectors) over chunks.

    Returns JSON [[id, cosine], ...] of the k best ids, best first, equal cosines by id: an id counts once, with the
    nearest of its vectors. Exact, no index of neighbours.
    """

    BUFFER_BYTES = CHUNK_BYTES * 3 // 4  # small ones are scanned together; joining full ones would only copy them
    SELECTED_AT_ONCE = 8_192  # vectors: to look for the best after each chunk takes as long as a chunk's cosines

    def __init__(self):
        self._question: np.ndarray | None = None
        self._buffered: list[tuple[bytes, bytes]] = []
        self._buffered_bytes = 0
        self._scanned: list[tuple[np.ndarray, np.ndarray]] = []
        self._scanned_rows = 0
        self._ids = np.empty(0, IDS)
        self._cosines = np.empty(0, FLOATS)

    def step(self, question: bytes, k: int, min_cosine: float, ids: bytes, vectors: bytes) -> None:
        if self._question is None:
            self._question = np.frombuffer(question, FLOATS)
            self._k, self._min_cosine = k, min_cosine - ROUNDING
        self._buffered.append((ids, vectors))
        self._buffered_bytes += len(vectors)
        if self._buffered_bytes >= self.BUFFER_BYTES:
            self._scan()

    def finalize(self) -> str:
        self._scan()
        self._select()
        return json.dumps(list(zip(self._ids.tolist(), self._cosines.tolist(), strict=True)))

    def _scan(self) -> None:
        if not self._buffered:
            return
        ids = unpack_ids(b"".join(ids for ids, _ in self._buffered))
        vectors = np.frombuffer(b"".join(vectors for _, vectors in self._buffered), FLOATS)
        self._buffered, self._buffered_bytes = [], 0
        # Not `@`: on a busy machine its threads can stall for milliseconds. vecdot runs on one.
        self._scanned.append((ids, np.vecdot(vectors.reshape(len(ids), self._question.size), self._question)))
        self._scanned_rows += len(ids)
        if self._scanned_rows >= self.SELECTED_AT_ONCE:
            self._select()

    def _select(self) -> None:
        if not self._scanned:
            return
        ids, cosines = (np.concatenate(each) for each in zip(*self._scanned, strict=True))
        self._scanned, self._scanned_rows = [], 0
        found = np.flatnonzero((cosines >= self._min_cosine) & (ids != REMOVED))
        if found.size:
            self._keep_best(
                np.concatenate([self._ids, ids[found]]),
                np.concatenate([self._cosines, cosines[found]]),
            )

    def _keep_best(self, ids: np.ndarray, cosines: np.ndarray) -> None:
        """Keep the best k ids, each with its best cosine; from now on, what is worse than the last is not looked at."""
        ids, cosines = _nearest(ids, cosines, self._k)
        best_first = np.lexsort((ids, -cosines))
        ids, cosines = ids[best_first], cosines[best_first]
        firsts = np.sort(np.unique(ids, return_index=True)[1])[: self._k]
        self._ids, self._cosines = ids[firsts], cosines[firsts]
        if len(firsts) == self._k:
            self._min_cosine = self._cosines[-1]


def _nearest(ids: np.ndarray, cosines: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Leave out, before they are sorted, vectors that cannot be among the best of k ids."""
    if len(ids) > 4 * k > 0:
        near = cosines >= np.partition(cosines, -2 * k)[-2 * k]
        if len(np.unique(ids[near])) >= k:  # an id has a vector for each of its windows
            return ids[near], cosines[near]
    return ids, cosines
