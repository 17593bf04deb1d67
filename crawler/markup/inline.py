"""Writes runs of marked text as a line of Markdown that a reader sees exactly as the page showed it.

Escapes what Markdown would take for its own, moves blanks out of the markers, and keeps emphasis only where CommonMark
would see it. Which text stands in which paragraph is decided in convert.py.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crawler.markup.blocks import SPACE, Mark, Run

_DELIMITERS = {"strong": "**", "emphasis": "*", "strike": "~~"}

_MARKUP = r"""(?P<run>[*_]+)
    | \\(?=[!-/:-@\[-`{-~]|$)       # a backslash that would escape
    | `
    | ~(?=~|$) | (?<=~)~ | ^~
    | \](?=[(\[])                   # the end of a link's text
    | <(?=[A-Za-z/!?])
    | &(?=\#?\w+;)"""
_ESCAPES = {
    # (is it within a link's text, does more text follow at once) -> what needs a backslash
    (is_linked, is_followed): re.compile(
        _MARKUP + (r"|[\[\]]" if is_linked else "") + (r"|[\]<!]$" if is_followed else ""), re.VERBOSE
    )
    for is_linked in (False, True)
    for is_followed in (False, True)
}
_PLAIN_ADDRESS = re.compile(r"[^\s<>\\|&()]+")
_BLOCK_MARKUP = re.compile(
    r"""(?P<before>)(?:\#{1,6}|[-+])(?=\s|$)
    | (?P<number>\d{1,9})(?=[.)](?:\s|$))
    | > | [-:|=+][-:|=+\s]*$ | \[(?=(?:[^\]\\]|\\.)*\]:) | _(?=[_\s]*$)""",
    re.VERBOSE,
)


class _Span(NamedTuple):
    """One piece of emphasis: where its markers stand among the pieces, which tokens are between, and how it nests."""

    mark: Mark
    start: int
    end: int
    first: int
    beyond: int
    is_within: bool
    is_around: bool


def write_line(runs: Iterable[Run], place: str = "paragraph") -> str:
    """Return the Markdown of one paragraph, "heading" or table "cell"; the last two stay on one line."""
    runs = list(runs)
    if any(run.marks or run.kind != "text" for run in runs):
        line = _write_marked(runs, keeps_breaks=place == "paragraph")
    else:
        text = " ".join("".join(run.text for run in runs).split())
        line = _ESCAPES[False, False].sub(_escape_match, text)
    if place == "cell":
        return line.replace("|", "\\|")
    if place == "heading":
        return re.sub(r"(?<!\S)(#+)$", r"\\\1", line)
    return "\n".join(_escape_block_markup(part) for part in line.split("\n"))


def _write_marked(runs: Sequence[Run], keeps_breaks: bool) -> str:
    tokens = _tokens(runs, keeps_breaks)
    pieces, spans = _pieces(tokens)
    while idle := [span for span in spans if not _is_emphasis(pieces, span)]:
        tokens = _unmarked(tokens, idle)
        pieces, spans = _pieces(tokens)
    return "".join(pieces)


def without_images(runs: Sequence[Run], keeps_shown: bool, is_heading: bool) -> list[Run]:
    """Return the runs without images, or only without those that have no address to show them from.

    An image that is all there is of a link or of a heading leaves its words.
    """
    if all(run.kind != "image" for run in runs):
        return list(runs)
    worded = [run for run in runs if run.kind != "image" and run.text.strip()]
    worded_links = {mark for run in worded for mark in run.marks if mark.kind == "link"}
    kept = []
    for run in runs:
        links = {mark for mark in run.marks if mark.kind == "link"}
        stands_alone = links.isdisjoint(worded_links) if links else is_heading and not worded
        if run.kind != "image" or (keeps_shown and run.address):
            kept.append(run)
        elif stands_alone:
            kept.append(Run(run.text, run.marks))
    return kept


def _tokens(runs: Iterable[Run], keeps_breaks: bool) -> list[Run]:
    """Return the runs merged, their outer blanks as tokens of their own that carry what both neighbours share."""
    tokens: list[Run] = []
    blank: Run | None = None
    for run in _merged(runs):
        kind = run.kind
        if kind in ("space", "break"):
            token = SPACE if kind == "break" and not keeps_breaks else run
            blank = token if blank is None or token.kind == "break" else blank
            continue
        token, after = run, None
        if kind != "image":
            core = " ".join(run.text.split())
            if run.text and (not core or run.text[0].isspace()):
                blank = blank or SPACE
            if not core:
                continue
            token = run if core == run.text else Run(core, run.marks, kind)
            after = SPACE if run.text[-1].isspace() else None
        if blank and tokens:
            tokens.append(_with_shared_marks(blank, tokens[-1].marks, token.marks))
        blank = after
        tokens.append(token)
    return tokens


def _with_shared_marks(blank: Run, before: tuple[Mark, ...], after: tuple[Mark, ...]) -> Run:
    shared = before if before == after else tuple(mark for mark in before if mark in after)
    return blank if shared == blank.marks else blank._replace(marks=shared)


def _merged(runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the runs, neighbours of one kind and the same marks as one."""
    held: Run | None = None
    more: list[str] = []
    for run in runs:
        if held is not None and held.kind == run.kind and held.marks == run.marks:
            more.append(run.text)
            continue
        if held is not None:
            yield held._replace(text="".join([held.text, *more])) if more else held
            held, more = None, []
        if run.kind in ("text", "code"):
            held = run
        else:
            yield run
    if held is not None:
        yield held._replace(text="".join([held.text, *more])) if more else held


def _unmarked(tokens: Sequence[Run], spans: Iterable[_Span]) -> list[Run]:
    """Return the tokens without the marks of the given spans."""
    bare = list(tokens)
    for span in spans:
        for position in range(span.first, span.beyond):
            marks = tuple(mark for mark in bare[position].marks if mark != span.mark)
            bare[position] = bare[position]._replace(marks=marks)
    return list(_merged(bare))


def _pieces(tokens: Sequence[Run]) -> tuple[list[str], list[_Span]]:
    """Return the written tokens between the markers of their marks, properly nested, and the spans of emphasis."""
    pieces: list[str] = []
    spans: list[_Span] = []
    opened: list[tuple[Mark, int, int]] = []

    def close(count: int, position: int) -> None:
        while len(opened) > count:
            mark, start, first = opened.pop()
            if mark.kind != "link":
                is_within = any(entry[0].kind != "link" for entry in opened)
                is_around = bool(spans) and spans[-1].start > start
                spans.append(_Span(mark, start, len(pieces), first, position, is_within, is_around))
            pieces.append(_link_end(mark) if mark.kind == "link" else _DELIMITERS[mark.kind])

    marks: tuple[Mark, ...] = ()
    for position, token in enumerate(tokens):
        if token.marks != marks:
            marks = token.marks
            close(next((i for i, entry in enumerate(opened) if entry[0] not in marks), len(opened)), position)
            is_open = {entry[0] for entry in opened}
            fresh = [mark for mark in marks if mark not in is_open]
            if len(fresh) > 1:
                fresh.sort(key=lambda mark: -_reach(tokens, position, mark))
            for mark in fresh:
                opened.append((mark, len(pieces), position))
                pieces.append("[" if mark.kind == "link" else _DELIMITERS[mark.kind])
        is_followed = position + 1 < len(tokens) and tokens[position + 1].kind not in ("space", "break")
        pieces.append(_write_token(token, is_followed))
    close(0, len(tokens))
    return pieces, spans


def _reach(tokens: Sequence[Run], position: int, mark: Mark) -> int:
    """Return up to which token the mark holds without a gap; what reaches furthest has to be opened first."""
    return next((i for i in range(position, len(tokens)) if mark not in tokens[i].marks), len(tokens))


def _is_emphasis(pieces: Sequence[str], span: _Span) -> bool:
    """Return whether CommonMark (6.2) sees emphasis between the two markers, for sure; else a reader sees asterisks."""
    sign = _DELIMITERS[span.mark.kind][0]
    before, first, opens_alone = _around(pieces, span.start, sign)
    last, after, ends_alone = _around(pieces, span.end, sign)
    if not _flanks(before, first) or not _flanks(after, last):
        return False
    if not _flanks(first, before) and not _flanks(last, after):
        return True
    # A marker that could as well open as close is clear only where no other may be its partner (rules 9 to 16).
    return not span.is_within and ((opens_alone and ends_alone) or not span.is_around)


def _around(pieces: Sequence[str], index: int, sign: str) -> tuple[str, str, bool]:
    """Return the characters around the markers of one sign that merge here, and whether it is only one marker."""
    start, end = index, index + 1
    while start > 0 and not pieces[start - 1].strip(sign):
        start -= 1
    while end < len(pieces) and not pieces[end].strip(sign):
        end += 1
    before = pieces[start - 1][-1] if start > 0 else " "
    after = pieces[end][0] if end < len(pieces) else " "
    return before, after, sum(map(bool, pieces[start:end])) == 1


def _flanks(outer: str, inner: str) -> bool:
    if inner.isspace():
        return False
    return not _is_punctuation(inner) or outer.isspace() or _is_punctuation(outer)


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _write_token(token: Run, is_followed: bool) -> str:
    if token.kind == "text":
        is_linked = bool(token.marks) and any(mark.kind == "link" for mark in token.marks)
        return _ESCAPES[is_linked, is_followed].sub(_escape_match, token.text)
    if token.kind == "code":
        return _code_span(token.text)
    if token.kind == "image":
        alternative = _ESCAPES[True, False].sub(_escape_match, " ".join(token.text.split()))
        return f"![{alternative}]({_destination(token.address)}{_written_title(token.title)})"
    return "  \n" if token.kind == "break" else " "


def _escape_match(match: re.Match) -> str:
    if match["run"]:
        before = match.string[match.start() - 1 : match.start()] if match.start() else ""
        after = match.string[match.end() : match.end() + 1]
        is_within_word = "*" not in match[0] and before.isalnum() and after.isalnum()
        if is_within_word or (before.isspace() and after.isspace()):
            return match[0]
    return "".join("\\" + sign for sign in match[0])


def _escape_block_markup(line: str) -> str:
    """Escape the start of a line that CommonMark would take for a heading, a list, a quote, a rule or a table."""
    match = _BLOCK_MARKUP.match(line)
    if not match:
        return line
    number = match["number"] or ""
    return f"{number}\\{line[len(number) :]}"


def _code_span(text: str) -> str:
    """Return the text between as many backticks as it takes, CommonMark 6.1."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1 if longest else 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _link_end(mark: Mark) -> str:
    return f"]({_destination(mark.address)}{_written_title(mark.title)})"


def _destination(address: str) -> str:
    """Return the address as CommonMark 6.3 wants it: no blanks, no unpaired parentheses, nothing that escapes."""
    if _PLAIN_ADDRESS.fullmatch(address):
        return address
    written = re.sub(r"[\s<>\\|]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), address)
    written = re.sub(r"&(?=#?\w+;)", r"\\&", written)
    if not _is_balanced(written):
        written = written.replace("(", "%28").replace(")", "%29")
    return written or "<>"


def _is_balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0 or depth > 3:
            return False
    return depth == 0


def _written_title(title: str) -> str:
    if not title:
        return ""
    words = " ".join(title.split())
    return ' "' + re.sub(r'["\\]|&(?=#?\w+;)', r"\\\g<0>", words) + '"' if words else ""
