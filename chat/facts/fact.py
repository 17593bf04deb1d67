"""What a fact is, and the text it is read from: what was read is blotted out, so that it is not read twice."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

Keys = frozenset[str]
BLOT = "\x01"


@dataclass(frozen=True)
class Fact:
    """One fact as it is written, the keys it gives as a source, and which sets of keys would bear it out (any one)."""

    kind: str  # "url", "e-mail", "phone", "date", "time", "price", "percentage", "measure", "number" or "code"
    text: str
    gives: Keys
    needs: tuple[Keys, ...]


def keys(*names: str) -> Keys:
    return frozenset(names)


class Unread:
    """A text of which less and less is left to read."""

    def __init__(self, text: str):
        self.text = text
        self._blotted: list[tuple[int, int]] = []

    def take(self, pattern: re.Pattern) -> Iterator[re.Match]:
        """Yield the matches in the text; what `blot` was told of meanwhile is gone afterwards."""
        yield from pattern.finditer(self.text)
        if self._blotted:
            pieces, end = [], 0
            for start, stop in sorted(self._blotted):
                pieces += [self.text[end:start], BLOT * (stop - max(start, end))]
                end = max(stop, end)
            self.text = "".join([*pieces, self.text[end:]])
            self._blotted.clear()

    def blot(self, start: int, end: int) -> str:
        """Return a stretch of the text and let nobody read it again."""
        self._blotted.append((start, end))
        return self.text[start:end].strip()
