"""Turns an address as people type it into the rules of a crawl: the real site, its scope, robots.txt and sitemaps."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import urljoin, urlsplit

from protego import Protego

from crawler.fetch import LOGIN_REQUIRED, FetchError, Wanted, WebClient
from crawler.page_urls import normalise_url
from tenants.addresses import AddressPolicy, AddressRefused, refuse_url
from tenants.public_addresses import address_spelled_by, is_loopback_address

OUT_OF_SCOPE = "out of scope"
DISALLOWED = "disallowed by robots"
NOT_A_PAGE = "not a page"

# RFC 9309: at least 500 KiB are read (2.5), at least five redirects followed (2.3.1.2).
ROBOTS = Wanted(max_body_bytes=500 * 1024, max_redirects=5, is_cut_allowed=True)
ROBOTS_UNREACHABLE = "robots.txt unreachable"
# Where no server has answered, the other scheme may still be worth a try.
NO_ANSWER_REASONS = frozenset({"dns", "connection", "connection lost", "timeout", "tls", ROBOTS_UNREACHABLE})
# These say by themselves what is wrong with the site; any other failure of robots.txt bears its name.
PLAIN_REASONS = frozenset({"dns", "connection", "tls", "private address", "bad address"})

TYPED_SCHEME = re.compile(r"(https?)(?::/*|//+)(.*)", re.I | re.S)
OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?![0-9]|/?$)", re.I)
AROUND_TYPED = " \t\r\n\u00a0\u200b\ufeff<>\"'"
PAGE_FILE = re.compile(r"\.(x?html?|shtml|php\d?|aspx?|jspx?|cfm|cgi|do|md|txt)$", re.I)
# Addresses with these ends are never pages. Documents (PDF and the like) are not among them: they are fetched as far
# as their first bytes, so that the report names what the site holds and the crawl did not read.
OTHER_FILE = re.compile(
    r"\.(jpe?g|png|gif|webp|avif|bmp|ico|svgz?|tiff?|heic|mp3|m4a|ogg|wav|flac|mp4|m4v|webm|mov|avi|mkv|wmv|zip|gz|tgz"
    r"|bz2|xz|7z|rar|tar|exe|msi|dmg|pkg|deb|rpm|apk|iso|bin|jar|css|js|mjs|map|json|wasm|woff2?|ttf|otf|eot|rss|atom"
    r"|ics|vcf|swf|psd|sql)$",
    re.I,
)
ALLOW_LINE = re.compile(r"^\s*allow\s*:\s*([^\s#]+)", re.I | re.M)


class SiteUnreachable(Exception):
    """A site that cannot be crawled now. `reason` is short and stable; the message is for people."""

    def __init__(self, reason: str, message: str, is_retryable: bool = False):
        self.reason, self.message, self.is_retryable = reason, message, is_retryable
        super().__init__(message)


@dataclass(frozen=True)
class Robots:
    """A host's robots.txt as it applies to us. `addresses` are those it was found under."""

    rules: Protego
    agent: str
    addresses: tuple[str, ...]
    allowed_examples: tuple[str, ...] = ()

    def is_allowed(self, url: str) -> bool:
        return self.rules.can_fetch(url, self.agent)


@dataclass(frozen=True)
class SiteRules:
    """What belongs to a crawl. `hosts` carry a port only where the site's address does; `path_prefix` ends in "/"."""

    start_url: str
    hosts: frozenset[str]
    path_prefix: str
    crawl_delay_seconds: float
    sitemap_urls: tuple[str, ...]
    robots: Robots

    def refusal(self, url: str) -> str | None:
        """Return why the address is not to be fetched, or None if it may be."""
        address = normalise_url(url)
        if address is None:
            return OUT_OF_SCOPE
        parts = urlsplit(address)
        if parts.netloc not in self.hosts or not f"{parts.path.rstrip('/')}/".startswith(self.path_prefix):
            return OUT_OF_SCOPE
        if OTHER_FILE.search(parts.path):
            return NOT_A_PAGE
        return None if self.robots.is_allowed(address) else DISALLOWED

    @property
    def guessed_sitemap_urls(self) -> tuple[str, ...]:
        """The usual places of a sitemap: at the root of the host, and of the part that is crawled."""
        places = ("/sitemap.xml", f"{self.path_prefix}sitemap.xml")
        return tuple(dict.fromkeys(urljoin(self.start_url, place) for place in places))


def read_site_rules(client: WebClient, typed_address: str) -> SiteRules:
    """Return the rules for the site at an address as people type it.

    Without a scheme https is tried before http, on loopback the other way round. Redirects of the address lead to the
    site's real host; robots.txt is asked before any page, on each host on the way. Errors: SiteUnreachable.
    """
    told = None
    for url in start_candidates(typed_address, client.policy):
        try:
            return _read_rules_at(client, url)
        except FetchError as failure:
            has_answered = failure.status is not None or failure.reason not in NO_ANSWER_REASONS
            told = failure if has_answered else told or failure
            if has_answered:
                break
    raise SiteUnreachable(told.reason, told.message, told.is_retryable) from told


def start_candidates(typed_address: str, policy: AddressPolicy) -> list[str]:
    """Return the addresses that may be meant, likeliest first, none of them refused. Errors: SiteUnreachable."""
    typed = typed_address.strip(AROUND_TYPED)
    with_scheme = TYPED_SCHEME.fullmatch(typed)
    if not with_scheme and OTHER_SCHEME.match(typed):
        raise SiteUnreachable("bad address", f"{typed} is no address of a website (http:// or https://)")
    rest = with_scheme[2] if with_scheme else typed.lstrip("/")
    schemes = [with_scheme[1].lower()] if with_scheme else _likely_schemes(rest)
    candidates = [normalise_url(f"{scheme}://{rest}") for scheme in schemes]
    if None in candidates:
        raise SiteUnreachable("bad address", f"{typed or 'An empty field'} is no address of a website")
    try:
        for candidate in candidates:
            refuse_url(candidate, policy)
    except AddressRefused as refusal:
        reason = "private address" if refusal.address else "bad address"
        raise SiteUnreachable(reason, f"{typed} cannot be crawled: {refusal}") from refusal
    return candidates


