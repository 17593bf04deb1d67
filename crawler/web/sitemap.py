"""Finds the pages that a site's sitemaps list: XML of any make, feeds and plain lists, plain or gzipped (sitemaps.org).

Lenient with form, strict with danger: a document type voids a file; sizes, files and addresses are limited.
"""

import contextlib
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lxml import etree

from crawler.web.decode import decode_text
from crawler.web.fetch import FetchedPage, FetchError, Wanted, WebClient
from crawler.web.page_urls import normalise_url

if TYPE_CHECKING:
    from crawler.web.site import SiteRules

# The protocol's own limit for one file, unpacked.
MAX_SITEMAP_BYTES = 50 * 1024 * 1024
MAX_SITEMAPS = 500
MAX_SITEMAP_URLS = 50_000
SITEMAP = Wanted(max_body_bytes=MAX_SITEMAP_BYTES)
ALREADY_READ = "already read"

GZIP_MAGIC = b"\x1f\x8b"
GZIP_WINDOW = zlib.MAX_WBITS | 16
PIECE_CHARACTERS = 1 << 16

DOCTYPE = re.compile(r"<!doctype", re.I)
WEB_PAGE = re.compile(r"<!doctype\s+html|<html[\s>]", re.I)
XML_START = re.compile(r"<\?xml\b|<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|feed)\b", re.I)
XML_DECLARATION = re.compile(r"<\?xml\b[^>]*>", re.I)
# An ampersand that starts none of XML's own references was meant as one; no other entity is ever looked up.
BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]+|#x[0-9a-fA-F]+);)")
CDATA_START = "<![CDATA["
LISTED_ADDRESS = re.compile(r"^\s*(https?://\S+)\s*$", re.I | re.M)


class SitemapUnreadable(Exception):
    """A file that gives no addresses, with the reason in words; `is_web_page` marks an ordinary page in its place."""

    def __init__(self, message: str, is_web_page: bool = False):
        self.is_web_page = is_web_page
        super().__init__(message)


@dataclass(frozen=True)
class Sitemap:
    """What a sitemap lists, normalised and each once: pages, and further sitemaps if it is an index."""

    page_urls: tuple[str, ...]
    sitemap_urls: tuple[str, ...]


