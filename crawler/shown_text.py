"""What a page shows its readers, as its parsed tree has it: all of it, whatever is selected or moved.

The loss meter counts by it, and links to sentences are checked against it.
"""

from collections.abc import Iterator

from crawler.markup.select import Content
from models_app.page_texts import ShownPage

# Scripts, styles and form machinery are no text; a formula is written in TeX, not in the signs it is drawn with.
_UNSEEN = frozenset(
    ("head", "script", "style", "select", "textarea", "datalist", "noframes", "option", "optgroup", "math")
)
_INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i"),
        *("ins", "kbd", "mark", "nobr", "q", "rb", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub"),
        *("sup", "time", "tt", "u", "var", "wbr"),
    )
)
_SPACED = frozenset(("label", "button", "input", "text", "title", "desc", "img"))
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_CELLS = frozenset(("td", "th"))
_KINDS = {
    **dict.fromkeys(_CODE, "code"),
    **dict.fromkeys(("pre", "listing", "xmp", "plaintext"), "listing"),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "summary", "dt"), "title"),
    "form": "form",
}
_INSIDE = ("", "code", "listing", "title", "form")
_TITLE_ROLES = frozenset(("heading", "tablist"))
# A sign that nobody sees stands where a link ended: the words of two neighbours do not run together.
LINK_END = "\u2060"
_UNSHOWN = dict.fromkeys(map(ord, f"\xad{LINK_END}"))


class ShownText:
    """The visible text of a whole parsed page, read off its tree: pieces of text, code spans, and cells of tables.

    Anchors are pairs (piece, id): a heading's own id, or one just before it or within it.
    """

    def __init__(self, content: Content) -> None:
        self.pieces: list[str] = []
        self.codes: list[str] = []
        self.cells: list[str] = []
        self.anchors: list[tuple[int, str]] = []
        self._waiting_anchor = ""
        self._inside = dict.fromkeys(_INSIDE, 0)
        top = content.roots[0]
        while top.parent is not None:
            top = top.parent
        self._read(top)

    def _read(self, top) -> None:
        waiting: list[tuple[Iterator, object, str, int]] = [(iter(top.contents), top, "", 0)]
        pieces, inside = self.pieces, self._inside
        while waiting:
            children, tag, kind, start = waiting[-1]
            for node in children:
                if isinstance(node, str):
                    if self._waiting_anchor and not node.isspace():
                        self._settle_anchor()
                    pieces.append(node if inside["listing"] else node.replace("\n", " "))
                elif node.name not in _UNSEEN and (node.name != "button" or self._is_seen_button(node)):
                    kind = _KINDS.get(node.name) or ("title" if node.get("role") in _TITLE_ROLES else "")
                    waiting.append((iter(node.contents), node, kind, len(pieces)))
                    self._begin(node.name)
                    if anchor := node.get("id") or (node.name == "a" and node.get("name")):
                        self._waiting_anchor = anchor
                    inside[kind] += 1
                    break
            else:
                waiting.pop()
                inside[kind] -= 1
                self._end(tag.name, start)

    def _settle_anchor(self) -> None:
        """Let a heading have the anchor that stands at the text to come; other texts' anchors name no section."""
        if self._inside["title"]:
            self.anchors.append((len(self.pieces), self._waiting_anchor))
        self._waiting_anchor = ""

    def _is_seen_button(self, tag) -> bool:
        """Return whether the reader sees the button's text: form machinery is no text."""
        if self._inside["title"]:
            return True
        is_forms = self._inside["form"] or tag.get("form", None) is not None
        return not is_forms or any(tag.get(name, None) is not None for name in ("aria-expanded", "aria-controls"))

    def _begin(self, name: str) -> None:
        if name not in _INLINE:
            self.pieces.append(" " if name in _SPACED else "\n")
        elif name == "a" and self.pieces and self.pieces[-1] == LINK_END:
            self.pieces.append(" ")

    def _end(self, name: str, start: int) -> None:
        if name in _CODE and not self._inside["listing"] and not self._inside["code"]:
            self.codes.append("".join(self.pieces[start:]))
        elif name in _CELLS:
            self.cells.append("".join(self.pieces[start:]))
        if name not in _INLINE:
            self.pieces.append(" " if name in _SPACED else "\n")
        elif name == "a":
            self.pieces.append(LINK_END)
        elif name == "sup" and "".join(self.pieces[start:]).lstrip()[:1].isdigit():
            self.pieces.insert(start, " ")  # ten to the sixth is not 106, but the "st" of 1st belongs to it

    def page(self) -> ShownPage:
        """Return what the page shows, a block of it a line, with its headings' anchors."""
        breaks, read = 0, 0
        lines_of: list[tuple[int, str]] = []
        for piece, anchor in self.anchors:
            breaks += sum(part.count("\n") for part in self.pieces[read:piece])
            read = piece
            lines_of.append((breaks, anchor))
        kept, places = [], []
        for line in "".join(self.pieces).translate(_UNSHOWN).split("\n"):
            places.append(len(kept))
            if words := " ".join(line.split()):
                kept.append(words)
        return ShownPage.of("\n".join(kept), ((places[line], anchor) for line, anchor in lines_of))
