"""Cuts text into the vocabulary pieces of XLM-RoBERTa, as SentencePiece's unigram model does, for little memory.

The quarter of a million pieces stay in mapped files, which all processes of a machine share: a table in Python
would cost each of them 100 MB, SentencePiece's own 35 MB.
"""

import mmap
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from zlib import crc32

import numpy as np

from models_app.e5_pack import E5Pack

WORD_MARK = "▁"  # stands for the blank before a word
BUCKET_BITS = 18
BUCKET_SHIFT = 32 - BUCKET_BITS
N_BUCKETS = 1 << BUCKET_BITS
LONGEST_PIECE = 16  # characters; build_index refuses a vocabulary with a longer one
UNKNOWN_PENALTY = 10.0  # SentencePiece: an unknown character scores this much less than the rarest piece
# Text without blanks (Chinese, base64) is cut here, which bounds the work on it; SentencePiece does not cut.
LONGEST_WORD = 2048
CACHED_WORDS = 4096  # words repeat; with this many the cache stays under 2 MB
LONGEST_CACHED_WORD = 32


def build_index(pack: E5Pack, path: Path) -> None:
    """Write the look-up table of the pack's pieces: bucket starts, then checksum and id of each, by checksum.

    Control pieces are left out: a page that speaks of `</s>` must not end the text.
    """
    control = {pack.begin, pack.end, pack.padding, pack.unknown, len(pack.piece_scores) - 1}  # the last is <mask>
    checksums, ids = [], []
    for piece_id, (start, end) in enumerate(zip(pack.piece_offsets, pack.piece_offsets[1:], strict=False)):
        piece = bytes(pack.piece_bytes[start:end])
        if len(piece.decode()) > LONGEST_PIECE:
            raise ValueError(f"The piece {piece.decode()!r} is longer than {LONGEST_PIECE} characters.")
        if piece_id not in control:
            checksums.append(crc32(piece))
            ids.append(piece_id)
    table = np.array([checksums, ids], np.uint32).T
    table = table[np.argsort(table[:, 0], kind="stable")]
    starts = np.searchsorted(table[:, 0] >> BUCKET_SHIFT, np.arange(N_BUCKETS + 1))
    path.write_bytes(starts.astype("<u4").tobytes() + table.astype("<u4").tobytes())


class Pieces:
    """Text to piece ids. Safe to use from several threads."""

    def __init__(self, pack: E5Pack, index: Path):
        with index.open("rb") as file:
            self.mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        numbers = memoryview(self.mapping).cast("I")
        self._starts, self._table = numbers[: N_BUCKETS + 1], numbers[N_BUCKETS + 1 :]
        self._bytes = pack.piece_bytes
        self._offsets, self._scores = memoryview(pack.piece_offsets), memoryview(pack.piece_scores)
        self._begin, self._end, self._unknown = pack.begin, pack.end, pack.unknown
        self._unknown_score = float(pack.piece_scores.min()) - UNKNOWN_PENALTY
        self._replacements = pack.replacements
        self._split_cached = lru_cache(CACHED_WORDS)(self._split_word)

    def ids(self, text: str, limit: int) -> list[int]:
        """Return at most `limit` ids, begin and end mark included; what does not fit is cut off."""
        ids = [self._begin]
        for word_ids in self._words(text):
            ids += word_ids
            if len(ids) >= limit:
                break
        return [*ids[: limit - 1], self._end]

    def count(self, text: str) -> int:
        """Return how many ids the whole text has, begin and end mark included."""
        return 2 + sum(map(len, self._words(text)))

    def _words(self, text: str) -> Iterator[list[int]]:
        # The model's replacements (NFKC) know single characters only; NFC first joins letters and their marks,
        # which the original's table does too.
        for word in unicodedata.normalize("NFC", text).translate(self._replacements).split():
            marked = WORD_MARK + word
            if len(marked) <= LONGEST_CACHED_WORD:
                yield self._split_cached(marked)
            else:
                for start in range(0, len(marked), LONGEST_WORD):
                    yield self._split_word(marked[start : start + LONGEST_WORD])

    def _split_word(self, word: str) -> list[int]:
        """Return the ids of the most probable split (Viterbi over all pieces that start at each character)."""
        characters = [character.encode("utf-8", "surrogatepass") for character in word]
        offsets = list(accumulate(map(len, characters), initial=0))
        encoded = b"".join(characters)
        count = len(characters)
        best = [0.0] + [-1e30] * count
        origin = [(0, 0)] * (count + 1)  # where the best piece that ends here starts, and its id
        scores, unknown, unknown_score = self._scores, self._unknown, self._unknown_score
        for start in range(count):
            checksum, score = 0, best[start]
            for end in range(start + 1, min(count, start + LONGEST_PIECE) + 1):
                checksum = crc32(characters[end - 1], checksum)
                piece = self._find(checksum, encoded, offsets[start], offsets[end])
                if piece is not None and score + scores[piece] > best[end]:
                    best[end], origin[end] = score + scores[piece], (start, piece)
            if score + unknown_score > best[start + 1]:
                best[start + 1], origin[start + 1] = score + unknown_score, (start, unknown)
        return self._trace_back(origin)

    def _find(self, checksum: int, encoded: bytes, start: int, end: int) -> int | None:
        bucket = checksum >> BUCKET_SHIFT
        table = self._table
        for row in range(2 * self._starts[bucket], 2 * self._starts[bucket + 1], 2):
            if table[row] == checksum:
                piece = table[row + 1]
                if self._bytes[self._offsets[piece] : self._offsets[piece + 1]] == encoded[start:end]:
                    return piece
        return None

    def _trace_back(self, origin: list[tuple[int, int]]) -> list[int]:
        """Follow the best pieces from the end. Neighbouring unknown characters become one unknown piece.

        SentencePiece merges them too, and so did the text that XLM-RoBERTa learnt from.
        """
        ids, end = [], len(origin) - 1
        while end:
            end, piece = origin[end]
            if not (piece == self._unknown and ids and ids[-1] == piece):
                ids.append(piece)
        ids.reverse()
        return ids
