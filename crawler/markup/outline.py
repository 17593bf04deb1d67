"""Shows a stored page with what was selected of it, and what was moved to the site's own snippet, outlined.

It is a stranger's HTML: a new document is written from the parsed page, by lists of the elements and attributes that
may stand in it. Nothing in it runs, leads anywhere or loads anything, and its own policy forbids the rest.
"""

from collections.abc import Iterator
from html import escape

from crawler.markup.select import Content, select_content
from crawler.markup.tree import Tag

_KEPT = frozenset(
    (
        *("address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "div", "dl", "dt"),
        *("figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "li", "main"),
        *("menu", "nav", "ol", "p", "pre", "section", "summary", "ul"),
        *("table", "tbody", "td", "tfoot", "th", "thead", "tr"),
        *("abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "i", "ins", "kbd", "mark", "q", "rp", "rt"),
        *("ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "u", "var"),
    )
)
_SIGNS = {"br": "<br>", "hr": "<hr>", "wbr": "<wbr>"}
# Their text is no text of a page, or could not be shown without loading something.
_GONE = frozenset(
    (
        *("applet", "audio", "canvas", "datalist", "embed", "frame", "frameset", "iframe", "input", "link"),
        *("meta", "noframes", "object", "script", "select", "style", "template", "textarea", "title", "video"),
    )
)
_NUMBERS = frozenset(("colspan", "rowspan", "start", "value"))
_MOST_DIGITS = 4

_SELECTED, _MOVED = "selected", "moved"
_LABELS = {_SELECTED: "Selected: the page’s own text", _MOVED: "Moved to the site’s own snippet"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
_STYLE = """
body { margin: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1c1917; background: #fff; overflow-wrap: break-word }
table { border-collapse: collapse } td, th { padding: .25rem .5rem; border: 1px solid #d6d3d1; text-align: left }
pre { white-space: pre-wrap }
.image { color: #57534e; font-style: italic }
.selected { outline: 3px solid #15803d; outline-offset: 2px; margin: .75rem; display: block }
.moved { outline: 2px dashed #b45309; outline-offset: 1px; margin: .5rem; display: block; background: #fffbeb }
.label { display: block; width: fit-content; padding: 0 .5rem; font: 600 .8125rem/1.6 system-ui; color: #fff }
.label.of-selected { background: #15803d } .label.of-moved { background: #b45309 }
"""


def outlined(html: str, url: str) -> str:
    """Return a whole document, safe in `<iframe sandbox>`, of the page with its selected and moved parts outlined."""
    content = select_content(html, url)
    top = content.roots[0]
    while top.parent is not None:
        top = top.parent
    body = "".join(_written(top, _marks(content)))
    language = f' lang="{escape(content.language)}"' if content.language else ""
    return (
        f'<!doctype html><html{language}><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="referrer" content="no-referrer"><title>{escape(content.title)}</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )


def _marks(content: Content) -> dict[int, str]:
    """Return what is outlined, by the identity of the element; what is moved may lie within what is selected."""
    moved = [tag for tag in content.landmarks if tag.position >= 0]
    # The others are no elements of the page but hold some that stand around its landmarks.
    moved += [tag for part in content.landmarks if part.position < 0 for tag in part.children if _has_text(tag)]
    return {id(tag): _SELECTED for tag in content.roots} | {id(tag): _MOVED for tag in moved}


def _has_text(tag: Tag) -> bool:
    waiting = [tag]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            if node.strip():
                return True
        elif node.name not in _GONE:
            waiting.extend(node.contents)
    return False


def _written(top: Tag, marks: dict[int, str]) -> Iterator[str]:
    """Yield the page's texts, and the elements that may stand, each with its end; no nesting is too deep."""
    waiting: list[tuple[Iterator, str, str]] = [(iter((top,)), "", "")]
    while waiting:
        children, end, mark_around = waiting[-1]
        node = next(children, None)
        if node is None:
            waiting.pop()
            yield end
        elif isinstance(node, str):
            yield escape(node) if mark_around or not node.strip() else _loose(node)
        elif node.name in _SIGNS:
            yield _SIGNS[node.name]
        elif node.name == "img":
            yield _image(node)
        elif node.name not in _GONE:
            mark = marks.get(id(node), "")
            name = node.name if node.name in _KEPT else "div" if mark else "span"
            yield f"<{name}{_attributes(node)}{_class(mark)}>{_label(mark)}"
            waiting.append((iter(node.contents), f"</{name}>", mark or mark_around))


def _loose(text: str) -> str:
    """Return a text that stands beside what is outlined: it is moved too."""
    return f"<span{_class(_MOVED)}>{_label(_MOVED)}{escape(text)}</span>"


def _attributes(tag) -> str:
    """Return what may be said of an element: how it spans, counts and reads. An accordion stands open."""
    written = {name: tag.get(name).strip() for name in (*_NUMBERS, "dir")}
    kept = [f' {name}="{value}"' for name, value in written.items() if _is_number(value) and name in _NUMBERS]
    if written["dir"].lower() in ("ltr", "rtl", "auto"):
        kept.append(f' dir="{written["dir"].lower()}"')
    return "".join(kept) + (" open" if tag.name == "details" else "")


def _is_number(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS


def _class(mark: str) -> str:
    return f' class="{mark}"' if mark else ""


def _label(mark: str) -> str:
    return f'<span class="label of-{mark}">{_LABELS[mark]}</span>' if mark else ""


def _image(tag) -> str:
    """Return an image's words in its place: to show it would tell the stranger's server who is looking."""
    words = " ".join(tag.get("alt").split())
    return f'<span class="image">[{escape(words)}]</span>' if words else ""
