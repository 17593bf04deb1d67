"""What the inline elements of HTML mean: emphasis, links, code, images, buttons, formulas and small signs.

Each function begins an element and returns what ends it, or None where it has read the element's content itself.
"""

from collections.abc import Callable, Iterator
from functools import partial
from unicodedata import category

from crawler.markup.blocks import SPACE, Mark, Run
from crawler.markup.page_head import absolute_url
from crawler.markup.reader import Closer, Reader, has_heading

_MARKS = {
    "b": "strong",
    "strong": "strong",
    "em": "emphasis",
    "i": "emphasis",
    "del": "strike",
    "s": "strike",
    "strike": "strike",
}
_NO_ADDRESS = ("javascript:", "data:", "vbscript:", "file:", "blob:", "about:")


def open_mark(reader: Reader, tag) -> Closer:
    """Begin emphasis; within code there is none."""
    if reader.inside["code"]:
        return _nothing
    return reader.marked(Mark(_MARKS[tag.name]))


def open_code(reader: Reader, tag) -> Closer:
    """Begin code within a line."""
    return reader.counted("code", _nothing)


def open_link(reader: Reader, tag) -> Closer:
    """Begin a link. The sign with which a heading links to itself ("#", "¶") stays, as bare text."""
    written = tag.get("href").strip()
    address = _address(reader, written)
    if written.startswith("#") and not any(map(str.isalnum, tag.text())):
        return open_spaced(reader, tag)
    if not address or reader.inside["link"]:
        return _nothing
    # Neighbouring links are boxes of their own on most pages: their words must not run together.
    if reader.runs and any(mark.kind == "link" for mark in reader.runs[-1].marks):
        reader.add_run(SPACE)
    title = tag.get("title")
    says_more = bool(title) and title != " ".join(tag.text().split())
    link = reader.link(address, title if says_more else "", has_heading(tag))
    return reader.counted("link", reader.marked(link))


def open_quotation(reader: Reader, tag) -> Closer:
    """Begin a quotation within a line: browsers draw the marks."""
    reader.add_text('"')
    return partial(reader.add_text, '"')


def open_superscript(reader: Reader, tag) -> Closer:
    """Begin raised text; raised digits after a word get a sign of it, as 10<sup>6</sup> is not 106."""
    before = reader.runs[-1].text[-1:] if reader.runs else ""
    if before.isalnum() and next((text for text in tag.texts() if text.strip()), "").strip()[:1].isdigit():
        reader.add_text("^")
    return _nothing


def open_pronunciation(reader: Reader, tag) -> Closer:
    """Begin the small text over a ruby's characters, in brackets where the author gave none."""
    before = "".join(run.text for run in reader.runs[-2:]).rstrip()[-1:]
    if before and category(before) == "Ps":
        return _nothing
    reader.add_text("(")
    return partial(reader.add_text, ")")


def open_spaced(reader: Reader, tag) -> Closer:
    """Begin a text that is drawn apart from its neighbours: a label, a film, a text in a drawing."""
    reader.add_run(SPACE)
    return partial(reader.add_run, SPACE)


def open_button(reader: Reader, tag) -> Closer | None:
    """Begin a button, which is text (an accordion's question, a tab), unless it is a form's own."""
    is_title = any(reader.inside[name] for name in ("heading", "dt", "tablist"))
    unfolds = "aria-expanded" in tag.attributes or "aria-controls" in tag.attributes
    if not is_title and not unfolds and (reader.inside["form"] or "form" in tag.attributes):
        return read_control(reader, tag)
    return open_spaced(reader, tag)


def read_control(reader: Reader, tag) -> None:
    """Leave out a form's control; what stands on its two sides does not run together."""
    reader.add_run(SPACE)


