"""The port to the web: fetches one page at a time within limits, checks every hop, and says why a page was not had.

What the bytes are and say is decode.py's matter, how a request gets on the network transport.py's, which pages belong
to the crawl that of the caller's `is_followable`.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from urllib.parse import urldefrag, urljoin, urlsplit

import requests
from requests.exceptions import ContentDecodingError
from urllib3.exceptions import HTTPError, NameResolutionError, NewConnectionError, ReadTimeoutError

from crawler.web.deadline import Deadline
from crawler.web.decode import DOCUMENT_KINDS, SNIFF_BYTES, TEXT_KINDS, ZIPPED_KINDS, decode_text, sniff_kind
from crawler.web.hops import looks_like_login, refresh_target
from crawler.web.transport import CrawlSession, GuardedAdapter
from tenants.addresses import AddressPolicy, AddressRefused, crawler_policy, refuse_url

CHUNK_BYTES = 65_536
# Waits before the second and third try; a server's own Retry-After replaces them, up to the limit.
RETRY_DELAYS_SECONDS = (0.5, 2.0)
MAX_RETRY_AFTER_SECONDS = 10.0
BUSY_STATUSES = frozenset({429, 503})
RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
TRANSIENT_REASONS = frozenset({"connection", "connection lost"}) | {f"status {status}" for status in BUSY_STATUSES}
NETWORK_REASONS = frozenset({"timeout", "dns", "connection", "connection lost"})
LOGIN_REQUIRED = "login required"
LOGIN_STATUSES = frozenset({401, 403})
READABLE_ENCODINGS = frozenset({"", "identity", "none", "utf-8", "gzip", "x-gzip", "deflate"})
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
NOT_MODIFIED = 304
PERMANENT_STATUSES = frozenset({301, 308})  # RFC 9110, 15.4: the other redirects hold for now
# A longer validator than this is not kept: it costs more than the fetch it saves.
MAX_ETAG_CHARACTERS = 200
MAX_DATE_CHARACTERS = 100

IsFollowable = Callable[[str], str | None]


class FetchError(Exception):
    """A page that was not had. `reason` is short and stable; the message is for people.

    `url` is the address that failed, a redirect's target if that was it; `status` is set if a server answered;
    `is_for_good` is as of FetchedPage.
    """

    is_for_good = True

    def __init__(
        self,
        url: str,
        reason: str,
        message: str = "",
        *,
        is_retryable: bool = False,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ):
        self.url, self.reason, self.is_retryable, self.status = url, reason, is_retryable, status
        self.retry_after_seconds = retry_after_seconds
        self.message = message or f"{url}: {reason}"
        super().__init__(self.message)


@dataclass(frozen=True)
class FetchedPage:
    """A page as it came. `text` is empty unless the kind is one of TEXT_KINDS; `redirects` are the hops' targets.

    `is_for_good` says that no hop on the way holds but for now, as redirects that are not permanent and refreshes do.

    `etag` and `last_modified` name its version, for `Known` of a later fetch. With `is_unchanged` the server said that
    the version known still stands, and sent nothing: text and body are empty, the kind is html.
    """

    url: str
    final_url: str
    status: int
    kind: str
    content_type: str
    text: str
    body: bytes
    redirects: tuple[str, ...] = ()
    is_for_good: bool = True
    robots_header: str = ""
    etag: str = ""
    last_modified: str = ""
    is_unchanged: bool = False


@dataclass(frozen=True)
class Hop:
    """Where an address sends its visitors on, for good or for now."""

    target: str
    is_permanent: bool


@dataclass(frozen=True)
class Known:
    """The version of a page that an earlier fetch had; what is empty is not asked about."""

    etag: str = ""
    last_modified: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that make a request conditional (RFC 9110, 13.1)."""
        named = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in named.items() if value}


NOTHING_KNOWN = Known()


