"""Tells which elements of a page its author marked as the main part, as articles, and as the site's: its landmarks.

Roles and elements are evidence (W3C HTML-AAM), and so is what the page itself shows; names of classes are not.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from crawler.tree import Document, Tag

_ROLE_OF_TAG = {
    "nav": "navigation",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary",
    "main": "main",
    "article": "article",
    "section": "region",
}
_SITE_ROLES = frozenset(("banner", "contentinfo", "complementary"))
_OWN_ROLES = frozenset(("main", "article", "region"))
# Not seen as text: what is no text, and the form machinery that convert.py leaves out.
_UNSEEN = frozenset(("head", "script", "style", "select", "textarea", "datalist"))


class Page(Document):
    """A parsed page with the roles in it, and with how many characters a reader could see in each element."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        self.roles: dict[int, str] = {}
        for tag in self.tags:
            if (tag.attributes or tag.name in _ROLE_OF_TAG) and (role := _role(tag)):
                self.roles[tag.position] = role
        self._emptied: set[int] = set()
        self._weigh()

    def empty(self, tags: Iterable[Tag]) -> None:
        """Leave out what is in the elements, and forget the roles in them."""
        for tag in list(outermost(tags)):
            tag.contents.clear()
            self._emptied.add(tag.position)
            for position in range(tag.position, tag.last + 1):
                self.roles.pop(position, None)
        self._weigh()

    def _weigh(self) -> None:
        """Count the characters of the page's texts, blanks around each aside."""
        self._characters = [0] * len(self.tags)
        unseen_until = -1
        for tag in self.tags:
            if tag.position > unseen_until:
                if tag.name in _UNSEEN or tag.position in self._emptied:
                    unseen_until = tag.last
                else:
                    texts = (node for node in tag.contents if isinstance(node, str))
                    self._characters[tag.position] = sum(len(text.strip()) for text in texts)
        for tag in reversed(self.tags):
            if tag.parent is not None:
                self._characters[tag.parent.position] += self._characters[tag.position]

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

    def mains(self) -> list[Tag]:
        """Return the outermost main parts."""
        return list(outermost(tag for tag in self._with_roles() if self.role(tag) == "main"))

    def survey(self, mains: list[Tag]) -> tuple[list[Tag], list[Tag]]:
        """Return the outermost articles and the outermost landmarks, in document order.

        What holds a `<main>` is no landmark, whatever it is called: someone forgot to close it.
        """
        articles, landmarks = [], []
        around: Counter[str] = Counter()
        opened: list[tuple[int, str]] = []
        landmark_until = -1
        for tag in self._with_roles():
            if tag.position <= landmark_until:
                continue
            while opened and opened[-1][0] < tag.position:
                around[opened.pop()[1]] -= 1
            role = self.role(tag)
            if _is_landmark(role, around) and not any(within([tag], mains)):
                landmarks.append(tag)
                landmark_until = tag.last
                continue
            if role == "article" and not around["article"]:
                articles.append(tag)
            if role in _OWN_ROLES:
                opened.append((tag.last, role))
                around[role] += 1
        return articles, landmarks

    def _with_roles(self) -> Iterator[Tag]:
        return (self.tags[position] for position in self.roles)


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


def _role(tag: Tag) -> str:
    if _is_breadcrumb(tag):
        return "navigation"
    written = tag.get("role").lower().split()
    return written[0] if written else _ROLE_OF_TAG.get(tag.name, "")


def _is_breadcrumb(tag: Tag) -> bool:
    is_labelled = "breadcrumb" in tag.get("aria-label").lower()
    return is_labelled or tag.get("itemtype").endswith("schema.org/BreadcrumbList")


def _is_landmark(role: str, around: Counter[str]) -> bool:
    if role == "navigation":
        return True
    if role not in _SITE_ROLES or around["main"] or around["article"]:
        return False
    # By HTML's definition the header or footer of a section is the section's, not the site's.
    return role == "complementary" or not around["region"]
