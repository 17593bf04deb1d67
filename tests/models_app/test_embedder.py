"""The port to embeddings: the local model, and an API that behaves well, badly, or not at all."""

import json

import numpy as np
import pytest

from models_app.embedder import (
    EmbeddingError,
    embed_passages,
    embed_question,
    fits_window,
    space_of,
)
from models_app.embedding_api import MAX_BATCH_TEXTS
from models_app.llm import Reason
from tests.conftest import needs_local_embedder
from tests.fakes.openai_server import OpenAIServer, Reply, refusal, vectors


@pytest.fixture
def server():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(support, server):
    """A model whose vectors come from the tenant's own API."""
    support.embedding_model, support.provider_base_url, support.provider_key = "tiny", server.url, "sk-own"
    return support


def failure_of(model, texts: list[str]) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        embed_passages(space_of(model), texts)
    return caught.value


def test_the_local_model_is_the_default_and_gives_unit_rows(support):
    needs_local_embedder()
    assert (space_of(support).name, space_of(support).dimensions) == ("multilingual-e5-small", 384)
    rows = embed_passages(space_of(support), ["Returns within 30 days.", "We open at nine."])
    question = embed_question(space_of(support), "When do you open?")
    assert (rows.shape, rows.dtype, question.shape) == ((2, 384), np.float32, (384,))
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert np.argmax(rows @ question) == 1


def test_missing_model_files_say_what_to_run(support, settings, tmp_path):
    settings.SITEWISE_MODELS_DIR = tmp_path
    from models_app.local_embedder import local_embedder

    local_embedder.cache_clear()
    with pytest.raises(EmbeddingError, match=r"lacks .*: run `python manage\.py fetch_models`\.$"):
        embed_question(space_of(support), "When do you open?")


def test_the_tenants_own_api_is_asked_with_its_key(model, server):
    rows = embed_passages(space_of(model), ["one", "two"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1])
    expected = np.array(server.vector_of("two"))
    assert rows[1] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)
    sent = server.requests[0]
    assert (sent.path, sent.headers["authorization"]) == ("/v1/embeddings", "Bearer sk-own")
    assert sent.body == {"model": "tiny", "input": ["one", "two"], "encoding_format": "float"}


def test_the_operators_api_serves_models_without_one_and_never_gets_their_key(support, server, settings):
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_KEY = server.url, "operators-key"
    settings.SITEWISE_EMBEDDING_MODEL = "text-embedding-3-small"
    support.provider_base_url, support.provider_key = "http://own.test/v1", "sk-own"
    assert space_of(support).name == f"text-embedding-3-small at {server.url.removeprefix('http://')}"
    assert space_of(support).dimensions == 1536
    server.will(vectors([1.0] * 1536))
    embed_question(space_of(support), "one")
    assert server.requests[0].headers["authorization"] == "Bearer operators-key"


def test_an_embedding_model_without_a_provider_leaves_the_choice_to_the_operator(support, server, settings):
    support.embedding_model = "dearest"
    assert (space_of(support).name, space_of(support).dimensions) == ("multilingual-e5-small", 384)
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "cheap"
    assert space_of(support).name.startswith("cheap at 127.0.0.1:")
    embed_question(space_of(support), "one")
    assert server.requests[0].body["model"] == "cheap"
    support.embedding_model = "multilingual-e5-small"
    assert space_of(support).name == "multilingual-e5-small", "the local model costs nobody anything"


def test_the_operators_private_host_embeds_for_the_operator_and_no_tenant(model, server, settings):
    settings.SITEWISE_ALLOW_LOOPBACK = False
    settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "cheap"
    assert failure_of(model, ["one"]).reason == Reason.REFUSED_ADDRESS
    assert server.requests == []
    model.embedding_model = ""
    assert embed_passages(space_of(model), ["one"]).shape == (1, 8)


def test_vectors_are_paired_by_index_not_by_position(model, server):
    server.will(vectors([0, 0, 1], [1, 0, 0], [0, 1, 0], indexes=[2, 0, 1]))
    assert embed_passages(space_of(model), ["s0", "s1", "s2"]).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_text_that_was_left_out_is_asked_for_again(model, server):
    server.will(vectors([1, 0, 0], [0, 0, 1], indexes=[0, 2]), vectors([0, 1, 0]))
    assert embed_passages(space_of(model), ["s0", "s1", "s2"]).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert server.requests[1].body["input"] == ["s1"]


def test_a_text_that_is_left_out_twice_is_an_error(model, server):
    server.will(vectors([1, 0], indexes=[0]), vectors([1, 0], indexes=[1]))
    assert failure_of(model, ["s0", "s1"]).reason == Reason.BROKEN_ANSWER


