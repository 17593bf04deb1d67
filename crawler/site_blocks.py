"""Finds what to keep once for a site: what it repeats around its pages, and the parts that its author marked."""

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from crawler.repeated import (
    LINK_TARGET,
    LIST_LINE,
    PageText,
    RepeatedBlocks,
    Survey,
    blocks_of,
    digest_of,
    key_of,
    keys_of,
    parts_of,
    plain_words_of,
    words_of,
)

CHECKBOX = re.compile(r"\[[ x]\] ")
LINK = re.compile(rf"(?<!!)\[([^\[\]]*){LINK_TARGET.pattern}")
# Words of blocks on single pages that are remembered, some megabytes: what is said again long after is kept again.
MAX_REMEMBERED = 50_000


@dataclass(frozen=True)
class SiteBlock:
    """A block that is kept once for the site: its Markdown, the first page it stands on, and on how many it does."""

    markdown: str
    url: str
    page_count: int


class _Said:
    """Which words of links, and between them, the site is known to say already."""

    def __init__(self, survey: Survey, said: Iterable[bytes]):
        self._subjects, self._by_many = survey.subjects, set(said)
        self._by_one: set[bytes] = set()

    def __contains__(self, piece: bytes) -> bool:
        return piece in self._subjects or piece in self._by_many or piece in self._by_one

    def add(self, pieces: Iterable[bytes], page_count: int) -> None:
        (self._by_many if page_count > 1 else self._by_one).update(pieces)
        if len(self._by_one) > MAX_REMEMBERED:
            self._by_one.clear()


def site_blocks(
    pages: Iterable[PageText], survey: Survey, held: Set[bytes] = frozenset(), said: Set[bytes] = frozenset()
) -> Iterator[SiteBlock]:
    """Yield the blocks to keep once for the site, each once, in the order in which they are met.

    Left out of the parts that the author marked is what stands elsewhere anyway: a menu's labels that are titles and
    headings of pages, and what the page itself says, such as a table of its contents. `held` are the blocks, and `said`
    the words of links and between them, that are kept already.
    """
    known, kept = _Said(survey, said), set(held)
    for page in pages:
        own_words = f" {words_of(page.markdown)} " if page.landmarks else ""
        for key, (block, is_marked) in _parts_on(page, survey.repeated).items():
            pieces = {piece: digest_of(piece) for piece in _pieces(block)}
            is_said = all(digest in known or f" {piece} " in own_words for piece, digest in pieces.items())
            if key in kept or (is_marked and is_said):
                continue
            page_count = survey.page_count(key)
            if page_count > 1:
                kept.add(key)
            known.add(pieces.values(), page_count)
            yield SiteBlock(block, page.url, page_count)


def blocks_kept(texts: Iterable[str]) -> frozenset[bytes]:
    """Return what the blocks are compared by that the site's own snippets hold, lists whole and by their lines."""
    blocks = (block for text in texts for block in blocks_of(text))
    return frozenset(keys_of(part for block in blocks for part in (block, *parts_of(block))))


def pieces_kept(texts: Iterable[str]) -> frozenset[bytes]:
    """Return what each link, and what stands between links, is compared by in the site's own snippets."""
    return frozenset(digest_of(piece) for text in texts for block in blocks_of(text) for piece in _pieces(block))


def lines_kept(texts: Iterable[str]) -> dict[bytes, str]:
    """Return the blocks that the site's own snippets hold, lists by their lines, by what they are compared by."""
    return {
        key: part for text in texts for block in blocks_of(text) for part in parts_of(block) if (key := key_of(part))
    }


def join_blocks(blocks: Iterable[SiteBlock]) -> str:
    """Return one Markdown text of the blocks; the lines of a list stay together."""
    text, was_list = "", False
    for block in blocks:
        is_list = bool(LIST_LINE.match(block.markdown))
        text += ("\n" if is_list and was_list else "\n\n") + block.markdown
        was_list = is_list
    return text.strip()


def _parts_on(page: PageText, repeated: RepeatedBlocks) -> dict[bytes, tuple[str, bool]]:
    """Return the blocks of the site that stand on the page, and whether the author marked them as such."""
    marked = (part for text in page.landmarks for block in blocks_of(text) for part in parts_of(block))
    parts = {key_of(part): (part, True) for part in marked}
    if not page.has_main and repeated.keys:
        own = {key_of(block): (block, False) for block in blocks_of(page.markdown)}
        parts |= {key: part for key, part in own.items() if key in repeated.keys}
    parts.pop(b"", None)
    return parts


def _pieces(block: str) -> list[str]:
    """Return the words of each link in the block, and of what stands between them: a menu's line may hold several."""
    pieces = LINK.split(CHECKBOX.sub("", block))
    return list(filter(None, map(plain_words_of, pieces))) or [words_of(block)]
