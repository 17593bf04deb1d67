"""Finds what stands around a page's own text and is hardly more than links: menus without a role, lists of other pages.

The page shows it itself: at each level one part holds most of the text that is not linked, and what stands before or
behind that part leads away. The figures were chosen on one half of the wcxb pages and confirmed on the other.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from crawler.markup.landmarks import Page, holds_any, outermost
from crawler.markup.tree import Tag

_LINKED_SHARE = 0.5  # of a list's characters
_CORE_SHARE = 0.5  # of the unlinked characters, that the part which is followed further in has at least
_FEWEST_LINKS = 2
# The parts of one text, list or table belong together.
_WHOLE = frozenset(("p", "table", "ul", "ol", "dl", "pre", "blockquote"))
# Who is called, written to or handed a file is not sent to another page: that may be what the page is about.
_OWN_ADDRESS = re.compile(
    r"\s*(?:tel|mailto|sms):|.*\.(?:pdf|docx?|xlsx?|pptx?|zip|gz|csv|txt|epub|mp[34]|exe|dmg|apk)(?:$|[?#])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Limits:
    """What a list of links around the text may be at most, and what the text must be at least."""

    takes_before: bool
    most_unlinked_characters: int
    most_share: float
    fewest_core_characters: int


# In what the author marked as the page's own, only what is small and comes behind a text worth the name.
_AROUND_BODY = _Limits(True, 300, 0.3, 0)
_WITHIN_MARKED = _Limits(False, 100, 0.1, 300)


def find_link_lists(page: Page, roots: list[Tag], is_marked: bool, left_out: list[Tag]) -> list[Tag]:
    """Return the lists of links around the text of the roots, which the author marked as the page's own or did not."""
    characters, linked = page.weigh(left_out)
    limits = _WITHIN_MARKED if is_marked else _AROUND_BODY
    return [found for root in roots for found in _around_core(page, root, limits, characters, linked)]


def gather_around(page: Page, roots: Iterable[Tag], moved: Iterable[Tag]) -> Iterator[Tag]:
    """Yield, in order, what is moved to the site, and all else that a reader sees outside of the roots, gathered."""
    moved = list(outermost(moved))
    kept = {root.position: _among(moved, root) for root in roots}
    inside = {tag.position for tags in kept.values() for tag in tags}
    kept |= {tag.position: [tag] for tag in moved if tag.position not in inside}
    places = sorted(kept)
    waiting: list[Tag | list[Tag | str]] = [page.root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            if any(_is_seen(page, node) for node in part):
                yield Tag("div", {}, None, contents=part)
        elif part.position in kept:
            yield from kept[part.position]
        else:
            pieces: list[Tag | list[Tag | str]] = [[]]
            for node in part.contents:
                if isinstance(node, Tag) and holds_any(node, places):
                    pieces += [node, []]
                else:
                    pieces[-1].append(node)
            waiting.extend(reversed(pieces))


def _is_seen(page: Page, node: Tag | str) -> bool:
    return bool(node.strip()) if isinstance(node, str) else page.count_characters([node]) > 0


def _around_core(page: Page, root: Tag, limits: _Limits, characters: list[int], linked: list[int]) -> list[Tag]:
    found: list[Tag] = []
    core = root
    while core.name not in _WHOLE:
        parts = [part for part in core.children if characters[part.position]]
        unlinked = [characters[part.position] - linked[part.position] for part in parts]
        most = max(unlinked, default=0)
        has_loose_text = characters[core.position] > sum(characters[part.position] for part in parts)
        if has_loose_text or not parts or most < _CORE_SHARE * sum(unlinked) or most < limits.fewest_core_characters:
            break
        place = unlinked.index(most)
        aside = [*(parts[:place] if limits.takes_before else ()), *parts[place + 1 :]]
        room = limits.most_share * characters[root.position]
        found += (
            part
            for part in aside
            if characters[part.position] < room
            and linked[part.position] >= _LINKED_SHARE * characters[part.position]
            and characters[part.position] - linked[part.position] <= limits.most_unlinked_characters
            and _leads_away(page, part)
        )
        core = parts[place]
    return found


def _leads_away(page: Page, part: Tag) -> bool:
    links = _inside(page, part, "a")
    if len(links) < _FEWEST_LINKS or _inside(page, part, "h1"):
        return False
    return not any(_OWN_ADDRESS.match(link.get("href")) for link in links)


def _inside(page: Page, part: Tag, name: str) -> list[Tag]:
    return _among(page.by_name[name], part)


def _among(tags: list[Tag], part: Tag) -> list[Tag]:
    """Return those of the elements, which are in document order, that are the part or lie in it."""
    first = bisect_left(tags, part.position, key=lambda tag: tag.position)
    beyond = bisect_left(tags, part.last + 1, key=lambda tag: tag.position)
    return tags[first:beyond]
