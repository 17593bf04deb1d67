"""Turns an answer's Markdown into a tree of elements, which the widget builds without parsing any HTML itself.

The Markdown is rendered and sanitised as everywhere (models_app.markdown); the tree only says it in another way.
"""

from html.parser import HTMLParser

from models_app.markdown import render_markdown

Tree = list  # [tag, attributes, *children]; a child is a Tree or a text
ROOT = "root"
VOID = {"br", "hr"}
# Between the parts of these, line breaks say nothing.
CONTAINERS = {ROOT, "ul", "ol", "table", "thead", "tbody", "tr", "blockquote"}
ATTRIBUTES = {"href", "start"}


def tree_of(markdown: str) -> list[Tree | str]:
    """Return the nodes of the rendered Markdown, in order: texts, and lists [tag, attributes, *children]."""
    maker = _TreeMaker()
    maker.feed(render_markdown(markdown))
    maker.close()
    return maker.root[2:]


class _TreeMaker(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root: Tree = [ROOT, {}]
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = [tag, {name: value for name, value in attrs if name in ATTRIBUTES}]
        self._open[-1].append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID and len(self._open) > 1:
            self._open.pop()

    def handle_data(self, text: str) -> None:
        if text.strip() or self._open[-1][0] not in CONTAINERS:
            self._open[-1].append(text)
