"""The public API over a real socket: with OpenAI's own client, and with what no client of theirs would send."""

import http.client
import json
import socket
import sqlite3
import time
from contextlib import closing
from urllib.parse import urlsplit

import openai
import pytest
import requests
from openai import OpenAI

from chat.models import QuestionCount, Session, Turn
from models_app import snippets
from models_app.models import MLModel
from models_app.vectors import vectorise_missing
from tenants.models import ApiKey
from tenants.store import activated, store_of
from tests.damage import damage_table
from tests.fakes.openai_server import OpenAIServer, Reply, delta, refusal, streamed
from tests.live import live_url  # noqa: F401

SHOP = "https://shop.test"
QUESTION = [{"role": "user", "content": "When do you open?"}]
QUOTE = "> We open at 9.\n\n— [Opening hours](https://ex.test/hours)"


@pytest.fixture
def model(live_url, support):  # noqa: F811
    """A model without an LLM that knows one thing."""
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def llm():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def talker(model, llm):
    """The same model with an LLM of its own."""
    model.llm, model.provider_base_url = "small", llm.url
    model.save()
    return model


@pytest.fixture
def key(acme, model) -> str:
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support", "gone"])[1]


@pytest.fixture
def public_key(acme, model) -> str:
    kind = ApiKey.Kind.PUBLIC
    return ApiKey.mint(tenant=acme, name="widget", kind=kind, model_slugs=["support"], allowed_origins=[SHOP])[1]


@pytest.fixture
def client(live_url, key):  # noqa: F811
    with OpenAI(base_url=f"{live_url}/v1", api_key=key, max_retries=0) as running:
        yield running


@pytest.fixture
def post(live_url, key):  # noqa: F811
    """Return the function that posts a body as it is to the chat."""

    def send(body, api_key=key, **headers):
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        headers = {"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"} | headers
        return requests.post(f"{live_url}/v1/chat/completions", data=content, headers=headers, timeout=30)

    return send


def ask(client: OpenAI, **options):
    return client.chat.completions.create(**{"model": "support", "messages": QUESTION} | options)


def wait_for(is_so) -> None:
    """Wait for what a request does after its client has gone."""
    for _ in range(500):
        if is_so():
            return
        time.sleep(0.02)
    pytest.fail("it did not happen within ten seconds")


def sent_texts(llm: OpenAIServer) -> list[str]:
    return [message["content"] for message in llm.requests[-1].body["messages"]]


# --- With OpenAI's client ------------------------------------------------------------------------


def test_an_answer_in_one_has_openais_shape_and_our_sources(client):
    answer = ask(client)
    assert (answer.object, answer.model, answer.id[:9]) == ("chat.completion", "support", "chatcmpl-")
    assert abs(answer.created - time.time()) < 3_600
    choice = answer.choices[0]
    assert (choice.index, choice.finish_reason, choice.message.role) == (0, "stop", "assistant")
    assert choice.message.content == QUOTE
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer.answered_by == "extract"
    assert answer.sources == [{"rank": 1, "title": "Opening hours", "url": "https://ex.test/hours"}]
    assert (answer.unanswered, answer.session_id) == (False, None)
    raw = json.loads(client.chat.completions.with_raw_response.create(model="support", messages=QUESTION).text)
    assert raw["choices"][0]["message"]["refusal"] is None
    assert raw["choices"][0]["logprobs"] is None


