"""How the crawler's requests get on the network: only to addresses that were checked, and within a page's deadline.

Which addresses may be reached is tenants/addresses.py's matter; what is asked and read is fetch.py's.
"""

import socket
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.cookies import RequestsCookieJar, extract_cookies_to_jar, get_cookie_header
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.util.ssl_ import create_urllib3_context

from crawler.web.deadline import Deadline, PlainSocket, TLSSocket
from tenants.addresses import AddressPolicy

# A cookie that names no domain goes back to the very host that set it.
COOKIES_AS_BROWSERS = DefaultCookiePolicy(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)


class CrawlSession(Session):
    """Keeps a crawl's cookies as a browser would; requests' own sessions also send them to a host's subdomains."""

    def __init__(self) -> None:
        super().__init__()
        self.cookies = RequestsCookieJar(policy=COOKIES_AS_BROWSERS)

    def ask(self, url: str, headers: Mapping[str, str], timeout: float) -> Response:
        """Return the answer to a GET, its body still to be read and its redirect still to be followed.

        What `get` weighs besides (proxies, passwords, parameters, hooks) no crawl has, and it took as long as the rest.
        """
        request = PreparedRequest()
        request.prepare_method("GET")
        request.prepare_url(url, None)
        request.prepare_headers({**self.headers, **headers})
        cookies = get_cookie_header(self.cookies, request)
        if cookies:
            request.headers["Cookie"] = cookies
        answer = self.get_adapter(request.url).send(request, stream=True, timeout=timeout, verify=self.verify)
        extract_cookies_to_jar(self.cookies, request, answer.raw)
        return answer


class GuardedAdapter(HTTPAdapter):
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
