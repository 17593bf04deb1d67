"""Turns addresses as people type them into the rules of a crawl: what belongs to it, and what it may ask for."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urljoin, urlsplit

from crawler.web.fetch import FetchedPage, FetchError, WebClient
from crawler.web.page_urls import PAGE_FILE, normalise_url
from crawler.web.robots import ROBOTS_UNREACHABLE, Robots, robots_reader
from tenants.addresses import AddressPolicy, AddressRefused, refuse_url
from tenants.public_addresses import address_spelled_by, is_loopback_address

OUT_OF_SCOPE = "out of scope"
DISALLOWED = "disallowed by robots"
NOT_A_PAGE = "not a page"

# Where no server has answered, the other scheme may still be worth a try.
NO_ANSWER_REASONS = frozenset({"dns", "connection", "connection lost", "timeout", "tls", ROBOTS_UNREACHABLE})

TYPED_SCHEME = re.compile(r"(https?)(?::/*|//+)(.*)", re.I | re.S)
OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?![0-9]|/?$)", re.I)
AROUND_TYPED = " \t\r\n\u00a0\u200b\ufeff<>\"'"
# Addresses with these ends are never pages. Documents (PDF and the like) are not among them: they are fetched as far
# as their first bytes, so that the report names what the site holds and the crawl did not read.
OTHER_FILE = re.compile(
    r"\.(jpe?g|png|gif|webp|avif|bmp|ico|svgz?|tiff?|heic|mp3|m4a|ogg|wav|flac|mp4|m4v|webm|mov|avi|mkv|wmv|zip|gz|tgz"
    r"|bz2|xz|7z|rar|tar|exe|msi|dmg|pkg|deb|rpm|apk|iso|bin|jar|css|js|mjs|map|json|wasm|woff2?|ttf|otf|eot|rss|atom"
    r"|ics|vcf|swf|psd|sql)$",
    re.I,
)


class SiteUnreachable(Exception):
    """A site that cannot be crawled now. `reason` is short and stable; the message is for people."""

    def __init__(self, reason: str, message: str, is_retryable: bool = False):
        self.reason, self.message, self.is_retryable = reason, message, is_retryable
        super().__init__(message)


@dataclass(frozen=True)
class SiteRules:
    """What belongs to a crawl. `hosts` carry a port only where the site's address does; `path_prefix` ends in "/".

    `former_hosts` are those that the site has left for good: their addresses stand for the same paths on its own.
    `start_page` is the page at the start, which was had to find it; None where robots.txt forbids it.
    """

    start_url: str
    hosts: frozenset[str]
    path_prefix: str
    crawl_delay_seconds: float
    sitemap_urls: tuple[str, ...]
    robots: Robots
    former_hosts: frozenset[str] = frozenset()
    start_page: FetchedPage | None = field(default=None, compare=False, repr=False)

    def refusal(self, url: str) -> str | None:
        """Return why the address is not to be fetched, or None if it may be."""
        address = normalise_url(url)
        if address is None:
            return OUT_OF_SCOPE
        parts = urlsplit(address)
        if parts.netloc not in self.hosts or not f"{parts.path.rstrip('/')}/".startswith(self.path_prefix):
            return OUT_OF_SCOPE
        return _refusal_within_scope(address, self.robots)

    def address_of(self, url: str) -> str | None:
        """Return the one way the crawl writes the address, with the site's own scheme and host; None if it is none."""
        address = normalise_url(url)
        parts = urlsplit(address or "")
        if parts.netloc in self.hosts | self.former_hosts:
            own = urlsplit(self.start_url)
            return parts._replace(scheme=own.scheme, netloc=own.netloc).geturl()
        return address

    def is_allowed(self, url: str) -> bool:
        """Return whether the site's robots.txt lets us ask for the address, a page or not; it governs no other site."""
        return urlsplit(normalise_url(url) or "").netloc not in self.hosts or self.robots.is_allowed(url)

    @property
    def guessed_sitemap_urls(self) -> tuple[str, ...]:
        """The usual places of a sitemap: at the root of the host, and of the part that is crawled."""
        places = ("/sitemap.xml", f"{self.path_prefix}sitemap.xml")
        return tuple(dict.fromkeys(urljoin(self.start_url, place) for place in places))


@dataclass(frozen=True)
class ListRules:
    """What belongs to an import of single pages: the `addresses`, and where redirects lead on their hosts.

    `robots` has each host's rules, `unreachable` why a host's are not known; `problems` tell in words of what was typed
    and is not among the addresses.
    """

    start_url: str
    addresses: tuple[str, ...]
    robots: Mapping[str, Robots]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset({*self.robots, *self.unreachable})

    @property
    def crawl_delay_seconds(self) -> float:
        return max(robots.crawl_delay_seconds for robots in self.robots.values())

    def refusal(self, url: str) -> str | None:
        """Return why the address is not to be fetched, or None if it may be."""
        address = normalise_url(url)
        host = urlsplit(address or "").netloc
        if host in self.unreachable:
            return self.unreachable[host]
        return _refusal_within_scope(address, self.robots[host]) if host in self.robots else OUT_OF_SCOPE

    def address_of(self, url: str) -> str | None:
        """Return the one way the import writes the address, or None if it is no web address."""
        return normalise_url(url)

    def is_allowed(self, url: str) -> bool:
        """Return whether the host's robots.txt lets us ask for the address, a page or not."""
        robots = self.robots.get(urlsplit(normalise_url(url) or "").netloc)
        return robots is None or robots.is_allowed(url)


