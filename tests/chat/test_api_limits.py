"""The public API's limits over a real socket: of a key, a visitor, a model and a month; and who counts as a visitor."""

from ipaddress import ip_network

import openai
import pytest
import requests
from openai import OpenAI

from chat.models import QuestionCount, Turn
from models_app import snippets
from tenants.models import ApiKey, RequestCount
from tests.live import live_url  # noqa: F401

SHOP = "https://shop.test"
QUESTION = [{"role": "user", "content": "When do you open?"}]


@pytest.fixture
def model(live_url, support):  # noqa: F811
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def make_key(acme, model):
    """Return the function that makes a key with these limits and gives its text."""

    def make(kind="secret", **limits) -> str:
        origins = [SHOP] if kind == "public" else []
        fields = {"name": kind, "kind": kind, "model_slugs": ["support"], "allowed_origins": origins}
        return ApiKey.mint(tenant=acme, **fields, **limits)[1]

    return make


@pytest.fixture
def ask(live_url):  # noqa: F811
    def send(key: str, body: dict | None = None, **headers):
        headers = {"Authorization": f"Bearer {key}"} | {name.replace("_", "-"): text for name, text in headers.items()}
        body = {"model": "support", "messages": QUESTION} | (body or {})
        return requests.post(f"{live_url}/v1/chat/completions", json=body, headers=headers, timeout=30)

    return send


def statuses(answers) -> list[int]:
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize("is_streamed", [False, True])
def test_over_a_keys_limit_the_answer_is_openais_with_the_time_to_wait(make_key, ask, is_streamed):
    key = make_key(requests_a_minute=2)
    first, second, third = (ask(key, {"stream": is_streamed}) for _ in range(3))
    assert (first.status_code, second.status_code) == (200, 200)
    remaining = [answer.headers["x-ratelimit-remaining-requests"] for answer in (first, second, third)]
    assert remaining == ["1", "0", "0"]
    assert {answer.headers["x-ratelimit-limit-requests"] for answer in (first, second, third)} == {"2"}
    assert third.status_code == 429
    error = third.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("requests", "rate_limit_exceeded", None)
    assert "This API key may make 2 requests a minute" in error["message"]
    assert 1 <= int(third.headers["Retry-After"]) <= 120
    assert third.headers["x-ratelimit-reset-requests"].endswith("s")
    assert "x-should-retry" not in third.headers
    assert Turn.objects.count() == QuestionCount.objects.get().count == 2


def test_openais_client_raises_its_own_error_and_knows_when_to_come_again(make_key, live_url):  # noqa: F811
    with OpenAI(base_url=f"{live_url}/v1", api_key=make_key(requests_a_minute=1), max_retries=0) as client:
        client.chat.completions.create(model="support", messages=QUESTION)
        with pytest.raises(openai.RateLimitError) as refused:
            client.chat.completions.create(model="support", messages=QUESTION)
    assert refused.value.code == "rate_limit_exceeded"
    assert int(refused.value.response.headers["Retry-After"]) >= 1


def test_a_keys_month_is_over_without_a_retry(make_key, ask):
    key = make_key(questions_a_month=1)
    assert statuses([ask(key)]) == [200]
    refused = ask(key)
    assert refused.json()["error"]["code"] == "insufficient_quota"
    assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
    assert int(refused.headers["Retry-After"]) > 0


def test_a_models_limit_holds_over_all_keys(make_key, ask, model):
    model.requests_a_minute = 2
    model.save()
    assert statuses([ask(make_key()), ask(make_key()), ask(make_key())]) == [200, 200, 429]


def test_one_key_that_is_at_its_limit_leaves_the_others_alone(make_key, ask):
    busy, quiet = make_key(requests_a_minute=1), make_key(requests_a_minute=1)
    assert statuses([ask(busy), ask(busy), ask(quiet)]) == [200, 429, 200]


def test_without_limits_nothing_is_counted_nor_told(make_key, ask):
    answer = ask(make_key())
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")]
    assert not RequestCount.objects.exists()


def test_a_servers_visitors_are_who_it_says_or_its_sessions(make_key, ask):
    key = make_key(visitor_requests_a_minute=1)
    ann, bob = {"user": "ann"}, {"safety_identifier": "bob"}
    assert statuses([ask(key, ann), ask(key, ann), ask(key, bob)]) == [200, 429, 200]
    session = {"metadata": {"session_id": "s1"}}
    assert statuses([ask(key, session), ask(key, session)]) == [200, 429]
    assert statuses([ask(key), ask(key)]) == [200, 200], "a server that names nobody"
    assert "One visitor may make 1 request a minute" in ask(key, ann).json()["error"]["message"]


def test_a_browsers_visitor_is_its_address_whatever_it_claims_to_be(make_key, ask):
    key = make_key("public", visitor_requests_a_minute=1)
    claims = [{"user": str(number), "metadata": {"session_id": str(number)}} for number in range(3)]
    answers = [ask(key, claim, Origin=SHOP, X_Forwarded_For=f"192.0.2.{n}") for n, claim in enumerate(claims)]
    assert statuses(answers) == [200, 429, 429]
    assert answers[1].headers["Access-Control-Allow-Origin"] == SHOP
    assert "Retry-After" in answers[1].headers["Access-Control-Expose-Headers"]


def test_behind_a_trusted_proxy_each_client_is_a_visitor_of_its_own(make_key, ask, settings):
    settings.SITEWISE_TRUSTED_PROXIES = (ip_network("127.0.0.0/8"),)
    key = make_key("public", visitor_requests_a_minute=1)
    wanted = ["192.0.2.1", "192.0.2.2", "192.0.2.9, 192.0.2.2"]
    answers = [ask(key, Origin=SHOP, X_Forwarded_For=forwarded) for forwarded in wanted]
    assert statuses(answers) == [200, 200, 429]


def test_no_address_is_stored_anywhere(make_key, ask, settings):
    settings.SITEWISE_TRUSTED_PROXIES = (ip_network("127.0.0.0/8"),)
    ask(make_key("public", visitor_requests_a_minute=5), Origin=SHOP, X_Forwarded_For="203.0.113.57")
    turn = Turn.objects.get()
    assert len(turn.visitor) == 32
    stored = [*map(vars, Turn.objects.all()), *map(vars, RequestCount.objects.all()), *map(vars, ApiKey.objects.all())]
    assert "203.0.113" not in str(stored)


def test_a_question_that_is_refused_for_its_form_does_not_count(make_key, ask):
    key = make_key(requests_a_minute=1)
    assert statuses([ask(key, {"messages": []}), ask(key, {"model": "never"}), ask(key)]) == [400, 404, 200]
