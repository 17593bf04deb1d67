"""Finds a page's own content by its author's markup: main, else articles, else body; and its title and links.

Nothing is guessed from class names. Only what the author marked as navigation (anywhere), or as banner, footer or aside
of the site, stands apart as landmarks. Turning the selection into Markdown is left to convert.py.
"""

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from bs4 import BeautifulSoup, NavigableString, Tag, UnusualUsageWarning
from bs4.element import PreformattedString

# XHTML, and pages of a single word, are read as browsers read them.
warnings.filterwarnings("ignore", category=UnusualUsageWarning)

_UNSEEN = frozenset({"head", "script", "style", "select", "textarea", "datalist"})
_ROLE_OF_TAG = {
    "nav": "navigation",
    "header": "banner",
    "footer": "contentinfo",
    "aside": "complementary",
    "main": "main",
    "article": "article",
    "section": "region",
}
_SITE_ROLES = frozenset({"banner", "contentinfo", "complementary"})

# A selection is nearly empty if it holds less than this share of the page's own text, and fewer characters than this.
# Chosen on the wcxb pages (tests/benchmarks/bench_extraction.py): teasers and app shells lie below, short pages above.
_NEARLY_EMPTY = {"main": (0.1, 600), "article": (0.2, 5000), "navigation": (0.1, 40), "body": (0.02, 40)}
_NEXT_TO_NOTHING_CHARACTERS = 40
# More than what a page says to browsers without scripts is no empty shell.
_SHELL_CHARACTERS = 2000

# A page that asks for a password and says no more than this of its own is a login wall: a title, "Please log in".
_WALL_CHARACTERS = 60
# A form that holds more than this is no login form but wraps the page, as in ASP.NET.
_LOGIN_FORM_CHARACTERS = 300


@dataclass(frozen=True)
class Content:
    """What a page says itself (`roots`), what belongs to its site (`landmarks`), and where it leads.

    `links` and `canonical` are absolute http(s) addresses without fragments. `base_url` is what the page's relative
    addresses resolve against. `selected_by` is "main", "article" or "body", after any widening. `is_login_wall` says
    that it shows hardly more than a field for a password; `needs_scripts`, that it is an empty shell whose text scripts
    would bring.
    """

    title: str
    language: str
    url: str
    base_url: str
    roots: tuple[Tag, ...]
    landmarks: tuple[Tag, ...]
    links: tuple[str, ...]
    canonical: str | None
    is_noindex: bool
    is_nofollow: bool
    selected_by: str
    is_login_wall: bool
    needs_scripts: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Selection:
    """One way to choose: the chosen elements, the landmarks it sets apart, and the characters it holds."""

    selected_by: str
    roots: tuple[Tag, ...]
    landmarks: tuple[Tag, ...]
    characters: int


class _Page:
    """A parsed page and, found in one walk, its elements by name, the roles in it and its breadcrumbs."""

    def __init__(self, html: str) -> None:
        # The parser would turn NUL into U+FFFD, which then stands in the middle of words.
        self.soup = BeautifulSoup(html.replace("\0", ""), "lxml", multi_valued_attributes=None)
        self.by_name: dict[str, list[Tag]] = defaultdict(list)
        self.role_by_id: dict[int, str] = {}
        self.breadcrumb_ids: set[int] = set()
        for tag in self.soup.descendants:
            if isinstance(tag, Tag):
                self.by_name[tag.name].append(tag)
                if role := _role(tag):
                    self.role_by_id[id(tag)] = role
                if _is_breadcrumb(tag):
                    self.breadcrumb_ids.add(id(tag))

    def role(self, tag: Tag) -> str:
        return self.role_by_id.get(id(tag), "")

    def mains(self) -> list[Tag]:
        return list(_outermost([self.soup], lambda tag: self.role(tag) == "main"))


