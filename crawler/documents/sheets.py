"""The port to Excel files (openpyxl): XLSX as HTML, a heading and a table a sheet, cells as a reader sees them."""

import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from html import escape
from io import BytesIO

import openpyxl

from crawler.documents.reading import Extent, Reading, open_package, table_html

MAX_CELLS = 100_000
PREVIEW_CELLS = 2_000
MAX_COLUMNS = 200
MAX_EMPTY_ROWS = 1_000  # in a row: what a format or a stray click at the end of the sheet makes of it
# A formula that no program has calculated: its cell has no value (ECMA-376, 18.3.1.4).
_NOT_CALCULATED = re.compile(rb"<f(?:\s[^>]*)?(?:/>|>[^<]*</f>)\s*(?:<v\s*/>\s*|<v></v>\s*)?</c>")
_SCANNED_BYTES = 30_000_000
_CURRENCY = re.compile(r'\[\$([^\]-]*)[^\]]*\]|"([^"]*)"|([€$£¥])')
_DECIMALS = re.compile(r"\.(0+)")


def read_xlsx(body: bytes, extent: Extent) -> Reading:
    """Return what the sheets of a workbook say, formulas by the values last calculated; of a preview, the beginning."""
    package = open_package(body)
    workbook = openpyxl.load_workbook(BytesIO(body), read_only=True, data_only=True, keep_links=False)
    sheets = [sheet for sheet in workbook.worksheets if sheet.sheet_state == "visible"]
    hidden = [sheet.title for sheet in workbook.worksheets if sheet.sheet_state != "visible"]
    left, parts, cut = extent.limit(MAX_CELLS, PREVIEW_CELLS), [], []
    for sheet in sheets:
        rows, count, is_cut = _rows(sheet, left)
        left -= count
        cut += [sheet.title] if is_cut else []
        if rows:
            parts.append(_sheet_html(sheet.title, rows, is_only=len(sheets) == 1))
    title = " ".join((workbook.properties.title or "").split())
    warnings = [f"Sheets that are hidden were left out: {', '.join(hidden)}."] if hidden else []
    if cut and extent is Extent.WHOLE:
        warnings.append(f"It is very large: only its first {MAX_CELLS:,} cells were read, not all of {', '.join(cut)}.")
    if _has_uncalculated(package):
        warnings.append("Some formulas have no calculated value. Open the file in Excel and save it to have them read.")
    return Reading("".join(parts), "", title, warnings, part_count=len(sheets), is_partial=bool(cut))


def _sheet_html(title: str, rows: list[list[str]], is_only: bool) -> str:
    heading = "" if is_only and re.fullmatch(r"\D+1", title) else f"<h2>{escape(title)}</h2>"
    if all(sum(map(bool, row)) < 2 for row in rows):  # a column of texts is no table
        return heading + _paragraphs(rows)
    # A title above the table's head stands alone in its row.
    start = next(number for number, row in enumerate(rows) if sum(map(bool, row)) > 1)
    return heading + _paragraphs(rows[:start]) + table_html(rows[start:])


def _paragraphs(rows: list[list[str]]) -> str:
    texts = (escape(next(filter(None, row))).replace("\n", "<br>") for row in rows)
    return "".join(f"<p>{text}</p>" for text in texts)


def _rows(sheet, most_cells: int) -> tuple[list[list[str]], int, bool]:
    """Return the sheet's rows without its empty rows and columns, how many cells were read, and whether it was cut."""
    sheet.reset_dimensions()  # what the file says of its size may be wrong
    rows, count, is_cut = [], 0, False
    for row in _filled_rows(sheet):
        if count >= most_cells:
            is_cut = True
            break
        rows.append(row)
        count += sum(map(bool, row))
    used = sorted({column for row in rows for column, cell in enumerate(row) if cell})
    return [[row[column] if column < len(row) else "" for column in used] for row in rows], count, is_cut


def _filled_rows(sheet) -> Iterator[list[str]]:
    empty = 0
    for cells in sheet.iter_rows(max_col=MAX_COLUMNS):
        row = [_shown(cell) for cell in cells]
        if any(row):
            empty = 0
            yield row
            continue
        empty += 1
        if empty == MAX_EMPTY_ROWS:
            return


def _shown(cell) -> str:
    """Return the cell as a reader sees it: dates by ISO 8601, shares in percent, amounts with their currency."""
    value = cell.value
    if value is None:
        return ""
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            is_day = value.time() == time()
            return value.date().isoformat() if is_day else value.isoformat(" ", "minutes")
        case date() | time() | timedelta():
            return str(value)
        case int() | float():
            return _number(value, cell.number_format or "")
    return str(value).strip()


def _number(value: float, pattern: str) -> str:
    """Return the number with the decimals, the percent sign and the currency of its format (ECMA-376, 18.8.31)."""
    pattern = pattern.split(";", maxsplit=1)[0]
    if pattern in ("", "General", "@"):
        return f"{value:.12g}" if abs(value) < 1e15 else str(value)
    decimals = _DECIMALS.search(pattern)
    places = len(decimals[1]) if decimals else 0
    if "%" in pattern:
        return f"{value * 100:.{places}f} %"
    if not re.search(r"[0#?]", pattern) or "E" in pattern or "/" in pattern:
        return f"{value:.12g}"
    shown = f"{value:.{places}f}" if decimals else f"{value:.12g}"
    currency = _CURRENCY.search(pattern)
    sign = next(filter(None, currency.groups()), "").strip() if currency else ""
    if not sign:
        return shown
    return f"{sign}{shown}" if currency.start() < (pattern.find("0") if "0" in pattern else 0) else f"{shown} {sign}"


def _has_uncalculated(package: zipfile.ZipFile) -> bool:
    left = _SCANNED_BYTES
    for name in package.namelist():
        if name.startswith("xl/worksheets/") and left > 0:
            with package.open(name) as part:
                text = part.read(left)
            left -= len(text)
            if _NOT_CALCULATED.search(text):
                return True
    return False
