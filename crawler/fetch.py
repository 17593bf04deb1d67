"""The port to the web: fetches one page at a time within limits, checks every hop, and says why a page was not had.

What the bytes are and say is decode.py's matter, which addresses may be reached that of tenants/addresses.py, which
pages belong to the crawl that of the caller's `is_followable`.
"""

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urldefrag, urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ContentDecodingError
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)
from urllib3.util.ssl_ import create_urllib3_context

from crawler.deadline import Deadline, PlainSocket, TLSSocket
from crawler.decode import SNIFF_BYTES, TEXT_KINDS, decode_text, sniff_kind
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
LOGIN_SEGMENT = re.compile(
    r"(wp-)?(log|sign)[-_]?(in|on)(\.(php|html?|aspx?|jsp|do))?|sso|saml2?|oauth2?|openid-connect", re.I
)
LOGIN_HOST = re.compile(r"(login|signin|sso|auth|accounts|idp)\.", re.I)
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

IsFollowable = Callable[[str], str | None]


class FetchError(Exception):
    """A page that was not had. `reason` is short and stable; the message is for people.

    `url` is the address that failed, a redirect's target if that was it; `status` is set if a server answered.
    """

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
    """A page as it came. `text` is empty unless the kind is html, xml or text; `redirects` are the hops' targets."""

    url: str
    final_url: str
    status: int
    kind: str
    content_type: str
    text: str
    body: bytes
    redirects: tuple[str, ...] = ()
    robots_header: str = ""


@dataclass(frozen=True)
class Wanted:
    """What a fetch accepts: kinds (empty: all), decoded size (None: the client's limit), and number of redirects.

    With `is_cut_allowed` a longer body is cut at the limit instead of refused.
    """

    kinds: frozenset[str] = frozenset()
    max_body_bytes: int | None = None
    max_redirects: int = 10
    is_cut_allowed: bool = False


PAGE = Wanted(kinds=frozenset({"html"}))


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
        max_body_bytes: int = 0,
        timeout_seconds: float = 0,
        sleep: Callable[[float], None] = time.sleep,
        ca_file: str | None = None,
    ):
        from django.conf import settings

        self.policy = policy or crawler_policy()
        self.user_agent = user_agent or settings.SITEWISE_CRAWL_USER_AGENT
        self.max_body_bytes = max_body_bytes or settings.SITEWISE_MAX_PAGE_BYTES
        self.timeout_seconds = timeout_seconds or settings.SITEWISE_FETCH_TIMEOUT_SECONDS
        self._sleep = sleep
        self._deadline = Deadline()
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the environment would connect unchecked
        self._session.verify = ca_file or True
        self._session.headers.update(
            {"User-Agent": self.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip, deflate"}
        )
        adapter = _GuardedAdapter(self.policy, self._deadline)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)

    def close(self) -> None:
        """Close the connections that were kept open."""
        self._session.close()

    def __enter__(self) -> "WebClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fetch(self, url: str, is_followable: IsFollowable, wanted: Wanted = PAGE) -> FetchedPage:
        """Return the page at the address, after redirects.

        `is_followable` gets the target of each redirect before it is requested and returns why not to, or None.
        Errors: FetchError.
        """
        hops: list[str] = []
        with self._deadline.within(self.timeout_seconds):
            for _ in range(wanted.max_redirects + 1):
                current = hops[-1] if hops else url
                answer = self._try_repeatedly(current, wanted)
                if isinstance(answer, _Body):
                    return _page(url, tuple(hops), answer)
                _refuse_hop(url, answer, is_followable)
                hops.append(answer)
        raise FetchError(url, "too many redirects", f"{url} was still redirecting after {wanted.max_redirects} hops")

    def _try_repeatedly(self, url: str, wanted: Wanted) -> "_Body | str":
        for delay_seconds in (*RETRY_DELAYS_SECONDS, None):
            try:
                return self._try_once(url, wanted)
            except FetchError as error:
                wait_seconds = delay_seconds if error.retry_after_seconds is None else error.retry_after_seconds
                is_last = delay_seconds is None or error.reason not in TRANSIENT_REASONS
                if is_last or wait_seconds > MAX_RETRY_AFTER_SECONDS:
                    raise
                self._sleep(wait_seconds)
                self._deadline.postpone(wait_seconds)
        raise AssertionError("unreachable: the last try returns or raises")

    def _try_once(self, url: str, wanted: Wanted) -> "_Body | str":
        """Return the body of the answer, or the address it redirects to."""
        with _foreign_errors_renamed(url):
            refuse_url(url, self.policy)
            timeout = self._deadline.remaining_seconds()
            with self._session.get(url, stream=True, allow_redirects=False, timeout=timeout) as response:
                target = self._session.get_redirect_target(response)
                if target is not None:
                    return urldefrag(urljoin(url, target)).url
                _refuse_status(url, response)
                return self._read_body(url, response, wanted)

    def _read_body(self, url: str, response: requests.Response, wanted: Wanted) -> "_Body":
        """Read up to the limit in decoded bytes; stop at once where kind or size are not wanted."""
        limit = wanted.max_body_bytes or self.max_body_bytes
        content_type = response.headers.get("Content-Type", "")
        body, kind = bytearray(), None
        for chunk in response.iter_content(CHUNK_BYTES):
            body += chunk
            if kind is None and len(body) >= SNIFF_BYTES:
                kind = _wanted_kind(url, bytes(body[:SNIFF_BYTES]), content_type, wanted)
            if len(body) > limit:
                if wanted.is_cut_allowed:
                    break
                raise FetchError(url, "too large", f"{url} is larger than {limit:,} bytes", status=response.status_code)
        kind = kind or _wanted_kind(url, bytes(body), content_type, wanted)
        if wanted.kinds and not body.strip():
            raise FetchError(url, "empty", f"{url} answered with an empty page", status=response.status_code)
        robots_header = response.headers.get("X-Robots-Tag", "")
        return _Body(bytes(body[:limit]), kind, content_type, response.status_code, robots_header)


