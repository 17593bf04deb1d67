"""Writes what a page says so that it reads the same at each of the page's addresses: it may be met under several.

Two pages say the same if title, words and link targets are. Where the page's own address stands in its links, that is
put aside: in anchors, in what a parameter takes along, in links to share it or to come back to it.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import SplitResult, unquote_plus, urlsplit

from crawler.repeated import IMAGE
from crawler.web.page_urls import PAGE_FILE

TARGET = re.compile(r"(?<=\]\()[^()\s]+")
START_FILE = re.compile(r"/(index|default|home)\.\w+$", re.I)
FILE = re.compile(r"\.\w{2,5}$")


def same_text(markdown: str, url: str, canonical: str = "") -> str:
    """Return the page's Markdown without images, in one line, its own addresses in link targets put aside."""
    own = _Own(url, canonical)
    return " ".join(TARGET.sub(lambda match: own.put_aside(match[0]), IMAGE.sub("", markdown)).split())


@dataclass(frozen=True)
class _Own:
    """The addresses of a page: where it was read, and the one that it calls canonical."""

    url: str
    canonical: str

    @cached_property
    def place(self) -> SplitResult:
        return urlsplit(self.url)

    @cached_property
    def host(self) -> str:
        return _bare(self.place.netloc)

    @cached_property
    def path(self) -> str:
        return _path(self.place)

    @cached_property
    def paths(self) -> frozenset[str]:
        canonical = _split(self.canonical)
        is_here = canonical is not None and _bare(canonical.netloc) == self.host
        return frozenset({self.path, _path(canonical)} if self.canonical and is_here else {self.path})

    @cached_property
    def parameters(self) -> frozenset[str]:
        return frozenset(self.place.query.split("&"))

    def put_aside(self, target: str) -> str:
        """Return the link's target as it would stand on the page at any of its addresses."""
        parts = _split(target)
        if parts is None:
            return target
        query = "&".join(part for part in parts.query.split("&") if not self._is_in(part))
        if _bare(parts.netloc) != self.host:
            return parts._replace(query=query).geturl()
        path = _path(parts)
        if path in self.paths and not query:
            return f"#{parts.fragment}"
        # What lies below the page is written from there, but for files: those of two pages are two.
        is_below = self.path and path.startswith(f"{self.path}/") and not _is_file(path)
        shown = f".{path.removeprefix(self.path)}" if is_below else path
        return f"{shown}?{query}#{parts.fragment}"

    def _is_in(self, parameter: str) -> bool:
        """Return whether the parameter is one of the page's own, or names the page."""
        if parameter in self.parameters:
            return True
        value = _split(unquote_plus(parameter.partition("=")[2]))
        if value is None or not (value.netloc or value.path.startswith("/")):
            return False
        return _bare(value.netloc) in ("", self.host) and _path(value) in self.paths


def _split(address: str) -> SplitResult | None:
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _bare(host: str) -> str:
    return host.lower().removeprefix("www.")


def _path(parts: SplitResult) -> str:
    return START_FILE.sub("", parts.path).rstrip("/")


def _is_file(path: str) -> bool:
    last_segment = path.rpartition("/")[2]
    return bool(FILE.search(last_segment)) and not PAGE_FILE.search(last_segment)
