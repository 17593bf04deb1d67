"""Decides which network addresses may be reached on a tenant's behalf, and connects to the very address it decided on.

A page to crawl and a tenant's provider URL come from outside and may point into the operator's own network. The
verdict falls on the resolved address, at connecting; `refuse_url` gives the same verdict early where it can.
"""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

import httpcore2
import httpx2

from tenants.public_addresses import (
    DEFAULT_PORTS,
    address_spelled_by,
    is_loopback_address,
    is_public_address,
    plain_host,
)

Resolver = Callable[[str, int], list[str]]
Dial = Callable[[str, int, float], socket.socket]

UNSAFE_IN_URL = re.compile(r"[\x00-\x20\x7f\\]")
KEEP_ALIVE_SECONDS = 5.0


class AddressRefused(Exception):
    """An address that may not be reached on a tenant's behalf."""

    def __init__(self, host: str, address: str, reason: str):
        self.host, self.address, self.reason = host, address, reason
        leads_to = f" leads to {address}" if address and address != host else ""
        super().__init__(f"{host}{leads_to}: {reason}" if host else reason)


def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses that the machine's own resolver knows for the host, each once.

    Errors: socket.gaierror if it knows none.
    """
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is no host name") from error
    return list(dict.fromkeys(answer[4][0] for answer in answers))


def dial_address(address: str, port: int, timeout_seconds: float) -> socket.socket:
    """Return a socket connected to the address, which is numeric: nothing is looked up any more."""
    connected = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.settimeout(timeout_seconds)
        connected.connect((address, port))
    except BaseException:
        connected.close()
        raise
    return connected


@dataclass(frozen=True)
class AddressPolicy:
    """What may be reached: public addresses, the hosts listed ("host" or "host:port"), and loopback if allowed."""

    allow_loopback: bool = False
    allowed_hosts: frozenset[str] = frozenset()
    resolver: Resolver = system_resolver
    dial: Dial = dial_address

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the host's addresses, all of them checked: a single closed one refuses the whole answer.

        Errors: AddressRefused; socket.gaierror if there is no address.
        """
        name = plain_host(host)
        try:
            literal = address_spelled_by(name)
        except ValueError as error:
            raise AddressRefused(name, "", f"not a web address ({error})") from error
        addresses = [literal] if literal else self.resolver(name, port)
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, f"{name} has no address")
        self.check(name, port, addresses)
        return addresses

    def check(self, name: str, port: int, addresses: list[str]) -> None:
        """Raise AddressRefused unless the host is listed or each of its addresses is open."""
        if self.is_listed(name, port):
            return
        for address in addresses:
            if not self.is_open(address):
                raise AddressRefused(name, address, "a private address, which may not be reached from here")

    def is_listed(self, host: str, port: int) -> bool:
        """Return whether the operator opened this host, or this port of it, by name."""
        name = plain_host(host)
        return not self.allowed_hosts.isdisjoint({name, _in_brackets(name), f"{_in_brackets(name)}:{port}"})

    def is_open(self, address: str) -> bool:
        """Return whether the address, by itself, may be reached."""
        return is_public_address(address) or (self.allow_loopback and is_loopback_address(address))

    def connect(self, host: str, port: int, timeout_seconds: float) -> socket.socket:
        """Return a socket connected to one of the very addresses that were checked; each gets its share of the time.

        Errors: AddressRefused; OSError, the last address's.
        """
        addresses = self.resolve(host, port)
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                return self.dial(address, port, timeout_seconds / len(addresses))
        return self.dial(addresses[-1], port, timeout_seconds / len(addresses))


def crawler_policy() -> AddressPolicy:
    """Return what the crawler may reach by the operator's settings."""
    from django.conf import settings

    return AddressPolicy(allow_loopback=settings.SITEWISE_ALLOW_LOOPBACK)


def provider_policy() -> AddressPolicy:
    """Return what a tenant's provider URL may reach: as the crawler, and besides the hosts that the operator lists."""
    from django.conf import settings

    listed = frozenset(host.strip().lower() for host in settings.SITEWISE_PROVIDER_HOSTS)
    return AddressPolicy(settings.SITEWISE_ALLOW_LOOPBACK, listed)


def operators_policy() -> AddressPolicy:
    """Return what may be reached in the operator's own name: the providers of the settings, wherever they are."""
    from django.conf import settings

    urls = filter(None, (settings.SITEWISE_LLM_URL, settings.SITEWISE_EMBEDDING_URL))
    return AddressPolicy(allowed_hosts=frozenset(map(_host_and_port, urls)))


def _host_and_port(url: str) -> str:
    parts = urlsplit(url)
    return f"{_in_brackets(plain_host(parts.hostname or ''))}:{parts.port or DEFAULT_PORTS.get(parts.scheme)}"


