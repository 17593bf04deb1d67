"""What is being read of a page: the open structures, the paragraph in hand, and the marks that hold for its text.

convert.py walks the page; structures.py and phrases.py know what each element means and tell the reader.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from crawler.markup.blocks import Block, Cell, List, ListItem, Mark, Paragraph, Run
from crawler.markup.inline import without_images
from crawler.markup.tree import HEADINGS, Tag

Closer = Callable[[], None]

# Deeper lists, quotes and tables are read as plain blocks: readers of Markdown give up at 20 levels, and drop the text.
_DEEPEST_STRUCTURE = 18


def has_heading(tag) -> bool:
    """Return whether a heading stands somewhere in the element; much faster than a search by a list of names."""
    if tag.last == tag.position:
        return False
    return any(isinstance(node, Tag) and node.name in HEADINGS for node in tag.descendants())


class Frame:
    """An open structure that gathers blocks: "page", "list", "item", "quote", "table", "cell" or "heading"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.blocks: list[Block] = []
        self.rows: list[list[Cell]] = []
        self.items: list[ListItem] = []
        self.counter: Iterator[int] | None = None
        self.numbering = "1"


class Reader:
    """Gathers the blocks of one element.

    `section_level` is the level of the last heading, `lowest_level` the highest rank that a heading may have here.
    """

    def __init__(self, base_url: str, keeps_images: bool) -> None:
        self.base_url = base_url
        self.keeps_images = keeps_images
        self.frames = [Frame("page")]
        self.runs: list[Run] = []
        self.marks: tuple[Mark, ...] = ()
        self.inside: defaultdict[str, int] = defaultdict(int)
        self.section_level = 1
        self.lowest_level = 1
        self._link_numbers = count(1)
        self._used_links: set[int] = set()
        self._heading_links: set[int] = set()

    @property
    def frame(self) -> Frame:
        """The innermost open structure."""
        return self.frames[-1]

    def has_room(self) -> bool:
        """Return whether another structure may be opened within those that are."""
        return len(self.frames) < _DEEPEST_STRUCTURE

    def open_frame(self, kind: str) -> Frame:
        """End the paragraph, and let what follows go into a new structure."""
        self.end_paragraph()
        self.frames.append(Frame(kind))
        return self.frame

    def close_frame(self) -> Frame:
        """End the paragraph and the innermost structure, and return it."""
        self.end_paragraph()
        self._end_items()
        return self.frames.pop()

    def finish(self) -> list[Block]:
        """Return the blocks of the whole element."""
        return self.close_frame().blocks

    def counted(self, name: str, closer: Closer) -> Closer:
        """Remember that we are inside something until the returned closer is called."""
        self.inside[name] += 1

        def close() -> None:
            closer()
            self.inside[name] -= 1

        return close

    def marked(self, mark: Mark) -> Closer:
        """Let the mark hold for the text that follows until the returned closer is called."""
        before = self.marks
        if all(other.kind != mark.kind for other in before):
            self.marks = (*before, mark)
        return lambda: setattr(self, "marks", before)

    def link(self, address: str, title: str, has_heading: bool) -> Mark:
        """Return the mark of a new link; around a card it will hold for the card's heading alone."""
        number = next(self._link_numbers)
        if has_heading:
            self._heading_links.add(number)
        return Mark("link", address, title, number)

    def add_text(self, text: str) -> None:
        """Add text to the paragraph. A soft hyphen is no text: it only says where a word may be cut."""
        if "\xad" in text:
            text = text.replace("\xad", "")
        if text and (self.runs or not text.isspace()):
            self.runs.append(Run(text, self.marks, "code" if self.inside["code"] else "text"))

    def add_run(self, run: Run) -> None:
        """Add a piece of its own kind to the paragraph."""
        self.runs.append(run)

    def add_block(self, block: Block) -> None:
        """Add a block to the innermost structure; a list right in a list belongs to the item before it."""
        frame = self.frame
        if frame.kind == "list" and isinstance(block, List) and frame.items:
            last = frame.items[-1]
            frame.items[-1] = ListItem((*last.blocks, block), last.number)
            return
        self._end_items()
        frame.blocks.append(block)

    def end_paragraph(self) -> None:
        """Put the paragraph in hand, if any, among the blocks; two line breaks in a row end one too."""
        if not self.runs:
            return
        runs, self.runs = self.runs, []
        if all(run.kind == "text" and not run.marks for run in runs):  # most are: nothing stands in their way
            if any(run.text.strip() for run in runs):
                self.add_block(Paragraph(tuple(runs)))
            return
        for part in _paragraphs(runs):
            kept = without_images(self._once_linked(part), self.keeps_images, self.inside["heading"] > 0)
            if any(run.kind == "image" or run.text.strip() for run in kept):
                self.add_block(Paragraph(tuple(kept)))

    def _end_items(self) -> None:
        if self.frame.items:
            self.frame.blocks.append(List(tuple(self.frame.items)))
            self.frame.items = []

    def _once_linked(self, runs: list[Run]) -> list[Run]:
        """Return the runs without those links that cover another block already: a card is linked once."""
        numbers = {mark.number for run in runs for mark in run.marks if mark.kind == "link"}
        if not numbers:
            return runs
        stale = numbers & self._used_links
        if not self.inside["heading"]:
            stale |= numbers & self._heading_links
        self._used_links |= {
            mark.number for run in runs if run.text.strip() and run.kind != "image" for mark in run.marks
        }
        if not stale:
            return runs
        return [run._replace(marks=tuple(mark for mark in run.marks if mark.number not in stale)) for run in runs]


def _paragraphs(runs: Iterable[Run]) -> Iterator[list[Run]]:
    part: list[Run] = []
    breaks = 0
    for run in runs:
        if run.kind == "break":
            breaks += 1
        elif run.kind == "image" or run.text.strip():
            if breaks > 1:
                yield part
                part = []
            breaks = 0
        part.append(run)
    if part:
        yield part
