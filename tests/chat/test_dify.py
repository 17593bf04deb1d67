"""A client of Dify's chat API, pointed at us: five turns, streamed and not, thumbs, parameters, errors in its words."""

import json
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
import requests

from chat.models import Session, Turn
from models_app import snippets
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated, store_of
from tests.chat.test_openai_clients import QUESTIONS, AttentiveLLM, said_after
from tests.damage import damage_table
from tests.fakes.openai_server import Reply, delta, refusal
from tests.live import live_url  # noqa: F401

USAGE_TEXTS = ("unit_price", "price_unit", "price")


class DifyClient:
    """Speaks as Dify's documentation has it: reads what it knows, and stumbles over what it does not."""

    def __init__(self, address: str, key: str, user: str = "visitor-123"):
        self.address, self.user, self.conversation_id = f"{address}/v1", user, ""
        self.headers = {"Authorization": f"Bearer {key}"}

    def post(self, path: str, body: dict, **options) -> requests.Response:
        return requests.post(f"{self.address}/{path}", json=body, headers=self.headers, timeout=30, **options)

    def send(self, query: str, response_mode: str = "blocking", **change) -> requests.Response:
        body = {"inputs": {}, "query": query, "user": self.user, "response_mode": response_mode}
        body |= {"conversation_id": self.conversation_id, "auto_generate_name": True, "files": []}
        return self.post("chat-messages", body | change, stream=response_mode == "streaming")

    def ask(self, query: str) -> dict:
        answer = self.send(query)
        assert answer.status_code == 200, answer.text
        self.conversation_id = answer.json()["conversation_id"]
        return answer.json()

    def ask_streamed(self, query: str) -> dict:
        answer = self.send(query, "streaming")
        assert answer.headers["Content-Type"] == "text/event-stream"
        text, events = "", list(events_of(answer))
        for event in events:
            match event["event"]:
                case "message":
                    text += event["answer"]
                case "message_replace":
                    text = event["answer"]
        ids = {(event["task_id"], event["message_id"], event["conversation_id"]) for event in events}
        assert len(ids) == 1 and events[-1]["event"] == "message_end"
        self.conversation_id = events[-1]["conversation_id"]
        return events[-1] | {"answer": text}


def events_of(answer: requests.Response) -> Iterator[dict]:
    """Yield the JSON events; `ping` alone is an event without one."""
    blocks = answer.text.split("\n\n")
    assert blocks.pop() == ""
    for block in blocks:
        if block != "event: ping":
            assert block.startswith("data: ") and "\n" not in block
            yield json.loads(block.removeprefix("data: "))


@pytest.fixture
def llm():
    with AttentiveLLM() as running:
        yield running


@pytest.fixture
def model(live_url, support, llm):  # noqa: F811
    support.retrieval, support.llm, support.provider_base_url = "keyword", "small", llm.url
    support.greeting, support.conversation_starters = "Hello!", "When do you open?\n\nWhere are you?"
    support.input_price, support.output_price = "0.15", "0.6"
    support.save()
    support.refresh_from_db()
    snippets.add(support, "Opening hours", "We open at 9, on Sundays at 11.", uri="https://ex.test/hours")
    return support


@pytest.fixture
def make_client(acme, model, live_url):  # noqa: F811
    def make(*slugs: str, **limits) -> DifyClient:
        fields = {"tenant": acme, "name": "dify", "kind": "secret", "model_slugs": list(slugs or ["support"])}
        return DifyClient(live_url, ApiKey.mint(**fields, **limits)[1])

    return make


@pytest.fixture
def client(make_client) -> DifyClient:
    return make_client()


