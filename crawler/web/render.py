"""Draws pages that are empty without their scripts, in a local Chromium that has no network of its own.

Whatever a page asks for is fetched by the crawl's own WebClient, under its checks of addresses, sizes and time. The
browser runs in a thread of its own; all fetching stays in the caller's, who waits there.
"""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

from crawler.web.fetch import PAGE, FetchedPage, FetchError, IsFollowable, Wanted, WebClient

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request, Route

PAGE_SECONDS = 20.0
# What closing a page or a browser may take before it is left behind.
PATIENCE_SECONDS = 5.0
START_SECONDS = 30.0
MAX_REQUESTS = 150
MAX_BYTES = 30_000_000
MAX_REDIRECTS = 5
# Images, fonts, sound and frames of others change no text; a beacon and a socket only report or never end.
RESOURCE_TYPES = frozenset({"script", "stylesheet", "xhr", "fetch"})
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--no-pings",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--js-flags=--max-old-space-size=512",
)
# Ways to other computers that are no requests of a page, and so would never be asked about.
CLOSE_OTHER_WAYS = (
    "for (const name of ['RTCPeerConnection', 'webkitRTCPeerConnection', 'WebTransport']) delete globalThis[name];"
)
# The browser runs strangers' scripts: it is not told the secrets of this process.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class RenderError(Exception):
    """A page that could not be drawn; the message is for people."""

    def __init__(self, message: str):
        self.message = message
        super().__init__(message)


def is_available() -> bool:
    """Return whether pages can be drawn here: Playwright and a Chromium are installed."""
    return importlib.util.find_spec("playwright") is not None and bool(find_chromium())


def find_chromium() -> str:
    """Return the path of the Chromium to use, or "" if there is none."""
    from django.conf import settings

    return settings.SITEWISE_CHROMIUM or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), "")


@dataclass(frozen=True)
class _Question:
    """An address that the page asks for; the answer is None where it is not to be had."""

    url: str
    is_document: bool
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[FetchedPage | None]"

    def settle(self, page: FetchedPage | None) -> None:
        def set_result() -> None:
            if not self.answer.done():
                self.answer.set_result(page)

        with contextlib.suppress(RuntimeError):  # the browser's thread has ended meanwhile
            self.loop.call_soon_threadsafe(set_result)


class Renderer:
    """Draws the pages of one crawl, one after the other; its browser starts with the first. For one thread.

    `is_allowed` says of each address whether robots.txt lets us ask for it.
    """

    def __init__(
        self,
        client: WebClient,
        is_allowed: Callable[[str], bool] = lambda url: True,
        timeout_seconds: float = PAGE_SECONDS,
    ):
        self._client, self._is_allowed, self._timeout_seconds = client, is_allowed, timeout_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._chromium = _Chromium(client.user_agent)

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser, if it was started, and its thread."""
        if self._loop is None:
            return
        ended = asyncio.run_coroutine_threadsafe(self._chromium.stop(), self._loop)
        with contextlib.suppress(TimeoutError):
            ended.result(3 * PATIENCE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_SECONDS)
        self._loop = self._thread = None

    def render(self, url: str, is_followable: IsFollowable) -> str:
        """Return the HTML of the page after its scripts have run: when it asks for nothing more, or in time at least.

        `is_followable` is asked of each redirect of the page itself. Errors: RenderError.
        """
        if not is_available():
            raise RenderError(
                "Drawing pages takes Playwright and a Chromium, which are not both installed: "
                ".venv/bin/pip install -e .[render], and the system's package chromium."
            )
        questions: SimpleQueue[_Question | None] = SimpleQueue()
        drawing = _Drawing(url, self._timeout_seconds, questions)
        drawn = asyncio.run_coroutine_threadsafe(self._chromium.draw(drawing), self._running_loop())
        drawn.add_done_callback(lambda _: questions.put(None))
        while question := questions.get():
            question.settle(self._fetch(question, drawing, is_followable))
        html = drawn.result()
        if len(html) > self._client.max_body_bytes:
            raise RenderError(f"{url} grew beyond {self._client.max_body_bytes:,} characters while its scripts ran.")
        return html

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="renderer", daemon=True)
            self._thread.start()
        return self._loop

    def _fetch(self, question: _Question, drawing: "_Drawing", is_followable: IsFollowable) -> FetchedPage | None:
        """Return what the page asks for, or None if it may not or cannot be had."""
        seconds = drawing.ends_at - monotonic()
        room = MAX_BYTES - drawing.fetched_bytes
        if seconds <= 0 or room <= 0 or not self._is_allowed(question.url):
            return None
        wanted = Wanted(
            kinds=PAGE.kinds if question.is_document else frozenset(),
            max_body_bytes=min(self._client.max_body_bytes, room),
            max_redirects=MAX_REDIRECTS,
            timeout_seconds=seconds,
            is_tried_again=False,
        )
        try:
            page = self._client.fetch(question.url, is_followable if question.is_document else self._refuse_hop, wanted)
        except FetchError as error:
            if question.is_document:
                drawing.failure = error.message
            return None
        drawing.fetched_bytes += len(page.body)
        return page

    def _refuse_hop(self, target: str) -> str | None:
        return None if self._is_allowed(target) else "disallowed by robots"


@dataclass
class _Drawing:
    """One page while it is drawn: until when, what it asked for, and what became of the page itself."""

    url: str
    seconds: float
    questions: "SimpleQueue[_Question | None]"
    ends_at: float = float("inf")
    request_count: int = 0
    fetched_bytes: int = 0
    is_document_asked: bool = False
    is_document_had: bool = False
    failure: str = ""

    async def answer(self, route: "Route") -> None:
        """Answer a request of the page with what the caller's thread fetches, or not at all."""
        request = route.request
        is_document = self._is_own_document(request)
        if request.is_navigation_request() and not is_document:
            await route.fulfill(status=204)  # the page stays as it is; an abort would show the browser's own
            return
        if not is_document and (request.method != "GET" or request.resource_type not in RESOURCE_TYPES):
            await route.abort()
            return
        self.is_document_asked |= is_document
        self.request_count += 1
        page = await self._ask(request.url, is_document) if self.request_count <= MAX_REQUESTS else None
        if page is None:
            await route.abort()
            return
        origin = request.headers.get("origin", "")
        # The rules of other sites on who may read them protect their visitors' logins, and we have none.
        shared = {"Access-Control-Allow-Origin": origin or "*", "Access-Control-Allow-Credentials": "true"}
        content_type = "text/html; charset=utf-8" if is_document else page.content_type
        body = page.text.encode() if is_document else page.body
        self.is_document_had |= is_document
        await route.fulfill(status=200, headers={"Content-Type": content_type, **shared}, body=body)

    def _is_own_document(self, request: "Request") -> bool:
        """Return whether the request is the first for the page itself: scripts may not lead it elsewhere."""
        return request.is_navigation_request() and not self.is_document_asked and request.url == self.url

    async def _ask(self, url: str, is_document: bool) -> FetchedPage | None:
        loop = asyncio.get_running_loop()
        question = _Question(url, is_document, loop, loop.create_future())
        self.questions.put(question)
        return await question.answer