def _in_brackets(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def refuse_url(url: str, policy: AddressPolicy, look_up: bool = False) -> None:
    """Raise AddressRefused for a URL that could not or may not be reached, before anything is sent.

    A name is looked up only on request: just the look-up at connecting can be trusted. With `look_up` a form refuses a
    name that leads inside beside its field; a name that leads nowhere today is not refused.
    """
    host, port = _read_authority(url)
    is_loopback_name = host == "localhost" or host.endswith(".localhost")
    try:
        literal = "127.0.0.1" if is_loopback_name else address_spelled_by(host)
    except ValueError as error:
        raise AddressRefused(host, "", f"not a web address ({error})") from error
    if literal:
        policy.check(host, port, [literal])
    elif look_up:
        with contextlib.suppress(OSError):
            policy.resolve(host, port)


def _read_authority(url: str) -> tuple[str, int]:
    """Return host and port of a well-formed http or https URL."""
    if UNSAFE_IN_URL.search(url):
        raise AddressRefused("", "", "blanks, control characters and backslashes have no place in an address")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise AddressRefused("", "", f"not a web address ({error})") from error
    host = plain_host(parts.hostname or "")
    if parts.scheme not in DEFAULT_PORTS:
        raise AddressRefused(host, "", "only addresses that start with http:// or https:// can be reached")
    if "@" in parts.netloc:
        raise AddressRefused(host, "", "an address may not carry a user name or password")
    if not host or "%" in host:
        raise AddressRefused(host, "", "not a web address (it has no valid host name)")
    return host, DEFAULT_PORTS[parts.scheme] if port is None else port


def guarded_http_client(
    policy: AddressPolicy,
    timeout: float | httpx2.Timeout,
    tls: ssl.SSLContext | None = None,
    network: httpcore2.NetworkBackend | None = None,
) -> httpx2.Client:
    """Return a client that reaches only what the policy opens; it follows no redirect and uses no proxy.

    `tls` verifies servers (default: the system's authorities); `network` opens connections to checked addresses.
    """
    pool = httpcore2.ConnectionPool(
        ssl_context=tls or _system_authorities(),
        max_connections=None,
        keepalive_expiry=KEEP_ALIVE_SECONDS,
        network_backend=_GuardedNetwork(policy, network or httpcore2.SyncBackend()),
    )
    return httpx2.Client(transport=_GuardedTransport(pool), timeout=timeout, trust_env=False)


def guarded_async_http_client(
    policy: AddressPolicy,
    timeout: float | httpx2.Timeout,
    tls: ssl.SSLContext | None = None,
    network: httpcore2.AsyncNetworkBackend | None = None,
) -> httpx2.AsyncClient:
    """Return the asynchronous twin of guarded_http_client."""
    pool = httpcore2.AsyncConnectionPool(
        ssl_context=tls or _system_authorities(),
        max_connections=None,
        keepalive_expiry=KEEP_ALIVE_SECONDS,
        network_backend=_GuardedAsyncNetwork(policy, network or httpcore2.AnyIOBackend()),
    )
    return httpx2.AsyncClient(transport=_GuardedAsyncTransport(pool), timeout=timeout, trust_env=False)


@cache
def _system_authorities() -> ssl.SSLContext:
    """Return what verifies servers, read once: reading it takes milliseconds in which no answer is streamed."""
    return httpcore2.default_ssl_context()


class _GuardedNetwork(httpcore2.NetworkBackend):
    """Opens connections to the addresses that the policy has checked, and to nothing else."""

    def __init__(self, policy: AddressPolicy, network: httpcore2.NetworkBackend):
        self._policy, self._network = policy, network

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        with _named_as_connect_error():
            addresses = self._policy.resolve(host, port)
        share = timeout and timeout / len(addresses)
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return self._network.connect_tcp(address, port, share, local_address, socket_options)
        return self._network.connect_tcp(addresses[-1], port, share, local_address, socket_options)


class _GuardedAsyncNetwork(httpcore2.AsyncNetworkBackend):
    """The asynchronous twin of _GuardedNetwork; names are looked up in a thread."""

    def __init__(self, policy: AddressPolicy, network: httpcore2.AsyncNetworkBackend):
        self._policy, self._network = policy, network

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):  # noqa: ASYNC109
        with _named_as_connect_error():
            addresses = await asyncio.to_thread(self._policy.resolve, host, port)
        share = timeout and timeout / len(addresses)
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
        return await self._network.connect_tcp(addresses[-1], port, share, local_address, socket_options)


class _GuardedTransport(httpx2.BaseTransport):
    """Carries httpx2's requests over a guarded pool: its own transport takes no network of ours."""

    def __init__(self, pool: httpcore2.ConnectionPool):
        self._pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        with _named_as_httpx_error():
            response = self._pool.handle_request(_core_request(request))
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_GuardedStream(response.stream),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


class _GuardedAsyncTransport(httpx2.AsyncBaseTransport):
    """The asynchronous twin of _GuardedTransport."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool):
        self._pool = pool

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        with _named_as_httpx_error():
            response = await self._pool.handle_async_request(_core_request(request))
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_GuardedAsyncStream(response.stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _GuardedStream(httpx2.SyncByteStream):
    def __init__(self, stream):
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _named_as_httpx_error():
            yield from self._stream

    def close(self) -> None:
        self._stream.close()


class _GuardedAsyncStream(httpx2.AsyncByteStream):
    def __init__(self, stream):
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _named_as_httpx_error():
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def _core_request(request: httpx2.Request) -> httpcore2.Request:
    url = request.url
    target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
    return httpcore2.Request(
        request.method, target, headers=request.headers.raw, content=request.stream, extensions=request.extensions
    )


@contextlib.contextmanager
def _named_as_connect_error() -> Iterator[None]:
    """Give a failed look-up the name under which the pool knows failed connections."""
    try:
        yield
    except OSError as error:
        raise httpcore2.ConnectError(str(error)) from error


CORE_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)


@contextlib.contextmanager
def _named_as_httpx_error() -> Iterator[None]:
    """Turn an error of the pool into httpx2's of the same name, which its callers know."""
    try:
        yield
    except CORE_ERRORS as error:
        raise getattr(httpx2, type(error).__name__)(str(error)) from error
