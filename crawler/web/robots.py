"""Reads a host's robots.txt (RFC 9309) and says what it lets us ask for, and how fast.

What belongs to a crawl is site.py's question.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from urllib.parse import urljoin

from protego import Protego

from crawler.web.fetch import LOGIN_REQUIRED, FetchError, Wanted, WebClient

# RFC 9309: at least 500 KiB are read (2.5), at least five redirects followed (2.3.1.2).
ROBOTS = Wanted(max_body_bytes=500 * 1024, max_redirects=5, is_cut_allowed=True)
ROBOTS_UNREACHABLE = "robots.txt unreachable"
# These say by themselves what is wrong with the site; any other failure of robots.txt bears its name.
PLAIN_REASONS = frozenset({"dns", "connection", "tls", "private address", "bad address"})
ALLOW_LINE = re.compile(r"^\s*allow\s*:\s*([^\s#]+)", re.I | re.M)
# How crawlers that call themselves a browser name themselves: "Mozilla/5.0 (compatible; AcmeBot/1.0)".
COMPATIBLE_NAME = re.compile(r"\(compatible;\s*([\w-]+)", re.I)


@dataclass(frozen=True)
class Robots:
    """A host's robots.txt as it applies to us. `addresses` are those it was found under."""

    rules: Protego
    agent: str
    addresses: tuple[str, ...]
    allowed_examples: tuple[str, ...] = ()

    def is_allowed(self, url: str) -> bool:
        return self.rules.can_fetch(url, self.agent)

    @property
    def crawl_delay_seconds(self) -> float:
        """The pause between two requests that it asks for, by Crawl-delay or by Request-rate; 0 if it asks for none."""
        rate = self.rules.request_rate(self.agent)
        return max(self.rules.crawl_delay(self.agent) or 0, rate.seconds / rate.requests if rate else 0)


def robots_reader(client: WebClient) -> Callable[[str], Robots]:
    """Return the function that gives the robots.txt in force for an address, asking each host once.

    Errors of the function: FetchError where it cannot be known what is allowed.
    """

    @cache
    def read(robots_url: str) -> Robots:
        return _read_robots(client, robots_url)

    return lambda url: read(urljoin(url, "/robots.txt"))


def _read_robots(client: WebClient, robots_url: str) -> Robots:
    """Return the host's rules: everything is allowed where there is no robots.txt (RFC 9309, 2.3.1.3).

    Errors: FetchError where it cannot be known what is allowed (2.3.1.4).
    """
    agent = product_token(client.user_agent)
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


def product_token(user_agent: str) -> str:
    """Return the name by which a robots.txt may speak of the crawler (RFC 9309, 2.2.1)."""
    named = COMPATIBLE_NAME.search(user_agent)
    return named[1] if named else user_agent.partition("/")[0].strip()


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
