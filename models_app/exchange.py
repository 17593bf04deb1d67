"""Snippets as files: JSON lines that come back to the letter, CSV for spreadsheets, and rows of other programs.

Exports are read in steps of their own, so that a stream needs no transaction and no memory. Files are read by rows.py.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice

from models_app import snippets
from models_app.counterparts import Pair, Standing
from models_app.forms import LONGEST_SNIPPET_CHARACTERS
from models_app.models import MLModel, TrainingSnippet
from models_app.rows import Row, Rows, RowsUnreadable, read_rows, shortened
from models_app.snippets import BATCH, TITLE_LENGTH, SnippetMoved, SnippetQuotaReached
from tenants.texts import storable

__all__ = ["Rows", "RowsUnreadable", "read_rows"]

Source, Conflict = TrainingSnippet.Source, TrainingSnippet.Conflict

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
URI_LENGTH = TrainingSnippet._meta.get_field("uri").max_length
# How others call the columns of title, text and address, the surest name first.
PROMPTS = ("prompt", "question", "title", "heading", "subject", "query", "instruction", "input", "q", "name")
COMPLETIONS = ("completion", "answer", "text", "content", "response", "body", "output", "reply", "description", "a")
URIS = ("uri", "url", "link", "address", "href", "page")
RUNS = re.compile(r"\s*(javascript|data|vbscript|blob|file):", re.IGNORECASE)  # addresses that open no page
BYTE_ORDER_MARK = "\ufeff"  # else Excel takes UTF-8 for the system's own encoding
# What a spreadsheet may run as a formula (OWASP, CSV injection): also behind quotes and blanks, also in full width.
FORMULA = re.compile(r"""['"\s]*[=+\-@＝＋－＠]|'*[\t\r\n]""")


class RowRefused(Exception):
    """No snippet can be made of the row; the text says why."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a file are title, text and address; empty: there is none."""

    prompt: str = ""
    completion: str = ""
    uri: str = ""


@dataclass(frozen=True)
class Counts:
    """What an import of rows did. The errors name rows by their number, and are cut short when there are many."""

    added: int
    changed: int  # rows of our own export that were changed in the file: edits by hand of what stands
    kept: int  # stood already, with the same title, text and address
    skipped: int
    errors: tuple[str, ...]


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


def is_our_export(rows: Rows) -> bool:
    """Return whether the rows were written here: then their columns need no choice, and all fields come back."""
    return set(FIELDS) <= set(rows.columns)


def guess_columns(columns: Sequence[str]) -> Columns:
    """Return the columns by the names others give them; of two unknown ones the first is the title."""
    named = {column.strip().lower(): column for column in reversed(columns)}

    def first_of(names: Iterable[str]) -> str:
        return next((named[name] for name in names if name in named), "")

    completion = first_of(COMPLETIONS)
    if not completion and len(columns) <= 2:
        return Columns(prompt=columns[0] if len(columns) == 2 else "", completion=columns[-1] if columns else "")
    return Columns(prompt=first_of(PROMPTS), completion=completion, uri=first_of(URIS))


def import_rows(
    model: MLModel,
    rows: Rows,
    columns: Columns = Columns(),
    uri: str = "",
    *,
    author: str = "",
    check: Callable[[], None] = lambda: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Counts:
    """Add the rows that do not stand already, a batch in a transaction; returns what became of each.

    Rows of our own export get all their fields back; one that was changed in the file is an edit by the `author` of
    the snippet that it was. Others become snippets from a file, of the page `uri` where they name none. A full
    workspace ends it: what was added stands, and the errors say how many rows are left.
    """
    is_ours, standing = is_our_export(rows), Standing(model)
    read = _restorer(rows) if is_ours else _reader(columns, uri)
    added = changed = kept = done = 0
    refused: list[str] = []
    errors: list[str] = []
    left = rows.rows
    while batch := list(islice(left, BATCH)):
        check()
        read_ones, problems = _read_batch(batch, read)
        refused += problems
        fresh = [snippet for snippet in read_ones if not standing.has(snippet, is_ours)]
        pairs = standing.pairs(fresh) if is_ours else []
        try:
            added += snippets.add_many(model, _without(fresh, pairs))
            changed += _edit(pairs, author, check)
        except SnippetQuotaReached as error:
            errors = [f"{error} {rows.count - done:,} rows were not looked at."]
            break
        kept += len(read_ones) - len(fresh)
        done += len(batch)
        progress(done, rows.count)
    return Counts(added, changed, kept, rows.count - added - changed - kept, (*errors, *shortened(refused)))


def _without(fresh: list[TrainingSnippet], pairs: list[Pair]) -> list[TrainingSnippet]:
    paired = {id(snippet) for _, snippet in pairs}
    return [snippet for snippet in fresh if id(snippet) not in paired]


def _edit(pairs: list[Pair], author: str, check: Callable[[], None]) -> int:
    """Edit the rows, each in a transaction of its own; returns how many there were."""
    for row, snippet in pairs:
        check()
        try:
            snippets.edit(row, snippet.prompt, snippet.completion, row.uri, author)
        except SnippetMoved:  # deleted since it was found
            snippets.add_many(row.model, [snippet])
    return len(pairs)


def snippets_of(rows: Iterable[Row], columns: Columns, uri: str = "") -> tuple[list[TrainingSnippet], tuple[str, ...]]:
    """Return the snippets that another program's rows would become, unsaved, and what of them was left out and why."""
    read_ones, problems = _read_batch(list(rows), _reader(columns, uri))
    return read_ones, shortened(problems)


def _read_batch(batch: list[Row], read: Callable[[Row], TrainingSnippet]) -> tuple[list[TrainingSnippet], list[str]]:
    read_ones, problems = [], []
    for row in batch:
        try:
            read_ones.append(read(row))
        except RowRefused as error:
            problems.append(f"Row {row.number:,} was left out: {error}")
    return read_ones, problems


def _reader(columns: Columns, uri: str) -> Callable[[Row], TrainingSnippet]:
    """Return the function that makes snippets of other programs' rows."""

    def read(row: Row) -> TrainingSnippet:
        address = row.get(columns.uri, "").strip() if columns.uri else ""
        if address and not address.lower().startswith(("http://", "https://")):
            raise RowRefused(f"“{address[:80]}” is no address: it begins with http:// or https://.")
        if len(row.get(columns.completion, "")) > LONGEST_SNIPPET_CHARACTERS:
            raise RowRefused(f"its text is longer than {LONGEST_SNIPPET_CHARACTERS:,} characters.")
        return _checked(
            TrainingSnippet(
                prompt=" ".join(row.get(columns.prompt, "").split()),
                completion=row.get(columns.completion, "").replace("\r\n", "\n"),
                uri=address or uri,
                source=Source.UPLOAD,
                position=row.number - 1,
            )
        )

    return read


def _restorer(rows: Rows) -> Callable[[Row], TrainingSnippet]:
    """Return the function that makes the snippets of our own export again."""
    undo = armed if rows.kind == "csv" else str

    def restore(row: Row) -> TrainingSnippet:
        fields: dict = {name: undo(row.get(name, "")) for name in FIELDS}
        fields["source"] = fields["source"] or Source.MANUAL.value
        if fields["source"] not in Source.values or fields["conflict"] not in Conflict.values:
            raise RowRefused("its source or conflict is none that there is.")
        if not re.fullmatch("[0-9]{0,9}", fields["position"]):
            raise RowRefused(f"its position is “{fields['position'][:80]}”, not a number.")
        fields["position"] = int(fields["position"] or 0)
        fields["is_edited"] = fields["is_edited"].lower() == "true"
        return _checked(TrainingSnippet(**fields))

    return restore


def _checked(snippet: TrainingSnippet) -> TrainingSnippet:
    """Return the snippet; raises RowRefused for what cannot be stored, or not without a loss."""
    texts = (snippet.prompt, snippet.completion, snippet.uri)
    kept_texts = (snippet.source_prompt, snippet.source_completion, snippet.new_prompt, snippet.new_completion)
    if not snippet.completion.strip():
        raise RowRefused("it has no text.")
    if any(storable(text) != text for text in texts + kept_texts):
        raise RowRefused("it holds a character that no text may hold: NUL, or half of a surrogate pair.")
    if any(len(title) > TITLE_LENGTH for title in (snippet.prompt, snippet.source_prompt, snippet.new_prompt)):
        raise RowRefused(f"its title is longer than {TITLE_LENGTH:,} characters.")
    if len(snippet.uri) > URI_LENGTH or RUNS.match(snippet.uri):
        raise RowRefused("its address opens no page.")
    return snippet


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