def _refusal_within_scope(address: str, robots: Robots) -> str | None:
    if OTHER_FILE.search(urlsplit(address).path):
        return NOT_A_PAGE
    return None if robots.is_allowed(address) else DISALLOWED


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


def site_key(address: str) -> str:
    """Return what is the same of two addresses, typed or read, from which the same part of a website is crawled.

    Neither TLS nor www. makes a difference. Empty for what is no address.
    """
    typed = address.strip(AROUND_TYPED)
    with_scheme = TYPED_SCHEME.fullmatch(typed)
    scheme, rest = with_scheme.groups() if with_scheme else ("https", typed.lstrip("/"))
    parts = urlsplit(normalise_url(f"{scheme}://{rest}") or "")
    return min(_twins(parts.netloc), key=len) + _folder(parts.path) if parts.netloc else ""


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
    robots_of = robots_reader(client)
    found, is_for_good, start_page = _find_start(client, url, robots_of)
    start_url = normalise_url(found)
    robots = robots_of(start_url)
    hosts = _twins(urlsplit(start_url).netloc)
    rules = SiteRules(
        start_url=start_url,
        hosts=hosts,
        path_prefix=_path_prefix(url, start_url),
        crawl_delay_seconds=robots.crawl_delay_seconds,
        sitemap_urls=_listed_sitemaps(robots),
        robots=robots,
        former_hosts=_twins(urlsplit(url).netloc) - hosts if is_for_good else frozenset(),
        start_page=start_page,
    )
    if _is_all_forbidden(rules):
        raise SiteUnreachable(
            DISALLOWED, f"The robots.txt of {urlsplit(start_url).netloc} forbids all of the site to crawlers."
        )
    return rules


def _find_start(
    client: WebClient, url: str, robots_of: Callable[[str], Robots]
) -> tuple[str, bool, FetchedPage | None]:
    """Return the address where the redirects of the given one end, whether they are meant for good, and the page there.

    A page that robots.txt forbids is not asked.
    """

    def refuse(address: str) -> str | None:
        return None if robots_of(address).is_allowed(address) else DISALLOWED

    if refuse(url):
        return url, True, None
    try:
        page = client.fetch(url, refuse)
        return page.final_url, page.is_for_good, replace(page, url=page.final_url, redirects=(), is_for_good=True)
    except FetchError as error:
        if error.reason != DISALLOWED:
            raise
        return error.url, error.is_for_good, None


def _listed_sitemaps(robots: Robots) -> tuple[str, ...]:
    listed = (normalise_url(address, robots.addresses[-1]) for address in robots.rules.sitemaps)
    return tuple(dict.fromkeys(address for address in listed if address))


def _twins(netloc: str) -> frozenset[str]:
    """Return the host with and without www., each with the port."""
    host = urlsplit(f"//{netloc}").hostname
    if ":" in host or "." not in host or address_spelled_by(host):
        return frozenset({netloc})
    bare = netloc.removeprefix("www.")
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


def read_list_rules(
    client: WebClient, typed_addresses: Iterable[str], before_request: Callable[[], None] = lambda: None
) -> ListRules:
    """Return the rules for single pages at addresses as people type them; each host's robots.txt is asked once.

    What is no web address, or a private one, is told among the problems. `before_request` is called before each host
    is asked, to stop by an exception. Errors: SiteUnreachable if no page is left that may be asked for.
    """
    hosts = _ListedHosts(robots_reader(client), before_request)
    addresses: dict[str, None] = {}
    problems: list[str] = []
    for typed in filter(None, map(str.strip, typed_addresses)):
        try:
            addresses[hosts.add(start_candidates(typed, client.policy))] = None
        except SiteUnreachable as refusal:
            problems.append(refusal.message)
    reachable = [address for address in addresses if urlsplit(address).netloc in hosts.robots]
    if not reachable:
        told = next(iter(hosts.failures.values()), None)
        if told:
            raise SiteUnreachable(told.reason, told.message, told.is_retryable)
        raise SiteUnreachable("bad address", " ".join(problems) or "No address was given.")
    return ListRules(
        start_url=reachable[0],
        addresses=tuple(addresses),
        robots={twin: robots for host, robots in hosts.robots.items() for twin in _twins(host)} | hosts.robots,
        unreachable={host: failure.reason for host, failure in hosts.failures.items()},
        problems=tuple(problems),
    )


class _ListedHosts:
    """The hosts of listed pages: the robots.txt of those that answer, and why the others' is not known."""

    def __init__(self, robots_of: Callable[[str], Robots], before_request: Callable[[], None]):
        self._robots_of, self._before_request = robots_of, before_request
        self.robots: dict[str, Robots] = {}
        self.failures: dict[str, FetchError] = {}
        self._schemes: dict[str, str] = {}

    def add(self, candidates: list[str]) -> str:
        """Return which of the addresses that may be meant it is: the first whose host answers, or the likeliest."""
        host = urlsplit(candidates[0]).netloc
        if host not in self._schemes:
            self._schemes[host] = self._find_scheme(candidates)
        by_scheme = {urlsplit(candidate).scheme: candidate for candidate in candidates}
        return by_scheme.get(self._schemes[host], candidates[0])

    def _find_scheme(self, candidates: list[str]) -> str:
        for candidate in candidates:
            parts = urlsplit(candidate)
            self._before_request()
            try:
                self.robots[parts.netloc] = self._robots_of(candidate)
                self.failures.pop(parts.netloc, None)
                return parts.scheme
            except FetchError as failure:
                self.failures.setdefault(parts.netloc, failure)
                if failure.reason not in NO_ANSWER_REASONS:
                    break
        return urlsplit(candidates[0]).scheme
