"""Finds what a site repeats around its pages, so that it is kept once for the site instead of in each snippet.

Two kinds: blocks that stand on most pages where the author marked no main part (menus, footers, banners), and the parts
that the author did mark as the site's (landmarks). Plain values only; nothing that a reader sees is thrown away.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from textwrap import dedent

# How a page's text was selected that may hold what stands around it: its author marked no part, or menus alone.
UNMARKED = frozenset(("body", "nav"))
MIN_PAGES = 3
# Blocks counted at once, some megabytes: then those that few of the pages have said so far are forgotten.
MAX_COUNTED = 20_000
MIN_SHARE = 0.5  # of the pages without a main part: what fewer of them say may be their own subject

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING = re.compile(r"(#{1,6})\s")
CHECKBOX = re.compile(r"\[[ x]\] ")
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK_TARGET = re.compile(r"\]\([^()\s]*(?: \"[^\"]*\")?\)")
LINK = re.compile(rf"(?<!!)\[([^\[\]]*){LINK_TARGET.pattern}")
NOT_WORD = re.compile(r"[\W_]+")
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
class SiteBlock:
    """A block that is kept once for the site: its Markdown, the first page it stands on, and on how many it does."""

    markdown: str
    url: str
    page_count: int


@dataclass(frozen=True)
class RepeatedBlocks:
    """The words of the blocks that most pages without a main part say."""

    keys: frozenset[str] = frozenset()

    def without(self, markdown: str) -> str:
        """Return the page's text without them; a heading goes when nothing of its own is left below it."""
        blocks = blocks_of(markdown)
        is_repeated = [_key(block) in self.keys for block in blocks]
        kept = [
            block
            for place, block in enumerate(blocks)
            if not (is_repeated[place] and (not HEADING.match(block) or _is_emptied(blocks, is_repeated, place)))
        ]
        return markdown if len(kept) == len(blocks) else "\n\n".join(kept)


def find_repeated_blocks(pages: Iterable[PageText]) -> RepeatedBlocks:
    """Return the blocks that stand around pages without a main part: those most of them repeat, or most others mark.

    What fewer than three pages say is nowhere repeated. A block that a page without a main part says in its text and in
    a part of the site as well (an address, and the footer) is there its own.
    """
    counts: Counter[str] = Counter()
    marked_counts: Counter[str] = Counter()
    said_twice: set[str] = set()
    page_count = marked_page_count = 0
    for page in pages:
        around = {_key(block) for landmark in page.landmarks for block in blocks_of(landmark)}
        if page.has_main:
            marked_page_count += 1
            marked_counts.update(around)
        else:
            page_count += 1
            own = {_key(block) for block in blocks_of(page.markdown)}
            counts.update(own)
            said_twice |= own & around
    marked = _most(marked_counts, marked_page_count) & counts.keys() - said_twice
    return RepeatedBlocks(frozenset(_most(counts, page_count) | marked))


def _most(counts: Counter[str], page_count: int) -> set[str]:
    """Return what stands on most of the pages, and on three at least."""
    enough = max(MIN_PAGES, page_count * MIN_SHARE)
    return {key for key, count in counts.items() if key and count >= enough}


def collect_site_blocks(pages: Iterable[PageText], repeated: RepeatedBlocks, subjects: set[str]) -> list[SiteBlock]:
    """Return the blocks to keep once for the site, each once, in the order in which they are met.

    Left out of the parts that the author marked is what stands elsewhere anyway: a menu's labels that are `subjects`
    (titles and headings of pages, as `subjects_of` gives them), and what the page itself says, such as a table of its
    contents.
    """
    found: dict[str, SiteBlock] = {}
    said = set(subjects)
    for page in pages:
        own_words = f" {_key(page.markdown)} " if page.landmarks else ""
        on_page = {_key(block): (block, is_marked) for is_marked, block in _site_parts(page, repeated)}
        for key, (block, is_marked) in on_page.items():
            pieces = _pieces(block)
            if key in found:
                found[key] = replace(found[key], page_count=found[key].page_count + 1)
            elif key and not (is_marked and all(piece in said or f" {piece} " in own_words for piece in pieces)):
                found[key] = SiteBlock(block, page.url, 1)
                said.update(pieces)
    return list(found.values())


def blocks_kept(texts: Iterable[str]) -> RepeatedBlocks:
    """Return the blocks that the site's own snippets hold, lines of lists among them."""
    blocks = [part for text in texts for block in blocks_of(text) for part in (block, *block.splitlines())]
    return RepeatedBlocks(frozenset(map(_key, blocks)) - {""})


def pieces_kept(texts: Iterable[str]) -> set[str]:
    """Return the words of each link, and between the links, that the site's own snippets hold."""
    return {piece for text in texts for block in blocks_of(text) for piece in _pieces(block)}


def subjects_of(page: PageText) -> set[str]:
    """Return the words of the page's title and headings, as other blocks are compared with them."""
    headings = (block for block in blocks_of(page.markdown) if HEADING.match(block))
    return {_key(page.title), *map(_key, headings)}


def join_blocks(blocks: Iterable[SiteBlock]) -> str:
    """Return one Markdown text of the blocks; the lines of a list stay together."""
    text, was_list = "", False
    for block in blocks:
        is_list = bool(LIST_LINE.match(block.markdown))
        text += ("\n" if is_list and was_list else "\n\n") + block.markdown
        was_list = is_list
    return text.strip()


def blocks_of(markdown: str) -> list[str]:
    """Return the text cut at blank lines, fenced code left whole."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in markdown.splitlines():
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        if line.strip() or fence:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(lines) for lines in blocks if lines]


def _site_parts(page: PageText, repeated: RepeatedBlocks) -> Iterator[tuple[bool, str]]:
    """Yield the blocks of the site that stand on the page, and whether the author marked them as such."""
    for landmark in page.landmarks:
        for block in blocks_of(landmark):
            lines = block.splitlines() if LIST_LINE.match(block) else [dedent(block)]
            yield from ((True, line.strip()) for line in lines)
    if not page.has_main:
        yield from ((False, block) for block in blocks_of(page.markdown) if _key(block) in repeated.keys)


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


def _key(block: str) -> str:
    """Return what a block is compared by: its words, whatever their links and marks; a picture by its Markdown.

    Empty for what says nothing, such as a line across the page.
    """
    return _words(block) or (block if "![" in block else "")


def _pieces(block: str) -> list[str]:
    """Return the words of each link in the block, and of what stands between them: a menu's line may hold several."""
    pieces = LINK.split(CHECKBOX.sub("", block))
    return list(filter(None, map(_words, pieces))) or [_key(block)]


def _words(markdown: str) -> str:
    # Parsing each block as Markdown made an import half as long again; for comparing, the words are enough.
    return NOT_WORD.sub(" ", LINK_TARGET.sub("]", IMAGE.sub("", markdown))).strip().casefold()
