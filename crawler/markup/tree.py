"""The port to lxml's HTML parser: reads a page into a small tree of elements and texts, each text a plain string.

Comments are left out. The parser's events build the tree themselves, which takes a sixth of the time of a library of
general use, and each element is numbered as it opens: whether one lies in another is a comparison of numbers.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

from lxml import etree

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_OF_THE_HEAD = frozenset(
    ("title", "meta", "link", "base", "basefont", "bgsound", "script", "style", "noscript", "noframes", "template")
)
_NO_TEXT = frozenset(("script", "style"))


class Tag:
    """An element: its name, attributes as written, what is in it, and from where to where it reaches in the page."""

    __slots__ = ("attributes", "contents", "last", "name", "parent", "position")

    def __init__(
        self,
        name: str,
        attributes: dict[str, str],
        parent: "Tag | None",
        position: int = -1,
        contents: "list[Tag | str] | None" = None,
    ) -> None:
        self.name = name
        self.attributes = attributes
        self.contents = contents if contents is not None else []
        self.parent = parent
        self.position = position
        self.last = position  # the position of the last element in it

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attributes.get(name, default)

    def holds(self, other: "Tag") -> bool:
        """Return whether the other element is this one or lies in it."""
        return self.position <= other.position <= self.last

    @property
    def parents(self) -> Iterator["Tag"]:
        """The elements around this one, from the inside out."""
        tag = self.parent
        while tag is not None:
            yield tag
            tag = tag.parent

    @property
    def children(self) -> Iterator["Tag"]:
        """The elements right in this one."""
        return (node for node in self.contents if isinstance(node, Tag))

    def descendants(self) -> Iterator["Tag | str"]:
        """Yield all elements and texts in this one, in the order of the page."""
        waiting = self.contents[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            if isinstance(node, Tag):
                waiting.extend(node.contents[::-1])

    def find(self, name: str) -> "Tag | None":
        """Return the first element of that name in this one."""
        return next((node for node in self.descendants() if isinstance(node, Tag) and node.name == name), None)

    def texts(self) -> Iterator[str]:
        """Yield all texts in this element, but for what is written for machines."""
        waiting = self.contents[::-1]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                yield node
            elif node.name not in _NO_TEXT:
                waiting.extend(node.contents[::-1])

    def text(self, separator: str = "") -> str:
        """Return all text in this element."""
        return separator.join(self.texts())


class Document:
    """A parsed page: its outermost element, which has no name, and all elements by order and by name."""

    def __init__(self, html: str) -> None:
        self.root = Tag("", {}, None, 0)
        self.tags = [self.root]
        self.by_name: dict[str, list[Tag]] = defaultdict(list)
        self._open = self.root
        self._texts: list[str] = []
        builder = SimpleNamespace(start=self._start, end=self._end, data=self._texts.append, close=self._end_text)
        parser = etree.HTMLParser(target=builder, recover=True)
        # The parser would turn NUL into U+FFFD, which then stands in the middle of words; half a character it refuses.
        parser.feed(re.sub("[\0\ud800-\udfff]", "", html))
        parser.close()
        for tag in reversed(self.tags):
            if tag.parent is not None and tag.parent.last < tag.last:
                tag.parent.last = tag.last

    def _start(self, name: str, attributes: Iterable) -> None:
        """Open an element."""
        if self._texts:
            self._end_text()
        if self._open.name == "head" and name not in _OF_THE_HEAD:
            self._leave_head()
        around = self._open
        tag = Tag(name, dict(attributes), around, len(self.tags))
        around.contents.append(tag)
        self.tags.append(tag)
        self.by_name[name].append(tag)
        self._open = tag

    def _end(self, name: str) -> None:
        """Close the innermost element of the name, if any is open."""
        if self._texts:
            self._end_text()
        tag = self._open
        while tag is not None and tag.name != name:
            tag = tag.parent
        if tag is not None and tag.parent is not None:
            self._open = tag.parent

    def _end_text(self) -> None:
        if self._texts:
            self._open.contents.append("".join(self._texts))
            self._texts.clear()

    def _leave_head(self) -> None:
        """Open the body that the page left out: the parser knows none of HTML 5's elements to begin one."""
        self._open = self._open.parent
        self._start("body", {})
