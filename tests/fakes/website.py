"""A small website on loopback, scripted per test: what each path answers, and what was really asked of it."""

import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """One request as it arrived. `path` holds the query too; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def host(self) -> str:
        return self.headers.get("host", "")


@dataclass(frozen=True)
class Answer:
    """What a path answers. Content-Length is set unless given; a content type of None sends none.

    `pieces` are sent one by one with `pause_seconds` between them, without a length, until the connection ends;
    `raw` are the very bytes of the whole answer; `is_dropped` ends the connection without a word.
    """

    body: str | bytes = b""
    status: int = 200
    content_type: str | None = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes] | None = None
    pause_seconds: float = 0.0
    raw: Iterable[bytes] | None = None
    is_dropped: bool = False


Script = Answer | str | bytes | Callable[[Request], "Answer | str | bytes"]


def page(text: str, *links: str, title: str = "Page") -> str:
    """Return a plain page with a main part that holds the text and the links."""
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    return f"<!doctype html><title>{title}</title><main><h1>{title}</h1><p>{text}</p>{anchors}</main>"


def redirect(location: str, status: int = 302, **headers: str) -> Answer:
    """Return an answer that sends the client elsewhere; keywords are further headers, `Set_Cookie="ok=1"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, headers={"Location": location, **named})


class Website:
    """Serves `paths` (path, with or without its query -> Script) while it is open as a context; 404 for the rest.

    Every host name leads to the same answers, unless the path is given as "//host/path".
    """

    def __init__(self, paths: Mapping[str, Script] | None = None, tls: ssl.SSLContext | None = None):
        self.paths: dict[str, Script] = dict(paths or {})
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        """Return the path's address on this website, under any host name that the test's resolver sends here."""
        return f"{self._scheme}://{host}:{self.port}{path}"

    def asked(self, path: str) -> int:
        """Return how often the path was requested; given as "//host/path" only requests to that host count."""
        host, path = _split_host(path)
        return sum(
            request.path == path and (not host or request.host.split(":")[0] == host) for request in self.requests
        )

    @property
    def asked_paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def answer(self, request: Request) -> Answer:
        """Return the scripted answer for a request, and remember that it was made."""
        self.requests.append(request)
        host = request.host.split(":")[0]
        bare = urlsplit(request.path).path
        for key in (f"//{host}{request.path}", f"//{host}{bare}", request.path, bare):
            if key in self.paths:
                script = self.paths[key]
                said = script(request) if callable(script) else script
                return said if isinstance(said, Answer) else Answer(said)
        return Answer("<h1>Not found</h1>", status=404)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _split_host(path: str) -> tuple[str, str]:
    if not path.startswith("//"):
        return "", path
    host, _, rest = path[2:].partition("/")
    return host, f"/{rest}"


def _handler_of(website: Website) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # head and body are two packets; the second would wait for 40 ms

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = website.answer(Request(self.command, self.path, headers, self.rfile.read(length)))
            try:
                self._send(answer)
            except (ConnectionError, ssl.SSLError):
                self.close_connection = True

        do_POST = do_HEAD = do_GET

        def _send(self, answer: Answer) -> None:
            if answer.is_dropped:
                self.close_connection = True
            elif answer.raw is not None:
                self._send_pieces(answer.raw, answer.pause_seconds)
            else:
                self._send_head(answer)
                if answer.pieces is not None:
                    self._send_pieces(answer.pieces, answer.pause_seconds)
                elif self.command != "HEAD":
                    self.wfile.write(_as_bytes(answer.body))

        def _send_head(self, answer: Answer) -> None:
            self.send_response(answer.status)
            if answer.content_type is not None:
                self.send_header("Content-Type", answer.content_type)
            if answer.pieces is None and "Content-Length" not in answer.headers:
                self.send_header("Content-Length", str(len(_as_bytes(answer.body))))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _send_pieces(self, pieces: Iterable[bytes], pause_seconds: float) -> None:
            self.close_connection = True
            for piece in pieces:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(pause_seconds)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    return Handler


def _as_bytes(body: str | bytes) -> bytes:
    return body.encode() if isinstance(body, str) else body
