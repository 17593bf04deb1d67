"""A snippet's Markdown -> passages that can be quoted by themselves: blocks that stand together under one heading."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markdown_it import MarkdownIt

TABLE_RULE = re.compile(r"\s*\|?(\s*:?-+:?\s*\|)+\s*(:?-+:?)?\s*$")
SENTENCE = re.compile(r".+?(?:[.!?…][\"'”’)\]]*(?=\s)|[。！？]|\Z)\s*", re.DOTALL)
LINE_BREAK = re.compile(r"\r\n?|\n")
PASSAGE_CHARACTERS = 700
OMITTED = "…"

_parser = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Passage:
    """Verbatim Markdown, and the heading it stands under (empty: none)."""

    heading: str
    text: str

    @property
    def markdown(self) -> str:
        return f"{self.heading}\n\n{self.text}".strip()


def passages_of(markdown: str) -> list[Passage]:
    """Return the text as passages in its order: neighbouring blocks of a section together, up to 700 characters."""
    passages: list[Passage] = []
    heading, is_open = "", False
    for is_heading, block in _blocks(markdown):
        if is_heading:
            heading, is_open = block, False
        elif is_open and len(passages[-1].text) + len(block) <= PASSAGE_CHARACTERS:
            passages[-1] = Passage(heading, f"{passages[-1].text}\n\n{block}")
        else:
            passages.append(Passage(heading, block))
            is_open = True
    return passages


def shortened(text: str, limit: int, worth: Callable[[str], float]) -> str:
    """Return the part of a text that is worth most, about as long as the limit; a table keeps its head."""
    if len(text) <= limit:
        return text
    lines = text.splitlines(keepends=True)
    if len(lines) > 2 and TABLE_RULE.match(lines[1]):
        return "".join([*lines[:2], *_window(lines[2:], limit, worth)]).rstrip()
    if max(map(len, lines)) <= limit:
        return _marked(lines, _window(lines, limit, worth), "\n\n")
    sentences = SENTENCE.findall(text)
    part = _marked(sentences, _window(sentences, limit, worth), " ")
    return part if len(part) <= 2 * limit else f"{part[: 2 * limit]}{OMITTED}"


def _blocks(markdown: str) -> Iterator[tuple[bool, str]]:
    """Yield headings, paragraphs, whole lists, tables and fenced code as they stand, and whether each is a heading."""
    lines = LINE_BREAK.split(markdown)
    for token in _parser.parse(markdown):
        if token.level == 0 and token.map:
            start, end = token.map
            yield token.type == "heading_open", "\n".join(lines[start:end]).strip("\n")


def _window(units: list[str], limit: int, worth: Callable[[str], float]) -> list[str]:
    """Return the neighbours of the best unit, those after it first, as many as the limit allows; at least that one."""
    start = max(range(len(units)), key=lambda position: (worth(units[position]), -position))
    end, length = start + 1, len(units[start])
    while end < len(units) and length + len(units[end]) < limit:
        length += len(units[end])
        end += 1
    while start > 0 and length + len(units[start - 1]) < limit:
        start -= 1
        length += len(units[start])
    return units[start:end]


def _marked(units: list[str], window: list[str], blank: str) -> str:
    """Return the window as one text, with a sign where something was left out in front of it or behind."""
    before = f"{OMITTED}{blank}" if window[0] is not units[0] else ""
    behind = f"{blank}{OMITTED}" if window[-1] is not units[-1] else ""
    return f"{before}{''.join(window).strip()}{behind}"