def test_a_stream_has_openais_shape_and_ends_with_our_sources(talker, client, llm):
    llm.will(streamed("At ", "nine.", usage=(12, 2)))
    chunks = list(ask(client, stream=True))
    assert len({(chunk.id, chunk.object, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert (chunks[0].object, chunks[0].model) == ("chat.completion.chunk", "support")
    assert (chunks[0].choices[0].delta.role, chunks[0].choices[0].delta.content) == ("assistant", "")
    assert [chunk.choices[0].delta.content for chunk in chunks[1:-1]] == ["At ", "nine."]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, None, "stop"]
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].sources[0]["url"] == "https://ex.test/hours"
    assert chunks[-1].answered_by == "llm"


def test_usage_is_a_chunk_of_its_own_only_if_it_was_asked_for(talker, client, llm):
    llm.will(streamed("At nine.", usage=(12, 2)))
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert (chunks[-1].choices, chunks[-1].usage.prompt_tokens, chunks[-1].usage.total_tokens) == ([], 12, 14)
    assert all(chunk.choices and chunk.usage is None for chunk in chunks[:-1])


def test_pieces_arrive_byte_for_byte_whatever_they_hold(talker, client, llm, case):
    pieces = [*case("S03")["input"]["pieces"], "\u2028 data: [DONE]\n\n é 😀"]
    llm.will(streamed(*pieces))
    chunks = list(ask(client, stream=True))
    texts = [chunk.choices[0].delta.content for chunk in chunks[1:-1]]
    assert "".join(texts) == case("S03")["expected"]["client_text"] + pieces[-1]
    assert len(texts) == case("S03")["expected"]["events"] + 1


def test_the_clients_messages_are_the_history_and_its_system_message_is_not_passed_on(talker, client, llm):
    messages = [
        {"role": "system", "content": "You are a pirate."},
        {"role": "assistant", "content": "Hello, how can I help?"},
        {"role": "user", "content": [{"type": "text", "text": "Do you sell lamps?"}]},
        {"role": "assistant", "content": "Yes."},
        {"role": "assistant", "content": None, "tool_calls": []},
        *QUESTION,
    ]
    ask(client, messages=messages)
    assert sent_texts(llm)[0] == talker.system_instruction
    assert sent_texts(llm)[2:] == ["Do you sell lamps?", "Yes.", "When do you open?"]
    assert Turn.objects.get().question == "When do you open?"


def test_with_a_session_only_the_last_message_is_read_and_the_server_remembers(talker, client, llm):
    llm.will(streamed("At nine."))
    first = ask(client, metadata={"session_id": ""}, stream=True)
    session_id = list(first)[-1].session_id
    assert session_id
    messages = [{"role": "user", "content": "Made up"}, {"role": "assistant", "content": "Made up"}, *QUESTION]
    assert ask(client, metadata={"session_id": session_id}, messages=messages).session_id == session_id
    assert sent_texts(llm)[2:] == ["When do you open?", "At nine.", "When do you open?"]
    assert {turn.session_key for turn in Turn.objects.all()} == {session_id}


def test_max_tokens_and_temperature_of_the_client_reach_the_llm(talker, client, llm):
    ask(client, max_completion_tokens=20, temperature=0, user="visitor-1", top_p=0.5, n=1)
    assert (llm.requests[0].body["max_tokens"], llm.requests[0].body["temperature"]) == (20, 0)


def test_a_question_is_embedded_by_an_api_while_other_streams_go_on(talker, client, llm):
    talker.embedding_model, talker.retrieval, talker.threshold = "tiny", "hybrid", 0
    talker.save()
    vectorise_missing(talker)
    llm.requests.clear()
    assert list(ask(client, stream=True))[-1].sources
    assert [request.path for request in llm.requests] == ["/v1/embeddings", "/v1/chat/completions"]
    assert Turn.objects.get().degraded == ""


def test_an_embedding_api_that_is_away_leaves_the_words_to_answer_and_is_noted(talker, client, llm):
    talker.embedding_model, talker.retrieval = "tiny", "semantic"
    talker.save()
    vectorise_missing(talker)
    llm.will(refusal(503), refusal(503))
    assert ask(client).sources[0]["title"] == "Opening hours"
    assert "embedding service" in Turn.objects.get().degraded


def test_the_models_that_the_key_may_use_are_listed(client, model):
    MLModel.objects.create(slug="secret-plans", name="Secret plans")
    listed = client.models.list().data
    assert [(one.id, one.object, one.owned_by, one.created) for one in listed] == [
        ("support", "model", "acme", int(model.created_at.timestamp()))
    ]
    assert client.models.retrieve("support").id == "support"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("secret-plans")


# --- Errors --------------------------------------------------------------------------------------


def error_of(response) -> tuple[int, str, str, str]:
    assert response.headers["Content-Type"] == "application/json"
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return response.status_code, error["type"], error["code"], error["param"]


def test_a_wrong_missing_or_revoked_key_is_refused(client, post, key, live_url):  # noqa: F811
    refused = (401, "invalid_request_error", "invalid_api_key", None)
    assert error_of(post({}, api_key="sws_wrong")) == refused
    assert error_of(requests.get(f"{live_url}/v1/models", timeout=30)) == refused
    ApiKey.objects.update(revoked_at="2026-12-01T00:00:00Z")
    assert error_of(post({"model": "support", "messages": QUESTION})) == refused
    with pytest.raises(openai.AuthenticationError):
        ask(client)


def test_an_unknown_a_forbidden_and_another_tenants_model_look_the_same(post, acme, globex):
    MLModel.objects.create(slug="hidden", name="Hidden")
    with activated(globex):
        MLModel.objects.create(slug="gone", name="Not acme's")
    answers = [post({"model": slug, "messages": QUESTION}) for slug in ("hidden", "gone", "never")]
    bodies = {answer.text.replace(slug, "?") for answer, slug in zip(answers, ("hidden", "gone", "never"), strict=True)}
    assert len(bodies) == 1
    assert error_of(answers[0]) == (404, "invalid_request_error", "model_not_found", "model")


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": ["hello"]}, "messages.0"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "messages"),
        ({"messages": [*QUESTION, {"role": "assistant", "content": "x"}]}, "messages"),
        ({"model": None}, "model"),
        ({"model": ["support"]}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": []}, "stream_options"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"metadata": {"session_id": "x" * 101}}, "metadata.session_id"),
        ({"metadata": {"session_id": {}}}, "metadata.session_id"),
    ],
    ids=str,
)
def test_a_field_of_a_wrong_kind_is_named(post, change, param):
    status, kind, _, named = error_of(post({"model": "support", "messages": QUESTION} | change))
    assert (status, kind) == (400, "invalid_request_error")
    assert (named or "").startswith(param)


