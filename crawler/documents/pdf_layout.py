"""Turns the lines of a PDF's pages into HTML: what is drawn as lines was written as paragraphs, lists and headings.

Nothing is left out but what stands on most pages (running heads, page numbers), which is said once.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from math import inf
from statistics import median

from crawler.documents.pdf_lines import Line, PdfPage, has_head, with_tables
from crawler.documents.reading import table_html

Outline = Mapping[int, Mapping[str, int]]

MARGIN_SHARE = 0.12  # of the page's height: above and below lie running heads and feet
HEADING_RATIO = 1.12  # of the size that most of the text has
LONGEST_HEADING = 200
LEVELS = 4
PARAGRAPH_GAP = 1.35  # of the usual distance of two lines
SHORT_LINE_SHARE = 0.85  # of its column's width: a line that ends before it has ended on purpose
MIN_REPEATS = 3
COLUMN_LINES = 6  # of a paragraph, that are looked at for what stands beside them

_BULLET = re.compile(r"^(?:[•◦▪▫■□●○‣⁃∙·➢➤✓✔*–—-]|\uf0b7|\uf0a7|o(?= ))\s+(?=\S)")
_NUMBERED = re.compile(r"^(\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")
_LIST_ENTRY = re.compile(r'<ol start="(\d+)">(<li>[^\0]*?</li>)</ol>')
_LIST_JOINT = re.compile(rf"(?:{_LIST_ENTRY.pattern}){{2,}}")
_NUMBER = re.compile(r"\d+")
_ONLY_NUMBER = re.compile(r"^\W*(?:page|seite|p\.|s\.)?\W*\d*\W*(?:(?:of|von|/)\W*\d*)?\W*$", re.I)
_WORD_AT_END = re.compile(r"(\w+)-$")
_WORD_AT_START = re.compile(r"^\w+")
_WORDS = re.compile(r"\w+(?:-\w+)*")
_LEADER = re.compile(r"\s*(?:\. ?){4,}\s*")  # dots from an entry of the contents to its page


@dataclass(frozen=True)
class Style:
    """What lines look like in this document: how large most text is, which sizes are headings, which words it has."""

    body_size: float
    levels: Mapping[float, int]
    pitch: float
    words: Counter
    outline: Outline


def to_html(pages: list[PdfPage], outline: Outline) -> str:
    """Return the text of the pages as HTML, what most of them repeat once at the end."""
    repeated, shown_once = _repeated_lines(pages)
    kept = [
        PdfPage(page.number, page.height, [line for line in page.lines if (page.number, id(line)) not in repeated])
        for page in pages
    ]
    style = _style_of(kept, outline)
    parts = [part for page in kept for part in _blocks(page, style)]
    html = "".join(_html(part, style) for part in _joined_over_pages(parts))
    html = html.replace("</ul><ul>", "")
    html = _LIST_JOINT.sub(_join_lists, html)
    once = "<br>".join(escape(text) for text in shown_once)
    return html + (f"<hr><p>{once}</p>" if once else "")


def _repeated_lines(pages: list[PdfPage]) -> tuple[set[tuple[int, int]], list[str]]:
    """Return the lines at the edges of most pages, by page and identity, and their texts, each once.

    Lines that differ only in a number that counts with the pages are one text, and so they are on a few pages already.
    """
    found: dict[str, list[tuple[int, Line]]] = defaultdict(list)
    for page in pages:
        for line in page.lines:
            if line.bottom > page.height * (1 - MARGIN_SHARE) or line.top < page.height * MARGIN_SHARE:
                for key in _keys_of(line.text, page.number):
                    found[key].append((page.number, line))
    repeated, texts = set(), {}
    for key, group in found.items():
        # Books alternate left and right pages.
        least = MIN_REPEATS if "\0" in key else max(MIN_REPEATS, len(pages) / 3)
        if len({number for number, _ in group}) >= least:
            new = [(number, line) for number, line in group if (number, id(line)) not in repeated]
            repeated |= {(number, id(line)) for number, line in new}
            texts |= {line.text: None for _, line in new[:1] if not _ONLY_NUMBER.match(line.text)}
    # A page that would be left empty says nothing but this: then it is its text.
    whole = {page.number for page in pages if all((page.number, id(line)) in repeated for line in page.lines)}
    return {(number, line) for number, line in repeated if number not in whole}, list(texts)


def _keys_of(text: str, page_number: int) -> set[str]:
    """Return the text as it is, and with its first or last number as the distance from the page's place in the file."""
    keys = {text}
    numbers = list(_NUMBER.finditer(text))
    for number in numbers[:1] + numbers[-1:]:
        if len(number[0]) < 6:
            distance = int(number[0]) - page_number
            keys.add(f"{text[: number.start()]}\0{distance}{text[number.end() :]}")
    return keys


