"""Reads files of rows (CSV, JSON, JSON lines, YAML), whatever program wrote them.

Every cell is text, as it was written: 1.10 stays 1.10, yes stays yes. Nothing is dropped in silence: what cannot be
read is named with its number, and the rest is kept.
"""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import zip_longest

from models_app.yaml_rows import YamlUnreadable, read_yaml

MAX_ROWS = 100_000
MAX_BYTES = 50_000_000
MOST_COLUMNS = 200
MOST_WARNINGS = 20
SAMPLE_CHARACTERS = 65_536
SAMPLE_ROWS = 20
DELIMITERS = ",;\t|"
KINDS = ("csv", "json", "jsonl", "yaml")
WANTED = 'A list of objects is expected, such as [{"prompt": "…", "completion": "…"}].'
# A global of the csv module: its own limit of 131,072 characters refuses texts that are snippets here.
csv.field_size_limit(MAX_BYTES)


class RowsUnreadable(Exception):
    """The file holds no rows that can be read; the text says why, and what to do."""


@dataclass(frozen=True)
class Limits:
    """How large a file may be."""

    max_rows: int = MAX_ROWS
    max_bytes: int = MAX_BYTES


class Row(dict[str, str]):
    """A row's cells by column, and its number: its line in JSON lines, else its place among the rows, from 1."""

    def __init__(self, number: int, cells: dict[str, str]):
        super().__init__(cells)
        self.number = number


@dataclass(frozen=True)
class Rows:
    """The rows of a file, made anew from its text each time they are gone through."""

    kind: str
    columns: tuple[str, ...]
    count: int
    warnings: tuple[str, ...]  # what was not read, and why; at most MOST_WARNINGS and how many more
    reading: Callable[[], Iterator[Row]]

    @property
    def rows(self) -> Iterator[Row]:
        return self.reading()


def read_rows(body: bytes, kind: str, limits: Limits = Limits()) -> Rows:
    """Return the rows of a file of one of KINDS; raises RowsUnreadable."""
    if len(body) > limits.max_bytes:
        raise RowsUnreadable(f"The file is larger than {limits.max_bytes // 1_000_000:,} MB. Split it into several.")
    warnings: list[str] = []
    text = _decoded(body, warnings)
    if not text.strip():
        raise RowsUnreadable("The file is empty.")
    documents = _documents_of(text, kind, warnings)
    # Gone through twice: now for what is wrong with it, later for its rows, so that they never stand in memory at once.
    columns: dict[str, None] = {}
    count = 0
    for place, found in enumerate(documents(), start=1):
        if place > limits.max_rows:
            raise RowsUnreadable(f"The file holds more than {limits.max_rows:,} rows. Split it into several.")
        if isinstance(found, _Unread):
            warnings.append(f"Row {found.number:,} was left out: {found.reason}")
        else:
            columns |= dict.fromkeys(found)
            count += 1
            _refuse_wide(columns)
    if not count:
        raise RowsUnreadable("\n".join(["The file holds no row that can be read.", *warnings[:MOST_WARNINGS]]))
    return Rows(kind, tuple(columns), count, shortened(warnings), lambda: _only_rows(documents()))


def _documents_of(text: str, kind: str, warnings: list[str]) -> Callable[[], Iterable["Row | _Unread"]]:
    """Return the function that goes through what the text holds."""
    if kind == "csv":
        return _csv_rows(text, warnings)
    if kind == "yaml":
        try:
            documents = read_yaml(text)
        except YamlUnreadable as error:
            raise RowsUnreadable(str(error)) from error
        listed = _listed(documents[0] if len(documents) == 1 else documents)
        return lambda: _object_rows(enumerate(listed, start=1))
    if kind == "jsonl" or (lines := _json_document(text)) is None:
        return lambda: _object_rows(_json_lines(text))
    listed = _listed(lines)
    return lambda: _object_rows(enumerate(listed, start=1))


@dataclass(frozen=True)
class _Unread:
    """A row that cannot be read."""

    number: int
    reason: str


def _refuse_wide(columns: Collection[str]) -> None:
    if len(columns) > MOST_COLUMNS:
        raise RowsUnreadable(f"The file has more than {MOST_COLUMNS} columns: is it a table of titles and texts?")


def _only_rows(documents: Iterable[Row | _Unread]) -> Iterator[Row]:
    return (found for found in documents if isinstance(found, Row))


def shortened(warnings: list[str]) -> tuple[str, ...]:
    """Return the first warnings, and how many more there were."""
    more = len(warnings) - MOST_WARNINGS
    return (*warnings[:MOST_WARNINGS], *([f"And {more:,} more of the kind."] if more > 0 else []))


