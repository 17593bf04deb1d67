"""OpenAI's own clients, for Python and for Node, hold a conversation of five turns with us, streamed and not."""

import json
import shutil
import subprocess

import openai
import pytest
from openai import OpenAI

from chat.models import Session, Turn
from models_app import snippets
from tenants.models import ApiKey
from tenants.store import store_of
from tests.conftest import PROJECT, needs
from tests.damage import damage_table
from tests.fakes.openai_server import OpenAIServer, Reply, Request, streamed, whole
from tests.live import live_url  # noqa: F401

NODE, NPM = shutil.which("node"), shutil.which("npm")
NODE_CLIENT = "openai@6.30.1"  # the last that runs on the Node.js of Debian's stable release
QUESTIONS = ["My name is Ann.", "When do you open?", "And on Sundays?", "How much is it then?", "What is my name?"]


class AttentiveLLM(OpenAIServer):
    """Answers with all that it was told of the conversation so far."""

    def default_reply(self, request: Request) -> Reply:
        asked = [message["content"] for message in request.body["messages"] if message["role"] == "user"]
        known = [text for text in asked if text in QUESTIONS]
        text = f"You said: {' / '.join(known)}"
        if not request.body.get("stream"):
            return whole(text)
        return streamed(*(f"{word} " for word in text.split(" ")), usage=(100, 10))


@pytest.fixture
def llm():
    with AttentiveLLM() as running:
        yield running


@pytest.fixture
def talker(live_url, support, llm):  # noqa: F811
    support.retrieval, support.llm, support.provider_base_url = "keyword", "small", llm.url
    support.save()
    snippets.add(support, "Opening hours", "We open at 9, on Sundays at 11.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def key(acme, talker) -> str:
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]


@pytest.fixture
def limited_key(acme, talker) -> str:
    fields = {"tenant": acme, "name": "limited", "kind": "secret", "model_slugs": ["support"]}
    return ApiKey.mint(**fields, requests_a_minute=1)[1]


def said_after(count: int) -> str:
    return f"You said: {' / '.join(QUESTIONS[:count])}"


def is_remembered(turns: list[dict]) -> None:
    """Assert that each turn knew those before it, in one session, with usage and an ending."""
    assert [turn["text"].strip() for turn in turns] == [said_after(count) for count in range(1, 6)]
    assert len({turn["session"] for turn in turns}) == 1 and turns[0]["session"]
    assert {turn["finish"] for turn in turns} == {"stop"}
    assert all(turn["usage"]["prompt_tokens"] > 0 and turn["usage"]["completion_tokens"] > 0 for turn in turns)
    assert all(turn["usage"]["total_tokens"] > turn["usage"]["prompt_tokens"] for turn in turns)
    assert turns[1]["sources"][0]["url"] == "https://ex.test/hours"


# --- Python --------------------------------------------------------------------------------------


@pytest.fixture
def client(live_url, key):  # noqa: F811
    with OpenAI(base_url=f"{live_url}/v1", api_key=key, max_retries=0) as running:
        yield running


def ask_whole(client: OpenAI, question: str, session: str) -> dict:
    messages = [{"role": "user", "content": question}]
    answer = client.chat.completions.create(model="support", messages=messages, metadata={"session_id": session})
    return {
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.model_dump(),
        "session": answer.session_id,
        "sources": answer.sources,
    }


def ask_streamed(client: OpenAI, question: str, session: str) -> dict:
    """Ask through the client's own helper for streams, which puts the answer together and checks each event."""
    with client.chat.completions.stream(
        model="support",
        messages=[{"role": "user", "content": question}],
        metadata={"session_id": session},
        stream_options={"include_usage": True},
    ) as stream:
        chunks = [event.chunk for event in stream if event.type == "chunk"]
        answer = stream.get_final_completion()
    last = next(chunk for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason)
    return {
        "text": answer.choices[0].message.content,
        "finish": answer.choices[0].finish_reason,
        "usage": answer.usage.model_dump(),
        "session": last.session_id,
        "sources": last.sources,
    }


@pytest.mark.parametrize("ask", [ask_whole, ask_streamed])
def test_the_python_client_holds_a_conversation(client, ask):
    turns: list[dict] = []
    for question in QUESTIONS:
        turns.append(ask(client, question, turns[-1]["session"] if turns else ""))
    is_remembered(turns)
    assert Session.objects.count() == 1 and Turn.objects.count() == 5


def test_the_python_client_holds_a_conversation_with_a_history_of_its_own(client):
    messages = []
    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        answer = client.chat.completions.create(model="support", messages=messages).choices[0].message
        messages.append(answer)
    assert answer.content == said_after(5) + " "
    assert not Session.objects.exists()


async def test_the_python_clients_asynchronous_form_streams_too(live_url, key):  # noqa: F811
    async with openai.AsyncOpenAI(base_url=f"{live_url}/v1", api_key=key, max_retries=0) as client:
        stream = await client.chat.completions.create(
            model="support", messages=[{"role": "user", "content": QUESTIONS[0]}], stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text.strip() == said_after(1)


def test_the_python_client_raises_its_own_errors(client, live_url, key, limited_key, acme):  # noqa: F811
    def ask(client=client, **change):
        return client.chat.completions.create(
            **{"model": "support", "messages": [{"role": "user", "content": "Hello?"}]} | change
        )

    with pytest.raises(openai.AuthenticationError):
        ask(client.with_options(api_key="sws_wrong"))
    with pytest.raises(openai.NotFoundError):
        ask(model="never")
    with pytest.raises(openai.BadRequestError):
        ask(messages=[])
    ask(client.with_options(api_key=limited_key))
    with pytest.raises(openai.RateLimitError):
        ask(client.with_options(api_key=limited_key))
    damage_table(store_of(acme), "models_app_trainingsnippet")
    with pytest.raises(openai.APIError):
        list(ask(stream=True, messages=[{"role": "user", "content": "When do you open?"}]))


# --- Node ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory):
    """A folder with OpenAI's client for Node, as npm installs it."""
    needs(NODE is not None and NPM is not None, "Node.js with npm")
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    done = subprocess.run(
        [NPM, "install", "--no-audit", "--no-fund", "--ignore-scripts", NODE_CLIENT],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    needs(done.returncode == 0, f"OpenAI's client for Node: {done.stderr[-200:]}")
    shutil.copy(PROJECT / "tests" / "node" / "five_turns.mjs", folder)
    return folder


def test_the_node_client_holds_conversations_and_raises_its_own_errors(live_url, key, limited_key, node_folder):  # noqa: F811
    done = subprocess.run(
        [NODE, "five_turns.mjs", f"{live_url}/v1", key, limited_key, json.dumps(QUESTIONS)],
        cwd=node_folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["models"] == ["support"]
    is_remembered(told["whole"])
    is_remembered(told["streamed"])
    assert all(turn["pieces"] > 2 for turn in told["streamed"])
    assert told["whole"][0]["session"] != told["streamed"][0]["session"]
    refusals = told["refusals"]
    named = {
        what: refusal and (refusal["name"], refusal["status"], refusal["code"]) for what, refusal in refusals.items()
    }
    assert named == {
        "key": ("AuthenticationError", 401, "invalid_api_key"),
        "model": ("NotFoundError", 404, "model_not_found"),
        "request": ("BadRequestError", 400, None),
        "first": None,
        "limit": ("RateLimitError", 429, "rate_limit_exceeded"),
    }
    assert int(refusals["limit"]["wait"]) > 0
