"""The port to chat LLMs, against a real server that behaves well, badly, or not at all."""

import asyncio
import json
import logging

import pytest

from models_app.llm import (
    THOUGHT_TOKENS,
    Deadlines,
    Ending,
    LLMError,
    Piece,
    Provider,
    Reason,
    Usage,
    complete_json,
    stream_answer,
)
from models_app.models import MLModel
from models_app.providers import answering_providers, chat_provider, splitter_provider
from tenants.addresses import operators_policy
from tests.fakes.openai_server import OpenAIServer, Reply, delta, refusal, streamed, whole

KEY = "sk-live-7f3a9c2e51d84b60"
MESSAGES = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"title": {"type": "string", "maxLength": 80}}, "required": ["title"]}


NO_PROTOCOL = pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<!doctype html><h1>Welcome</h1>", headers={"Content-Type": "text/html"}),
        Reply(body="null"),
        Reply(body='{"choices": [{"mess'),
        Reply(body={"hello": "world"}),
        Reply(body=""),
    ],
    ids=["a page", "null", "broken JSON", "other JSON", "nothing"],
)


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def provider(server):
    return Provider(server.url, KEY, "small", 8_192)


async def answer_of(provider: Provider) -> tuple[list[str], Ending]:
    parts = [part async for part in stream_answer(provider, MESSAGES, max_tokens=50, temperature=0.2)]
    assert all(isinstance(part, Piece) for part in parts[:-1])
    return [part.text for part in parts[:-1]], parts[-1]


async def failure_of(provider: Provider) -> tuple[LLMError, str]:
    """Return the error and the text that came before it."""
    pieces = []
    with pytest.raises(LLMError) as caught:
        async for part in stream_answer(provider, MESSAGES, max_tokens=50, temperature=0.2):
            pieces.append(part.text)
    return caught.value, "".join(pieces)