def _style_of(pages: list[PdfPage], outline: Outline) -> Style:
    letters: Counter = Counter()
    words: Counter = Counter()
    for page in pages:
        for line in page.lines:
            letters[line.size] += len(line.text)
            words.update(word.casefold() for word in _WORDS.findall(line.text))
    body_size = letters.most_common(1)[0][0] if letters else 0.0
    total = sum(letters.values())
    # Sizes that a good part of the text has are no headings, but another kind of text.
    larger = [size for size, count in letters.items() if size >= body_size * HEADING_RATIO and count < total / 4]
    ranked = sorted(larger, reverse=True)
    levels = {size: min(rank, LEVELS - 1) + 1 for rank, size in enumerate(ranked)}
    gaps = [
        upper.bottom - lower.bottom
        for page in pages
        for upper, lower in pairwise(page.lines)
        if upper.size == lower.size == body_size and 0 < upper.bottom - lower.bottom < 4 * body_size
    ]
    return Style(body_size, levels, median(gaps) if gaps else body_size * 1.2, words, outline)


@dataclass(frozen=True)
class Part:
    """A paragraph, list entry, table (level 0) or heading (level from 1) of one page."""

    lines: tuple[Line, ...]
    breaks: tuple[bool, ...]  # for each line but the first: it stays a line of its own
    kind: str = "p"
    level: int = 0
    marker: str = ""
    rows: tuple[tuple[str, ...], ...] = ()


def _blocks(page: PdfPage, style: Style) -> Iterator[Part]:
    """Yield the page's parts: lines belong together where nothing says that one has ended on purpose."""
    lines: list[Line] = []
    breaks: list[bool] = []
    kind = ("p", 0)
    for line, table in with_tables(page.lines):
        if table:
            if lines:
                yield _part(lines, breaks, kind)
            yield Part((line,), (), "table", rows=table)
            lines = []
            continue
        level = _heading_level(line, page, style)
        now = ("h", level) if level else ("li", 0) if _marker_of(line.text) else ("p", 0)
        if lines and _goes_on(lines[-1], line, kind, now, style):
            breaks.append(now[0] != "h" and _ends_early(lines, page.lines))
            lines.append(line)
            continue
        if lines:
            yield _part(lines, breaks, kind)
        lines, breaks, kind = [line], [], now
    if lines:
        yield _part(lines, breaks, kind)


def _part(lines: list[Line], breaks: list[bool], kind: tuple[str, int]) -> Part:
    marker = _marker_of(lines[0].text) if kind[0] == "li" else ""
    return Part(tuple(lines), tuple(breaks), kind[0], kind[1], marker)


def _goes_on(last: Line, line: Line, kind: tuple[str, int], now: tuple[str, int], style: Style) -> bool:
    """Return whether a line belongs to the paragraph, list entry or heading of the line before it."""
    if kind[0] == "h" or now[0] == "h":
        is_near = abs(last.bottom - line.bottom) < 2 * max(last.size, line.size)
        return kind == now and last.size == line.size and is_near
    if now[0] == "li" or abs(last.size - line.size) > 0.15 * style.body_size:
        return False
    gap = last.bottom - line.bottom
    if gap < -style.pitch:  # the next column
        return not last.text.endswith((".", "!", "?", ":")) and line.text[:1].islower()
    if gap > style.pitch * PARAGRAPH_GAP:
        return False
    is_indented = line.left > last.left + style.body_size and last.text.endswith((".", "!", "?", ":", "”"))
    return not is_indented or kind[0] == "li"


