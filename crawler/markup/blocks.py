"""What convert.py reads from a page: blocks, and the runs of marked text in them. Plain values, no Markdown yet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Mark(NamedTuple):
    """What is true of a run of text: "link" (with its address), "strong", "emphasis" or "strike"."""

    kind: str
    address: str = ""
    title: str = ""
    number: int = 0  # keeps neighbouring links apart


class Run(NamedTuple):
    """A piece of a paragraph: "text", "code", an "image" (its text is the alternative), a "break" or a "space"."""

    text: str
    marks: tuple[Mark, ...] = ()
    kind: str = "text"
    address: str = ""
    title: str = ""


SPACE = Run(" ", kind="space")


@dataclass(frozen=True, slots=True)
class Paragraph:
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    runs: tuple[Run, ...]
    level: int


@dataclass(frozen=True, slots=True)
class Code:
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A thematic break."""


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class ListItem:
    """One entry of a list; `number` is None under a bullet."""

    blocks: tuple["Block", ...]
    number: int | None


@dataclass(frozen=True, slots=True)
class List:
    items: tuple[ListItem, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    blocks: tuple["Block", ...]
    is_header: bool
    column_span: int
    row_span: int
    alignment: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was marked up; `before` is its caption and whatever stood in it outside of all cells."""

    rows: tuple[tuple[Cell, ...], ...]
    before: tuple["Block", ...]
    role: str
    is_titled: bool


Block = Paragraph | Heading | Code | Rule | Quote | List | Table


def runs_of(blocks: Iterable[Block]) -> list[Run]:
    """Return all text of the blocks as the runs of one paragraph, for places that hold no blocks."""
    runs: list[Run] = []
    for block in blocks:
        match block:
            case Paragraph() | Heading():
                part = list(block.runs)
            case Code():
                part = [run for line in block.text.split("\n") for run in (Run(line, kind="code"), SPACE)]
            case Quote():
                part = runs_of(block.blocks)
            case List():
                part = list(_joined_items(block))
            case Table():
                cells = (cell for row in block.rows for cell in row)
                part = runs_of([*block.before, *(inner for cell in cells for inner in cell.blocks)])
            case _:
                part = []
        runs += [SPACE, *part]
    return runs


def _joined_items(block: List) -> Iterator[Run]:
    """Yield the runs of a list's items with a semicolon between them where the text has no stop of its own."""
    ending = ""
    for entry in block.items:
        runs = runs_of(entry.blocks)
        if ending:
            yield SPACE if ending in ".,;:!?" else Run("; ")
        number = f"{entry.number}. " if entry.number is not None else ""
        yield from ([Run(number)] if number else [])
        yield from runs
        ending = "".join(run.text for run in runs).strip()[-1:]
