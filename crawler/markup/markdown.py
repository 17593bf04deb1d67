"""Writes a page's blocks as Markdown, and reads from Markdown the words that a reader sees."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from markdown_it import MarkdownIt

from crawler.markup.blocks import Block, Code, Heading, List, Paragraph, Quote, Rule, Table
from crawler.markup.inline import write_line
from crawler.markup.tables import is_layout, write_table

READER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
"""The Markdown we write and read: CommonMark with tables and strikethrough, and without raw HTML."""

_INLINE_MARKUP = re.compile(r"[\\`*_~\[\]<&]")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_PLAIN_HEADING = re.compile(r"#{1,6} ((?:[^\\`*_~\[\]<&#\n\r\0]|\\[!-/:-@\[-`{-~])*)")
_BLOCK_READER = MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")


def plain_words(markdown: str) -> str:
    """Return the words a reader of the rendered Markdown sees, one blank between them; no image, no address."""
    if heading := _PLAIN_HEADING.fullmatch(markdown):  # as reading it would say, in no time
        return " ".join(_ESCAPE.sub(r"\1", heading[1]).split())
    words: list[str] = []
    references: dict = {}
    for token in _BLOCK_READER.parse(markdown, references):
        is_inline = token.type == "inline"
        if token.type in ("fence", "code_block") or (is_inline and not _INLINE_MARKUP.search(token.content)):
            words += token.content.split()
        elif is_inline:
            # Line by line: the tokens of a large page all at once keep the garbage collector busy for longer than us.
            pieces = READER.inline.parse(token.content, READER, references, [])
            words += "".join(map(_visible_text, pieces)).split()
    return " ".join(words)


def write_blocks(blocks: Iterable[Block]) -> str:
    """Return the Markdown of the blocks, with a blank line between them."""
    return "\n\n".join(chunk for chunk in _chunks(blocks) if chunk)


def _visible_text(token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "" if token.type == "image" else token.content


def _chunks(blocks: Iterable[Block]) -> Iterator[str]:
    follows_list = False
    for block in _dissolved(blocks):
        if isinstance(block, List):
            # Another marker than the list before it has, else both would be read as one list.
            follows_list = not follows_list
            yield _list(block, "-." if follows_list else "*)")
            continue
        follows_list = False
        match block:
            case Paragraph(runs):
                yield write_line(runs)
            case Heading(runs, level):
                line = write_line(runs, "heading")
                yield f"{'#' * level} {line}" if line else ""
            case Code(text, language):
                yield _fenced(text, language)
            case Quote(inner):
                yield _prefixed(write_blocks(inner), "> ", "> ")
            case Table():
                yield from write_table(block)
            case Rule():
                yield "---"


def _dissolved(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the blocks, with those of its cells in place of each table that only served the layout."""
    for block in blocks:
        if not isinstance(block, Table):
            yield block
            continue
        yield from _dissolved(block.before)
        if not is_layout(block):
            yield replace(block, before=())
            continue
        for row in block.rows:
            for cell in row:
                yield from _dissolved(cell.blocks)


def _list(block: List, markers: str) -> str:
    """Return the list; its items stand close together unless one of them is more than a line and its sub-list."""
    bullet, point = markers
    written = []
    is_tight = True
    for entry in block.items:
        blocks = list(_dissolved(entry.blocks))
        is_simple = len(blocks) < 2 or (len(blocks) == 2 and isinstance(blocks[1], List))
        content = ("\n" if is_simple else "\n\n").join(chunk for chunk in _chunks(blocks) if chunk)
        if content:
            is_tight = is_tight and is_simple
            marker = f"{bullet} " if entry.number is None else f"{entry.number}{point} "
            written.append(_prefixed(content, marker, " " * len(marker)))
    return ("\n" if is_tight else "\n\n").join(written)


def _prefixed(text: str, first: str, others: str) -> str:
    lines = text.split("\n")
    return "\n".join([first + lines[0], *(others + line if line else others.rstrip() for line in lines[1:])])


def _fenced(text: str, language: str) -> str:
    """Return the code between fences longer than any run of backticks in it (CommonMark 4.5)."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