def _decoded(body: bytes, warnings: list[str]) -> str:
    """Return the text by its byte order mark, else as UTF-16 where every other byte is 0, as UTF-8 or Windows-1252."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if body.startswith(mark):
            return _strictly(body, encoding)
    beginning = body[:1_000]
    for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if len(beginning) > 1 and beginning[first::2].count(0) > len(beginning) * 0.3:
            return _strictly(body, encoding)
    try:
        return body.decode()
    except UnicodeDecodeError:
        warnings.append("The file is not UTF-8 and was read as Windows-1252: look at letters with accents.")
        return body.decode("cp1252", "replace")


def _strictly(body: bytes, encoding: str) -> str:
    try:
        return body.decode(encoding)
    except UnicodeDecodeError as error:
        raise RowsUnreadable(f"The file says it is {encoding.upper()} but is not: byte {error.start:,}.") from error


def _csv_rows(text: str, warnings: list[str]) -> Callable[[], Iterator[Row | _Unread]]:
    if text[:4].lower() == "sep=" and text[5:6] in ("\r", "\n"):  # Excel's way to name the delimiter
        delimiter, text = text[4], text[5:].lstrip("\r\n")
    else:
        delimiter = _delimiter_of(text)
    header = next(csv.reader(StringIO(text, newline=""), delimiter=delimiter), [])
    _refuse_wide(header)
    columns = _named(header)
    if text.count('"') % 2:
        warnings.append(
            "The number of quotation marks is odd: if one is opened and never closed, all that follows it is in one "
            "cell. Look at the last rows."
        )

    def read() -> Iterator[Row | _Unread]:
        lines = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        next(lines, None)
        filled = (cells for cells in lines if any(cells))
        for number, cells in enumerate(filled, start=1):
            if any(cells[len(columns) :]):
                reason = f"it has {len(cells)} cells, the first line {len(columns)}. Is a text not in quotation marks?"
                yield _Unread(number, reason)
            else:
                yield Row(number, dict(zip_longest(columns, cells[: len(columns)], fillvalue="")))

    return read


def _delimiter_of(text: str) -> str:
    """Return the delimiter under which the first lines fall into the most columns, and all into as many."""
    sample = text[:SAMPLE_CHARACTERS]

    def fit(delimiter: str) -> tuple[float, int]:
        lines = csv.reader(StringIO(sample, newline=""), delimiter=delimiter)
        widths = [len(cells) for cells, _ in zip(lines, range(SAMPLE_ROWS + 1), strict=False) if cells]
        wide = widths[0] if widths else 0
        return (widths.count(wide) / len(widths) if wide > 1 else 0.0), wide

    return max(DELIMITERS, key=fit)


def _named(header: list[str]) -> list[str]:
    """Return a name for each column: its own, its place where it has none, with a number where another has it too."""
    names: list[str] = []
    for place, cell in enumerate(header, start=1):
        name = cell.strip() or f"column {place}"
        names.append(name if name not in names else f"{name} ({place})")
    return names


def _json_document(text: str) -> object | None:
    """Return the one JSON document that the text is, or None where it may be one a line."""
    try:
        return _parsed(text)
    except json.JSONDecodeError as error:
        first_line = text.lstrip().split("\n", 1)[0]
        if not first_line.startswith("{") or not first_line.rstrip().endswith("}"):
            raise RowsUnreadable(f"This is no JSON: {error.msg} in line {error.lineno:,}.") from error
        return None
    except RecursionError as error:
        raise RowsUnreadable("The file is nested too deeply.") from error


def _json_lines(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(StringIO(text, newline="\n"), start=1):
        if line.strip():
            try:
                yield number, _parsed(line)
            except json.JSONDecodeError as error:
                yield number, _Unread(number, f"it is no JSON ({error.msg}, character {error.colno:,}).")
            except RecursionError:
                yield number, _Unread(number, "it is nested too deeply.")


def _parsed(text: str) -> object:
    return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)


def _listed(document: object) -> list:
    """Return the list that the document is, or holds as its only one."""
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        if len(lists) == 1:
            return lists[0]
        if len(lists) > 1:
            raise RowsUnreadable(f"The file holds {len(lists)} lists, and which one is meant is not clear. {WANTED}")
        if document:
            return [document]
    if not isinstance(document, list):
        raise RowsUnreadable(f"The file holds no list. {WANTED}")
    return document


def _object_rows(documents: Iterable[tuple[int, object]]) -> Iterator[Row | _Unread]:
    for number, document in documents:
        if isinstance(document, dict):
            try:
                yield Row(number, {str(name): _as_text(value) for name, value in document.items()})
            except RecursionError:
                yield _Unread(number, "it is nested too deeply.")
        else:
            is_unread = isinstance(document, _Unread)
            yield document if is_unread else _Unread(number, "it is no object with named values.")


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