def select_content(html: str, url: str) -> Content:
    """Return the page's own content, widened with a warning where the author's markup holds next to nothing."""
    page = _Page(html)
    _empty_idle_fallbacks(page)
    selection, warning = _select(page)
    base_url = _base_url(page, url)
    robots = _robots_words(page)
    return Content(
        title=_title(page, url),
        language=_language(page),
        url=url,
        base_url=base_url,
        roots=selection.roots,
        landmarks=selection.landmarks,
        links=_links(page, base_url),
        canonical=_canonical(page, base_url),
        is_noindex=not robots.isdisjoint({"noindex", "none"}),
        is_nofollow=not robots.isdisjoint({"nofollow", "none"}),
        selected_by=selection.selected_by,
        is_login_wall=_is_login_wall(page, selection.roots),
        needs_scripts=_needs_scripts(page, selection),
        warnings=(warning,) if warning else (),
    )


def is_text(node: object) -> bool:
    """Return whether a node of the parsed page is a text that a reader may see, not an element or a comment."""
    return isinstance(node, NavigableString) and not isinstance(node, PreformattedString)


def absolute_url(base_url: str, address: str) -> str:
    """Return the address resolved against the base, or "" where it is malformed."""
    try:
        return urljoin(base_url, re.sub(r"[\t\r\n]", "", address.strip()))
    except ValueError:
        return ""


def _empty_idle_fallbacks(page: _Page) -> None:
    """Empty what a browser with scripts does not show: templates, and noscript unless it is all the page has."""
    for template in page.by_name["template"]:
        if not template.has_attr("shadowrootmode"):
            template.clear()
    fallbacks = page.by_name["noscript"]
    if not fallbacks:
        return
    fallback_characters = _count_characters(_outermost([page.soup], lambda tag: tag.name == "noscript"))
    other_characters = _count_characters([page.soup], fallbacks)
    if other_characters >= max(_NEXT_TO_NOTHING_CHARACTERS, 0.2 * fallback_characters):
        for fallback in fallbacks:
            fallback.clear()


def _select(page: _Page) -> tuple[_Selection, str]:
    """Return the narrowest selection that the markup offers and that is not nearly empty, and why it was widened."""
    mains = page.mains()
    articles, landmarks = _survey(page, mains)
    body = _measure("body", [page.soup], landmarks)
    marked = body
    if mains or articles:
        marked = _measure("main" if mains else "article", mains or articles, landmarks)
        index = _with_own_navigation(marked)
        marked = index if _is_nearly_empty(marked, index.characters, "navigation") else marked
    chosen = body if _is_nearly_empty(marked, body.characters, marked.selected_by) else marked
    if chosen.characters < _NEXT_TO_NOTHING_CHARACTERS:
        whole = _measure("body", [page.soup], [])
        is_shell = _is_mostly_links(page.soup, whole.characters)
        chosen = whole if _is_nearly_empty(chosen, whole.characters, "body") and not is_shell else chosen
    if chosen.characters <= marked.characters:
        return marked, ""
    warning = (
        f"low coverage: the {marked.selected_by} holds {marked.characters} of {chosen.characters} visible "
        "characters, so more of the page was taken"
    )
    return chosen, warning


def _survey(page: _Page, mains: list[Tag]) -> tuple[list[Tag], list[Tag]]:
    """Return the outermost articles and the outermost landmarks, in document order.

    What holds a `<main>` is no landmark, whatever it is called: someone forgot to close it.
    """
    holders_of_main = {id(parent) for tag in mains for parent in tag.parents}
    articles, landmarks = [], []
    waiting: list[tuple[Tag, frozenset[str]]] = [(page.soup, frozenset())]
    while waiting:
        tag, around = waiting.pop()
        role = page.role(tag)
        is_landmark = id(tag) in page.breadcrumb_ids or _is_landmark(role, around)
        if is_landmark and id(tag) not in holders_of_main:
            landmarks.append(tag)
            continue
        if role == "article" and "article" not in around:
            articles.append(tag)
        if role in ("main", "article", "region"):
            around |= {role}
        waiting.extend((child, around) for child in reversed(tag.contents) if isinstance(child, Tag))
    return articles, landmarks


