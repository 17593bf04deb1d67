"""Finds what only works the page: buttons, the labels of fields, and links that skip to the text.

A reader of the page's text asks for none of it, yet it is said: it is the site's, like its menus.
"""

from collections.abc import Iterator

from crawler.markup.landmarks import Page, outermost, within
from crawler.markup.tree import HEADINGS, Tag

_LONGEST_CONTROL_CHARACTERS = 60
_MOST_SKIP_LINKS = 5
_TITLES = frozenset((*HEADINGS, "dt", "summary"))
_BLOCKS = frozenset((*HEADINGS, "p", "ul", "ol", "table"))
_FIELDS = ("input", "select", "textarea")


def find_controls(page: Page) -> list[Tag]:
    """Return the controls whose words are no text of the page; a form's own buttons are left out by convert.py."""
    forms = page.by_name["form"]
    of_forms = {tag.position for tag in within(forms, [*page.by_name["button"], *page.by_name["label"]])}
    titles = [tag for name in _TITLES for tag in page.by_name[name]]
    titles += page.with_role("heading", "tablist", "tab")
    buttons = [tag for tag in page.by_name["button"] if tag.position not in of_forms]
    buttons += [tag for tag in page.with_role("button") if tag.name != "button"]
    in_titles = {tag.position for tag in within(titles, buttons)}
    controls = [tag for tag in outermost(buttons) if tag.position not in in_titles and _is_control(page, tag)]
    fields = {tag.get("id"): tag for name in _FIELDS for tag in page.by_name[name] if tag.get("id")}
    controls += [tag for tag in outermost(page.by_name["label"]) if tag.position in of_forms or _is_label(tag, fields)]
    return [*controls, *_skip_links(page)]


def _is_control(page: Page, button: Tag) -> bool:
    """Return whether a button only does something; one that unfolds a text says what the text is about."""
    if "aria-expanded" in button.attributes or "aria-controls" in button.attributes:
        return False
    if page.count_characters([button]) > _LONGEST_CONTROL_CHARACTERS:
        return False
    return not any(isinstance(node, Tag) and node.name in _BLOCKS for node in button.descendants())


def _is_label(label: Tag, fields: dict[str, Tag]) -> bool:
    """Return whether the label names what can be filled in or sent; one of an accordion or a tab sends nothing."""
    inside = (node for node in label.descendants() if isinstance(node, Tag) and node.name in _FIELDS)
    field = fields.get(label.get("for")) or next(inside, None)
    if field is None:
        return False
    is_switch = field.name == "input" and field.get("type").lower() in ("checkbox", "radio")
    return not is_switch or bool(field.get("name") and field.get("value"))


def _skip_links(page: Page) -> list[Tag]:
    """Return the links within the page that stand before all else on it."""
    found: list[Tag] = []
    for link in _links_of_texts(page.root):
        if link is None or len(found) == _MOST_SKIP_LINKS:
            break
        found.append(link)
    return found


def _links_of_texts(root: Tag) -> Iterator[Tag | None]:
    """Yield for each text the link within the page that it stands in, or None."""
    waiting: list[tuple[Tag | str, Tag | None]] = [(root, None)]
    while waiting:
        node, link = waiting.pop()
        if isinstance(node, str):
            if node.strip():
                yield link
        elif node.name not in ("head", "script", "style", "noscript"):
            is_within_page = node.name == "a" and len(node.get("href")) > 1 and node.get("href").startswith("#")
            waiting.extend((child, node if is_within_page else link) for child in reversed(node.contents))