def read_input(reader: Reader, tag) -> None:
    """Leave out a form's field; a box to tick at the start of a list's entry is a task, done or not (GFM 5.3)."""
    is_first = reader.frame.kind == "item" and not reader.frame.blocks and not reader.runs
    if is_first and not reader.inside["form"] and tag.get("type").lower() == "checkbox":
        reader.add_text("[x] " if "checked" in tag.attributes else "[ ] ")
    else:
        reader.add_run(SPACE)


def read_break(reader: Reader, tag) -> None:
    """Break the line."""
    reader.add_run(Run("\n", reader.marks, "break"))


def read_image(reader: Reader, tag) -> None:
    """Add an image, but for a dot that only counts visits."""
    if {tag.get("width"), tag.get("height")} & {"0", "1"}:
        return
    addresses = (_address(reader, source) for source in _image_sources(tag))
    address = next(filter(None, addresses), "")
    reader.add_run(Run(tag.get("alt"), reader.marks, "image", address, tag.get("title")))


def _image_sources(tag) -> Iterator[str]:
    """Yield where an image may lie: where a script looks that puts it in place of a blank one, or one of its sizes."""
    for name in ("data-src", "data-lazy-src", "data-original", "src"):
        yield tag.get(name).strip()
    for name in ("srcset", "data-srcset"):
        yield from tag.get(name).strip(" ,").split()[:1]


def open_media(reader: Reader, tag) -> Closer:
    """Begin a film or a sound: its name, or what stands in for it, linked to its address."""
    sources = (child.get("src") for child in (tag, *tag.children) if child is tag or child.name == "source")
    address = _address(reader, next(filter(None, sources), ""))
    unspace = open_spaced(reader, tag)
    unmark = reader.marked(reader.link(address, "", has_heading=False)) if address else _nothing
    reader.add_text(_name(tag))

    def close() -> None:
        unmark()
        unspace()

    return close


def read_embedded_page(reader: Reader, tag) -> None:
    """Add a link to a page shown within this one, if the author named it."""
    address, name = _address(reader, tag.get("src")), _name(tag)
    if address and name:
        link = reader.link(address, "", has_heading=False)
        for run in (SPACE, Run(name, (*reader.marks, link)), SPACE):
            reader.add_run(run)


def open_formula(reader: Reader, tag) -> Closer | None:
    """Read a formula as its author typed it in TeX, where the page tells; else its signs, apart from each other."""
    tex = tag.find("annotation")
    is_written = tex is not None and "tex" in tex.get("encoding").lower()
    written = tex.text() if is_written else tag.get("alttext")
    reader.add_text(written or " ".join(" ".join(tag.texts()).split()))
    return None


def read_script(reader: Reader, tag) -> None:
    """Leave out a script, unless it holds a formula to be drawn (MathJax)."""
    if tag.get("type").startswith("math/"):
        reader.add_text(tag.text())


def leave_out(reader: Reader, tag) -> None:
    """Leave out what is no text of the page."""


def _nothing() -> None:
    pass


def _address(reader: Reader, written: str) -> str:
    """Return the absolute address, or "" for what leads nowhere (a script, a bare "#")."""
    if not written or written == "#" or written.lower().startswith(_NO_ADDRESS):
        return ""
    return absolute_url(reader.base_url, written)


def _name(tag) -> str:
    return " ".join((tag.get("title") or tag.get("aria-label")).split())


PHRASES: dict[str, Callable[[Reader, object], Closer | None]] = {
    **dict.fromkeys(_MARKS, open_mark),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), open_code),
    **dict.fromkeys(("label", "title", "desc", "text"), open_spaced),
    **dict.fromkeys(("select", "textarea", "datalist"), read_control),
    **dict.fromkeys(("video", "audio"), open_media),
    **dict.fromkeys(("head", "style", "noframes", "option", "optgroup"), leave_out),
    "a": open_link,
    "q": open_quotation,
    "sup": open_superscript,
    "rt": open_pronunciation,
    "button": open_button,
    "input": read_input,
    "br": read_break,
    "img": read_image,
    "iframe": read_embedded_page,
    "math": open_formula,
    "script": read_script,
}
