"""What a cosine is worth: 0 for an unrelated text, 1 for an equal one, in every embedding space. Knows no database.

Models place unrelated texts at cosines from 0 to .9, some snippets lie nearer to all questions than others, and some
questions nearer to all snippets. What unrelated questions have in common with a snippet, and a question with the whole
collection, is taken off; the rest is stretched.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np

FLOATS = np.dtype("<f4")
# Where the nearest text to a question that nothing answers lies after stretching: the default of a model's threshold.
NEAREST_UNRELATED = 0.3
# Chosen by bench_calibration --sweep on one half of the questions. How much of a question's nearness to the whole
# collection is taken off: with .85, 89 % of stackfaq's questions find nothing in xquad en, with .5, 84 %, where both
# lose 1.3 % of its own answers. No more than MOST_SHIFT of the way to 1, so that a collection on one subject, which is
# near to all its own questions, keeps its answers; and less where the collection is so small that the right answer
# makes up its mean.
QUESTION_SHARE = 0.85
MOST_SHIFT = 0.08
FEW_VECTORS = 20
HIGHEST_BASE = 0.98  # above, hardly anything would be left to stretch
SHORTEST = 1e-9
# The best of many draws lies higher than the best of few: from MANY_VECTORS on, `nearest` is taken as it is. Without
# this, 2.3 % of the answers are lost in collections of 20 snippets and 2.6 % in those of 50, with it .5 and 1.1 %
# (bench_calibration --tiny).
LEAST_VECTORS, MANY_VECTORS = 5, 250


def reach(count: int) -> float:
    """Return how far up the best of so many unrelated texts comes, as a share of how far the best of many do."""
    return min(1.0, sqrt(log(max(count, LEAST_VECTORS)) / log(MANY_VECTORS)))


@dataclass(frozen=True)
class Calibration:
    """The scale of a space. Without `unrelated` (not calibrated yet) all unrelated texts count as lying at `start`.

    `unrelated` holds, for each language, the mean vector of questions that the collection does not answer, and `starts`
    their mean cosine with its vectors; `nearest` is how far up (0 to 1) the best of the unrelated texts reach.
    """

    start: float = 0.0
    nearest: float = NEAREST_UNRELATED
    vectors: int = 0
    unrelated: np.ndarray | None = field(default=None, compare=False)  # shape (languages, dimensions)
    starts: tuple[float, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> "Calibration":
        """Return what to_json wrote."""
        read = json.loads(text)
        if read["unrelated"] is None:
            return cls(read["start"], read["nearest"], read["vectors"])
        unrelated = np.frombuffer(b64decode(read["unrelated"]), FLOATS).reshape(len(read["starts"]), -1)
        return cls(read["start"], read["nearest"], read["vectors"], unrelated, tuple(read["starts"]))

    def to_json(self) -> str:
        """Return it as the store keeps it."""
        packed = None if self.unrelated is None else b64encode(self.unrelated.astype(FLOATS).tobytes()).decode()
        plain = {"start": self.start, "nearest": self.nearest, "vectors": self.vectors, "starts": self.starts}
        return json.dumps(plain | {"unrelated": packed})

    def for_question(self, question: np.ndarray) -> "QuestionScale":
        """Return the scale for a question: of the unrelated ones, those in its own language are its measure."""
        if self.unrelated is None:
            return QuestionScale(self.start, self.nearest, np.empty(0, FLOATS))
        lengths = np.maximum(np.linalg.norm(self.unrelated, axis=1), SHORTEST)
        language = int(np.argmax(self.unrelated @ question / lengths))
        return QuestionScale(self.starts[language], self.nearest, self.unrelated[language])


UNCALIBRATED = Calibration()


@dataclass(frozen=True)
class QuestionScale:
    """The scale of a space for one question; `unrelated` is the vector that unrelated questions have in common."""

    start: float
    nearest: float
    unrelated: np.ndarray  # shape (dimensions,), or (0,) in a space that is not calibrated

    @classmethod
    def unpack(cls, packed: bytes) -> "QuestionScale":
        """Return what pack wrote."""
        start, nearest, *_ = numbers = np.frombuffer(packed, FLOATS)
        return cls(float(start), float(nearest), numbers[2:])

    def pack(self) -> bytes:
        """Return it as the SQL aggregate takes it."""
        return np.concatenate([[self.start, self.nearest], self.unrelated]).astype(FLOATS).tobytes()

    def bases(self, vectors: np.ndarray) -> np.ndarray:
        """Return the cosine that an unrelated question has with each of the vectors, shape (rows,)."""
        if not self.unrelated.size:
            return np.full(len(vectors), self.start, FLOATS)
        return np.vecdot(vectors, self.unrelated)

    def relevance(self, cosines: np.ndarray, bases: np.ndarray, mean: float, count: int) -> np.ndarray:
        """Return the calibrated cosines; `mean` is the question's own over all `count` vectors of the space."""
        shift, nearest = 0.0, self.nearest
        if self.unrelated.size:
            most = MOST_SHIFT * (1 - self.start)
            shift = QUESTION_SHARE * float(np.clip(mean - self.start, -most, most)) * count / (count + FEW_VECTORS)
            nearest *= reach(count)
        based = np.minimum(bases.astype(float) + shift, HIGHEST_BASE)
        risen = (cosines - based) / (1 - based)
        below = NEAREST_UNRELATED * risen / nearest
        above = 1 - (1 - NEAREST_UNRELATED) * (1 - risen) / (1 - nearest)
        return np.where(risen < nearest, below, above)