class _Chromium:
    """The browser, in its own thread's event loop: started when it is first needed, and anew after it hung."""

    def __init__(self, user_agent: str):
        self._user_agent = user_agent
        self._ending = contextlib.AsyncExitStack()
        self._browser: Browser | None = None

    async def draw(self, drawing: _Drawing) -> str:
        """Return the page's HTML. Errors: RenderError."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(START_SECONDS + drawing.seconds + 2 * PATIENCE_SECONDS):
                await self._start()
                return await self._draw_in_context(drawing)
        except (Error, TimeoutError) as error:
            await self.stop()
            reason = drawing.failure or str(error).partition("\n")[0] or "it did not come to an end in time"
            raise RenderError(f"{drawing.url} could not be drawn: {reason}") from error

    async def stop(self) -> None:
        """End the browser and what drives it, whatever state they are in."""
        from playwright.async_api import Error

        ending, self._ending, self._browser = self._ending, contextlib.AsyncExitStack(), None
        with contextlib.suppress(Error, TimeoutError):
            async with asyncio.timeout(2 * PATIENCE_SECONDS):
                await ending.aclose()

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        if self._browser and self._browser.is_connected():
            return
        await self.stop()
        # Nobody listens at this port, and nobody else can take it: what leaves the browser by itself ends there.
        dead_end = self._ending.enter_context(socket.socket())
        dead_end.bind(("127.0.0.1", 0))
        playwright = await self._ending.enter_async_context(async_playwright())
        self._browser = await playwright.chromium.launch(
            executable_path=find_chromium(),
            args=CHROMIUM_ARGUMENTS,
            chromium_sandbox=os.geteuid() != 0,  # Chromium refuses to make one for root
            proxy={"server": f"http://127.0.0.1:{dead_end.getsockname()[1]}", "bypass": "<-loopback>"},
            env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        )

    async def _draw_in_context(self, drawing: _Drawing) -> str:
        context = await self._browser.new_context(
            user_agent=self._user_agent, service_workers="block", accept_downloads=False
        )
        await context.add_init_script(CLOSE_OTHER_WAYS)
        await context.route("**/*", drawing.answer)
        page = await context.new_page()
        context.on("page", lambda opened: asyncio.ensure_future(opened.close()))
        html = await _html_of(page, drawing, context)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await context.close()
        return html


async def _html_of(page: "Page", drawing: _Drawing, context: "BrowserContext") -> str:
    from playwright.async_api import TimeoutError as PlaywrightTimeout

    debugger = await context.new_cdp_session(page)
    drawing.ends_at = monotonic() + drawing.seconds  # a slow start of the browser takes none of the page's time
    with contextlib.suppress(PlaywrightTimeout):  # what stands there by then is the page
        await page.goto(drawing.url, wait_until="networkidle", timeout=1000 * drawing.seconds)
    if not drawing.is_document_had:
        raise TimeoutError
    async with asyncio.timeout(PATIENCE_SECONDS):
        # A script that never ends would keep the page from being read.
        await debugger.send("Emulation.setScriptExecutionDisabled", {"value": True})
        await debugger.send("Runtime.terminateExecution")
        return await page.content()