@dataclass(frozen=True)
class _Body:
    body: bytes
    kind: str
    content_type: str
    status: int
    robots_header: str


def _page(url: str, hops: tuple[str, ...], answer: _Body) -> FetchedPage:
    text = decode_text(answer.body, answer.content_type, answer.kind) if answer.kind in TEXT_KINDS else ""
    return FetchedPage(
        url=url,
        final_url=hops[-1] if hops else url,
        status=answer.status,
        kind=answer.kind,
        content_type=answer.content_type,
        text=text,
        body=answer.body,
        redirects=hops,
        robots_header=answer.robots_header,
    )


def _wanted_kind(url: str, start: bytes, content_type: str, wanted: Wanted) -> str:
    kind = sniff_kind(start, content_type)
    if wanted.kinds and start.strip() and kind not in wanted.kinds:
        raise FetchError(url, f"not html: {kind}", f"{url} is no web page: its content is of the kind {kind}")
    return kind


def _refuse_hop(url: str, target: str, is_followable: IsFollowable) -> None:
    if _looks_like_login(target) and not _looks_like_login(url):
        raise FetchError(target, LOGIN_REQUIRED, f"{url} asks to log in, at {target}")
    refusal = is_followable(target)
    if refusal:
        raise FetchError(target, refusal, f"{url} redirects to {target}: {refusal}")


def _looks_like_login(url: str) -> bool:
    parts = urlsplit(url)
    last_segment = parts.path.rstrip("/").rpartition("/")[2]
    return bool(LOGIN_SEGMENT.fullmatch(last_segment) or LOGIN_HOST.match(parts.netloc))


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


class _GuardedAdapter(HTTPAdapter):
    """Lets requests connect only through the address policy; the host name stays what Host, SNI and certificate see."""

    def __init__(self, policy: AddressPolicy, deadline: Deadline):
        self._pool_classes = _guarded_pool_classes(policy, deadline)
        super().__init__()

    def init_poolmanager(self, *args, **kwargs) -> None:
        tls = create_urllib3_context()
        tls.sslsocket_class = TLSSocket
        super().init_poolmanager(*args, ssl_context=tls, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._pool_classes


def _guarded_pool_classes(policy: AddressPolicy, deadline: Deadline) -> dict[str, type[HTTPConnectionPool]]:
    class GuardedConnection:
        def _new_conn(self) -> socket.socket:
            try:
                connected = policy.connect(self._dns_host, self.port, min(self.timeout, deadline.remaining_seconds()))
            except socket.gaierror as error:
                raise NameResolutionError(self.host, self, error) from error
            except TimeoutError as error:
                raise ConnectTimeoutError(self, f"{self.host} did not answer in time") from error
            except OSError as error:
                raise NewConnectionError(self, str(error)) from error
            plain = PlainSocket(fileno=connected.detach())
            plain.settimeout(self.timeout)
            return plain

        def connect(self) -> None:
            super().connect()
            self.sock.deadline = deadline

    class PlainConnection(GuardedConnection, HTTPConnection):
        pass

    class TLSConnection(GuardedConnection, HTTPSConnection):
        pass

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = PlainConnection

    class TLSPool(HTTPSConnectionPool):
        ConnectionCls = TLSConnection

    return {"http": PlainPool, "https": TLSPool}
