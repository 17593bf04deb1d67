"""Compares a site's pages, so that what it repeats around them is kept once instead of in each snippet.

Blocks repeat that stand on most pages where the author marked no main part: menus, footers, banners. Plain values only;
nothing that a reader sees is thrown away: site_blocks.py says what is kept of it for the site.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from textwrap import dedent

# How a page's text was selected that may hold what stands around it: its author marked no part, or menus alone.
UNMARKED = frozenset(("body", "nav"))
MIN_PAGES = 3
MIN_SHARE = 0.5  # of the pages without a main part: what fewer of them say may be their own subject
# Blocks counted at once, some megabytes; and headings remembered. What that loses of a site of very many blocks: one
# that barely half of its pages say stays in each of them, one that a few say is kept for the first of them alone, and
# a menu's label is kept though it is a page's heading.
MAX_COUNTED = 20_000
MAX_SUBJECTS = 200_000
DIGEST_BYTES = 12

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6})\s")
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK_TARGET = re.compile(r"\]\([^()\s]*(?: \"[^\"]*\")?\)")
NOT_WORD = re.compile(r"[\W_]+")
ASCII_WORDS = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
LIST_LINE = re.compile(r"\s*([-*+]|\d{1,9}[.)])\s")


@dataclass(frozen=True)
class PageText:
    """What is compared of a page: its own text, the site's parts on it, and whether its author marked a main part."""

    url: str
    title: str
    markdown: str
    landmarks: tuple[str, ...]
    has_main: bool


@dataclass(frozen=True)
class RepeatedBlocks:
    """The blocks that most pages without a main part say, by the digests of their words."""

    keys: frozenset[bytes] = frozenset()

    def without(self, markdown: str) -> str:
        """Return the page's text without them; a heading goes when nothing of its own is left below it."""
        if not self.keys:
            return markdown
        blocks = blocks_of(markdown)
        is_repeated = [key_of(block) in self.keys for block in blocks]
        kept = [
            block
            for place, block in enumerate(blocks)
            if not (is_repeated[place] and (not HEADING.match(block) or _is_emptied(blocks, is_repeated, place)))
        ]
        return markdown if len(kept) == len(blocks) else "\n\n".join(kept)


NOTHING_REPEATED = RepeatedBlocks()


class PageTally:
    """Counts on how many pages blocks stand, those that few say forgotten when there are too many at once.

    Source: Misra and Gries, Finding repeated elements, 1982. Each count may be too small by how often it forgot, which
    is at most the number of all blocks by MAX_COUNTED.
    """

    def __init__(self):
        self._counts: dict[bytes, int] = {}
        self._forgotten = 0

    def add(self, keys: Iterable[bytes]) -> None:
        """Count a page that says these blocks."""
        for key in keys:
            self._counts[key] = self._counts.get(key, self._forgotten) + 1
        while len(self._counts) > MAX_COUNTED:
            self._forgotten += 1
            self._counts = {key: count for key, count in self._counts.items() if count > self._forgotten}

    def __contains__(self, key: bytes) -> bool:
        return key in self._counts

    def __getitem__(self, key: bytes) -> int:
        """Return on how many pages the block stands at least."""
        return self._counts.get(key, self._forgotten) - self._forgotten

    def most(self, page_count: int) -> set[bytes]:
        """Return what stands on most of the pages, and on three at least."""
        enough = max(MIN_PAGES, page_count * MIN_SHARE)
        return {key for key in self._counts if self[key] >= enough}


@dataclass
class Survey:
    """What one pass over a site's pages has counted.

    `own` are blocks of pages without a main part, `around_main` those that stand around a main part, `twice` those that
    a page without one says in its text and in a part of the site; `parts` are what is kept for the site, lists by their
    lines.
    """

    own: PageTally = field(default_factory=PageTally)
    around_main: PageTally = field(default_factory=PageTally)
    twice: PageTally = field(default_factory=PageTally)
    parts: PageTally = field(default_factory=PageTally)
    subjects: set[bytes] = field(default_factory=set)
    repeated: RepeatedBlocks = NOTHING_REPEATED

    def page_count(self, key: bytes) -> int:
        """Return on how many pages at least the block stands as the site's."""
        return max(self.parts[key], self.own[key] if key in self.repeated.keys else 0, 1)


def survey_pages(pages: Iterable[PageText]) -> Survey:
    """Return what stands around the pages: what most of those without a main part repeat, or what most others mark.

    What fewer than three pages say is nowhere repeated. A block that a page without a main part says in its text and in
    a part of the site as well (an address, and the footer) is there its own.
    """
    survey = Survey()
    main_count = unmarked_count = 0
    for page in pages:
        marked = [block for text in page.landmarks for block in blocks_of(text)]
        around = keys_of(marked)
        survey.parts.add(keys_of(part for block in marked for part in parts_of(block)))
        blocks = blocks_of(page.markdown)
        if len(survey.subjects) < MAX_SUBJECTS:
            survey.subjects |= keys_of((page.title, *filter(HEADING.match, blocks)))
        if page.has_main:
            main_count += 1
            survey.around_main.add(around)
        else:
            unmarked_count += 1
            own = keys_of(blocks)
            survey.own.add(own)
            survey.twice.add(own & around)
    marked_most = {key for key in survey.around_main.most(main_count) if key not in survey.twice}
    survey.repeated = RepeatedBlocks(frozenset(survey.own.most(unmarked_count) | marked_most))
    return survey


def keys_of(blocks: Iterable[str]) -> set[bytes]:
    """Return what the blocks are compared by, but for those that say nothing."""
    return {key for block in blocks if (key := key_of(block))}


def key_of(block: str) -> bytes:
    """Return what a block is compared by, whatever its links and marks; empty where it says nothing."""
    words = words_of(block)
    return digest_of(words) if words else b""


def digest_of(words: str) -> bytes:
    """Return what stands for the words: a site has so many that the words themselves would fill the memory."""
    return blake2b(words.encode(errors="replace"), digest_size=DIGEST_BYTES).digest()


def parts_of(block: str) -> Iterator[str]:
    """Yield the lines of a list, or the block as it is."""
    yield from map(str.strip, block.splitlines() if LIST_LINE.match(block) else [dedent(block)])


def blocks_of(markdown: str) -> list[str]:
    """Return the text cut at blank lines, fenced code left whole."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in markdown.splitlines():
        mark = FENCE.match(line) if "```" in line or "~~~" in line else None
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if line.strip() or fence:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(lines) for lines in blocks if lines]


def _is_emptied(blocks: list[str], is_repeated: list[bool], place: int) -> bool:
    """Return whether all that stands below the heading, up to the next of its rank, is repeated too."""
    rank = len(HEADING.match(blocks[place])[1])
    for later in range(place + 1, len(blocks)):
        heading = HEADING.match(blocks[later])
        if heading and len(heading[1]) <= rank:
            return True
        if not is_repeated[later]:
            return False
    return True


def words_of(block: str) -> str:
    """Return the words of a block; of a picture alone its Markdown."""
    return plain_words_of(block) or (block if "![" in block else "")


def plain_words_of(markdown: str) -> str:
    """Return the words, quickly: to parse each block as Markdown made an import half as long again."""
    shown = LINK_TARGET.sub("]", IMAGE.sub("", markdown)) if "](" in markdown else markdown
    if shown.isascii():  # the same for such texts, in a third of the time
        return " ".join(shown.translate(ASCII_WORDS).split())
    return NOT_WORD.sub(" ", shown).strip().casefold()
