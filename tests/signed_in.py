"""A real browser in which somebody is logged in, and what goes on beside it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect

from tests.test_browser import PATIENCE_MS, is_problem


@contextmanager
def signed_in_page(browser: Browser, address: str, client: Client) -> Iterator[Page]:
    """Give a page in which the client's person is logged in at the address; it must not complain."""
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": address}])
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)  # a busy machine takes longer than the five seconds it has by itself
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
    yield page
    context.close()
    assert problems == []


def beside_the_browser(function, *arguments, **options):
    """Return what the function does in a thread of its own: the browser's thread runs an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments, **options).result()