def refused(answer: requests.Response) -> tuple[int, str]:
    assert set(answer.json()) == {"code", "message", "status"}
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("ask", [DifyClient.ask, DifyClient.ask_streamed])
def test_it_holds_a_conversation_of_five_turns(client, ask):
    answers = [ask(client, question) for question in QUESTIONS]
    assert [answer["answer"].strip() for answer in answers] == [said_after(count) for count in range(1, 6)]
    assert len({answer["conversation_id"] for answer in answers}) == 1
    assert len({answer["message_id"] for answer in answers}) == 5
    assert {UUID(answer["message_id"]) for answer in answers} == {turn.public_id for turn in Turn.objects.all()}
    assert Session.objects.get().key == client.conversation_id
    assert {turn.channel for turn in Turn.objects.all()} == {"dify"}
    assert (
        len({turn.visitor for turn in Turn.objects.all()}) == 1 and "visitor-123" not in Turn.objects.all()[0].visitor
    )


@pytest.mark.parametrize("ask", [DifyClient.ask, DifyClient.ask_streamed])
def test_usage_has_prices_as_texts_and_each_passage_is_a_resource(client, ask):
    answer = ask(client, "When do you open?")
    usage = answer["metadata"]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0
    assert (usage["prompt_unit_price"], usage["prompt_price_unit"], usage["currency"]) == ("0.15", "0.000001", "USD")
    assert all(isinstance(usage[f"{part}_{name}"], str) for part in ("prompt", "completion") for name in USAGE_TEXTS)
    assert float(usage["total_price"]) == pytest.approx(float(usage["prompt_price"]) + float(usage["completion_price"]))
    assert usage["latency"] >= 0
    (resource,) = answer["metadata"]["retriever_resources"]
    assert (resource["position"], resource["document_name"]) == (1, "Opening hours")
    assert (resource["dataset_name"], resource["score"]) == ("Support", 1.0)
    assert "on Sundays at 11" in resource["content"] and resource["url"] == "https://ex.test/hours"
    assert all(UUID(resource[f"{kind}_id"]) for kind in ("dataset", "document", "segment"))


def test_an_answer_in_one_has_difys_fields(client):
    answer = client.ask("When do you open?")
    assert (answer["event"], answer["mode"], answer["id"]) == ("message", "chat", answer["message_id"])
    assert isinstance(answer["created_at"], int) and UUID(answer["task_id"])


def test_a_stream_begins_with_a_ping_and_ends_without_done(client):
    text = client.send("When do you open?", "streaming").text
    assert text.startswith("event: ping\n\n") and "[DONE]" not in text


def test_an_llm_that_fails_does_not_show_its_reason(client, llm):
    llm.will(refusal(503, "overloaded"), refusal(503, "overloaded"))
    assert "overloaded" not in client.send("When do you open?").text
    llm.will(Reply(chunks=[delta(content="We "), {"error": {"message": "overloaded"}}]))
    answer = client.send("When do you open?", "streaming")
    assert [event["event"] for event in events_of(answer)][-1] == "message_end"
    assert "overloaded" not in answer.text


def test_an_error_in_the_stream_is_its_last_event(client, acme):
    damage_table(store_of(acme), "models_app_trainingsnippet")
    answer = client.send("When do you open?", "streaming")
    (event,) = events_of(answer)
    assert (answer.status_code, event["event"]) == (200, "error")
    assert (event["status"], event["code"]) == (400, "app_unavailable") and event["message_id"]
    assert refused(client.send("When do you open?")) == (400, "app_unavailable")


def test_thumbs_are_kept_with_their_reason_and_taken_back(client):
    path = f"messages/{client.ask('When do you open?')['message_id']}/feedbacks"
    wanted = [("like", "", 1, ""), ("dislike", "Too late.", -1, "Too late."), (None, "x", 0, "")]
    for rating, content, stored, reason in wanted:
        answer = client.post(path, {"rating": rating, "user": client.user, "content": content})
        assert (answer.status_code, answer.json()) == (200, {"result": "success"})
        assert (Turn.objects.get().rating, Turn.objects.get().rating_reason) == (stored, reason)
    client.post(path, {"rating": "dislike", "user": client.user, "content": "x\x00" * 400})
    assert len(Turn.objects.get().rating_reason) == 300
    assert refused(client.post(path, {"rating": "love", "user": client.user})) == (400, "invalid_param")


