"""The public API behind Debian's nginx: pieces come one by one, each client is a visitor of its own."""

import http.client
import json
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from urllib.parse import urlsplit

import pytest
import requests

from chat.models import Turn
from models_app import snippets
from tenants.models import ApiKey
from tests.conftest import needs
from tests.fakes.openai_server import OpenAIServer, Reply, delta, streamed
from tests.live import live_url  # noqa: F401
from tests.nginx import NGINX, nginx_before

QUESTION = [{"role": "user", "content": "When do you open?"}]
PIECES = 10
PATIENCE_SECONDS = 20


@pytest.fixture
def llm():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def talker(live_url, support, llm):  # noqa: F811
    support.retrieval, support.llm, support.provider_base_url = "keyword", "small", llm.url
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def key(acme, talker) -> str:
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]


@pytest.fixture(params=["itself", "behind nginx"])
def address(request, live_url, tmp_path):  # noqa: F811
    if request.param == "itself":
        yield live_url
        return
    needs(NGINX is not None, "nginx")
    with nginx_before(live_url, tmp_path) as proxy:
        yield proxy


@pytest.fixture
def proxy(live_url, tmp_path):  # noqa: F811
    needs(NGINX is not None, "nginx")
    with nginx_before(live_url, tmp_path) as proxy:
        yield proxy


@contextmanager
def open_stream(address: str, key: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=PATIENCE_SECONDS)
    body = json.dumps({"model": "support", "messages": QUESTION, "stream": True})
    headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": "gzip, br", "Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", body, headers)
    response = connection.getresponse()
    yield response
    response.close()
    connection.close()


def words_of(response: http.client.HTTPResponse) -> Iterator[str]:
    """Yield each piece of the answer at the moment it arrives."""
    while line := response.readline():
        if b"word " in line:
            yield json.loads(line.removeprefix(b"data: "))["choices"][0]["delta"]["content"]


def said_once_heard(heard: threading.Semaphore) -> Iterator[dict]:
    """Yield an LLM's pieces, each only after the client has the one before: what is held back is never heard."""
    for number in range(PIECES):
        yield delta(content=f"word {number} ")
        if not heard.acquire(timeout=PATIENCE_SECONDS):
            return


def test_pieces_come_one_by_one_as_the_llm_says_them(address, key, llm, case):
    """Case S08: over a real socket and with the project's middleware, nothing waits for the end."""
    heard, words = threading.Semaphore(0), []
    llm.will(Reply(chunks=said_once_heard(heard)))
    with warnings.catch_warnings(), open_stream(address, key) as response:
        warnings.simplefilter("error")  # Django warns of a stream that it has to read to its end first
        for word in words_of(response):
            words.append(word)
            heard.release()
    assert words == [f"word {number} " for number in range(PIECES)]
    wanted = case("S08")["expected"]["headers"]
    assert response.headers["Content-Type"] == wanted["Content-Type"]
    assert wanted["Cache-Control"] in response.headers["Cache-Control"]
    assert "Content-Encoding" not in response.headers


def test_the_first_event_comes_before_the_llm_has_said_a_word(address, key, llm):
    llm.will(Reply(hangs=True))
    with open_stream(address, key) as response:
        assert response.readline().startswith(b'data: {"id": "chatcmpl-')


def test_a_visitor_who_leaves_is_noticed_through_the_proxy(proxy, key, llm):
    """Case S07: nginx closes its side, and with it the LLM's connection."""
    llm.will(streamed(*(f"word {number} " for number in range(50)), pause_seconds=0.1))
    with open_stream(proxy, key) as response:
        assert next(words_of(response)) == "word 0 "
    assert llm.requests[0].was_closed.wait(PATIENCE_SECONDS)
    for _ in range(500):
        if Turn.objects.filter(seconds__gt=0).exists():
            break
        time.sleep(0.02)
    assert Turn.objects.get().outcome == "disconnected"


def test_behind_the_proxy_a_client_counts_by_its_own_address_once_the_proxy_is_trusted(proxy, acme, talker, settings):
    fields = {"tenant": acme, "name": "widget", "kind": "public", "model_slugs": ["support"]}
    _, key = ApiKey.mint(**fields, allowed_origins=["https://shop.test"], visitor_requests_a_minute=1)
    settings.SITEWISE_TRUSTED_PROXIES = (ip_network("10.0.0.0/8"),)

    def ask() -> int:
        headers = {"Authorization": f"Bearer {key}", "Origin": "https://shop.test", "X-Forwarded-For": "192.0.2.1"}
        body = {"model": "support", "messages": QUESTION}
        return requests.post(f"{proxy}/v1/chat/completions", json=body, headers=headers, timeout=30).status_code

    assert [ask(), ask()] == [200, 429], "nginx itself is the visitor, whatever it says"
    settings.SITEWISE_TRUSTED_PROXIES = (ip_network("127.0.0.1"),)
    assert ask() == 200, "nginx says 192.0.2.1, 127.0.0.1: of both, the one that is not trusted"
    assert ask() == 429


def test_a_stream_that_nobody_reads_holds_up_no_other(address, key, llm):
    llm.will(Reply(chunks=[delta(content="word 0 ")], hangs=True), streamed("word 1 ", "word 2 "))
    with open_stream(address, key) as slow, open_stream(address, key) as quick:
        assert next(words_of(slow)) == "word 0 "
        assert list(words_of(quick)) == ["word 1 ", "word 2 "]
