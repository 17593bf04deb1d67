"""The LLM that the tests talk to is a real one: its own shape is checked here, once, with the official client."""

import json

import openai
import pytest

from tests.fakes.llm_server import MODEL, llm_server  # noqa: F401 -- a fixture

QUESTION = [{"role": "user", "content": "Say hello."}]


@pytest.fixture
def client(llm_server):  # noqa: F811
    with openai.OpenAI(base_url=llm_server.base_url, api_key=llm_server.api_key) as client:
        yield client


def ask(client, messages=QUESTION, **options):
    return client.chat.completions.create(model=MODEL, messages=messages, temperature=0, **options)


def test_an_answer_comes_whole_with_its_token_counts(client):
    answer = ask(client, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens <= 8
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_an_answer_streams_in_pieces_and_ends_with_its_token_counts(client):
    chunks = list(ask(client, max_tokens=12, stream=True, stream_options={"include_usage": True}))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert len([piece for piece in pieces if piece]) > 1
    assert chunks[-1].usage.completion_tokens > 1


def test_a_bounded_schema_gives_json_of_that_shape(client):
    title = {"type": "string", "maxLength": 20}
    schema = {"type": "object", "properties": {"title": title}, "required": ["title"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "page", "strict": True, "schema": schema}}
    answer = ask(client, max_tokens=60, response_format=wanted)
    assert list(json.loads(answer.choices[0].message.content)) == ["title"]


def test_a_wrong_key_is_refused(llm_server):  # noqa: F811
    stranger = openai.OpenAI(base_url=llm_server.base_url, api_key="wrong")
    with stranger, pytest.raises(openai.AuthenticationError):
        ask(stranger, max_tokens=1)


def test_a_prompt_that_does_not_fit_the_context_is_refused_with_a_reason(client):
    long = [{"role": "user", "content": "word " * 9000}]
    with pytest.raises(openai.BadRequestError, match="context"):
        ask(client, long, max_tokens=1)