@pytest.mark.parametrize(
    "reply",
    [
        vectors([1, 0], indexes=[7]),
        vectors([float("nan"), 1]),
        vectors([float("inf"), 1]),
        vectors([0, 0]),
        vectors([]),
        vectors(["one", "two"]),
        vectors([[1, 0]]),
        Reply(body={"data": [{"index": 0}]}),
        Reply(body={"data": [7]}),
        Reply(body={"data": None}),
        Reply(body={}),
        Reply(body="Hello", headers={"Content-Type": "text/plain"}),
    ],
    ids=lambda reply: json.dumps(reply.body)[:40],
)
def test_what_is_no_vector_is_refused(model, server, reply):
    server.will(reply, reply)
    assert failure_of(model, ["one"]).reason == Reason.BROKEN_ANSWER


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body="<!doctype html>", headers={"Content-Type": "text/html"}),
        Reply(body="null"),
        Reply(body='{"data": [{"em'),
        Reply(body={"hello": "world"}),
    ],
    ids=["a page", "null", "broken JSON", "other JSON"],
)
def test_a_base_url_at_which_no_embedding_api_answers_is_named(model, server, reply):
    server.will(reply, reply)
    error = failure_of(model, ["one"])
    assert "127.0.0.1" in str(error) and "usually ends in /v1" in str(error)


def test_vectors_of_another_dimension_are_refused(model, server):
    server.will(vectors([1, 0], [1, 0, 0]))
    assert "dimensions" in str(failure_of(model, ["one", "two"]))
    model.embedding_model = "text-embedding-3-small"
    server.will(vectors([1, 0]))
    assert "dimensions" in str(failure_of(model, ["one"]))


def test_many_texts_go_in_batches_and_come_back_in_order(model, server):
    texts = [f"text {number}" for number in range(2 * MAX_BATCH_TEXTS + 1)]
    rows = embed_passages(space_of(model), texts)
    assert [len(request.body["input"]) for request in server.requests] == [MAX_BATCH_TEXTS, MAX_BATCH_TEXTS, 1]
    expected = np.array(server.vector_of(texts[40]))
    assert rows[40] == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


def test_long_texts_make_smaller_batches_and_are_cut_at_what_the_api_takes(model, server):
    embed_passages(space_of(model), ["word " * 7_000, "word " * 7_000, "word " * 20_000])
    assert [len(request.body["input"]) for request in server.requests] == [2, 1]
    assert len(server.requests[1].body["input"][0]) < 8_000 * len("word ") + 1


def test_a_passage_is_one_window_when_the_api_reads_it_to_its_end(model):
    assert fits_window(space_of(model), "word " * 7_900)
    assert not fits_window(space_of(model), "word " * 8_100)
    model.embedding_model = "intfloat/multilingual-e5-large"
    assert fits_window(space_of(model), "word " * 390)
    assert not fits_window(space_of(model), "word " * 398)  # "passage: " in front counts, too


def test_a_passage_is_one_window_of_the_local_model_by_its_own_tokens(support):
    needs_local_embedder()
    assert fits_window(space_of(support), "word " * 300)
    assert not fits_window(space_of(support), "word " * 330)


def test_what_an_api_reads_no_further_is_not_sent(model, server):
    model.embedding_model = "all-minilm"
    embed_passages(space_of(model), ["word " * 1_000])
    assert len(server.requests[0].body["input"][0]) < 201 * len("word ")


def test_no_text_is_no_question_to_anybody(model, server):
    assert embed_passages(space_of(model), []).shape[0] == 0
    assert server.requests == []


def test_an_e5_model_behind_an_api_gets_the_words_it_was_trained_with(model, server):
    model.embedding_model = "intfloat/multilingual-e5-large"
    embed_passages(space_of(model), ["one"])
    embed_question(space_of(model), "two")
    assert [request.body["input"] for request in server.requests] == [["passage: one"], ["query: two"]]


def test_a_failure_that_passes_is_retried_and_one_that_stays_is_named(model, server):
    server.will(refusal(503), vectors([1, 0]))
    assert embed_passages(space_of(model), ["one"]).shape == (1, 2)
    server.will(refusal(503), refusal(503))
    assert failure_of(model, ["one"]).reason == Reason.AWAY
    server.will(refusal(401, "bad key sk-own"))
    error = failure_of(model, ["one"])
    assert (error.reason, "sk-own" in str(error)) == (Reason.REFUSED_KEY, False)


def test_a_silent_service_is_given_one_deadline(model, server, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.3
    server.will(Reply(hangs=True))
    assert failure_of(model, ["one"]).reason == Reason.TIMEOUT