@dataclass(frozen=True)
class Wanted:
    """What a fetch accepts: kinds (empty: all), decoded size and time (None: the client's limits), number of redirects.

    With `is_cut_allowed` a longer body is cut at the limit instead of refused; with `is_tried_again` a failure that may
    pass is given another try.
    """

    kinds: frozenset[str] = frozenset()
    max_body_bytes: int | None = None
    max_redirects: int = 10
    is_cut_allowed: bool = False
    timeout_seconds: float | None = None
    is_tried_again: bool = True


PAGE = Wanted(kinds=frozenset({"html"}))
PAGE_OR_DOCUMENT = Wanted(kinds=PAGE.kinds | DOCUMENT_KINDS | {"text", "markdown"})


class WebClient:
    """Fetches for one crawl: keeps its cookies and connections. For one thread at a time.

    What is not given comes from the settings. `timeout_seconds` bounds a page from its first to its last byte, hops
    and tries included, waits between tries not. `ca_file` names the authorities that vouch for servers (PEM).
    """

    def __init__(
        self,
        policy: AddressPolicy | None = None,
        *,
        user_agent: str = "",
        contact_email: str = "",
        max_body_bytes: int = 0,
        timeout_seconds: float = 0,
        sleep: Callable[[float], None] = time.sleep,
        ca_file: str | None = None,
    ):
        from django.conf import settings

        self.policy = policy or crawler_policy()
        self.user_agent = user_agent or settings.SITEWISE_CRAWL_USER_AGENT
        self.max_body_bytes = max_body_bytes or settings.SITEWISE_MAX_PAGE_BYTES
        self.max_document_bytes = max(self.max_body_bytes, settings.SITEWISE_MAX_DOCUMENT_BYTES)
        self.timeout_seconds = timeout_seconds or settings.SITEWISE_FETCH_TIMEOUT_SECONDS
        self._sleep = sleep
        self._deadline = Deadline()
        self._session = CrawlSession()
        self._session.trust_env = False  # a proxy of the environment would connect unchecked
        self._session.verify = ca_file or True
        self._session.headers.update(
            {"User-Agent": self.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip, deflate"}
        )
        if email := contact_email or settings.SITEWISE_CRAWL_EMAIL:
            self._session.headers["From"] = email
        adapter = GuardedAdapter(self.policy, self._deadline)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def close(self) -> None:
        """Close the connections that were kept open."""
        self._session.close()

    def __enter__(self) -> "WebClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fetch(
        self, url: str, is_followable: IsFollowable, wanted: Wanted = PAGE, known: Known = NOTHING_KNOWN
    ) -> FetchedPage:
        """Return the page at the address, after redirects.

        `is_followable` gets the target of each redirect before it is requested and returns why not to, or None.
        `known` is the version of the page at this very address; where redirects lead, it means nothing.
        Errors: FetchError.
        """
        hops: list[Hop] = []
        try:
            with self._deadline.within(min(self.timeout_seconds, wanted.timeout_seconds or self.timeout_seconds)):
                page = self._follow(url, hops, is_followable, wanted, known)
        except FetchError as error:
            error.is_for_good = all(hop.is_permanent for hop in hops)
            raise
        is_for_good = all(hop.is_permanent for hop in hops)
        return replace(page, url=url, redirects=tuple(hop.target for hop in hops), is_for_good=is_for_good)

    def _follow(
        self, url: str, hops: list[Hop], is_followable: IsFollowable, wanted: Wanted, known: Known
    ) -> FetchedPage:
        """Return the page where the redirects end, and note each of these."""
        for _ in range(wanted.max_redirects + 1):
            current = hops[-1].target if hops else url
            answer = self._try_repeatedly(current, wanted, known if current == url else NOTHING_KNOWN)
            if isinstance(answer, FetchedPage):
                return answer
            hops.append(answer)
            _refuse_hop(url, answer.target, is_followable)
        raise FetchError(url, "too many redirects", f"{url} was still redirecting after {wanted.max_redirects} hops")

    def _try_repeatedly(self, url: str, wanted: Wanted, known: Known) -> FetchedPage | Hop:
        for delay_seconds in (*(RETRY_DELAYS_SECONDS if wanted.is_tried_again else ()), None):
            try:
                return self._try_once(url, wanted, known)
            except FetchError as error:
                wait_seconds = delay_seconds if error.retry_after_seconds is None else error.retry_after_seconds
                is_last = delay_seconds is None or error.reason not in TRANSIENT_REASONS
                if is_last or wait_seconds > MAX_RETRY_AFTER_SECONDS:
                    raise
                self._sleep(wait_seconds)
                self._deadline.postpone(wait_seconds)
        raise AssertionError("unreachable: the last try returns or raises")

    def _try_once(self, url: str, wanted: Wanted, known: Known) -> FetchedPage | Hop:
        """Return the page of the address, or where it redirects to."""
        with _foreign_errors_renamed(url):
            refuse_url(url, self.policy)
            timeout = self._deadline.remaining_seconds()
            with self._session.ask(url, known.headers, timeout) as response:
                target = self._session.get_redirect_target(response)
                if target is not None:
                    return Hop(urldefrag(urljoin(url, target)).url, response.status_code in PERMANENT_STATUSES)
                if response.status_code == NOT_MODIFIED and known.headers:
                    return _unchanged_page(url, response, known)
                _refuse_status(url, response)
                body, kind = self._read_body(url, response, wanted)
                page = _page(url, response, body, kind)
                refresh = response.headers.get("Refresh", "")
                target = refresh_target(page.text, url, refresh) if kind == "html" else None
                return Hop(target, is_permanent=False) if target else page

    def _read_body(self, url: str, response: requests.Response, wanted: Wanted) -> tuple[bytes, str]:
        """Read up to the limit in decoded bytes; stop at once where kind or size are not wanted."""
        content_type = response.headers.get("Content-Type", "")
        _refuse_encoding(url, response)
        limit, body, kind = self._limit(wanted, None), bytearray(), None
        for chunk in response.iter_content(CHUNK_BYTES):
            body += chunk
            if kind is None and len(body) >= SNIFF_BYTES:
                kind = _wanted_kind(url, bytes(body[:SNIFF_BYTES]), content_type, wanted)
                limit = self._limit(wanted, kind)
            if len(body) > limit:
                if wanted.is_cut_allowed:
                    break
                raise FetchError(url, "too large", f"{url} is larger than {limit:,} bytes", status=response.status_code)
        if kind is None or kind == "zip":
            kind = _wanted_kind(url, bytes(body), content_type, wanted, is_whole=True)
        if wanted.kinds and not body.strip():
            raise FetchError(url, "empty", f"{url} answered with an empty page", status=response.status_code)
        return bytes(body[:limit]), kind

    def _limit(self, wanted: Wanted, kind: str | None) -> int:
        """Return the most bytes that are read of the kind, or while it is not known."""
        is_document = kind in DOCUMENT_KINDS or kind == "zip"
        return wanted.max_body_bytes or (self.max_document_bytes if is_document else self.max_body_bytes)