def test_an_answer_that_is_not_the_keys_cannot_be_rated(client, make_client, globex):
    message_id = client.ask("When do you open?")["message_id"]
    MLModel.objects.create(slug="sales", name="Sales")
    with activated(globex):
        foreign = Turn.objects.create(model=MLModel.objects.create(slug="support", name="S"), question="?").public_id
    thumb = {"rating": "like", "user": "x"}
    asked = [make_client("sales").post(f"messages/{message_id}/feedbacks", thumb)]
    asked += [client.post(f"messages/{each}/feedbacks", thumb) for each in (foreign, uuid4(), "none")]
    assert {refused(answer) for answer in asked} == {(404, "not_found")}
    assert len({answer.text for answer in asked}) == 1
    with activated(globex):
        assert Turn.objects.get().rating == 0


def test_parameters_are_the_models_greeting_and_starters(client):
    told = requests.get(f"{client.address}/parameters?user=x", headers=client.headers, timeout=30).json()
    assert told["opening_statement"] == "Hello!"
    assert told["suggested_questions"] == ["When do you open?", "Where are you?"]
    assert told["retriever_resource"] == {"enabled": True} and told["file_upload"]["enabled"] is False


def test_a_key_for_several_models_asks_which_one(make_client):
    MLModel.objects.create(slug="sales", name="Sales")
    client = make_client("support", "sales")
    answer = client.send("Hello?")
    assert refused(answer) == (400, "invalid_param")
    assert "opens 2 models" in answer.json()["message"] and "inputs.model" in answer.json()["message"]
    assert client.send("Hello?", inputs={"model": "support"}).status_code == 200
    assert refused(client.send("Hello?", inputs={"model": "never"})) == (404, "not_found")
    named = requests.get(f"{client.address}/parameters?model=support", headers=client.headers, timeout=30)
    assert named.json()["opening_statement"] == "Hello!"


@pytest.mark.parametrize(
    "change",
    [
        {"query": ""},
        {"query": None},
        {"query": ["x"]},
        {"user": ""},
        {"inputs": None},
        {"inputs": "x"},
        {"response_mode": "later"},
        {"conversation_id": "x" * 101},
        {"files": [{"type": "image", "transfer_method": "remote_url", "url": "https://ex.test/a.png"}]},
    ],
    ids=str,
)
def test_a_field_of_a_wrong_kind_is_refused_in_difys_words(client, change):
    assert refused(
        client.send("Hello?", **change)
        if "query" not in change
        else client.post("chat-messages", {"inputs": {}, "user": "x"} | change)
    ) == (400, "invalid_param")


def test_a_conversation_that_was_not_begun_here_does_not_exist(client, make_client, globex):
    client.conversation_id = str(uuid4())
    answer = client.send("Hello?")
    assert refused(answer) == (404, "not_found")
    assert answer.json()["message"] == "Conversation Not Exists."
    begun = make_client()
    begun.ask("Hello?")
    MLModel.objects.create(slug="sales", name="Sales", retrieval="keyword")
    other = make_client("sales")
    other.conversation_id = begun.conversation_id
    assert refused(other.send("Hello?")) == (404, "not_found")


def test_keys_and_limits_are_refused_in_difys_words(live_url, make_client, acme):  # noqa: F811
    assert refused(DifyClient(live_url, "app-wrong").send("Hello?")) == (401, "unauthorized")
    limited = make_client(requests_a_minute=1)
    assert limited.ask("Hello?")
    answer = limited.send("Hello?")
    assert refused(answer) == (429, "too_many_requests") and int(answer.headers["Retry-After"]) > 0
    assert refused(make_client().send("open " * 2_000)) == (400, "invalid_param")
    acme.question_quota = 1
    acme.save()
    assert refused(make_client().send("Hello?")) == (400, "provider_quota_exceeded")


def test_a_public_key_opens_none_of_it(live_url, acme, model):  # noqa: F811
    fields = {"tenant": acme, "name": "widget", "kind": "public", "model_slugs": ["support"]}
    client = DifyClient(live_url, ApiKey.mint(**fields, allowed_origins=["https://shop.test"])[1])
    client.headers["Origin"] = "https://shop.test"
    assert refused(client.send("Hello?")) == (403, "forbidden")
