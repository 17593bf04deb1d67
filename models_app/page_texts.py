"""What pages show their readers, kept so that a source's link can lead to the very sentence an answer stands on.

A link to a sentence that the page says twice, or no longer, would lead astray: where that is so the link leads to the
nearest heading above that has an anchor, else to the page. The links have the form of WICG Scroll to Text Fragment.
"""

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote

from models_app.models import MLModel, PageText

LONGEST_WHOLE = 100  # characters; of a longer sentence the link names how it begins and ends
END_CHARACTERS = 40
LEAST_CHARACTERS = 8  # shorter texts (a price in a table) stand on too many pages in too many places
LONGEST_UNSPACED = 300
COMPRESSION_LEVEL = 3


@dataclass(frozen=True)
class ShownPage:
    """A page's visible text, a block of it a line, and its headings' anchors as (line, id), in order."""

    packed: bytes  # the text, compressed by zlib
    anchors: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, text: str, anchors: Iterable[tuple[int, str]] = ()) -> "ShownPage":
        """Return the page that shows this text."""
        return cls(zlib.compress(text.encode("utf-8", "replace"), COMPRESSION_LEVEL), tuple(anchors))

    @cached_property
    def text(self) -> str:
        return zlib.decompress(self.packed).decode()

    @cached_property
    def _folded(self) -> str:
        return "\n".join(" ".join(line.split()) for line in self.text.casefold().split("\n"))

    def address(self, uri: str, sentence: str, near: Sequence[str] = ()) -> str:
        """Return the page's address as it leads to the sentence.

        `near` are the sentences around it, nearest first: they tell under which heading it is meant where it stands in
        several places.
        """
        page = uri.partition("#")[0]
        directive = self._directive(sentence)
        if directive:
            return f"{page}#:~:text={directive}"
        places = (self._only_place(_folded(other)) for other in (sentence, *near))
        place = next((place for place in places if place is not None), None)
        anchor = self._anchor_above(place) if place is not None else ""
        return f"{page}#{quote(anchor, safe='')}" if anchor else uri

    def _directive(self, sentence: str) -> str:
        words = " ".join(sentence.split())
        if len(words) < LEAST_CHARACTERS or self._only_place(words.casefold()) is None:
            return ""
        if len(words) <= LONGEST_WHOLE:
            return _escaped(words)
        start, end = _first_words(words), _last_words(words)
        if not (start and end):
            return _escaped(words) if len(words) <= LONGEST_UNSPACED else ""
        # A browser takes the first place where the text begins so, and from there the first where it ends so.
        begin = self._only_place(start.casefold())
        if begin is None or _find(self._folded, end.casefold(), begin + len(start)) != begin + len(words) - len(end):
            return ""
        return f"{_escaped(start)},{_escaped(end)}"

    def _only_place(self, words: str) -> int | None:
        """Return where the words stand, as whole words, if they stand in one place only."""
        place = _find(self._folded, words, 0) if words else -1
        return place if place >= 0 and _find(self._folded, words, place + 1) < 0 else None

    def _anchor_above(self, place: int) -> str:
        line = self._folded.count("\n", 0, place)
        position = bisect_right(self.anchors, line, key=lambda anchor: anchor[0])
        return self.anchors[position - 1][1] if position else ""


def keep_page_text(model: MLModel, uri: str, page: ShownPage) -> None:
    """Keep what a page shows, in place of what it showed before."""
    shown = {"text": page.packed, "anchors": [list(anchor) for anchor in page.anchors]}
    PageText.objects.bulk_create(
        [PageText(model=model, uri=uri, **shown)],
        update_conflicts=True,
        unique_fields=["model", "uri"],
        update_fields=list(shown),
    )


def drop_page_text(model: MLModel, uri: str) -> None:
    """Forget what a page showed that is gone."""
    PageText.objects.filter(model=model, uri=uri).delete()


def shown_pages(model: MLModel, uris: Iterable[str]) -> dict[str, ShownPage]:
    """Return what those of the pages show that are kept, by their addresses."""
    rows = PageText.objects.filter(model=model, uri__in=set(uris))
    return {row.uri: ShownPage(row.text, tuple((line, name) for line, name in row.anchors)) for row in rows}


def _folded(words: str) -> str:
    return " ".join(words.split()).casefold()


def _find(text: str, words: str, start: int) -> int:
    """Return the first place from `start` where the words stand as whole words; -1: nowhere."""
    while (place := text.find(words, start)) >= 0:
        end = place + len(words)
        if not (_runs_on(text, place) or _runs_on(text, end)):
            return place
        start = place + 1
    return -1


def _runs_on(text: str, border: int) -> bool:
    """Return whether a word runs across the border; scripts without blanks end a word anywhere."""
    around = text[border - 1 : border + 1] if border else ""
    return len(around) == 2 and all(letter.isalnum() and ord(letter) < 0x0E00 for letter in around)


def _first_words(words: str) -> str:
    return words[: END_CHARACTERS + 1].rpartition(" ")[0]


def _last_words(words: str) -> str:
    return words[-END_CHARACTERS - 1 :].partition(" ")[2]


def _escaped(words: str) -> str:
    # The comma, the hyphen and the ampersand are marks of the directive's own.
    return quote(words, safe="").replace("-", "%2D")
