"""A customer's page on an origin of its own, with the widget's tag in it, as a real browser shows it."""

import threading
from dataclasses import dataclass, field
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tenants.models import ApiKey, Tenant
from tests.test_browser import PATIENCE_MS, SCREENSHOTS

PAGE = """<!doctype html>
<html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Harbour Lane</title>{links}</head>
<body><header><b>Harbour Lane Bicycles</b></header><main><h1>Bikes for every day</h1>
<p>We sell, repair and rent bicycles at the harbour. Every bike leaves our workshop checked twice.</p>
<div id="here">{before}{tag}</div>
<p>Come by between nine and six, or write to us. The kettle is always on.</p></main></body></html>"""
LINKS = '<link rel="icon" href="data:,"><link rel="stylesheet" href="/shop.css">'
CSS = """:root { color-scheme: light dark } body { margin: 0; font: 17px/1.6 Georgia, serif }
header { padding: 20px 6vw; background: #12324a; color: white } main { padding: 20px 6vw; max-width: 700px }
* { letter-spacing: .02em } button { background: red !important; font-size: 40px } p { color: #667 }
@media (prefers-color-scheme: dark) { body { background: #10181f; color: #dde } p { color: #aab } }"""


@dataclass
class Shop:
    """Use it as a context manager. What the page is made of can be changed before it is opened."""

    options: dict = field(default_factory=dict)  # of the tag: its data attributes, without "data-"
    policy: str = ""  # the page's Content-Security-Policy
    language: str = "en"
    before: str = ""
    script: str = "/widget/v1.js"
    integrity: str = ""
    server: str = ""  # the installation's address

    def __enter__(self) -> "Shop":
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                is_style = self.path == "/shop.css"
                body = (CSS if is_style else shop.html()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/css" if is_style else "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                if shop.policy:
                    self.send_header("Content-Security-Policy", shop.policy)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def html(self) -> str:
        traits = "".join(f' data-{name}="{escape(str(value))}"' for name, value in self.options.items())
        safe = f' integrity="{self.integrity}" crossorigin="anonymous"' if self.integrity else ""
        tag = f'<script src="{self.server}{self.script}"{traits}{safe} async></script>'
        links = "" if self.policy else LINKS  # a strict policy allows no style sheet either
        return PAGE.format(language=self.language, links=links, before=self.before, tag=tag)


class Visitor:
    """A visitor's browser: what it asked the network for, what it stored, and what its pages complained of."""

    def __init__(self, browser: Browser, **traits):
        traits = {"viewport": {"width": 1280, "height": 800}} | traits
        self.context: BrowserContext = browser.new_context(**traits)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.alerts: list[str] = []
        self.page = self.new_tab()

    def new_tab(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.on("request", lambda request: self.requests.append(f"{request.method} {request.url}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("dialog", lambda dialog: (self.alerts.append(dialog.message), dialog.dismiss()))
        return page

    def stored(self) -> dict:
        """Return all that the page's origin has stored in the browser."""
        kept = self.page.evaluate("({ ...sessionStorage, ...localStorage })")
        return kept | {cookie["name"]: cookie["value"] for cookie in self.context.cookies()}

    def close(self) -> None:
        self.context.close()


def field_of(page: Page) -> Locator:
    """Return where a question is typed."""
    return page.locator("sitewise-chat textarea")


def public_key(tenant: Tenant, *origins: str) -> str:
    """Return the text of a new public key for the model "support"."""
    kind = ApiKey.Kind.PUBLIC
    return ApiKey.mint(tenant=tenant, name="w", kind=kind, model_slugs=["support"], allowed_origins=list(origins))[1]


def look(page: Page, name: str) -> None:
    """Keep a picture of what is in view."""
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=Path(SCREENSHOTS) / f"widget-{name}.png", animations="disabled")


def open_chat(visitor: Visitor, shop: Shop) -> Page:
    """Go to the shop's page and open the chat; returns once it can be typed into."""
    visitor.page.goto(shop.origin)
    visitor.page.locator("sitewise-chat button.launch").click()
    expect(field_of(visitor.page)).to_be_visible()
    return visitor.page


def ask(page: Page, question: str) -> None:
    field_of(page).fill(question)
    field_of(page).press("Enter")
    expect(page.locator("sitewise-chat .tools").last).to_be_visible()
