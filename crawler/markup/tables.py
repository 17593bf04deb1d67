"""Decides per table whether it holds data or only served the layout, and writes data tables in Markdown (GFM)."""

from collections.abc import Iterator, Sequence

from crawler.markup.blocks import Block, Cell, Code, Heading, List, Paragraph, Quote, Table, runs_of
from crawler.markup.inline import write_line

_LONGEST_CELL_CHARACTERS = 300
_LONGEST_REPEATED_CHARACTERS = 80
_WIDEST_SPAN = 50
_MOST_HANGING = 50  # columns into which cells of earlier rows reach: each later row repeats them
_RULES = {"left": ":---", "center": ":---:", "right": "---:"}


def is_layout(table: Table) -> bool:
    """Return whether the table only places things on the page, as authors did before CSS.

    Layout is what is said to be, a table around a table, and cells with headings. Without a title or any header marked
    up, so are a single row or column, and cells with more than a short text.
    """
    rows = [cells for row in table.rows if (cells := [cell for cell in row if cell.blocks])]
    cells = [cell for row in rows for cell in row]
    if not cells or table.role in ("presentation", "none") or any(_holds(cell, Table) for cell in cells):
        return True
    width = max(map(len, rows))
    if width > 1 and (table.is_titled or any(cell.is_header for cell in cells)):
        return any(_holds(cell, Heading) for cell in cells if not cell.is_header)
    is_list = width == 1 and not rows[0][0].is_header
    return is_list or (len(rows) < 2 and width > 1) or not all(_is_short_text(cell) for cell in cells)


def write_table(table: Table) -> Iterator[str]:
    """Yield the table in Markdown, after a title row of its own if it has one.

    All rows are equally wide: what spans rows is repeated in each (unless it is long), what spans columns stands in
    the first.
    """
    rows = [row for row in table.rows if any(cell.blocks for cell in row)]
    grid = _grid(rows)
    while len(rows) > 1 and _is_title(rows[0], len(grid[0])):
        yield write_line(runs_of(rows[0][0].blocks))
        rows, grid = rows[1:], _grid(rows[1:])
    used = [column for column in range(len(grid[0])) if any(row[column] for row in grid)]
    lines = [[row[column] for column in used] for row in grid]
    if not all(cell.is_header for cell in rows[0] if cell.blocks):
        lines.insert(0, [""] * len(used))
    lines.insert(1, _rules(rows[0], used))
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _holds(cell: Cell, kind: type[Block]) -> bool:
    return any(isinstance(block, kind) for block in cell.blocks)


def _is_short_text(cell: Cell) -> bool:
    if any(isinstance(block, (Heading, List, Quote, Code)) for block in cell.blocks):
        return False
    runs = [run for block in cell.blocks if isinstance(block, Paragraph) for run in block.runs]
    return sum(len(run.text) for run in runs) <= _LONGEST_CELL_CHARACTERS


def _is_title(row: Sequence[Cell], width: int) -> bool:
    """Return whether a row is one header over the whole table, which is a title, not a column's name."""
    return len(row) == 1 and row[0].is_header and width > 1 and row[0].column_span >= width


def _grid(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    """Return the cells' texts with every row equally wide (HTML 4.9.12.1, forming a table)."""
    grid: list[list[str]] = []
    hanging: dict[int, tuple[str, int]] = {}  # column -> text of a cell above that reaches down, and its last row
    for index, row in enumerate(rows):
        texts: list[str] = []
        waiting = list(reversed(row))
        last_hanging = max(hanging, default=-1)
        while waiting or len(texts) <= last_hanging:
            if len(texts) in hanging:
                texts.append(hanging[len(texts)][0])
            elif waiting:
                cell = waiting.pop()
                text = write_line(runs_of(cell.blocks), "cell")
                below = text if len(text) <= _LONGEST_REPEATED_CHARACTERS else ""
                spanned = [text] + [""] * (min(cell.column_span, _WIDEST_SPAN) - 1)
                if cell.row_span > 1 and len(hanging) < _MOST_HANGING:
                    reach = index + cell.row_span - 1
                    repeated = [below, *spanned[1:]]
                    hanging |= {len(texts) + i: (part, reach) for i, part in enumerate(repeated)}
                texts += spanned
            else:
                texts.append("")
        grid.append(texts)
        hanging = {column: rest for column, rest in hanging.items() if rest[1] > index}
    width = max(map(len, grid))
    return [texts + [""] * (width - len(texts)) for texts in grid]


def _rules(row: Sequence[Cell], used: Sequence[int]) -> list[str]:
    """Return the line under the head, with each column's alignment as its first cell has it."""
    alignments = [_RULES.get(cell.alignment, "---") for cell in row for _ in range(min(cell.column_span, _WIDEST_SPAN))]
    return [alignments[column] if column < len(alignments) else "---" for column in used]
