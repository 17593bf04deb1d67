"""What the browser's tests of the widget share: Acme's model behind a foreign page, and a visitor of it."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from models_app import snippets
from models_app.models import MLModel
from tenants.store import activated
from tests.chat.widget.shop import Shop, Visitor, public_key
from tests.fakes.openai_server import OpenAIServer
from tests.live import live_url  # noqa: F401  a fixture
from tests.signed_in import beside_the_browser
from tests.test_browser import browser  # noqa: F401  a fixture


@pytest.fixture
def llm() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(support, llm) -> MLModel:
    """Acme's model with an LLM, a greeting, three starters and two snippets."""
    support.retrieval, support.llm, support.provider_base_url = "keyword", "small", llm.url
    support.greeting = "Hello! I know everything about our bikes, shipping and repairs."
    support.conversation_starters = "How much is shipping?\nWhen are you open?\nDo you repair e-bikes?"
    support.save()
    snippets.add(support, "Shipping costs", "Shipping is free from 50 EUR.", uri="https://shop.test/shipping")
    snippets.add(support, "How long does shipping take?", "Shipping takes two days.", uri="https://shop.test/faq")
    return support


@pytest.fixture
def shop(live_url, model, acme) -> Iterator[Shop]:  # noqa: F811
    """A page of another origin, with the widget's tag in it and a key that lists the page's origin."""
    with Shop(server=live_url) as running:
        running.options = {"key": public_key(acme, running.origin), "model": model.slug}
        yield running


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:  # noqa: F811
    visiting = Visitor(browser)
    yield visiting
    visiting.close()


@pytest.fixture
def stored(acme) -> Callable:
    """Return the function that gives what another one reads of Acme's store: the browser's thread cannot."""

    def read(function, *arguments):
        with activated(acme):
            return function(*arguments)

    return lambda function, *arguments: beside_the_browser(read, function, *arguments)