def read_sitemaps(
    client: WebClient, rules: "SiteRules", before_request: Callable[[], None] = lambda: None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the pages of the site that its sitemaps list, normalised and each once, and what was wrong, in words.

    `before_request` is called before each request, to keep the pace or to stop by an exception.
    """
    walk = _SitemapWalk(rules)
    while address := walk.next_address():
        before_request()
        try:
            page = client.fetch(address, walk.refuse_seen, SITEMAP)
            walk.add(page, parse_sitemap(page.body, page.final_url, page.content_type))
        except (FetchError, SitemapUnreadable) as error:
            walk.note_failure(address, error)
    return walk.found()


class _SitemapWalk:
    """The sitemaps still to read and what those read have given; an address is read once, by whatever way it comes."""

    def __init__(self, rules: "SiteRules"):
        self._rules = rules
        self._guesses = frozenset(rules.guessed_sitemap_urls) - frozenset(rules.sitemap_urls)
        self._waiting = deque([*rules.sitemap_urls, *rules.guessed_sitemap_urls])
        self._seen = set(rules.robots.addresses)
        self._read_count = 0
        self._pages: dict[str, None] = {}
        self._refused: dict[str, int] = {}
        self._problems: list[str] = []

    def next_address(self) -> str | None:
        while self._waiting:
            address = self._waiting.popleft()
            if address in self._seen:
                continue
            if self._read_count >= MAX_SITEMAPS:
                self._problems.append(f"More than {MAX_SITEMAPS} sitemaps: {len(self._waiting) + 1} were not read.")
                return None
            self._read_count += 1
            self._seen.add(address)
            return address
        return None

    def refuse_seen(self, target: str) -> str | None:
        address = normalise_url(target) or target
        if address in self._seen:
            return ALREADY_READ
        self._seen.add(address)
        return None

    def add(self, page: FetchedPage, sitemap: Sitemap) -> None:
        for address in sitemap.page_urls:
            refusal = self._rules.refusal(address)
            if refusal is None and len(self._pages) >= MAX_SITEMAP_URLS:
                refusal = f"over the limit of {MAX_SITEMAP_URLS:,}"
            if refusal:
                self._refused[refusal] = self._refused.get(refusal, 0) + 1
            else:
                self._pages[address] = None
        own_hosts = self._rules.hosts | {urlsplit(page.final_url).netloc}
        self._waiting.extend(address for address in sitemap.sitemap_urls if urlsplit(address).netloc in own_hosts)

    def note_failure(self, address: str, error: FetchError | SitemapUnreadable) -> None:
        """Keep what went wrong, unless it only means that nothing lies at a guessed place."""
        if isinstance(error, FetchError):
            is_expected = error.reason == ALREADY_READ or address in self._guesses
        else:
            is_expected = error.is_web_page and address in self._guesses
        if not is_expected:
            self._problems.append(f"Sitemap {address} was not read: {error}.")

    def found(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        refused = (f"{count:,} addresses of the sitemaps were left out: {why}." for why, count in self._refused.items())
        return tuple(self._pages), (*self._problems, *refused)


def parse_sitemap(body: bytes, url: str, content_type: str = "") -> Sitemap:
    """Return the addresses that the sitemap lists; relative ones are resolved against its own.

    Errors: SitemapUnreadable.
    """
    text = decode_text(_unzip(body), content_type, "xml")
    if WEB_PAGE.search(text):
        raise SitemapUnreadable("it is a web page and no sitemap", is_web_page=True)
    if DOCTYPE.search(text):
        raise SitemapUnreadable("it holds a document type (DOCTYPE), which has no place in a sitemap")
    start = XML_START.search(text)
    locations = _xml_locations(text[start.start() :]) if start else _listed_locations(text)
    pages: dict[str, None] = {}
    sitemaps: dict[str, None] = {}
    for is_sitemap, location in locations:
        address = normalise_url(location, url) if location else None
        if address:
            (sitemaps if is_sitemap else pages)[address] = None
    return Sitemap(tuple(pages), tuple(sitemaps))


def _unzip(body: bytes) -> bytes:
    """Return the body unpacked if its first two bytes say gzip: names and headers are wrong too often.

    A file that breaks off gives what came; one that grows beyond the limit gives nothing.
    """
    unpacked = bytearray()
    while body.startswith(GZIP_MAGIC):
        unzipper = zlib.decompressobj(GZIP_WINDOW)
        with contextlib.suppress(zlib.error):
            unpacked += unzipper.decompress(body, MAX_SITEMAP_BYTES + 1 - len(unpacked))
        if len(unpacked) > MAX_SITEMAP_BYTES:
            raise SitemapUnreadable(f"it is larger than {MAX_SITEMAP_BYTES:,} bytes")
        body = unzipper.unused_data
        if not body:
            return bytes(unpacked)
    return bytes(unpacked) or body


def _listed_locations(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the lines of a plain list that are addresses."""
    return ((False, match[1]) for match in LISTED_ADDRESS.finditer(text))


def _xml_locations(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (is a sitemap's, address) for each entry, whatever namespace the file claims."""
    parser = etree.XMLPullParser(events=("end",), recover=True, resolve_entities=False, no_network=True)
    cleaned = _escape_ampersands(XML_DECLARATION.sub("", text, count=1))
    with contextlib.suppress(etree.XMLSyntaxError):  # not even lxml's leniency helps: what was read so far counts
        for position in range(0, len(cleaned), PIECE_CHARACTERS):
            parser.feed(cleaned[position : position + PIECE_CHARACTERS])
            yield from _read_entries(parser)
        parser.close()
    yield from _read_entries(parser)


def _escape_ampersands(text: str) -> str:
    """Return the XML with ampersands that start no reference of XML's own escaped, except where CDATA means them."""
    outside, *sections = text.split(CDATA_START)
    pieces = [BARE_AMPERSAND.sub("&amp;", outside)]
    for section in sections:
        inside, end, outside = section.partition("]]>")
        pieces += [CDATA_START, inside, end, BARE_AMPERSAND.sub("&amp;", outside)]
    return "".join(pieces)


def _read_entries(parser: etree.XMLPullParser) -> Iterator[tuple[bool, str]]:
    for _, element in parser.read_events():
        name, entry = _local_name(element), _local_name(element.getparent())
        if name == "loc" and entry in ("url", "sitemap"):
            yield entry == "sitemap", "".join(element.itertext()).strip()
        elif name == "link" and entry == "item":
            yield False, (element.text or "").strip()
        elif name == "link" and entry == "entry" and element.get("rel", "alternate") == "alternate":
            yield False, element.get("href", "")
        elif name in ("url", "sitemap", "item", "entry"):
            _forget(element)


def _local_name(element: etree._Element | None) -> str:
    return "" if element is None else element.tag.rpartition("}")[2].rpartition(":")[2].lower()


def _forget(element: etree._Element) -> None:
    """Free an entry that was read, so that memory does not grow with the file."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
