"""An embedding API that is slow, at its limit, or refuses: what is waited for, cut, named, and counted."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from models_app import index, snippets
from models_app.embedder import EmbeddingError, TextRefused, embed_passages, embed_question, space_of
from models_app.llm import Reason
from models_app.llm_chunks import Usage
from models_app.retrieval import retrieve
from models_app.vectors import MOST_REFUSED, Spent, vectorise_missing
from tests.fakes.openai_server import OpenAIServer, Reply, refusal, vectors

WORDS = "The garden has roses and an old oak that gives shade in summer. " * 60


class ShortSighted(OpenAIServer):
    """Refuses, as a service that does not cut them by itself, texts over so many words, and all that hold POISON."""

    most_words = 100

    def default_reply(self, request):
        texts = request.body["input"]
        if any(len(text.split()) > self.most_words or "POISON" in text for text in texts):
            return refusal(400, "input is too long")
        return super().default_reply(request)

    def vector_of(self, text: str) -> list[float]:
        return [1.0, 0.0] if "dog" in text.lower() else [0.0, 1.0]


@pytest.fixture
def server():
    with ShortSighted() as running:
        yield running


@pytest.fixture
def model(support, server):
    support.embedding_model, support.provider_base_url = "tiny", server.url
    support.save()
    return support


@pytest.fixture
def space(model):
    return space_of(model)


def failure_of(space, texts: list[str]) -> EmbeddingError:
    with pytest.raises(EmbeddingError) as caught:
        embed_passages(space, texts)
    return caught.value


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (vectors([1, 0], [0, 1], indexes=[0, 0]), "two vectors for one text"),
        (vectors([1, 0], [0, 1], indexes=[False, True]), "belongs to no text"),
        (vectors([1, 0], [0, 1], indexes=[0, 2]), "belongs to no text"),
        (vectors([1, 0], [0, 1], indexes=[0, -1]), "belongs to no text"),
        (vectors([1, 0], [0, 1], [1, 1]), "belongs to no text"),
        (vectors([1, 0], [0, 0]), "without a direction"),
        (vectors([1, 0], [0, float("nan")]), "without a direction"),
    ],
)
def test_what_does_not_fit_the_texts_one_by_one_is_refused(space, server, reply, told):
    server.will(reply, reply)
    failure = failure_of(space, ["one", "two"])
    assert (failure.reason, told in str(failure)) == (Reason.BROKEN_ANSWER, True)


def test_numbers_at_the_ends_of_what_a_float_holds_give_unit_rows(space, server):
    server.will(vectors([3e300, 4e300], [3e-300, 4e-300], [1e39, 0]))
    rows = embed_passages(space, ["one", "two", "three"])
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [1, 0]]))


def test_batches_of_different_dimensions_are_refused(space, server):
    server.will(vectors(*[[1, 0]] * 32), vectors([1, 0, 0]))
    assert "different dimensions" in str(failure_of(space, ["one"] * 33))


@pytest.mark.parametrize("status", [429, 503])
def test_a_limit_is_waited_out_for_as_long_as_the_service_says(space, server, status):
    date = format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True)
    busy = [refusal(status), refusal(status), refusal(status)]
    for reply, wait in zip(busy, ("0", "0.1", date), strict=True):
        reply.headers["Retry-After"] = wait
    server.will(*busy, vectors([1, 0]))
    assert embed_passages(space, ["one"]).shape == (1, 2)
    assert len(server.requests) == 4


def test_a_limit_without_a_word_on_how_long_is_asked_for_again_and_again(space, server):
    server.will(refusal(429), refusal(429), vectors([1, 0]))
    assert embed_passages(space, ["one"]).shape == (1, 2)


def test_a_wait_that_ends_after_the_deadline_is_not_begun(space, server, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 1
    server.will(refusal(429))
    server.replies[0].headers["Retry-After"] = "3600"
    assert failure_of(space, ["one"]).reason == Reason.RATE_LIMITED
    assert len(server.requests) == 1


def test_all_attempts_together_have_one_deadline(space, server, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.5
    busy = [refusal(429) for _ in range(50)]
    for reply in busy:
        reply.headers["Retry-After"] = "0"
    server.will(*busy)
    assert failure_of(space, ["one"]).reason == Reason.RATE_LIMITED
    assert len(server.requests) < 6


def test_a_budget_that_is_used_up_is_not_waited_for(space, server):
    server.will(*[refusal(429, code="insufficient_quota")] * 2)
    assert failure_of(space, ["one"]).reason == Reason.OVER_BUDGET
    assert len(server.requests) == 1


def test_a_visitors_question_waits_for_no_limit(space, server):
    server.will(*[refusal(429)] * 2)
    server.replies[0].headers["Retry-After"] = server.replies[1].headers["Retry-After"] = "30"
    with pytest.raises(EmbeddingError):
        embed_question(space, "one")
    assert len(server.requests) == 2


def test_the_text_that_is_refused_is_told_among_the_others(space):
    with pytest.raises(TextRefused) as caught:
        embed_passages(space, [f"text {number}" for number in range(40)] + ["POISON"] + ["text"] * 9)
    assert caught.value.position == 40


def test_what_a_service_takes_only_in_smaller_requests_is_sent_in_smaller_ones(space, server):
    server.will(refusal(413))
    assert embed_passages(space, ["one", "two", "three"]).shape == (3, 2)
    assert [len(request.body["input"]) for request in server.requests] == [3, 1, 2]


def test_the_tokens_that_were_sent_are_counted_by_the_service_or_else_by_us(space, server):
    usage = Usage()
    server.will(Reply(body=vectors([1, 0]).body | {"usage": {"prompt_tokens": 7}}))
    embed_passages(space, ["one two three"], usage)
    assert usage.input_tokens == 7
    embed_passages(space, ["one two three"], usage)
    assert usage.input_tokens == 10


def test_a_text_that_is_too_long_for_the_service_is_cut_until_it_is_taken(model, server):
    """Its fact is found whichever window it stands in."""
    places = {"begins": "A dog is welcome. " + WORDS, "ends": WORDS + "A dog is welcome.", "none": WORDS}
    half = len(WORDS) // 2
    places["middle"] = WORDS[:half] + " A dog is welcome. " + WORDS[half:]
    for title, text in places.items():
        snippets.add(model, title, text)
    spent = Spent()
    assert vectorise_missing(model, spent=spent) == 4
    assert (spent.snippets, spent.input_tokens > 3_000) == (4, True)
    hits = retrieve(model, "May I bring my dog?", mode="semantic").hits
    assert {hit.title for hit in hits} == {"begins", "ends", "middle"}
    assert index.check_model(model.pk) == []


def test_texts_that_are_refused_however_short_are_named_and_the_others_are_made(model, server):
    for number in range(40):
        snippets.add(model, f"Part {number}", "POISON" if number in (3, 35) else "It is a dog.")
    with pytest.raises(EmbeddingError, match="“Part 3” and “Part 35”: change or delete it") as caught:
        vectorise_missing(model)
    assert caught.value.reason == Reason.REFUSED_REQUEST
    assert snippets.vector_counts(model) == (38, 40)


def test_a_service_that_refuses_everything_is_left_alone_soon(model, server):
    server.most_words = 0
    for number in range(100):
        snippets.add(model, f"Part {number}", "It is a dog.")
    with pytest.raises(EmbeddingError, match="refused the request"):
        vectorise_missing(model)
    assert len(server.requests) < 10 * (MOST_REFUSED + 1)
