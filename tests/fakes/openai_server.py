"""A local server that speaks OpenAI's protocol over real sockets, one scripted reply after another."""

import hashlib
import json
import random
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DONE = "[DONE]"


@dataclass
class Reply:
    """What the server does with one request: a plain body, or a stream of `data:` lines."""

    status: int = 200
    body: object = None  # a string is sent as it is, anything else as JSON
    chunks: list | None = None  # each a string sent as it is, or a mapping sent as JSON
    headers: dict = field(default_factory=dict)
    waits_seconds: float = 0  # before the first byte
    pause_seconds: float = 0  # between two chunks
    hangs: bool = False  # after what is sent, keeps the connection open in silence
    breaks_off: bool = False  # closes the connection in the middle of the body


@dataclass
class Request:
    """A request as it came in; `was_closed` is set once the client has hung up in the middle of a reply."""

    path: str
    query: str
    headers: dict  # names in small letters
    body: dict
    was_closed: threading.Event = field(default_factory=threading.Event)


def streamed(*texts: str, finish_reason: str = "stop", usage: tuple[int, int] | None = (9, 3), **how) -> Reply:
    """Return a reply that streams the texts as a well-behaved server does."""
    chunks = [delta(role="assistant", content=""), *(delta(content=text) for text in texts)]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]})
    if usage:
        chunks.append({"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
    return Reply(chunks=[*chunks, DONE], **how)


def delta(**fields) -> dict:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def whole(text: str, finish_reason: str = "stop", **how) -> Reply:
    """Return a reply that is not streamed."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return Reply(body={"id": "x", "object": "chat.completion", "choices": [choice]}, **how)


def refusal(status: int, message: str = "no", **fields) -> Reply:
    """Return an error in OpenAI's shape."""
    return Reply(status=status, body={"error": {"message": message, "type": "x", "param": None, "code": None} | fields})


def vectors(*rows: list, indexes: list[int] | None = None) -> Reply:
    """Return embeddings; indexes say which text each row belongs to, when not in order."""
    numbered = zip(indexes if indexes is not None else range(len(rows)), rows, strict=True)
    return Reply(body={"object": "list", "data": [{"index": index, "embedding": row} for index, row in numbered]})


class OpenAIServer:
    """Use it as a context manager. Replies come in the order given; without any left it answers something sensible."""

    def __init__(self, dimensions: int = 8):
        self.replies: list[Reply] = []
        self.requests: list[Request] = []
        self._dimensions = dimensions
        self._stopping = threading.Event()

    def __enter__(self) -> "OpenAIServer":
        server = self

        class Handler(_Handler):
            fake = server

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def will(self, *replies: Reply) -> "OpenAIServer":
        self.replies += replies
        return self

    def default_reply(self, request: Request) -> Reply:
        if request.path.endswith("/embeddings"):
            return vectors(*(self.vector_of(text) for text in request.body["input"]))
        return streamed("All ", "is ", "well.") if request.body.get("stream") else whole("All is well.")

    def vector_of(self, text: str) -> list[float]:
        """Return a vector that is always the same for a text, and unlike those of other texts."""
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        numbers = random.Random(seed)
        return [numbers.uniform(-1, 1) for _ in range(self._dimensions)]

    def pause(self, seconds: float) -> None:
        self._stopping.wait(seconds)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: OpenAIServer

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, query = self.path.partition("?")
        headers = {name.lower(): text for name, text in self.headers.items()}
        request = Request(path, query, headers, json.loads(raw))
        self.fake.requests.append(request)
        reply = self.fake.replies.pop(0) if self.fake.replies else self.fake.default_reply(request)
        self.close_connection = True
        try:
            self._send(reply, request)
        except (BrokenPipeError, ConnectionResetError):
            request.was_closed.set()

    def _send(self, reply: Reply, request: Request) -> None:
        self._pause(reply.waits_seconds, request)
        if reply.hangs and reply.chunks is None and reply.body is None:
            return self._hang(request)
        if reply.chunks is None:
            self._send_body(reply)
        else:
            self._send_stream(reply, request)
        if reply.hangs:
            self._hang(request)
        return None

    def _send_body(self, reply: Reply) -> None:
        body = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
        self._send_head(reply, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _send_stream(self, reply: Reply, request: Request) -> None:
        self._send_head(reply, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for number, chunk in enumerate(reply.chunks):
            self._pause(reply.pause_seconds if number else 0, request)
            line = f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        if not (reply.breaks_off or reply.hangs):
            self.wfile.write(b"0\r\n\r\n")

    def _send_head(self, reply: Reply, headers: dict) -> None:
        self.send_response(reply.status)
        for name, text in (headers | {"Connection": "close"} | reply.headers).items():
            self.send_header(name, text)
        self.end_headers()

    def _pause(self, seconds: float, request: Request) -> None:
        """Wait, and notice a client that hangs up meanwhile."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.fake._stopping.is_set():
            self._check_client(request, min(left, 0.05))

    def _hang(self, request: Request) -> None:
        while not self.fake._stopping.is_set():
            self._check_client(request, 0.05)

    def _check_client(self, request: Request, seconds: float) -> None:
        self.connection.settimeout(seconds)
        try:
            if self.connection.recv(1) == b"":
                raise BrokenPipeError
        except TimeoutError:
            pass
        finally:
            self.connection.settimeout(None)

    def log_message(self, *_):
        pass