def _page(url: str, response: requests.Response, body: bytes, kind: str) -> FetchedPage:
    content_type = response.headers.get("Content-Type", "")
    return FetchedPage(
        url=url,
        final_url=url,
        status=response.status_code,
        kind=kind,
        content_type=content_type,
        text=decode_text(body, content_type, kind) if kind in TEXT_KINDS else "",
        body=body,
        robots_header=response.headers.get("X-Robots-Tag", ""),
        etag=_validator(response, "ETag", MAX_ETAG_CHARACTERS),
        last_modified=_validator(response, "Last-Modified", MAX_DATE_CHARACTERS),
    )


def _unchanged_page(url: str, response: requests.Response, known: Known) -> FetchedPage:
    page = _page(url, response, b"", "html")
    return replace(
        page,
        etag=page.etag or known.etag,
        last_modified=page.last_modified or known.last_modified,
        is_unchanged=True,
    )


def _validator(response: requests.Response, header: str, max_characters: int) -> str:
    value = response.headers.get(header, "").strip()
    return value if len(value) <= max_characters and value.isprintable() else ""


def _wanted_kind(url: str, start: bytes, content_type: str, wanted: Wanted, is_whole: bool = False) -> str:
    kind = sniff_kind(start, content_type, urlsplit(url).path)
    # Which document a zip is stands in names that may come last.
    is_open = kind == "zip" and not is_whole and wanted.kinds & ZIPPED_KINDS
    if wanted.kinds and start.strip() and kind not in wanted.kinds and not is_open:
        raise FetchError(url, f"not html: {kind}", f"{url} is no web page: its content is of the kind {kind}")
    return kind


