"""Tells which elements of a page its author marked as the main part, as articles, and as the site's: its landmarks.

Roles and elements are evidence (W3C HTML-AAM); names of classes are not. What the page itself shows of its menus and
of its machinery stands in edges.py and controls.py.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator

from crawler.markup.tree import Document, Tag

_ROLE_OF_TAG = {
    "nav": "navigation",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary",
    "main": "main",
    "article": "article",
    "section": "region",
    "search": "search",
    "dialog": "dialog",
    "blockquote": "blockquote",
}
_MENU_ROLES = frozenset(("navigation", "search", "menu", "menubar", "toolbar"))
_LINKS = frozenset(("a", "button"))
_SITE_ROLES = frozenset(("banner", "contentinfo", "complementary"))
_OWN_ROLES = frozenset(("main", "article", "region", "blockquote"))
_ROLE_ATTRIBUTES = frozenset(("role", "aria-label", "itemtype"))
# Not seen as text: what is no text, and the form machinery that convert.py leaves out.
_UNSEEN = frozenset(("head", "script", "style", "select", "textarea", "datalist"))
# A footer or an aside of the page's own that is links by this share is the site's: .25 to .6 chose the same on wcxb.
_LINKED_SHARE = 0.4


class Page(Document):
    """A parsed page with the roles in it, and with how many characters a reader could see in each element."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        self.roles: dict[int, str] = {}
        for tag in self.tags:
            is_marked = tag.name in _ROLE_OF_TAG or not _ROLE_ATTRIBUTES.isdisjoint(tag.attributes)
            if is_marked and (role := _role(tag)):
                self.roles[tag.position] = role
        self._emptied: set[int] = set()
        self._weighed: tuple[list[int], list[int]] | None = None
        self._weighed = self._characters, self._linked = self.weigh()

    def empty(self, tags: Iterable[Tag]) -> None:
        """Leave out what is in the elements, and forget the roles in them."""
        emptied = list(outermost(tags))
        for tag in emptied:
            tag.contents.clear()
            self._emptied.add(tag.position)
            for position in range(tag.position, tag.last + 1):
                self.roles.pop(position, None)
        if emptied:
            self._weighed = None
            self._weighed = self._characters, self._linked = self.weigh()

    def weigh(self, left_out: Iterable[Tag] = ()) -> tuple[list[int], list[int]]:
        """Return by position how many characters a reader could see in each element, and how many of them in links.

        Blanks around each text do not count.
        """
        left_out = list(left_out)
        if not left_out and self._weighed:
            return self._weighed
        characters, linked = [0] * len(self.tags), [0] * len(self.tags)
        for tag in self._seen(left_out):
            for node in tag.contents:
                if isinstance(node, str):
                    characters[tag.position] += len(node.strip())
        for tag in reversed(self.tags):
            if tag.name in _LINKS:
                linked[tag.position] = characters[tag.position]
            if tag.parent is not None:
                characters[tag.parent.position] += characters[tag.position]
                linked[tag.parent.position] += linked[tag.position]
        return characters, linked

    def role(self, tag: Tag) -> str:
        """Return the element's role: the one its author wrote, else the one its name implies."""
        return self.roles.get(tag.position, "")

    def count_characters(self, roots: Iterable[Tag], left_out: Iterable[Tag] = ()) -> int:
        """Return how many characters a reader could see in the elements, but for those left out."""
        roots = list(outermost(roots))
        inside = outermost(within(roots, left_out))
        return sum(self._characters[tag.position] for tag in roots) - sum(
            self._characters[tag.position] for tag in inside
        )

    def texts(self, left_out: Iterable[Tag] = ()) -> Iterator[str]:
        """Return the texts that a reader could see on the page, but for those in the elements left out."""
        return (node for tag in self._seen(left_out) for node in tag.contents if isinstance(node, str))

    def _seen(self, left_out: Iterable[Tag]) -> Iterator[Tag]:
        """Yield the elements whose own texts a reader could see, but for those left out and what is in them."""
        unseen = self._emptied.union(tag.position for tag in left_out)
        unseen_until = -1
        for tag in self.tags:
            if tag.position > unseen_until:
                if tag.name in _UNSEEN or tag.position in unseen:
                    unseen_until = tag.last
                else:
                    yield tag

    def mains(self) -> list[Tag]:
        """Return the outermost main parts."""
        return list(outermost(self.with_role("main")))

    def with_role(self, *roles: str) -> Iterator[Tag]:
        """Yield the elements that have one of the roles, in document order."""
        return (self.tags[position] for position, role in self.roles.items() if role in roles)

    def survey(self, mains: list[Tag]) -> tuple[list[Tag], list[Tag]]:
        """Return the outermost articles and the outermost landmarks, in document order.

        What holds a `<main>` is no landmark, whatever it is called: someone forgot to close it.
        """
        articles, landmarks = [], []
        places = [tag.position for tag in mains]
        around: Counter[str] = Counter()
        opened: list[tuple[int, str]] = []
        landmark_until = -1
        for tag in map(self.tags.__getitem__, self.roles):
            if tag.position <= landmark_until:
                continue
            while opened and opened[-1][0] < tag.position:
                around[opened.pop()[1]] -= 1
            role = self.role(tag)
            if self._is_landmark(tag, role, around) and not holds_any(tag, places):
                landmarks.append(tag)
                landmark_until = tag.last
                continue
            if role == "article" and not around["article"]:
                articles.append(tag)
            if role in _OWN_ROLES:
                opened.append((tag.last, role))
                around[role] += 1
        return articles, landmarks

    def _is_landmark(self, tag: Tag, role: str, around: Counter[str]) -> bool:
        if role in _MENU_ROLES or _is_closed_dialog(tag, role):
            return True
        if role not in _SITE_ROLES or around["blockquote"]:
            return False
        # By HTML's definition the header or footer of a section is the section's, not the site's.
        is_sections = around["article"] or (around["region"] and role != "complementary")
        is_sites = not is_sections and not around["main"]
        return is_sites or (role != "banner" and self._is_mostly_links(tag))

    def _is_mostly_links(self, tag: Tag) -> bool:
        return self._linked[tag.position] >= _LINKED_SHARE * self._characters[tag.position]