def test_unknown_fields_and_nulls_are_ignored(post):
    body = {"model": "support", "messages": [QUESTION[0] | {"name": "Ann", "x": 1}], "tools": [], "seed": 1, "foo": {}}
    nulls = dict.fromkeys(("stream", "stream_options", "metadata", "max_tokens", "temperature", "stop"))
    assert post(body | nulls).status_code == 200


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", '"x"', b"\xff\xfe", "[" * 100_000, '{"temperature": NaN}'],
    ids=lambda body: body[:20],
)
def test_a_body_that_is_no_json_object_is_refused(post, body):
    assert error_of(post(body))[:2] == (400, "invalid_request_error")


def test_halves_of_surrogate_pairs_and_nul_are_no_trouble(post):
    body = '{"model": "support", "messages": [{"role": "user", "content": "\\ud800 open \\u0000"}]}'
    assert post(body).status_code == 200
    assert "open" in Turn.objects.get().question


def test_a_body_that_is_too_large_is_refused(post):
    large = {"model": "support", "messages": [{"role": "user", "content": "x" * 3_000_000}]}
    assert error_of(post(large))[::2] == (413, "request_too_large")


def test_a_question_that_is_too_long_names_both_numbers(post):
    long = {"model": "support", "messages": [{"role": "user", "content": "open door " * 2_000}], "stream": True}
    answer = post(long)
    assert error_of(answer) == (400, "invalid_request_error", "context_length_exceeded", "messages")
    assert "4,001 tokens" in answer.text or "4,000 tokens" in answer.text
    assert "at most 1,000" in answer.text


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_used_up_quota_is_refused_and_not_retried(post, acme, is_streamed):
    acme.question_quota = 1
    acme.save()
    body = {"model": "support", "messages": QUESTION, "stream": is_streamed}
    assert post(body).status_code == 200
    answer = post(body)
    assert error_of(answer) == (429, "insufficient_quota", "insufficient_quota", None)
    assert answer.headers["x-should-retry"] == "false"
    assert QuestionCount.objects.get().count == 1


