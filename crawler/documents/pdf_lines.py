"""Lines of a PDF's page, and the tables that they form: rows whose parts stand below each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

MIN_ROWS = 2
ROW_GAP = 4.0  # of the letters' size: rows that are further apart are not of one table
WRAP_GAP = 1.6  # of the letters' size: a lone cell that is nearer goes on with the one above

Rows = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Cell:
    """A part of a line with wide gaps around it."""

    text: str
    left: float
    right: float


@dataclass(frozen=True)
class Line:
    """A line of text, its box and its letters' size in points. y grows upwards; `bottom` is what letters stand on."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    size: float
    is_broken: bool = False  # ends with a hyphen that only breaks its last word
    cells: tuple["Cell", ...] = ()  # its parts, where wide gaps part it


@dataclass(frozen=True)
class PdfPage:
    """A page's lines in the order of reading. `number` counts from 0."""

    number: int
    height: float
    lines: list[Line]
    has_pictures: bool = False


def has_head(rows: Rows) -> bool:
    """Return whether the first row names the columns: words above what has numbers in it."""
    head, *others = rows
    return any(
        not any(map(str.isdigit, name)) and any(any(map(str.isdigit, row[place])) for row in others)
        for place, name in enumerate(head[1:], start=1)
    )


def joined(left: Line, right: Line) -> Line | None:
    """Return as one line what was drawn as two beside each other, or None."""
    is_beside = left.right < right.left and abs(left.bottom - right.bottom) < 0.2 * left.size
    if not is_beside or left.size != right.size or left.is_broken:
        return None
    return replace(
        right,
        text=f"{left.text} {right.text}",
        left=left.left,
        top=max(left.top, right.top),
        cells=left.cells + right.cells,
    )


def with_tables(lines: Sequence[Line]) -> Iterator[tuple[Line, Rows]]:
    """Yield each line without rows, or, in place of the lines of a table, the last of them with the table's rows."""
    place = 0
    while place < len(lines):
        rows, count = _table_at(lines, place)
        yield lines[place + count - 1], rows
        place += count


def _table_at(lines: Sequence[Line], start: int) -> tuple[Rows, int]:
    """Return the table that begins with the line and how many lines it takes; no rows and 1 where none does."""
    columns = [(cell.left, cell.right) for cell in lines[start].cells]
    if len(columns) < 2:
        return (), 1
    rows, count = [[cell.text for cell in lines[start].cells]], 1
    for above, line in zip(lines[start:], lines[start + 1 :], strict=False):
        gap = above.bottom - line.bottom
        places = _places(line.cells, columns)
        if not 0 < gap < ROW_GAP * line.size or places is None:
            break
        if len(places) > 1:
            rows.append([""] * len(columns))
        elif gap > WRAP_GAP * line.size or line.size != above.size:
            break
        for place, cell in zip(places, line.cells, strict=True):
            rows[-1][place] = f"{rows[-1][place]} {cell.text}".strip()
            columns[place] = min(columns[place][0], cell.left), max(columns[place][1], cell.right)
        count += 1
    return (tuple(map(tuple, rows)), count) if len(rows) >= MIN_ROWS else ((), 1)


def _places(cells: Sequence[Cell], columns: Sequence[tuple[float, float]]) -> list[int] | None:
    """Return the column below whose cells each of these stands, or None where that is not clear."""
    places = []
    for cell in cells:
        below = [place for place, (left, right) in enumerate(columns) if cell.left < right and cell.right > left]
        if len(below) != 1 or below[0] in places:
            return None
        places.append(below[0])
    return places or None
