"""Real-world cases at the public API: what hostile, unlucky and impatient callers send, and what goes on meanwhile."""

import http.client
import json
import logging
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
import requests
from django.db import connections

from chat.answer import Asked, answer_question
from chat.models import Session, Turn
from models_app import snippets
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated, store_of, tenant_atomic
from tests.fakes.openai_server import OpenAIServer, Reply, delta, refusal, streamed
from tests.live import live_url  # noqa: F401

QUESTION = [{"role": "user", "content": "When do you open?"}]
PATIENCE_SECONDS = 30
Draft = namedtuple("Draft", ["prompt", "completion"])


@pytest.fixture
def llm():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(live_url, support):  # noqa: F811
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def talker(model, llm):
    model.llm, model.provider_base_url = "small", llm.url
    model.save()
    return model


@pytest.fixture
def key(acme, model) -> str:
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]


@pytest.fixture
def ask(live_url, key):  # noqa: F811
    def send(messages=QUESTION, api_key=key, origin=None, **fields):
        headers = {"Authorization": f"Bearer {api_key}"} | ({"Origin": origin} if origin else {})
        body = json.dumps({"model": "support", "messages": messages} | fields, ensure_ascii=False).encode()
        return requests.post(f"{live_url}/v1/chat/completions", data=body, headers=headers, timeout=PATIENCE_SECONDS)

    return send


def test_a_few_requests_whose_llm_hangs_hold_up_no_other(talker, ask, llm, live_url, key):  # noqa: F811
    """Case S06: an open stream holds no thread."""
    llm.will(*[Reply(chunks=[delta(content="We ")], hangs=True)] * 20, streamed("At ", "nine."))
    body = json.dumps({"model": "support", "messages": QUESTION, "stream": True})
    with ExitStack() as open_ones:
        for _ in range(20):
            connection = http.client.HTTPConnection(urlsplit(live_url).netloc, timeout=PATIENCE_SECONDS)
            open_ones.callback(connection.close)
            connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
            response = connection.getresponse()
            while b"We " not in response.readline():
                pass
        assert ask().json()["choices"][0]["message"]["content"] == "At nine."


def test_questions_are_answered_and_logged_while_a_crawl_writes(model, ask, acme):
    """Case Q02: 5,000 snippets are stored meanwhile, in batches as the crawler's are."""

    def write() -> None:
        with activated(acme):
            for page in range(50):
                drafts = [Draft(f"Page {page} {number}", f"Text {page} {number}") for number in range(100)]
                with tenant_atomic():
                    snippets.replace_page_snippets(model, f"https://ex.test/{page}", drafts)

    with ThreadPoolExecutor(5) as pool:
        writing = pool.submit(write)
        statuses = list(pool.map(lambda _: ask().status_code, range(100)))
        writing.result(PATIENCE_SECONDS * 4)
    assert statuses == [200] * 100
    assert Turn.objects.filter(outcome="stop").count() == 100


def test_origins_are_compared_whole_at_the_api_too(acme, model, ask, case):
    """Case X13; without any Origin a public key is not enough."""
    given, wanted = case("X13")["input"], case("X13")["expected"]["allowed"]
    fields = {"tenant": acme, "name": "w", "kind": "public", "model_slugs": ["support"]}
    public = ApiKey.mint(**fields, allowed_origins=given["allowed_domains"])[1]
    for origin, is_allowed in zip(given["origins"], wanted, strict=True):
        answer = ask(api_key=public, origin=origin)
        assert answer.status_code == (200 if is_allowed is True else 403), origin
        assert answer.headers.get("Access-Control-Allow-Origin") == (origin if is_allowed is True else None)
        assert "Access-Control-Allow-Credentials" not in answer.headers
        assert "Origin" in answer.headers["Vary"]


