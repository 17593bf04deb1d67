"""The port to PDF (PDFium): a file's pages as lines of text with their places and sizes.

How the lines become paragraphs and headings stands in pdf_layout.py.
"""

import ctypes
import re
from collections import defaultdict
from itertools import pairwise

import pypdfium2 as pdfium
from pypdfium2 import raw

from crawler.documents.pdf_layout import Outline, to_html
from crawler.documents.pdf_lines import Cell, Line, PdfPage, joined
from crawler.documents.reading import DocumentUnreadable, Extent, Reading

MAX_PAGES = 3_000
PREVIEW_PAGES = 20
MAX_OUTLINE_ENTRIES = 5_000
NAMED_PAGES = 10
CELL_GAP = 1.0  # of the letters' size: wider than any blank of justified text

_MARK = re.compile(r"\s*(?:\W|\(?\w{1,3}[.)]|\d+(?:\.\d+)*\.?)\s*$")  # of a list or a numbered heading

# PDFium writes one of these for a hyphen that breaks a word at the line's end, and leaves the line's end out.
_BREAKING_HYPHENS = {"\x02", "\ufffe"}
_SOFT_HYPHEN = "\xad"
_NO_TITLES = ("untitled", "microsoft ", "powerpoint", "document1", "slide 1")


def read_pdf(body: bytes, extent: Extent) -> Reading:
    """Return what a PDF says; raises DocumentUnreadable for one that is encrypted, damaged or has no text layer."""
    try:
        document = pdfium.PdfDocument(body)
        count = len(document)
        limit = extent.limit(MAX_PAGES, PREVIEW_PAGES)
        pages = [_read_page(document, number) for number in range(min(count, limit))]
        outline = _read_outline(document)
        title = _title(document)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            raise DocumentUnreadable("is password protected. Save it without a password") from error
        raise DocumentUnreadable("is damaged, or no PDF") from error
    if not any(page.lines for page in pages):
        raise DocumentUnreadable(
            "has no text layer: its pages are pictures, as a scanner makes them. Run text recognition (OCR) on it first"
        )
    warnings = _warnings(pages, count, extent)
    return Reading(to_html(pages, outline), "", title, warnings, part_count=count, is_partial=count > len(pages))


def _read_page(document: pdfium.PdfDocument, number: int) -> PdfPage:
    page = _filled_page(document, number)
    try:
        text_page = page.get_textpage()
        try:
            lines = _read_lines(text_page)
        finally:
            text_page.close()
        has_pictures = not lines and next(page.get_objects(max_depth=2), None) is not None
        return PdfPage(number, page.get_height(), lines, has_pictures)
    finally:
        page.close()


def _filled_page(document: pdfium.PdfDocument, number: int) -> pdfium.PdfPage:
    """Return the page with what is filled into its forms, or written over it, as a part of its text."""
    page = document[number]
    if not raw.FPDFPage_GetAnnotCount(page):
        return page
    raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
    page.close()
    return document[number]


def _read_lines(text_page: pdfium.PdfTextPage) -> list[Line]:
    """Return the lines in the order in which the file draws them, which is nearly always the order of reading."""
    lines, start = [], 0
    count = text_page.count_chars()
    characters = [_character(text_page, index) for index in range(count)]
    for end in range(count + 1):
        is_broken = end < count and characters[end] in _BREAKING_HYPHENS
        if end == count or is_broken or characters[end] in ("\r", "\n"):
            if line := _line(text_page, characters, start, end, is_broken):
                one = joined(lines[-1], line) if lines else None
                if one:
                    lines.pop()
                lines.append(one or line)
            start = end + 1
    return lines


def _character(text_page: pdfium.PdfTextPage, index: int) -> str:
    code = raw.FPDFText_GetUnicode(text_page, index)
    # A text page has no half of a surrogate pair: what looks like one, or like nothing, is a fault of the font.
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else ("" if code == 0 else "\ufffd")


def _line(text_page: pdfium.PdfTextPage, characters: list[str], start: int, end: int, is_broken: bool) -> Line | None:
    inked = [index for index in range(start, end) if characters[index] and not characters[index].isspace()]
    if not inked:
        return None
    # The middle one for the size: a line may begin with a small or a raised sign.
    middle = inked[len(inked) // 2]
    _, box_bottom, _, top = _box(text_page, middle)
    size = raw.FPDFText_GetFontSize(text_page, middle)
    # Some files draw every letter at size 1 and scale it: then its height says more.
    size = round(size if size > 2 else top - box_bottom, 1)
    cells = _cells(text_page, characters, inked, size)
    text = " ".join(cell.text for cell in cells)
    return Line(
        text=f"{text}-" if is_broken else text,
        left=min(cell.left for cell in cells),
        right=max(cell.right for cell in cells),
        bottom=_baseline(text_page, middle),
        top=top,
        size=size,
        is_broken=is_broken,
        cells=cells,
    )


def _cells(text_page: pdfium.PdfTextPage, characters: list[str], inked: list[int], size: float) -> tuple[Cell, ...]:
    """Return the parts of a line; a mark at its beginning, of a list, is none of its own."""
    starts = [inked[0]]
    for last, following in pairwise(inked):
        if following - last > 1 and _box(text_page, following)[0] - _box(text_page, last)[2] > CELL_GAP * size:
            starts.append(following)
    if len(starts) > 1 and _MARK.match("".join(characters[starts[0] : starts[1]])):
        del starts[1]
    cells = []
    for start, end in zip(starts, [*starts[1:], inked[-1] + 1], strict=True):
        last = max(index for index in inked if index < end)
        text = " ".join("".join(characters[start:end]).replace(_SOFT_HYPHEN, "").split())
        cells.append(Cell(text, _box(text_page, start)[0], _box(text_page, last)[2]))
    return tuple(cells)


def _baseline(text_page: pdfium.PdfTextPage, index: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(text_page, index, x, y)
    return y.value


def _box(text_page: pdfium.PdfTextPage, index: int) -> tuple[float, float, float, float]:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text_page, index, left, right, bottom, top)
    return left.value, bottom.value, right.value, top.value


def _read_outline(document: pdfium.PdfDocument) -> Outline:
    """Return the file's bookmarks by page: title and level, from 1."""
    outline = defaultdict(dict)
    for entry_number, entry in enumerate(document.get_toc(max_depth=6)):
        if entry_number == MAX_OUTLINE_ENTRIES:
            break
        target = entry.get_dest()
        page = target.get_index() if target else None
        title = " ".join((entry.get_title() or "").split())
        if page is not None and title:
            outline[page].setdefault(title.casefold(), entry.level + 1)
    return outline


def _title(document: pdfium.PdfDocument) -> str:
    """Return the title that the file's author gave it; a program's own is none."""
    title = " ".join((document.get_metadata_value("Title") or "").replace("\0", "").split())
    is_file_name = title.lower().endswith((".doc", ".docx", ".pdf", ".ppt", ".pptx", ".indd", ".tex", ".dvi"))
    return "" if is_file_name or title.lower().startswith(_NO_TITLES) else title


def _warnings(pages: list[PdfPage], count: int, extent: Extent) -> list[str]:
    warnings = []
    pictures = [str(page.number + 1) for page in pages if page.has_pictures]
    if pictures:
        shown = ", ".join(pictures[:NAMED_PAGES]) + (" and more" if len(pictures) > NAMED_PAGES else "")
        warnings.append(f"Pages that are pictures without text were not read: {shown}.")
    if extent is Extent.WHOLE and count > len(pages):
        warnings.append(f"Only the first {len(pages):,} of its {count:,} pages were read.")
    return warnings