async def test_an_answer_comes_piece_by_piece_and_tells_how_it_ended(server, provider):
    server.will(streamed("You ", "can.", usage=(12, 2)))
    assert await answer_of(provider) == (["You ", "can."], Ending("You can.", "stop", 12, 2))
    sent = server.requests[0]
    assert (sent.path, sent.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    assert sent.body == {
        "model": "small",
        "messages": MESSAGES,
        "max_tokens": 50,
        "temperature": 0.2,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_chunks_without_choices_delta_or_content_are_read(server, provider, case):
    expected = case("S01")["expected"]
    server.will(Reply(chunks=case("S01")["input"]["chunks"]))
    _, ending = await answer_of(provider)
    assert (ending.text, ending.finish_reason) == (expected["answer"], expected["finish_reason"])
    usage = {"prompt_tokens": ending.prompt_tokens, "completion_tokens": ending.completion_tokens}
    assert usage == expected["usage"]


@pytest.mark.parametrize(
    "odd", ["5", "null", "[]", '{"choices":null}', '{"choices":[null]}', '{"choices":[{"delta":7}]}']
)
async def test_odd_chunks_between_good_ones_are_passed_over(server, provider, odd):
    server.will(Reply(chunks=[odd, delta(content="Yes"), odd, streamed().chunks[1], "[DONE]"]))
    assert (await answer_of(provider))[1].text == "Yes"


async def test_content_in_parts_is_joined(server, provider):
    parts = [{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "Yes"}]
    server.will(Reply(chunks=[delta(content=parts), streamed().chunks[1], "[DONE]"]))
    assert (await answer_of(provider))[1].text == "Yes"


async def test_an_error_in_the_stream_before_any_text_is_retried_once(server, provider, case):
    server.will(Reply(chunks=case("S05")["input"]["cases"][0]), streamed("Yes"))
    assert (await answer_of(provider))[1].text == "Yes"
    assert len(server.requests) == 2


async def test_an_error_after_text_is_neither_retried_nor_shown(server, provider, case):
    server.will(Reply(chunks=case("S05")["input"]["cases"][1]))
    error, text = await failure_of(provider)
    assert (text, len(server.requests)) == ("You can ", 1)
    for word in case("S05")["expected"]["not_contains_in_answer"]:
        assert word not in f"{text} {error}"


@NO_PROTOCOL
async def test_a_base_url_at_which_no_llm_answers_is_told_from_an_answer_that_broke_off(server, provider, reply):
    server.will(reply, reply)
    error, _ = await failure_of(provider)
    assert error.reason == Reason.BROKEN_ANSWER
    assert "127.0.0.1" in str(error) and "usually ends in /v1" in str(error)


@NO_PROTOCOL
def test_so_is_one_that_is_asked_for_json(server, provider, reply):
    server.will(reply, reply)
    with pytest.raises(LLMError, match=r"127\.0\.0\.1.*usually ends in /v1"):
        complete_json(provider, MESSAGES, SCHEMA, 100)


async def test_two_failures_before_any_text_end_it(server, provider):
    server.will(refusal(503), refusal(503))
    error, _ = await failure_of(provider)
    assert (error.reason, len(server.requests)) == (Reason.AWAY, 2)


@pytest.mark.parametrize(
    ("status", "reason", "calls"),
    [
        (401, Reason.REFUSED_KEY, 1),
        (403, Reason.REFUSED_KEY, 1),
        (404, Reason.UNKNOWN_MODEL, 1),
        (400, Reason.REFUSED_REQUEST, 1),
        (402, Reason.OVER_BUDGET, 1),
        (429, Reason.RATE_LIMITED, 2),
        (500, Reason.AWAY, 2),
        (307, Reason.AWAY, 2),
    ],
)
async def test_each_refusal_has_its_reason_and_no_word_of_the_provider(server, provider, status, reason, calls):
    told = f"Incorrect API key provided: {KEY}. Overloaded"
    server.will(refusal(status, told), refusal(status, told))
    error, _ = await failure_of(provider)
    assert (error.reason, len(server.requests)) == (reason, calls)
    assert "Overloaded" not in str(error)
    for start in range(len(KEY) - 4):
        assert KEY[start : start + 5] not in f"{error!r} {error} {error.__cause__!r}"


async def test_a_budget_that_is_used_up_is_not_waited_out_as_a_rate_limit_is(server, provider):
    server.will(refusal(429, "You exceeded your current quota", code="insufficient_quota"))
    error, _ = await failure_of(provider)
    assert (error.reason, len(server.requests)) == (Reason.OVER_BUDGET, 1)


async def test_an_llm_that_has_not_begun_in_its_share_of_the_time_leaves_the_rest_to_others(server, provider):
    server.will(Reply(chunks=[delta(role="assistant")], hangs=True))
    deadlines = Deadlines.of_seconds(20).share(50)
    with pytest.raises(LLMError) as caught:
        async for _ in stream_answer(provider, MESSAGES, 50, 0.2, deadlines):
            pass
    assert caught.value.reason == Reason.TIMEOUT
    assert asyncio.get_running_loop().time() < deadlines.whole - 10


async def test_an_llm_that_has_begun_may_take_all_of_the_time(server, provider):
    server.will(streamed("You ", "can ", "go.", pause_seconds=0.3))
    parts = [part async for part in stream_answer(provider, MESSAGES, 50, 0.2, Deadlines.of_seconds(40).share(40))]
    assert parts[-1].text == "You can go."


async def test_a_server_that_never_sends_a_byte_is_given_one_deadline_for_all_attempts(server, provider, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.3
    server.will(Reply(hangs=True), Reply(hangs=True))
    error, _ = await failure_of(provider)
    assert (error.reason, len(server.requests)) == (Reason.TIMEOUT, 1)
    assert await asyncio.to_thread(server.requests[0].was_closed.wait, 2)


async def test_a_stream_that_falls_silent_ends_at_the_deadline_with_its_text_kept(server, provider, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.5
    server.will(Reply(chunks=[delta(content="You can ")], hangs=True))
    error, text = await failure_of(provider)
    assert (error.reason, text, len(server.requests)) == (Reason.TIMEOUT, "You can ", 1)


async def test_a_provider_that_is_not_there_is_away(provider):
    error, _ = await failure_of(Provider("http://127.0.0.1:9/v1", KEY, "small", 8_192))
    assert error.reason == Reason.AWAY


async def test_a_private_address_is_refused_without_naming_it():
    error, _ = await failure_of(Provider("http://10.1.2.3/v1", KEY, "small", 8_192))
    assert error.reason == Reason.REFUSED_ADDRESS
    assert "10.1.2.3" not in str(error)


@pytest.mark.parametrize(
    "broken",
    [
        Reply(chunks=['{"choices":[{"del']),
        Reply(body="<html>Bad gateway</html>", headers={"Content-Type": "text/html"}),
        Reply(body="{not json"),
        Reply(chunks=[streamed().chunks[1], "[DONE]"]),
    ],
    ids=["cut JSON", "HTML", "no JSON", "no text"],
)
async def test_a_broken_answer_is_named_as_such(server, provider, broken):
    server.will(broken, broken)
    error, _ = await failure_of(provider)
    assert (error.reason, len(server.requests)) == (Reason.BROKEN_ANSWER, 2)


async def test_an_answer_that_breaks_off_is_no_answer(server, provider):
    server.will(Reply(chunks=[delta(content="You can ")], breaks_off=True))
    error, text = await failure_of(provider)
    assert (error.reason, text) == (Reason.AWAY, "You can ")
    server.will(Reply(chunks=[delta(content="You can "), "[DONE]"]))
    error, text = await failure_of(provider)
    assert (error.reason, text) == (Reason.BROKEN_ANSWER, "You can ")


async def test_closing_the_iterator_closes_the_connection_upstream(server, provider):
    server.will(streamed(*["word "] * 50, pause_seconds=0.1))
    pieces = stream_answer(provider, MESSAGES, max_tokens=50, temperature=0.2)
    assert (await anext(pieces)).text == "word "
    await pieces.aclose()
    assert await asyncio.to_thread(server.requests[0].was_closed.wait, 2)


async def test_options_that_a_server_refuses_are_left_out(server, provider):
    server.will(
        refusal(400, "Unsupported parameter: 'max_tokens'", param="max_tokens"),
        refusal(400, "Unsupported value", param="temperature"),
        refusal(422, "extra fields not permitted: stream_options"),
        streamed("Yes"),
    )
    assert (await answer_of(provider))[1].text == "Yes"
    last = server.requests[-1].body
    assert last["max_completion_tokens"] == 50
    assert not {"max_tokens", "temperature", "stream_options"} & set(last)


async def test_the_query_of_a_base_address_is_sent_with_each_request(server, provider):
    await answer_of(Provider(f"{server.url}?api-version=7", KEY, "small", 8_192))
    assert (server.requests[0].path, server.requests[0].query) == ("/v1/chat/completions", "api-version=7")


async def test_not_even_a_talkative_log_holds_a_key(server, provider, caplog):
    caplog.set_level(logging.DEBUG)
    server.will(refusal(401, f"bad key {KEY}"))
    await failure_of(Provider(f"{server.url}?key={KEY}", KEY, "small", 8_192))
    assert "HTTP Response: POST 401" in caplog.text
    assert KEY not in caplog.text


async def test_thoughts_are_not_part_of_the_answer(server, provider, case):
    server.will(streamed(*case("S11")["input"]["pieces"]))
    pieces, ending = await answer_of(provider)
    assert "".join(pieces) == ending.text == case("S11")["expected"]["answer"]


async def test_thoughts_in_a_field_of_their_own_do_not_hold_the_text_back(server):
    chunks = [delta(reasoning_content="hm"), delta(content="We "), delta(content="open."), streamed().chunks[1]]
    server.will(Reply(chunks=[*chunks, "[DONE]"]))
    assert (await answer_of(Provider(server.url, KEY, "deepseek-r1", 8_192)))[0] == ["We ", "open."]


def test_json_is_asked_for_with_a_bounded_schema(server, provider):
    server.will(whole('{"title": "Opening hours"}'))
    assert complete_json(provider, MESSAGES, SCHEMA, 100) == {"title": "Opening hours"}
    body = server.requests[0].body
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["max_tokens"] == 100 + THOUGHT_TOKENS


def test_json_is_asked_for_within_what_the_window_holds(server):
    server.will(whole('{"title": "Opening hours"}'))
    complete_json(Provider(server.url, KEY, "gpt-4o-mini", 3_000), MESSAGES, SCHEMA, 5_000)
    assert 2_900 < server.requests[0].body["max_tokens"] < 3_000


@pytest.mark.parametrize(
    "text",
    [
        'Sure, here it is:\n```json\n{"title": "A {brace}"}\n```\nAnything else?',
        'Let me see { no } ... {"title": "A {brace}"} done',
        '<think>{"title": "wrong"}</think>{"title": "A {brace}"}',
    ],
)
def test_json_in_prose_is_found(server, provider, text):
    server.will(whole(text))
    assert complete_json(provider, MESSAGES, SCHEMA, 100) == {"title": "A {brace}"}


def test_a_server_without_schemas_is_told_in_words(server, provider):
    server.will(refusal(400, "response_format is not supported"), whole('{"title": "x"}'))
    assert complete_json(provider, MESSAGES, SCHEMA, 100) == {"title": "x"}
    body = server.requests[1].body
    assert "response_format" not in body
    assert json.dumps(SCHEMA) in body["messages"][-1]["content"]
    assert MESSAGES == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("reply", "reason", "calls"),
    [
        (whole('{"title": "x', finish_reason="length"), Reason.CUT_ANSWER, 1),
        (whole("I cannot."), Reason.BROKEN_ANSWER, 2),
        (whole('{"name": "x"}'), Reason.BROKEN_ANSWER, 2),
        (whole("[1, 2]"), Reason.BROKEN_ANSWER, 2),
        (Reply(body={"choices": []}), Reason.BROKEN_ANSWER, 2),
    ],
)
def test_json_that_is_cut_or_wrong_is_an_error(server, provider, reply, reason, calls):
    server.will(reply, reply)
    with pytest.raises(LLMError) as caught:
        complete_json(provider, MESSAGES, SCHEMA, 100)
    assert (caught.value.reason, len(server.requests)) == (reason, calls)


def test_json_tells_what_it_cost_also_where_the_answer_was_no_good(server, provider):
    told = whole('{"title": "x"}')
    told.body["usage"] = {"prompt_tokens": 100, "completion_tokens": 7}
    server.will(whole("I cannot say."), told)
    usage = Usage()
    complete_json(provider, MESSAGES, SCHEMA, 100, usage=usage)
    assert (usage.calls, usage.output_tokens) == (2, 4 + 7)
    assert 101 <= usage.input_tokens <= 110


def test_json_has_a_deadline_of_its_own(server, provider):
    server.will(Reply(hangs=True))
    with pytest.raises(LLMError) as caught:
        complete_json(provider, MESSAGES, SCHEMA, 100, timeout_seconds=0.2)
    assert caught.value.reason == Reason.TIMEOUT


def test_the_models_own_provider_counts_once_its_llm_is_named(support, settings):
    assert chat_provider(support) is None
    settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_KEY = "http://operator.test/v1", "operators-key"
    settings.SITEWISE_LLM_MODEL = "gpt-4o-mini"
    support.provider_base_url, support.provider_key = "http://own.test/v1", KEY
    operators = Provider("http://operator.test/v1", "operators-key", "gpt-4o-mini", 128_000, operators_policy())
    assert chat_provider(support) == operators
    support.llm = "mine"
    assert chat_provider(support) == Provider("http://own.test/v1", KEY, "mine", 8_192)
    assert KEY not in repr(chat_provider(support))


def test_without_an_own_provider_nobody_chooses_what_the_operator_pays(support, settings):
    settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_MODEL = "http://operator.test/v1", "cheap"
    support.llm = support.splitter_llm = "dearest"
    assert chat_provider(support).llm == splitter_provider(support).llm == "cheap"


async def test_the_operators_private_host_is_reached_for_the_operator_and_no_tenant(server, settings):
    settings.SITEWISE_ALLOW_LOOPBACK, settings.SITEWISE_LLM_URL = False, server.url
    error, _ = await failure_of(Provider(server.url, KEY, "small", 8_192))
    assert (error.reason, server.requests) == (Reason.REFUSED_ADDRESS, [])
    operators = chat_provider(MLModel())
    assert (await answer_of(operators))[1].text == "All is well."


def test_pages_are_split_by_the_cheap_llm_if_there_is_one(support, settings):
    settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_MODEL = "http://operator.test/v1", "big"
    assert splitter_provider(support).llm == "big"
    settings.SITEWISE_SPLITTER_MODEL = "cheap"
    assert splitter_provider(support).llm == "cheap"
    support.llm, support.provider_base_url = "mine", "http://own.test/v1"
    assert splitter_provider(support) == chat_provider(support)
    support.splitter_llm = "cheaper"
    assert (splitter_provider(support).llm, chat_provider(support).llm) == ("cheaper", "mine")


def test_a_key_that_can_no_longer_be_read_is_asked_for_again(support):
    support.provider_base_url, support.llm = "http://own.test/v1", "mine"
    support.provider_key_encrypted = "not-ours"
    with pytest.raises(LLMError) as caught:
        chat_provider(support)
    assert caught.value.reason == Reason.LOST_KEY


def test_the_models_further_llms_are_asked_before_the_installations(support, settings):
    settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_MODEL = "http://operator.test/v1", "house"
    assert [provider.llm for provider in answering_providers(support)[0]] == ["house"]
    support.llm, support.provider_base_url, support.provider_key = "big", "http://own.test/v1", KEY
    support.fallback_llms, support.context_window = " gpt-4o-mini \n\nbig\nold\nold", 5_000
    providers, trouble = answering_providers(support)
    assert [(each.llm, each.base_url) for each in providers] == [
        ("big", "http://own.test/v1"),
        ("gpt-4o-mini", "http://own.test/v1"),
        ("old", "http://own.test/v1"),
        ("house", "http://operator.test/v1"),
    ]
    assert [each.context_window for each in providers] == [5_000, 128_000, 8_192, 8_192]
    assert [each.key for each in providers] == [KEY, KEY, KEY, ""]
    assert trouble == ""


def test_a_key_that_is_lost_leaves_the_installations_llm_to_answer_and_says_so(support, settings):
    support.llm, support.provider_base_url, support.provider_key_encrypted = "big", "http://own.test/v1", "not-ours"
    assert answering_providers(support)[0] == []
    settings.SITEWISE_LLM_URL = "http://operator.test/v1"
    providers, trouble = answering_providers(support)
    assert [each.base_url for each in providers] == ["http://operator.test/v1"]
    assert "enter it again" in trouble