def test_no_part_of_a_providers_key_surfaces_anywhere(talker, ask, llm, browse, ann, caplog, case):
    """Case X15: the provider quotes the key in its refusal; so does the address, for those who put it there."""
    secret = case("X15")["input"]["key"]
    talker.provider_key, talker.provider_base_url = secret, f"{llm.url}?key={secret}"
    talker.save()
    llm.will(*[refusal(401, f"Incorrect API key provided: {secret}")] * 4)
    with caplog.at_level(logging.DEBUG):
        answers = [ask(), ask(stream=True)]
        turn = Turn.objects.first()
        owner = browse(ann)
        pages = [owner.get(f"/acme/support/history/{turn.pk}/"), owner.get("/acme/support/history/")]
    assert llm.requests[0].headers["authorization"] == f"Bearer {secret}", "else this would test nothing"
    told = [answer.text for answer in answers] + [page.content.decode() for page in pages]
    told += [caplog.text, str(list(Turn.objects.values()))]
    for part in case("X15")["expected"]["not_contains_anywhere"]:
        assert not [text for text in told if part in text]


def test_two_tabs_of_one_session_are_both_remembered(talker, ask, llm):
    llm.will(*[streamed("One. ", "Two.", pause_seconds=0.3) for _ in range(4)])
    with ThreadPoolExecutor(4) as tabs:
        sent = [[{"role": "user", "content": f"Question {number}?"}] for number in range(4)]
        answers = list(tabs.map(lambda messages: ask(messages, metadata={"session_id": "shared"}), sent))
    assert [answer.status_code for answer in answers] == [200] * 4
    memory = Session.objects.get().memory
    assert sorted(question for question, _ in memory) == [f"Question {number}?" for number in range(4)]
    assert {answer for _, answer in memory} == {"One. Two."}


def test_a_session_of_another_tenant_or_model_is_not_there(talker, ask, llm, acme, globex):
    with activated(globex):
        other = MLModel.objects.create(slug="support", name="S")
        Session.objects.create(model=other, key="s1", memory=[["Secret?", "Xylophone"]], last_used_at=datetime.now(UTC))
    sales = MLModel.objects.create(slug="sales", name="Sales")
    Session.objects.create(model=sales, key="s1", memory=[["Secret?", "Xylophone"]], last_used_at=datetime.now(UTC))
    assert ask(metadata={"session_id": "s1"}).status_code == 200
    assert "Xylophone" not in json.dumps(llm.requests[0].body)
    with activated(globex):
        assert Session.objects.get().memory == [["Secret?", "Xylophone"]]


@pytest.mark.parametrize("letter", ["😀", "é", "a", " a", "\u202e", "漢", "\u0301", "\n"], ids=ascii)
def test_a_megabyte_of_unicode_is_refused_as_a_question_and_left_out_as_history(model, ask, letter):
    text = (letter * 1_000_000).encode()[:1_000_000].decode("utf-8", "ignore")
    asked = ask([{"role": "user", "content": f"When? {text}"}])
    assert asked.status_code in ((200,) if not text.strip() else (400,)), asked.text[:200]
    history = [{"role": "user", "content": f"Hello {text}"}, {"role": "assistant", "content": "Hello."}]
    assert ask([*history, *QUESTION]).json()["sources"][0]["title"] == "Opening hours"


@pytest.mark.parametrize(
    ("jump", "remembered"), [(timedelta(days=-400), 2), (timedelta(days=400), 1), (timedelta(seconds=-5), 4)]
)
async def test_a_clock_that_jumps_costs_at_most_the_memory(transactional_db, acme, jump, remembered):
    def prepare() -> MLModel:
        model = MLModel.objects.create(slug="support", name="Support", retrieval="keyword")
        snippets.add(model, "Opening hours", "We open at 9.")
        return model

    store, noon = store_of(acme), datetime(2026, 12, 7, 12, tzinfo=UTC)
    model = await store.run(prepare)
    for moment in (noon, noon + jump, noon, noon + jump):
        asked = Asked(model=model, question="When do you open?", session_key="s1", question_quota=100)
        events = [event async for event in answer_question(store, asked, lambda moment=moment: moment)]
        assert "We open at 9." in events[-1].text
    count = await store.run(lambda: len(Session.objects.get().memory))
    assert count == remembered
    connections.close_all()
