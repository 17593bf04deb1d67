"""Finds a page's own content by its author's markup: main, else articles, else body; and its title and links.

Nothing is guessed from class names. Only what the author marked as navigation (anywhere), or as banner, footer or aside
of the site, stands apart as landmarks. Turning the selection into Markdown is left to convert.py.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from crawler.markup.controls import find_controls
from crawler.markup.edges import find_link_lists, gather_around
from crawler.markup.landmarks import Page, within
from crawler.markup.page_head import (
    find_links,
    read_base_url,
    read_canonical,
    read_language,
    read_robots_words,
    read_title,
)
from crawler.markup.tree import Tag

# A selection is nearly empty if it holds less than this share of the page's own text, and fewer characters than this.
# Chosen on the wcxb pages (tests/benchmarks/bench_extraction.py): teasers and app shells lie below, short pages above.
_NEARLY_EMPTY = {"main": (0.1, 600), "article": (0.2, 5000), "nav": (0.1, 40), "body": (0.02, 40)}
_NEXT_TO_NOTHING_CHARACTERS = 40
# What is less than this of a selection is not its text: then the controls and lists of links are.
_LEAST_LEFT_SHARE = 0.1

# What stands on a page until a script brings its text.
_WAITING = re.compile(
    r"\b(loading|please wait|just a moment|one moment|wird geladen|lädt|bitte warten|chargement( en cours)?"
    r"|veuillez patienter|cargando|espere|caricamento|attendere|carregando|aguarde)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]")

# A page that asks for a password and says no more than this of its own is a login wall: a title, "Please log in".
_WALL_CHARACTERS = 60
# A form that holds more than this is no login form but wraps the page, as in ASP.NET.
_LOGIN_FORM_CHARACTERS = 300
_MOST_FIELDS = 10


@dataclass(frozen=True)
class Content:
    """What a page says itself (`roots`), what belongs to its site (`landmarks`), and where it leads.

    Each text that a reader sees is in one or the other; of a root, what lies in an element of `landmarks` is not its.
    `links` and `canonical` are absolute http(s) addresses without fragments. `base_url` is what the page's relative
    addresses resolve against. `selected_by` is "main", "article", "nav" (where such a part holds hardly more than
    navigation) or "body", after any widening. `is_login_wall` says that it shows hardly more than a field for a
    password; `needs_scripts`, that it has next to no text of its own and scripts would bring more; `is_shell`, that it
    has none at all then.
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
    is_shell: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Selection:
    """One way to choose: the chosen elements, the landmarks it sets apart, and the characters it holds."""

    selected_by: str
    roots: tuple[Tag, ...]
    landmarks: tuple[Tag, ...]
    characters: int


def select_content(html: str, url: str) -> Content:
    """Return the page's own content, widened with a warning where the author's markup holds next to nothing."""
    page = Page(html)
    _empty_idle_fallbacks(page)
    mains = page.mains()
    articles, landmarks = page.survey(mains)
    selection, warning = _select(page, mains, articles, landmarks)
    moved = _moved(page, selection)
    needs_scripts = _needs_scripts(page, landmarks)
    base_url = read_base_url(page, url)
    robots = read_robots_words(page)
    return Content(
        title=read_title(page, url),
        language=read_language(page),
        url=url,
        base_url=base_url,
        roots=selection.roots,
        landmarks=tuple(gather_around(page, selection.roots, moved)),
        links=find_links(page, base_url),
        canonical=read_canonical(page, base_url),
        is_noindex=not robots.isdisjoint({"noindex", "none"}),
        is_nofollow=not robots.isdisjoint({"nofollow", "none"}),
        selected_by=selection.selected_by,
        is_login_wall=_is_login_wall(page, selection.roots, landmarks),
        needs_scripts=needs_scripts,
        is_shell=needs_scripts and not _has_own_words(page, landmarks),
        warnings=(warning,) if warning else (),
    )


def _empty_idle_fallbacks(page: Page) -> None:
    """Empty what a browser with scripts does not show: templates, and noscript unless it is all the page has."""
    page.empty(tag for tag in page.by_name["template"] if "shadowrootmode" not in tag.attributes)
    if fallbacks := page.by_name["noscript"]:
        fallback_characters = page.count_characters(fallbacks)
        other_characters = page.count_characters([page.root], fallbacks)
        if other_characters >= max(_NEXT_TO_NOTHING_CHARACTERS, 0.2 * fallback_characters):
            page.empty(fallbacks)


