"""What the block elements of HTML mean: headings, questions of accordions, lists, quotes, listings and tables.

Each function begins an element and returns what ends it, or None where it has read the element's content itself.
"""

import re
from collections.abc import Callable, Iterator
from itertools import count, islice, takewhile

from crawler.markup.blocks import Block, Cell, Code, Heading, ListItem, Mark, Paragraph, Quote, Rule, Run, Table
from crawler.markup.reader import Closer, Frame, Reader
from crawler.markup.tree import HEADINGS

_LONGEST_HEADING_CHARACTERS = 300
_PLAIN_BLOCKS = (
    *("address", "article", "aside", "body", "caption", "center", "dd", "dialog", "div", "dl", "fieldset"),
    *("figcaption", "figure", "footer", "frameset", "header", "hgroup", "html", "legend", "main", "nav", "p"),
    *("search", "section", "tbody", "tfoot"),
)
_OWN_LINES = frozenset((*_PLAIN_BLOCKS, *HEADINGS, "blockquote", "dt", "li", "ol", "table", "tr", "ul"))
_NOT_PREFORMATTED = frozenset(("button", "script", "style", "select", "textarea"))
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source|-text)?|brush)[-:]\s*([\w+#.]+)")
_NO_LANGUAGE = frozenset(("default", "none", "notranslate", "plain", "plaintext"))


def open_block(reader: Reader, tag) -> Closer:
    """Begin an element that stands on lines of its own."""
    reader.end_paragraph()
    return reader.end_paragraph


def open_form(reader: Reader, tag) -> Closer:
    """Begin a form: its text is the page's, its own buttons are machinery."""
    return reader.counted("form", open_block(reader, tag))


def open_heading(reader: Reader, tag) -> Closer:
    """Begin a heading, by its name or by its role."""
    written = tag.name[1] if tag.name in HEADINGS else tag.get("aria-level", "2")
    level = int(written) if written.isdecimal() else 2
    level = min(max(level, reader.lowest_level, 1), 6)
    closer = _open_heading_frame(reader, level)
    reader.section_level = level
    return closer


def open_details(reader: Reader, tag) -> Closer:
    """Begin an accordion's entry; what follows it stands in the section that it stands in."""
    reader.end_paragraph()
    before = (reader.section_level, reader.lowest_level)

    def close() -> None:
        reader.end_paragraph()
        reader.section_level, reader.lowest_level = before

    return reader.counted("details", close)


def open_summary(reader: Reader, tag) -> Closer:
    """Begin the question of an accordion's entry: a heading one level below the section that it stands in."""
    level = min(reader.section_level + 1, 6)
    closer = _open_heading_frame(reader, level)
    if reader.inside["details"]:
        reader.section_level = level
        reader.lowest_level = min(level + 1, 6)
    return closer


def _open_heading_frame(reader: Reader, level: int) -> Closer:
    if not reader.has_room():
        return open_block(reader, None)
    frame = reader.open_frame("heading")
    marks = reader.marks
    reader.marks = tuple(mark for mark in marks if mark.kind == "link")

    def close() -> None:
        reader.close_frame()
        reader.marks = marks
        for block in _heading_blocks(frame.blocks, level):
            reader.add_block(block)

    return reader.counted("heading", close)


def _heading_blocks(blocks: list[Block], level: int) -> Iterator[Block]:
    """Yield the heading, then what a heading cannot hold. One as long as a text was left open by mistake."""
    lines = list(takewhile(lambda block: isinstance(block, (Paragraph, Heading)), blocks))
    if sum(len(run.text) for line in lines for run in line.runs) > _LONGEST_HEADING_CHARACTERS:
        lines = lines[:1]
    if lines:
        runs = [run for line in lines for run in (*line.runs, Run("\n", kind="break"))]
        is_text = sum(len(run.text) for run in runs) > _LONGEST_HEADING_CHARACTERS
        yield Paragraph(tuple(runs)) if is_text else Heading(tuple(runs), level)
    yield from blocks[len(lines) :]


def open_term(reader: Reader, tag) -> Closer:
    """Begin the term of a definition list: a strong line above what it means."""
    reader.end_paragraph()
    unmark = reader.marked(Mark("strong"))

    def close() -> None:
        reader.end_paragraph()
        unmark()

    return reader.counted("dt", close)


def open_quote(reader: Reader, tag) -> Closer:
    """Begin a quotation."""
    if not reader.has_room():
        return open_block(reader, tag)
    reader.open_frame("quote")

    def close() -> None:
        if blocks := reader.close_frame().blocks:
            reader.add_block(Quote(tuple(blocks)))

    return close


def open_list(reader: Reader, tag) -> Closer:
    """Begin a list."""
    if not reader.has_room():
        return open_block(reader, tag)
    frame = reader.open_frame("list")
    if tag.name == "ol":
        frame.numbering = tag.get("type", "1")
        is_reversed = "reversed" in tag.attributes
        start = sum(child.name == "li" for child in tag.children) if is_reversed else 1
        frame.counter = count(_whole_number(tag, "start", start), -1 if is_reversed else 1)

    def close() -> None:
        for block in reader.close_frame().blocks:
            reader.add_block(block)

    return close


def open_item(reader: Reader, tag) -> Closer:
    """Begin an entry of a list, or a stray one; the number is the one that the page's reader sees."""
    if not reader.has_room():
        return open_block(reader, tag)
    reader.end_paragraph()
    numbering, number = reader.frame.numbering, _next_number(reader.frame, tag)
    reader.open_frame("item")
    if number is not None and (numbering in _LETTERS or number < 0):
        # Markdown counts in digits from 0 up: other numbers become text, so that "see (b)" still finds its entry.
        reader.add_text(f"{_LETTERS.get(numbering, str)(number)}. ")
        number = None

    def close() -> None:
        blocks = reader.close_frame().blocks
        if blocks:
            reader.frame.items.append(ListItem(tuple(blocks), number))

    return close


def _next_number(frame: Frame, tag) -> int | None:
    if frame.kind != "list" or frame.counter is None:
        return None
    number = next(frame.counter)
    written = _whole_number(tag, "value", number)
    if written != number:
        step = next(frame.counter) - number
        frame.counter = count(written + step, step)
    return written


def _letters(number: int) -> str:
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def _roman(number: int) -> str:
    signs = ((100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
    written = ""
    for value, sign in signs:
        written += sign * (number // value)
        number %= value
    return written


_LETTERS = {
    "a": _letters,
    "A": lambda number: _letters(number).upper(),
    "i": _roman,
    "I": lambda number: _roman(number).upper(),
}


def open_table(reader: Reader, tag) -> Closer:
    """Begin a table."""
    if not reader.has_room():
        return open_block(reader, tag)
    reader.open_frame("table")

    def close() -> None:
        frame = reader.close_frame()
        rows = tuple(tuple(row) for row in frame.rows)
        role = tag.get("role", "").strip().lower()
        is_titled = any(child.name == "caption" for child in tag.children)
        reader.add_block(Table(rows, tuple(frame.blocks), role, is_titled))

    return close


def open_head(reader: Reader, tag) -> Closer:
    """Begin the head of a table."""
    return reader.counted("thead", open_block(reader, tag))


def open_row(reader: Reader, tag) -> Closer:
    """Begin a row; one outside of a table is a block."""
    reader.end_paragraph()
    if reader.frame.kind == "table":
        reader.frame.rows.append([])
    return reader.end_paragraph


def open_cell(reader: Reader, tag) -> Closer:
    """Begin a cell; one outside of a table (as in a cell, with no table around it) is a block."""
    if reader.frame.kind != "table" or not reader.has_room():
        return open_block(reader, tag)
    rows = reader.frame.rows
    is_header = tag.name == "th" or reader.inside["thead"] > 0
    reader.open_frame("cell")

    def close() -> None:
        blocks = tuple(reader.close_frame().blocks)
        spans = (max(_whole_number(tag, name, 1), 1) for name in ("colspan", "rowspan"))
        if not rows:
            rows.append([])
        rows[-1].append(Cell(blocks, is_header, *spans, _alignment(tag)))

    return close


def _alignment(tag) -> str:
    styled = re.search(r"text-align:\s*(left|center|right)", tag.get("style", ""))
    return styled[1] if styled else tag.get("align", "").lower()


def read_rule(reader: Reader, tag) -> None:
    """Add a thematic break; at the start of a list's item it would be read as part of the bullet."""
    reader.end_paragraph()
    if reader.frame.kind != "item" or reader.frame.blocks:
        reader.add_block(Rule())


def open_listing(reader: Reader, tag) -> Closer | None:
    """Read preformatted text as it stands; one without text (an image in it, say) is a block like others."""
    text = _preformatted_text(tag)
    if not text.strip():
        return open_block(reader, tag)
    reader.end_paragraph()
    reader.add_block(Code(text, _language(tag)))
    return None


def _preformatted_text(listing) -> str:
    """Return the text with the line breaks that a reader sees; a button in it ("Copy") is no part of the text."""
    parts: list[str] = []
    waiting: list[tuple[Iterator, str]] = [(iter(listing.contents), "")]
    while waiting:
        children, separator = waiting[-1]
        node = next(children, None)
        if node is None:
            waiting.pop()
            _separate(parts, separator)
        elif isinstance(node, str):
            parts.append(node.replace("\r\n", "\n").replace("\xa0", " "))
        elif node.name == "br":
            parts.append("\n")
        elif node.name not in _NOT_PREFORMATTED:
            separator = "\n" if node.name in _OWN_LINES else " " if node.name in ("td", "th") else ""
            _separate(parts, separator)
            waiting.append((iter(node.contents), separator))
    return re.sub(r"\A(?:[ \t]*\n)+|\s+\Z", "", "".join(parts))


def _separate(parts: list[str], separator: str) -> None:
    if separator and parts and not parts[-1][-1:].isspace():
        parts.append(separator)


def _language(listing) -> str:
    """Return the language that highlighters' class names tell, on the listing, the code in it, or around it."""
    around = [listing, listing.find("code"), *islice(listing.parents, 2)]
    names = " ".join(tag.get("class") for tag in around if tag is not None)
    found = (match[1].lower() for match in _LANGUAGE.finditer(names))
    return next((name for name in found if name not in _NO_LANGUAGE), "")


def _whole_number(tag, name: str, default: int) -> int:
    """Return a number that the author wrote in an attribute, as browsers read it: at most nine digits."""
    match = re.match(r"\s*(-?\d{1,9})", str(tag.get(name, "")))
    return int(match[1]) if match else default


STRUCTURES: dict[str, Callable[[Reader, object], Closer | None]] = {
    **dict.fromkeys(_PLAIN_BLOCKS, open_block),
    **dict.fromkeys(HEADINGS, open_heading),
    **dict.fromkeys(("ul", "ol", "menu", "dir"), open_list),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), open_listing),
    **dict.fromkeys(("td", "th"), open_cell),
    "form": open_form,
    "details": open_details,
    "summary": open_summary,
    "dt": open_term,
    "blockquote": open_quote,
    "li": open_item,
    "table": open_table,
    "thead": open_head,
    "tr": open_row,
    "hr": read_rule,
}