@pytest.mark.parametrize("path", ["/v1/", "/v1/nothing", "/v1/embeddings", "/v1/chat", "/v1/models/a/b"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_addresses_answer_in_the_same_shape(live_url, model, method, path):  # noqa: F811
    answer = requests.request(method, f"{live_url}{path}", timeout=30)
    assert error_of(answer) == (404, "invalid_request_error", "unknown_url", None)


def test_a_wrong_method_names_the_right_one(live_url, key):  # noqa: F811
    answer = requests.get(f"{live_url}/v1/chat/completions", headers={"Authorization": f"Bearer {key}"}, timeout=30)
    assert error_of(answer)[::2] == (405, "method_not_allowed")
    assert "POST" in answer.headers["Allow"]


def test_a_store_that_lacks_a_migration_is_unavailable_and_says_no_more(post, acme):
    with closing(sqlite3.connect(store_of(acme).path)) as database:
        database.execute("PRAGMA user_version = 1")
    answer = post({"model": "support", "messages": QUESTION})
    assert error_of(answer)[::2] == (503, "workspace_unavailable")
    assert "migrate" not in answer.text


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_store_damaged_past_its_header_is_unavailable(post, acme, is_streamed):
    damage_table(store_of(acme), "models_app_trainingsnippet")
    answer = post({"model": "support", "messages": QUESTION, "stream": is_streamed})
    error = json.loads(answer.text.split("data: ")[-1])["error"]
    assert (error["type"], error["code"]) == ("server_error", "workspace_unavailable")
    assert "malformed" not in answer.text
    assert answer.status_code == (200 if is_streamed else 503)


def test_an_llm_that_is_away_leaves_the_passages_to_answer(talker, client, llm):
    llm.will(refusal(503, "overloaded"), refusal(503, "overloaded"))
    answer = ask(client)
    assert answer.choices[0].message.content.startswith("> We open at 9.")
    assert (answer.choices[0].finish_reason, answer.answered_by) == ("stop", "extract")
    assert "overloaded" not in answer.to_json()
    turn = Turn.objects.get()
    assert (turn.outcome, "cannot be reached" in turn.degraded or "is away" in turn.degraded) == ("stop", True)


def test_a_timeout_leaves_the_passages_too(talker, client, llm, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.3
    llm.will(Reply(hangs=True))
    assert ask(client).answered_by == "extract"


def test_a_stream_that_breaks_ends_as_a_cut_answer_that_says_so(talker, client, post, llm, case):
    llm.will(*[Reply(chunks=case("S05")["input"]["cases"][1])] * 2)
    chunks = list(ask(client, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.startswith("You can ")
    assert "breaks off here" in text
    assert (chunks[-1].choices[0].finish_reason, chunks[-1].cut) == ("length", True)
    events = post({"model": "support", "messages": QUESTION, "stream": True}).text
    assert events.endswith("data: [DONE]\n\n")
    for word in case("S05")["expected"]["not_contains_in_answer"][:1]:
        assert word not in events


def test_what_the_guard_found_and_who_may_be_asked_instead_is_told(talker, client, llm):
    talker.takes_emails = True
    talker.save()
    llm.will(streamed("We open at 7 am."), streamed("I do not know."))
    answer = ask(client)
    assert (answer.unsupported, answer.offers_contact, answer.cut) == ([{"kind": "time", "text": "7 am"}], False, False)
    answer = client.chat.completions.create(model="support", messages=[{"role": "user", "content": "Giraffes?"}])
    assert (answer.unanswered, answer.offers_contact) == (True, True)


# --- The stream itself ---------------------------------------------------------------------------


def open_stream(live_url: str, key: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:  # noqa: F811
    connection = http.client.HTTPConnection(urlsplit(live_url).netloc, timeout=30)
    body = json.dumps({"model": "support", "messages": QUESTION, "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
    return connection, connection.getresponse()


def test_a_stream_begins_at_once_and_no_proxy_may_hold_it_back(talker, live_url, key, llm):  # noqa: F811
    llm.will(Reply(hangs=True))
    connection, response = open_stream(live_url, key)
    assert response.readline().startswith(b'data: {"id": "chatcmpl-'), "before the LLM has said a word"
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache, no-transform"
    assert response.headers["X-Accel-Buffering"] == "no"
    connection.close()


def test_the_last_line_of_a_stream_is_done_and_usage_is_not_even_named_unasked(post):
    text = post({"model": "support", "messages": QUESTION, "stream": True}).text
    assert '"usage"' not in text
    assert text.endswith("\n\ndata: [DONE]\n\n")
    assert all(line.startswith("data: ") or not line for line in text.split("\n"))


def test_a_visitor_who_leaves_closes_the_llm_and_is_logged_once(talker, live_url, key, llm):  # noqa: F811
    llm.will(streamed(*(f"word {number} " for number in range(50)), pause_seconds=0.1))
    connection, response = open_stream(live_url, key)
    while b"word 1 " not in response.readline():
        pass
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    assert llm.requests[0].was_closed.wait(5)
    wait_for(lambda: Turn.objects.filter(seconds__gt=0).exists())
    turn = Turn.objects.get()
    assert (turn.question, turn.outcome) == ("When do you open?", "disconnected")
    assert turn.answer.startswith("word 0 word 1 ")
    assert len(turn.answer) < 49 * len("word 1 ")


def test_a_visitor_who_leaves_an_unstreamed_answer_closes_the_llm_too(talker, live_url, key, llm):  # noqa: F811
    llm.will(Reply(chunks=[delta(content="You can ")], hangs=True))
    connection = http.client.HTTPConnection(urlsplit(live_url).netloc, timeout=30)
    body = json.dumps({"model": "support", "messages": QUESTION})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {key}"})
    wait_for(lambda: llm.requests)
    connection.close()
    assert llm.requests[0].was_closed.wait(5)
    wait_for(lambda: Turn.objects.filter(seconds__gt=0).exists())
    assert Turn.objects.get().outcome == "disconnected"


# --- From a browser ------------------------------------------------------------------------------


def preflight(live_url: str, origin: str, path: str = "/v1/chat/completions"):  # noqa: F811
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type, x-stainless-os",
    }
    return requests.options(f"{live_url}{path}", headers=headers, timeout=30)


def test_a_listed_origin_may_ask_with_a_public_key(post, live_url, public_key):  # noqa: F811
    allowed = preflight(live_url, SHOP)
    assert (allowed.status_code, allowed.headers["Access-Control-Allow-Origin"]) == (204, SHOP)
    assert "x-stainless-os" in allowed.headers["Access-Control-Allow-Headers"]
    answer = post({"model": "support", "messages": QUESTION}, public_key, Origin=SHOP)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, SHOP)
    assert "Origin" in answer.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    missing = post({"model": "gone", "messages": QUESTION}, public_key, Origin=SHOP)
    assert (missing.status_code, missing.headers["Access-Control-Allow-Origin"]) == (404, SHOP)


def test_other_origins_are_refused_without_being_let_read_it(post, live_url, public_key, key):  # noqa: F811
    for origin in ("https://evil-shop.test", "https://shop.test.evil.test", "null"):
        for answer in (
            preflight(live_url, origin),
            post({"model": "support", "messages": QUESTION}, public_key, Origin=origin),
        ):
            assert error_of(answer)[0] == 403
            assert "Access-Control-Allow-Origin" not in answer.headers
    assert error_of(post({"model": "support", "messages": QUESTION}, public_key))[0] == 403
    secret = post({"model": "support", "messages": QUESTION}, key, Origin=SHOP)
    assert "Access-Control-Allow-Origin" not in secret.headers


@pytest.mark.parametrize("change", [{"revoked_at": "2026-12-01T00:00:00Z"}, {"digest": "another"}])
def test_a_page_can_read_that_its_key_no_longer_works(post, live_url, public_key, change):  # noqa: F811
    ApiKey.objects.filter(kind="public").update(**change)
    assert preflight(live_url, SHOP).status_code == 204
    answer = post({"model": "support", "messages": QUESTION}, public_key, Origin=SHOP)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (401, SHOP)
    assert "Origin" in answer.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    elsewhere = post({"model": "support", "messages": QUESTION}, public_key, Origin="https://evil-shop.test")
    assert (elsewhere.status_code, "Access-Control-Allow-Origin" in elsewhere.headers) == (401, False)


def test_a_public_key_opens_nothing_but_the_chat(live_url, public_key):  # noqa: F811
    headers = {"Authorization": f"Bearer {public_key}", "Origin": SHOP}
    assert error_of(requests.get(f"{live_url}/v1/models", headers=headers, timeout=30))[0] == 403


def test_a_session_of_one_tenant_is_unknown_to_another(talker, client, globex, live_url, llm):  # noqa: F811
    ask(client, metadata={"session_id": "shared"})
    with activated(globex):
        MLModel.objects.create(slug="support", name="Theirs", llm="small", provider_base_url=llm.url)
        other_key = ApiKey.mint(tenant=globex, name="server", kind="secret", model_slugs=["support"])[1]
    with OpenAI(base_url=f"{live_url}/v1", api_key=other_key, max_retries=0) as others:
        ask(others, metadata={"session_id": "shared"})
    assert len(sent_texts(llm)) == 3
    assert Session.objects.count() == 1


def test_an_unknown_address_can_be_read_by_pages_of_listed_origins_only(live_url, public_key):  # noqa: F811
    for method in ("GET", "POST"):
        answer = requests.request(method, f"{live_url}/v1/embeddings", headers={"Origin": SHOP}, timeout=30)
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (404, SHOP)
    allowed = preflight(live_url, SHOP, "/v1/embeddings")
    assert (allowed.status_code, allowed.headers["Access-Control-Allow-Origin"]) == (204, SHOP)
    foreign = requests.get(f"{live_url}/v1/embeddings", headers={"Origin": "https://evil.test"}, timeout=30)
    assert foreign.status_code == 404 and "Access-Control-Allow-Origin" not in foreign.headers
