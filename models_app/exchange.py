"""Snippets as files: JSON lines that come back to the letter, CSV for spreadsheets, and rows of other programs.

Exports are read in steps of their own, so that a stream needs no transaction and no memory.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from io import StringIO

from models_app.models import MLModel
from models_app.snippets import BATCH

FIELDS = (
    "prompt",
    "completion",
    "uri",
    "source",
    "position",
    "is_edited",
    "source_prompt",
    "source_completion",
    "conflict",
    "new_prompt",
    "new_completion",
)
BYTE_ORDER_MARK = "\ufeff"  # else Excel takes UTF-8 for the system's own encoding
# What a spreadsheet may run as a formula (OWASP, CSV injection): also behind quotes and blanks, also in full width.
FORMULA = re.compile(r"""['"\s]*[=+\-@＝＋－＠]|'*[\t\r\n]""")


def write_lines(model: MLModel, ids: Sequence[int]) -> Iterator[bytes]:
    """Yield these snippets as JSON lines, in their order; each step reads a batch and leaves no cursor open."""
    for batch in _batches(model, ids):
        yield "".join(f"{json.dumps(fields, ensure_ascii=False)}\n" for fields in batch).encode()


def write_csv(model: MLModel, ids: Sequence[int]) -> Iterator[bytes]:
    """Yield these snippets as CSV (RFC 4180, UTF-8 with a byte order mark), in which no cell is a formula."""
    yield (BYTE_ORDER_MARK + _csv_lines([FIELDS])).encode()
    for batch in _batches(model, ids):
        yield _csv_lines([defused(_as_cell(value)) for value in fields.values()] for fields in batch).encode()


def defused(cell: str) -> str:
    """Return the cell with an apostrophe before it where a spreadsheet would run it; `armed` takes it away again.

    A cell that has the apostrophe of itself gets a second one: so each cell comes back as it was.
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def armed(cell: str) -> str:
    """Return what `defused` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def _batches(model: MLModel, ids: Sequence[int]) -> Iterator[list[dict]]:
    for start in range(0, len(ids), BATCH):
        step = ids[start : start + BATCH]
        found = {row.pop("pk"): row for row in model.snippets.filter(pk__in=step).order_by().values("pk", *FIELDS)}
        yield [found[pk] for pk in step if pk in found]


def _csv_lines(rows) -> str:
    lines = StringIO(newline="")
    csv.writer(lines).writerows(rows)
    return lines.getvalue()


def _as_cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    return str(value)