def _refuse_hop(url: str, target: str, is_followable: IsFollowable) -> None:
    if looks_like_login(target) and not looks_like_login(url):
        raise FetchError(target, LOGIN_REQUIRED, f"{url} asks to log in, at {target}")
    refusal = is_followable(target)
    if refusal:
        raise FetchError(target, refusal, f"{url} redirects to {target}: {refusal}")


def _refuse_status(url: str, response: requests.Response) -> None:
    status = response.status_code
    if status in LOGIN_STATUSES:
        raise FetchError(url, LOGIN_REQUIRED, f"{url} is not open to visitors (status {status})", status=status)
    if not 200 <= status < 300:
        raise FetchError(
            url,
            f"status {status}",
            f"{url} answered with status {status} {response.reason or ''}".strip(),
            is_retryable=status in RETRYABLE_STATUSES,
            status=status,
            retry_after_seconds=_retry_after_seconds(response) if status in BUSY_STATUSES else None,
        )


def _refuse_encoding(url: str, response: requests.Response) -> None:
    """Refuse a body compressed in a way that was not asked for, which would be read as a binary file."""
    written = response.headers.get("Content-Encoding", "").lower()
    unknown = {each.strip() for each in written.split(",")} - READABLE_ENCODINGS
    if unknown:
        raise FetchError(
            url, "bad encoding", f"{url} is compressed by {', '.join(sorted(unknown))}, which was not asked for"
        )


def _retry_after_seconds(response: requests.Response) -> float | None:
    """Return the wait that the server asks for, in seconds or until a date (RFC 9110, 10.2.3)."""
    value = response.headers.get("Retry-After", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


@contextlib.contextmanager
def _foreign_errors_renamed(url: str) -> Iterator[None]:
    """Turn whatever the address check, requests and urllib3 raise into FetchError."""
    try:
        yield
    except FetchError:
        raise
    except AddressRefused as refusal:
        raise FetchError(url, "private address" if refusal.address else "bad address", str(refusal)) from refusal
    except TimeoutError as error:
        raise FetchError(url, "timeout", f"{url} did not answer in time", is_retryable=True) from error
    except requests.RequestException as error:
        raise _named_error(url, error) from error
    except (ValueError, OSError, HTTPError) as error:
        raise FetchError(url, "bad address", f"{url} cannot be requested ({error})") from error


def _named_error(url: str, error: requests.RequestException) -> FetchError:
    host = urlsplit(url).netloc
    cause = error.args[0] if error.args else None
    cause = getattr(cause, "reason", None) or cause
    system_reason = getattr(getattr(cause, "__cause__", None), "strerror", None) or cause
    broke_off = requests.ConnectionError | requests.exceptions.ChunkedEncodingError
    verdicts = (
        (isinstance(error, requests.Timeout), "timeout", f"{url} did not answer in time"),
        (isinstance(cause, ReadTimeoutError), "timeout", f"{url} did not come to an end in time"),
        (isinstance(cause, NameResolutionError), "dns", f"the host name {host} leads nowhere"),
        (isinstance(error, requests.exceptions.SSLError), "tls", f"{host} offers no secure connection ({cause})"),
        (isinstance(cause, NewConnectionError), "connection", f"{host} does not answer ({system_reason})"),
        (isinstance(error, broke_off), "connection lost", f"the connection to {url} broke off"),
        (isinstance(error, ContentDecodingError), "bad encoding", f"{url} is not compressed the way it says"),
        (True, "bad address", f"{url} cannot be requested ({error})"),
    )
    reason, message = next((reason, message) for is_so, reason, message in verdicts if is_so)
    return FetchError(url, reason, message, is_retryable=reason in NETWORK_REASONS)
