"""The public API with a real LLM behind it, asked with OpenAI's client: the shape of what comes, never its wording."""

import pytest
from openai import OpenAI

from chat.models import Turn
from models_app import snippets
from models_app.llm import Provider, complete_json
from tenants.models import ApiKey
from tests.fakes.llm_server import llm_server  # noqa: F401
from tests.live import live_url  # noqa: F401

QUESTION = [{"role": "user", "content": "When does the shop open?"}]


@pytest.fixture
def client(live_url, llm_server, acme, support, settings):  # noqa: F811
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 120  # one small core may be shared by many
    support.retrieval, support.max_tokens = "keyword", 24
    support.llm, support.provider_base_url = llm_server.model, llm_server.base_url
    support.provider_key = llm_server.api_key
    support.save()
    snippets.add(support, "Opening hours", "The shop opens at 9.", uri="https://ex.test/hours")
    key = ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]
    with OpenAI(base_url=f"{live_url}/v1", api_key=key, max_retries=0) as running:
        yield running


def test_a_real_llm_answers_in_one(client):
    answer = client.chat.completions.create(model="support", messages=QUESTION)
    assert answer.choices[0].message.content.strip()
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.prompt_tokens > 50
    assert 0 < answer.usage.completion_tokens <= 24
    assert (answer.answered_by, answer.sources[0]["url"]) == ("llm", "https://ex.test/hours")
    turn = Turn.objects.get()
    assert (turn.answer, turn.answered_by) == (answer.choices[0].message.content, "llm")
    assert turn.prompt_tokens == answer.usage.prompt_tokens


def test_a_real_llm_streams(client):
    stream = client.chat.completions.create(
        model="support", messages=QUESTION, stream=True, stream_options={"include_usage": True}
    )
    *chunks, usage = list(stream)
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices[0].delta.content]
    assert len(pieces) > 1
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")
    assert chunks[-1].sources
    assert usage.choices == []
    assert usage.usage.completion_tokens > 1
    assert Turn.objects.get().answer == "".join(pieces)


def test_a_real_llm_keeps_to_a_bounded_schema(llm_server):  # noqa: F811
    provider = Provider(llm_server.base_url, llm_server.api_key, llm_server.model, 8_192)
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 40}, "is_shop": {"type": "boolean"}},
        "required": ["title", "is_shop"],
        "additionalProperties": False,
    }
    messages = [{"role": "user", "content": "Describe as JSON: The shop opens at 9."}]
    found = complete_json(provider, messages, schema, 200, timeout_seconds=120)
    assert isinstance(found["title"], str)
    assert isinstance(found["is_shop"], bool)