def _is_landmark(role: str, around: frozenset[str]) -> bool:
    if role == "navigation":
        return True
    if role not in _SITE_ROLES or not around.isdisjoint({"main", "article"}):
        return False
    # By HTML's definition the header or footer of a section is the section's, not the site's.
    return role == "complementary" or "region" not in around


def _role(tag: Tag) -> str:
    """Return the element's role: the one its author wrote, else the one its name implies (W3C HTML-AAM)."""
    written = _attribute(tag, "role").lower().split()
    return written[0] if written else _ROLE_OF_TAG.get(tag.name, "")


def _is_breadcrumb(tag: Tag) -> bool:
    is_labelled = "breadcrumb" in _attribute(tag, "aria-label").lower()
    return is_labelled or _attribute(tag, "itemtype").endswith("schema.org/BreadcrumbList")


def _with_own_navigation(selection: _Selection) -> _Selection:
    """Return the selection with the navigation inside it: on a site map or an index that is the content."""
    landmark_ids = {id(tag) for tag in selection.landmarks}
    inside = {id(tag) for tag in _outermost(selection.roots, lambda tag: id(tag) in landmark_ids)}
    outside = [tag for tag in selection.landmarks if id(tag) not in inside]
    return _measure(selection.selected_by, selection.roots, outside)


def _is_nearly_empty(selection: _Selection, page_characters: int, selected_by: str) -> bool:
    share, few_characters = _NEARLY_EMPTY[selected_by]
    return selection.characters < min(share * page_characters, few_characters)


def _is_mostly_links(soup: BeautifulSoup, characters: int) -> bool:
    """Return whether the page is hardly more than its menus: an empty app shell, whose text a script would bring."""
    links = _outermost([soup], lambda tag: tag.name in ("a", "button"))
    return _count_characters(links) > characters / 2


def _needs_scripts(page: _Page, selection: _Selection) -> bool:
    """Return whether the page has scripts and next to no text of its own but what it says to those without them."""
    if not page.by_name["script"] or page.by_name["frameset"]:
        return False
    if selection.characters > _SHELL_CHARACTERS:
        return False
    # Not those of the selection: it is widened by the landmarks where there is hardly any other text.
    landmarks = _survey(page, page.mains())[1]
    own_characters = _count_characters([page.soup], [*landmarks, *page.by_name["noscript"]])
    return own_characters < _NEXT_TO_NOTHING_CHARACTERS


def _is_login_wall(page: _Page, roots: tuple[Tag, ...]) -> bool:
    """Return whether the roots ask for a password and say next to nothing beside the form, headline and links."""
    fields = [tag for tag in page.by_name["input"] if _attribute(tag, "type").strip().lower() == "password"]
    fields = list(filter(_is_shown, fields))
    if not fields:
        return False
    # Not those of the selection: it is widened by the landmarks where there is hardly any other text.
    landmarks = _survey(page, page.mains())[1]
    root_ids, landmark_ids = set(map(id, roots)), set(map(id, landmarks))
    forms = []
    for field in fields:
        around = set(map(id, field.parents))
        if around & root_ids and not around & landmark_ids:
            form = field.find_parent("form")
            is_wrapper = form is None or _count_characters([form], landmarks) > _LOGIN_FORM_CHARACTERS
            forms.append(field if is_wrapper else form)
    aside = [*forms, *landmarks, *page.by_name["h1"], *page.by_name["a"], *page.by_name["button"]]
    return bool(forms) and _count_characters(roots, aside) < _WALL_CHARACTERS


def _is_shown(field: Tag) -> bool:
    """Return whether the markup lets a visitor see the field: a dialog that a button opens is closed at first."""
    return not any(
        tag.has_attr("hidden")
        or tag.name == "template"
        or (tag.name == "dialog" and not tag.has_attr("open"))
        or _attribute(tag, "aria-hidden").lower() == "true"
        or re.search(r"(display\s*:\s*none|visibility\s*:\s*hidden)", _attribute(tag, "style"), re.IGNORECASE)
        for tag in (field, *field.parents)
    )