def _likely_schemes(rest: str) -> list[str]:
    address = normalise_url(f"http://{rest}")
    parts = urlsplit(address or "")
    host = parts.hostname or ""
    try:
        is_loopback = host == "localhost" or is_loopback_address(address_spelled_by(host) or "")
    except ValueError:
        is_loopback = False
    return ["http", "https"] if is_loopback else ["https", "http"]


def _read_rules_at(client: WebClient, url: str) -> SiteRules:
    """Return the rules of the site that the address leads to. Errors: FetchError, SiteUnreachable."""
    robots_of = _robots_reader(client)
    start_url = normalise_url(_find_start(client, url, robots_of))
    robots = robots_of(start_url)
    rate = robots.rules.request_rate(robots.agent)
    rules = SiteRules(
        start_url=start_url,
        hosts=_site_hosts(start_url),
        path_prefix=_path_prefix(url, start_url),
        crawl_delay_seconds=max(
            robots.rules.crawl_delay(robots.agent) or 0, rate.seconds / rate.requests if rate else 0
        ),
        sitemap_urls=_listed_sitemaps(robots),
        robots=robots,
    )
    if _is_all_forbidden(rules):
        raise SiteUnreachable(
            DISALLOWED, f"The robots.txt of {urlsplit(start_url).netloc} forbids all of the site to crawlers."
        )
    return rules


def _find_start(client: WebClient, url: str, robots_of: Callable[[str], Robots]) -> str:
    """Return the address where the redirects of the given one end; a page that robots.txt forbids is not asked."""

    def refuse(address: str) -> str | None:
        return None if robots_of(address).is_allowed(address) else DISALLOWED

    if refuse(url):
        return url
    try:
        return client.fetch(url, refuse).final_url
    except FetchError as error:
        if error.reason != DISALLOWED:
            raise
        return error.url


def _robots_reader(client: WebClient) -> Callable[[str], Robots]:
    """Return the function that gives the robots.txt in force for an address, asking each host once."""

    @cache
    def read(robots_url: str) -> Robots:
        return _read_robots(client, robots_url)

    return lambda url: read(urljoin(url, "/robots.txt"))


def _read_robots(client: WebClient, robots_url: str) -> Robots:
    """Return the host's rules: everything is allowed where there is no robots.txt (RFC 9309, 2.3.1.3).

    Errors: FetchError where it cannot be known what is allowed (2.3.1.4).
    """
    agent = client.user_agent.partition("/")[0].strip()
    try:
        page = client.fetch(robots_url, _follow_anywhere, ROBOTS)
    except FetchError as error:
        if _is_unavailable(error):
            return Robots(Protego.parse(""), agent, (robots_url,))
        if error.reason in PLAIN_REASONS:
            raise
        message = f"robots.txt is unreachable, so no page was fetched: {error.message}"
        raise FetchError(robots_url, ROBOTS_UNREACHABLE, message, is_retryable=True, status=error.status) from error
    text = _robots_text(page.body)
    examples = [path.replace("*", "x").rstrip("$") for path in ALLOW_LINE.findall(text)]
    return Robots(
        Protego.parse(text),
        agent,
        addresses=(robots_url, *page.redirects),
        allowed_examples=tuple(urljoin(page.final_url, example) for example in examples),
    )


def _follow_anywhere(_target: str) -> None:
    return None


def _is_unavailable(error: FetchError) -> bool:
    """Return whether the failure says that there is no robots.txt, rather than that it cannot be had now."""
    if error.status is None:
        return error.reason in ("too many redirects", LOGIN_REQUIRED)
    return 300 <= error.status < 500 and error.status != 429


def _robots_text(body: bytes) -> str:
    """Return the rules without a byte order mark, which would hide the first, and without a last line cut in two."""
    if len(body) >= ROBOTS.max_body_bytes:
        body = body[: body.rfind(b"\n") + 1]
    return body.decode("utf-8-sig", "replace")


def _listed_sitemaps(robots: Robots) -> tuple[str, ...]:
    listed = (normalise_url(address, robots.addresses[-1]) for address in robots.rules.sitemaps)
    return tuple(dict.fromkeys(address for address in listed if address))


def _site_hosts(start_url: str) -> frozenset[str]:
    """Return the host with and without www., each with the address' port."""
    parts = urlsplit(start_url)
    host = parts.hostname
    if ":" in host or "." not in host or address_spelled_by(host):
        return frozenset({parts.netloc})
    bare = parts.netloc.removeprefix("www.")
    return frozenset({bare, f"www.{bare}"})


def _path_prefix(asked_url: str, start_url: str) -> str:
    """Return the folder that the asked path names; if the site moved it elsewhere, the folder where it is now."""
    asked, found = (_folder(urlsplit(url).path) for url in (asked_url, start_url))
    return asked if found.startswith(asked) else found


def _folder(path: str) -> str:
    if path.endswith("/"):
        return path
    parent, _, last_segment = path.rpartition("/")
    return f"{parent}/" if PAGE_FILE.search(last_segment) else f"{path}/"


def _is_all_forbidden(rules: SiteRules) -> bool:
    """Return whether neither the start, nor the top of the site, nor any path that robots.txt allows is open to us."""
    top = urljoin(rules.start_url, rules.path_prefix)
    return all(rules.refusal(url) for url in (rules.start_url, top, *rules.robots.allowed_examples))