def _select(page: Page, mains: list[Tag], articles: list[Tag], landmarks: list[Tag]) -> tuple[_Selection, str]:
    """Return the narrowest selection that the markup offers and that is not nearly empty, and why it was widened."""
    body = _measure(page, "body", [page.root], landmarks)
    marked = body
    marked_by = "main" if mains else "article" if articles else "body"
    if marked_by != "body":
        marked = _measure(page, marked_by, mains or articles, landmarks)
        index = _with_own_navigation(page, marked)
        marked = index if _is_nearly_empty(marked, index.characters, "nav") else marked
    chosen = body if _is_nearly_empty(marked, body.characters, marked_by) else marked
    if chosen.characters < _NEXT_TO_NOTHING_CHARACTERS:
        whole = _measure(page, "body", [page.root], [])
        is_shell = _is_mostly_links(page, whole.characters)
        chosen = whole if _is_nearly_empty(chosen, whole.characters, "body") and not is_shell else chosen
    if chosen.characters <= marked.characters:
        return marked, ""
    warning = (
        f"low coverage: the {marked_by} holds {marked.characters} of {chosen.characters} visible "
        "characters, so more of the page was taken"
    )
    return chosen, warning


def _measure(page: Page, selected_by: str, roots: Iterable[Tag], landmarks: Iterable[Tag]) -> _Selection:
    roots, landmarks = tuple(roots), tuple(landmarks)
    return _Selection(selected_by, roots, landmarks, page.count_characters(roots, landmarks))


def _with_own_navigation(page: Page, selection: _Selection) -> _Selection:
    """Return the selection with the navigation inside it: on a site map or an index that is the content."""
    inside = {tag.position for tag in within(selection.roots, selection.landmarks)}
    outside = [tag for tag in selection.landmarks if tag.position not in inside]
    return _measure(page, "nav", selection.roots, outside)


def _is_nearly_empty(selection: _Selection, page_characters: int, selected_by: str) -> bool:
    share, few_characters = _NEARLY_EMPTY[selected_by]
    return selection.characters < min(share * page_characters, few_characters)


def _is_mostly_links(page: Page, characters: int) -> bool:
    """Return whether the page is hardly more than its menus: an empty app shell, whose text a script would bring."""
    return page.count_characters([*page.by_name["a"], *page.by_name["button"]]) > characters / 2


def _needs_scripts(page: Page, landmarks: Iterable[Tag]) -> bool:
    """Return whether the page has scripts and next to no text of its own but what it says to those without them."""
    if not page.by_name["script"] or page.by_name["frameset"]:
        return False
    own_characters = page.count_characters([page.root], [*landmarks, *page.by_name["noscript"]])
    return own_characters < _NEXT_TO_NOTHING_CHARACTERS


def _has_own_words(page: Page, landmarks: Iterable[Tag]) -> bool:
    """Return whether the page itself says something, and not only that it is on its way."""
    own = " ".join(page.texts([*landmarks, *page.by_name["noscript"]]))
    return bool(_WORD.search(_WAITING.sub("", own)))


def _moved(page: Page, selection: _Selection) -> list[Tag]:
    """Return what is the site's of the page: landmarks, and controls and lists of links unless they are all it has."""
    roots, landmarks = list(selection.roots), list(selection.landmarks)
    apart = [*landmarks, *find_controls(page)]
    apart += find_link_lists(page, roots, selection.selected_by != "body", apart)
    least_characters = max(_NEXT_TO_NOTHING_CHARACTERS, _LEAST_LEFT_SHARE * selection.characters)
    return apart if page.count_characters(roots, apart) >= least_characters else landmarks


def _is_login_wall(page: Page, roots: Iterable[Tag], landmarks: Iterable[Tag]) -> bool:
    """Return whether the roots ask for a password and say next to nothing beside the form, headline and links."""
    fields = [tag for tag in page.by_name["input"] if tag.get("type").strip().lower() == "password"]
    moved = {tag.position for tag in within(landmarks, fields)}
    shown = (tag for tag in within(roots, fields) if tag.position not in moved)
    forms = []
    for field in filter(_is_shown, islice(shown, _MOST_FIELDS)):
        form = next((tag for tag in field.parents if tag.name == "form"), None)
        is_wrapper = form is None or page.count_characters([form], landmarks) > _LOGIN_FORM_CHARACTERS
        forms.append(field if is_wrapper else form)
    aside = [*forms, *landmarks, *page.by_name["h1"], *page.by_name["a"], *page.by_name["button"]]
    return bool(forms) and page.count_characters(roots, aside) < _WALL_CHARACTERS


def _is_shown(field: Tag) -> bool:
    """Return whether the markup lets a visitor see the field: a dialog that a button opens is closed at first."""
    return not any(
        "hidden" in tag.attributes
        or tag.name == "template"
        or (tag.name == "dialog" and "open" not in tag.attributes)
        or tag.get("aria-hidden").lower() == "true"
        or re.search(r"(display\s*:\s*none|visibility\s*:\s*hidden)", tag.get("style"), re.IGNORECASE)
        for tag in (field, *field.parents)
    )