def outermost(tags: Iterable[Tag]) -> Iterator[Tag]:
    """Yield those of the elements that lie in no other of them, in document order."""
    until = -1
    for tag in sorted(tags, key=lambda tag: tag.position):
        if tag.position > until:
            until = tag.last
            yield tag


def within(roots: Iterable[Tag], tags: Iterable[Tag]) -> Iterator[Tag]:
    """Yield those of the elements that are among the roots or lie in one, in document order."""
    until = -1
    waiting = sorted(roots, key=lambda tag: -tag.position)
    for tag in sorted(tags, key=lambda tag: tag.position):
        while waiting and waiting[-1].position <= tag.position:
            until = max(until, waiting.pop().last)
        if tag.position <= until:
            yield tag


def holds_any(tag: Tag, places: list[int]) -> bool:
    """Return whether one of the positions, which are in order, lies in the element."""
    first = bisect_left(places, tag.position)
    return first < len(places) and places[first] <= tag.last


def _role(tag: Tag) -> str:
    if _is_breadcrumb(tag):
        return "navigation"
    written = tag.get("role").lower().split()
    return written[0] if written else _ROLE_OF_TAG.get(tag.name, "")


def _is_breadcrumb(tag: Tag) -> bool:
    is_labelled = "breadcrumb" in tag.get("aria-label").lower()
    return is_labelled or tag.get("itemtype").endswith("schema.org/BreadcrumbList")


def _is_closed_dialog(tag: Tag, role: str) -> bool:
    """Return whether the element is a dialog that opens over the page, as its markup tells."""
    if tag.name == "dialog":
        return "open" not in tag.attributes
    is_closed = "hidden" in tag.attributes or tag.get("aria-hidden") == "true" or tag.get("aria-modal") == "true"
    is_undrawn = "display:none" in tag.get("style").replace(" ", "").lower()
    return role in ("dialog", "alertdialog") and (is_closed or is_undrawn)
