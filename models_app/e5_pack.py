"""Reader of the file that holds multilingual-e5-small: weights of four bits and the pieces of its vocabulary.

The file stays on disk and is mapped into memory; only what is asked for is read and turned into floats.
"""

import mmap
import struct
from pathlib import Path

import numpy as np

MAGIC = b"E5S1"
FORMAT_VERSION = 1
FLOAT32 = 0
# Q4_0 of llama.cpp: 32 weights are one half-precision scale and 16 bytes, each holding weight i and weight i + 16.
Q4_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
WEIGHTS_PER_BLOCK = 32


class BrokenPack(Exception):
    """The file is not the weight file that the set-up fetches."""


class E5Pack:
    """The mapped weight file: sizes of the network, vocabulary, normalisation of text, and tensors by name."""

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self.mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self.mapping[:4] != MAGIC:
            raise BrokenPack(f"{path} does not begin with {MAGIC.decode()}.")
        self._position = len(MAGIC)
        try:
            self._read_sizes(path)
            self._read_vocabulary()
            self.replacements = self._read_replacements()
            self._tensors = self._read_directory()
        except (struct.error, ValueError) as error:
            raise BrokenPack(f"{path} ends too early.") from error

    def _take(self, layout: str) -> tuple:
        values = struct.unpack_from(f"<{layout}", self.mapping, self._position)
        self._position += struct.calcsize(f"<{layout}")
        return values

    def _array(self, dtype, count: int) -> np.ndarray:
        array = np.frombuffer(self.mapping, dtype, count, self._position)
        self._position += array.nbytes
        return array

    def _read_sizes(self, path: Path) -> None:
        (version,) = self._take("I")
        if version != FORMAT_VERSION:
            raise BrokenPack(f"{path} has format {version}, not {FORMAT_VERSION}.")
        self.width, self.layers, self.heads, self.inner_width, self.vocabulary, self.positions, _ = self._take("7i")
        self.epsilon, _ = self._take("fi")

    def _read_vocabulary(self) -> None:
        count, self.begin, self.end, self.padding, self.unknown = self._take("5i")
        (n_bytes,) = self._take("Q")
        self.piece_offsets = self._array("<u4", count + 1)
        self.piece_scores = self._array("<f4", count)
        self.piece_bytes = memoryview(self.mapping)[self._position : self._position + n_bytes]
        self._position += n_bytes

    def _read_replacements(self) -> dict[int, str]:
        """Return the model's normalisation, code point to text, in the form that str.translate takes."""
        count, n_bytes = self._take("iI")
        after = self._position + n_bytes
        replacements = {}
        for _ in range(count):
            code_point, length = self._take("IB")
            replacements[code_point] = "".join(map(chr, self._take(f"{length}I")))
        self._position = after
        return replacements

    def _read_directory(self) -> dict[str, tuple[int, int, int]]:
        (count,) = self._take("i")
        tensors = {}
        for _ in range(count):
            (length,) = self._take("H")
            (name,) = self._take(f"{length}s")
            kind, n_values, offset, _ = self._take("BIQQ")
            tensors[name.decode()] = (kind, n_values, offset)
        return tensors

    def floats(self, name: str) -> np.ndarray:
        """Return an unquantised tensor, flat, a view into the file."""
        _, n_values, offset = self._tensors[name]
        return np.frombuffer(self.mapping, np.float32, n_values, offset)

    def blocks(self, name: str, rows: int) -> np.ndarray:
        """Return a quantised tensor as (rows, columns / 32) blocks, a view into the file, for `dequantise`."""
        _, n_values, offset = self._tensors[name]
        return np.frombuffer(self.mapping, Q4_BLOCK, n_values // WEIGHTS_PER_BLOCK, offset).reshape(rows, -1)

    def weights(self, name: str, rows: int) -> np.ndarray:
        """Return a tensor as (rows, columns) float32, whichever way it is stored."""
        if self._tensors[name][0] == FLOAT32:
            return self.floats(name).reshape(rows, -1)
        return dequantise(self.blocks(name, rows))


def dequantise(blocks: np.ndarray) -> np.ndarray:
    """Return (rows, n) blocks as (rows, 32 n) float32 weights."""
    weights = np.empty((*blocks.shape, WEIGHTS_PER_BLOCK), np.float32)
    half = WEIGHTS_PER_BLOCK // 2
    weights[..., :half] = blocks["nibbles"] & 15
    weights[..., half:] = blocks["nibbles"] >> 4
    weights -= 8
    weights *= blocks["scale"].astype(np.float32)[..., None]
    return weights.reshape(blocks.shape[0], -1)
