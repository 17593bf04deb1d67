"""What a page says about itself: its title, language, base and canonical address, its links, its rules for robots."""

import re
from functools import lru_cache
from itertools import chain, islice
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from crawler.markup.tree import Document

_LINE_BREAKS = str.maketrans("", "", "\t\r\n")
_MOST_TITLES = 100  # of drawings, before the page's own


def read_title(document: Document, url: str) -> str:
    """Return the page's name: its title, else what it calls itself when shared, else its first heading or path."""
    titles = islice(document.by_name["title"], _MOST_TITLES)
    titles = (tag for tag in titles if all(parent.name != "svg" for parent in tag.parents))
    shared = (tag for tag in document.by_name["meta"] if tag.get("property") == "og:title")
    candidates = chain(
        (tag.text() for tag in titles),
        (tag.get("content") for tag in shared),
        (tag.text(" ") for tag in document.by_name["h1"]),
        (unquote(urlsplit(url).path), url),
    )
    return next((" ".join(text.split()) for text in candidates if text.strip(" \t\r\n\f/")), "")


def read_language(document: Document) -> str:
    """Return the language that the page says it is in, or ""."""
    written = (tag.get(name) for tag in document.by_name["html"] for name in ("lang", "xml:lang"))
    return next(filter(None, map(str.strip, written)), "")


def read_robots_words(document: Document) -> set[str]:
    """Return what the page asks of robots, such as "noindex"."""
    rules = [tag for tag in document.by_name["meta"] if tag.get("name").strip().lower() == "robots"]
    return {word for tag in rules for word in re.split(r"[\s,]+", tag.get("content").lower())}


def read_base_url(document: Document, url: str) -> str:
    """Return the address that the page's relative addresses resolve against."""
    written = (tag.get("href") for tag in document.by_name["base"])
    return next((absolute_url(url, address) for address in written if address), "") or url


def read_canonical(document: Document, base_url: str) -> str | None:
    """Return the address that the page calls its own, absolute."""
    links = (tag for tag in document.by_name["link"] if "canonical" in tag.get("rel").lower().split())
    return next((_page_address(base_url, tag.get("href")) for tag in links if tag.get("href")), None)


def find_links(document: Document, base_url: str) -> tuple[str, ...]:
    """Return the address of each page that this one leads to, as its author would have a robot follow it."""
    written = {}
    for name, attribute in (("a", "href"), ("area", "href"), ("link", "href"), ("frame", "src"), ("iframe", "src")):
        for tag in document.by_name[name]:
            relations = tag.get("rel").lower().split()
            is_page = name != "link" or "next" in relations or "prev" in relations
            if is_page and "nofollow" not in relations:
                written[tag.get(attribute)] = True
    addresses = (_page_address(base_url, address) for address in written if address)
    return tuple(dict.fromkeys(filter(None, addresses)))


@lru_cache(maxsize=1024)  # a link is resolved as one of the page's links, and where it stands in its text
def absolute_url(base_url: str, address: str) -> str:
    """Return the address resolved against the base, or "" where it is malformed."""
    try:
        return urljoin(base_url, address.strip().translate(_LINE_BREAKS))
    except ValueError:
        return ""


def _page_address(base_url: str, written: str) -> str | None:
    """Return the absolute address without its fragment, or None if it does not lead to a web page."""
    address = absolute_url(base_url, written)
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return urldefrag(address).url if is_web else None
