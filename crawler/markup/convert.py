"""Turns the selected part of a page into Markdown without dropping any of its text.

Left out on purpose are scripts, styles and form machinery. Here is the walk over the page, which keeps its own stack,
so that no nesting is too deep. What an element means stands in structures.py and phrases.py, how it is written in
markdown.py.
"""

from collections.abc import Iterator, Set

from crawler.markup.blocks import Block
from crawler.markup.markdown import plain_words, write_blocks
from crawler.markup.phrases import PHRASES
from crawler.markup.reader import Closer, Reader, has_heading
from crawler.markup.select import Content
from crawler.markup.structures import STRUCTURES, open_heading
from crawler.markup.tree import Tag

__all__ = ["landmark_markdown", "plain_words", "to_markdown"]

_MEANINGS = PHRASES | STRUCTURES


def to_markdown(content: Content, images: bool = True) -> str:
    """Return the Markdown of the page's own content, its images by absolute address or left out."""
    landmarks = frozenset(tag.position for tag in content.landmarks)
    blocks = (_read(root, Reader(content.base_url, images), landmarks) for root in content.roots)
    return write_blocks(block for part in blocks for block in part)


def landmark_markdown(content: Content, images: bool = True) -> tuple[str, ...]:
    """Return the Markdown of each of the site's own parts (menus, banner, footer, asides), empty ones left out."""
    blocks = (_read(landmark, Reader(content.base_url, images), frozenset()) for landmark in content.landmarks)
    return tuple(markdown for part in blocks if (markdown := write_blocks(part)))


def _read(root: Tag, reader: Reader, left_out: Set[int]) -> list[Block]:
    """Return the blocks of the element and all below it, but for the elements left out."""
    waiting: list[tuple[Iterator, Closer]] = [(iter((root,)), reader.end_paragraph)]
    while waiting:
        children, close = waiting[-1]
        for node in children:
            if isinstance(node, str):
                reader.add_text(node)
            elif node.position in left_out:
                reader.end_paragraph()
            elif closer := _begin(node, reader):
                waiting.append((iter(node.contents), closer))
                break
        else:
            waiting.pop()
            close()
    return reader.finish()


def _begin(tag: Tag, reader: Reader) -> Closer | None:
    """Begin an element by its role or its name; return what ends it, or None if its content has been dealt with."""
    role = tag.get("role")
    if role == "heading" and not has_heading(tag):
        return open_heading(reader, tag)
    begin = _MEANINGS.get(tag.name)
    closer = begin(reader, tag) if begin else _nothing
    return reader.counted("tablist", closer) if role == "tablist" and closer else closer


def _nothing() -> None:
    pass