def _measure(selected_by: str, roots: Iterable[Tag], landmarks: Iterable[Tag]) -> _Selection:
    roots, landmarks = tuple(roots), tuple(landmarks)
    return _Selection(selected_by, roots, landmarks, _count_characters(roots, landmarks))


def _count_characters(roots: Iterable[Tag], left_out: Iterable[Tag] = ()) -> int:
    """Count what a reader could see in the elements, blanks around each text aside."""
    left_out_ids = {id(tag) for tag in left_out}
    count = 0
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if is_text(node):
            count += len(node.strip())
        elif isinstance(node, Tag) and node.name not in _UNSEEN and id(node) not in left_out_ids:
            waiting.extend(node.contents)
    return count


def _outermost(roots: Iterable[Tag], is_wanted: Callable[[Tag], bool]) -> Iterator[Tag]:
    """Yield the wanted elements in or among the roots that lie in no other wanted one, in document order."""
    waiting = list(roots)[::-1]
    while waiting:
        tag = waiting.pop()
        if is_wanted(tag):
            yield tag
        else:
            waiting.extend(child for child in reversed(tag.contents) if isinstance(child, Tag))


def _title(page: _Page, url: str) -> str:
    """Return the page's name: its title, else what it calls itself when shared, else its first heading or path."""
    titles = (tag for tag in page.by_name["title"] if tag.find_parent("svg") is None)
    shared = (tag for tag in page.by_name["meta"] if _attribute(tag, "property") == "og:title")
    candidates = chain(
        (tag.get_text() for tag in titles),
        (_attribute(tag, "content") for tag in shared),
        (tag.get_text(" ") for tag in page.by_name["h1"]),
        (unquote(urlsplit(url).path), url),
    )
    return next((" ".join(text.split()) for text in candidates if text.strip(" \t\r\n\f/")), "")


def _language(page: _Page) -> str:
    written = (_attribute(tag, name) for tag in page.by_name["html"] for name in ("lang", "xml:lang"))
    return next(filter(None, map(str.strip, written)), "")


def _robots_words(page: _Page) -> set[str]:
    rules = [tag for tag in page.by_name["meta"] if _attribute(tag, "name").strip().lower() == "robots"]
    return {word for tag in rules for word in re.split(r"[\s,]+", _attribute(tag, "content").lower())}


def _base_url(page: _Page, url: str) -> str:
    written = (_attribute(tag, "href") for tag in page.by_name["base"])
    return next((absolute_url(url, address) for address in written if address), "") or url


def _canonical(page: _Page, base_url: str) -> str | None:
    links = (tag for tag in page.by_name["link"] if "canonical" in _attribute(tag, "rel").lower().split())
    return next((_page_address(base_url, _attribute(tag, "href")) for tag in links if tag.get("href")), None)


def _links(page: _Page, base_url: str) -> tuple[str, ...]:
    """Return the address of each page that this one leads to, as its author would have a robot follow it."""
    written = {}
    for name, attribute in (("a", "href"), ("area", "href"), ("link", "href"), ("frame", "src"), ("iframe", "src")):
        for tag in page.by_name[name]:
            relations = _attribute(tag, "rel").lower().split()
            is_page = name != "link" or "next" in relations or "prev" in relations
            if is_page and "nofollow" not in relations:
                written[_attribute(tag, attribute)] = True
    addresses = (_page_address(base_url, address) for address in written if address)
    return tuple(dict.fromkeys(filter(None, addresses)))


def _page_address(base_url: str, written: str) -> str | None:
    """Return the absolute address without its fragment, or None if it does not lead to a web page."""
    address = absolute_url(base_url, written)
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return urldefrag(address).url if is_web else None


def _attribute(tag: Tag, name: str) -> str:
    return str(tag.get(name) or "")