def _ends_early(lines: list[Line], around: list[Line]) -> bool:
    """Return whether the last of the lines leaves room in its column for another word or two.

    The column ends where the longest line that begins at its left does, before what stands to the right of the lines.
    """
    last = lines[-1]
    if _LEADER.search(last.text):
        return True
    beside = (
        other.left
        for line in lines[-COLUMN_LINES:]
        for other in around
        if other.left > line.right and other.bottom < line.top and other.top > line.bottom
    )
    bound = min(beside, default=inf)
    column = (other.right for other in around if abs(other.left - last.left) < 30 and other.right < bound)
    right = max(column, default=last.right)
    return last.right - last.left < SHORT_LINE_SHARE * (right - last.left)


def _heading_level(line: Line, page: PdfPage, style: Style) -> int:
    """Return the line's level as a heading, or 0: by the file's outline where it names the line, else by its size."""
    if len(line.text) > LONGEST_HEADING or not any(map(str.isalpha, line.text)):
        return 0
    entries = style.outline.get(page.number, {})
    text = line.text.casefold()
    if level := entries.get(text):
        return min(level, 6)
    # The outline leaves numbers out that are printed, or has them where they are not.
    bare = text.lstrip("0123456789. ")
    level = next((level for title, level in entries.items() if bare and title.lstrip("0123456789. ") == bare), 0)
    return min(level, 6) or style.levels.get(line.size, 0)


def _marker_of(text: str) -> str:
    if match := _BULLET.match(text):
        return match[0]
    match = _NUMBERED.match(text)
    return match[0] if match else ""


def _joined_over_pages(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield the parts; a paragraph that a page's end cuts in mid-sentence goes on."""
    waiting: Part | None = None
    for part in parts:
        if waiting and _is_cut(waiting, part):
            lines, breaks = waiting.lines + part.lines, (*waiting.breaks, False, *part.breaks)
            waiting = replace(waiting, lines=lines, breaks=breaks)
            continue
        if waiting:
            yield waiting
        waiting = part
    if waiting:
        yield waiting


def _is_cut(part: Part, following: Part) -> bool:
    last, first = part.lines[-1], following.lines[0]
    is_text = part.kind in ("p", "li") and following.kind == "p" and last.size == first.size
    is_other_page = first.bottom > last.bottom
    return is_text and is_other_page and first.text[:1].islower() and not last.text.endswith((".", "!", "?", ":"))


def _html(part: Part, style: Style) -> str:
    if part.kind == "table":
        return table_html(part.rows, has_head(part.rows))
    text = _text_of(part, style)
    if part.kind == "h":
        return f"<h{part.level}>{text.replace('<br>', ' ')}</h{part.level}>"
    bare = text[len(escape(part.marker)) :]
    if part.marker and _BULLET.match(part.lines[0].text):
        return f"<ul><li>{bare}</li></ul>"
    if number := _NUMBER.search(part.marker):
        return f'<ol start="{number[0]}"><li>{bare}</li></ol>'
    return f"<p>{text}</p>"


def _join_lists(match: re.Match) -> str:
    """Return lists of one numbered entry each as one list, where their numbers follow each other."""
    joined, next_number = "", -1
    for number, entry in _LIST_ENTRY.findall(match[0]):
        if int(number) == next_number:
            joined = joined.removesuffix("</ol>") + f"{entry}</ol>"
        else:
            joined += f'<ol start="{number}">{entry}</ol>'
        next_number = int(number) + 1
    return joined


def _text_of(part: Part, style: Style) -> str:
    """Return the part's text, with the words whole that its lines' ends break."""
    text = part.lines[0].text
    for line, before, is_break in zip(part.lines[1:], part.lines, part.breaks, strict=False):
        broken = _WORD_AT_END.search(text)
        following = _WORD_AT_START.match(line.text)
        if broken and following:
            text = text if _keeps_hyphen(broken[1], following[0], before, style) else text[:-1]
            text += line.text
        else:
            text += ("\n" if is_break else " ") + line.text
    return escape(_LEADER.sub(" … ", text)).replace("\n", "<br>")


def _keeps_hyphen(first: str, second: str, line: Line, style: Style) -> bool:
    """Return whether the word has its hyphen also in the middle of a line, as the rest of the document tells."""
    whole, compound = (first + second).casefold(), f"{first}-{second}".casefold()
    if style.words[whole] or style.words[compound]:
        return style.words[compound] > style.words[whole]
    return not line.is_broken and not second[0].islower()
