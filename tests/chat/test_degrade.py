"""What answers while something is away: the next LLM, the quoted passages, the contact form; and that each is seen."""

import time
from decimal import Decimal

import pytest

from chat.answer import Asked, Piece
from chat.models import Session, Turn
from models_app import snippets
from tests.chat.asking import answer_of, events_of
from tests.fakes.openai_server import OpenAIServer, Reply, delta, refusal, streamed

QUESTION = "When do you open?"
QUOTED = "> We open at 9.\n\n— [Opening hours](https://ex.test/hours)"


@pytest.fixture
def llm():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def house():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(support, llm):
    """A model that knows one thing, with an LLM of its own and another one behind it."""
    support.retrieval = "keyword"
    support.llm, support.fallback_llms = "first", "second"
    support.provider_base_url, support.provider_key = llm.url, "sk-own"
    support.input_price, support.output_price = Decimal(2), Decimal(10)
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


def asked_llms(server: OpenAIServer) -> list[str]:
    return [request.body["model"] for request in server.requests]


AWAY = [
    (refusal(503), 2),
    (refusal(429), 2),
    (refusal(429, code="insufficient_quota"), 1),
    (refusal(402), 1),
    (refusal(401, "bad key sk-own"), 1),
    (refusal(404), 1),
    (refusal(400, "This is too long"), 1),
    (Reply(chunks=[delta(role="assistant")], breaks_off=True), 2),
    (Reply(body="<h1>Welcome</h1>", headers={"Content-Type": "text/html"}), 2),
]


@pytest.mark.parametrize(("reply", "calls"), AWAY)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_an_llm_that_is_away_leaves_the_next_one_to_answer(model, llm, reply, calls, is_streamed):
    llm.will(*[reply] * calls, streamed("At ", "nine."))
    answered = events_of(Asked(model, QUESTION))[-1] if is_streamed else answer_of(Asked(model, QUESTION))
    assert asked_llms(llm) == ["first"] * calls + ["second"]
    assert (answered.text, answered.answered_by, answered.finish_reason) == ("At nine.", "llm", "stop")
    turn = Turn.objects.get()
    assert (turn.llm, turn.outcome, turn.error, turn.answer) == ("second", "stop", "", "At nine.")
    assert turn.degraded.startswith("first: The LLM ") or "first: what " in turn.degraded
    assert "sk-own" not in turn.degraded
    assert turn.cost is None, "the prices are the first one's"


def test_the_first_llm_is_named_and_priced_where_it_answers(model, llm):
    llm.will(streamed("At nine.", usage=(1_000, 500)))
    answer_of(Asked(model, QUESTION))
    turn = Turn.objects.get()
    assert (turn.llm, turn.degraded, turn.cost) == ("first", "", Decimal("0.007"))


def test_the_installations_llm_answers_last(model, llm, house, settings):
    settings.SITEWISE_LLM_URL, settings.SITEWISE_LLM_MODEL = house.url, "house"
    settings.SITEWISE_PRIVATE_ADDRESSES = True
    llm.will(refusal(401), refusal(401))
    house.will(streamed("At nine."))
    assert answer_of(Asked(model, QUESTION)).text == "At nine."
    assert (asked_llms(llm), asked_llms(house)) == (["first", "second"], ["house"])
    assert "sk-own" not in str(house.requests[0].headers), "a key never goes to the other one's address"
    assert Turn.objects.get().llm == "house"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_passages_are_quoted_when_no_llm_answers(model, llm, is_streamed):
    llm.will(refusal(401, "bad key sk-own"), refusal(404))
    asked = Asked(model, QUESTION, session_key="s")
    answered = events_of(asked)[-1] if is_streamed else answer_of(asked)
    assert (answered.text, answered.answered_by, answered.finish_reason) == (QUOTED, "extract", "stop")
    turn = Turn.objects.get()
    assert (turn.answered_by, turn.llm, turn.outcome, turn.error) == ("extract", "", "stop", "")
    assert turn.degraded == (
        "first: The LLM refused the key it was sent. "
        "second: The LLM is not known under its name at the provider's address. The best passages were quoted instead."
    )
    assert answered.degraded == turn.degraded
    assert Session.objects.get().memory == [[QUESTION, QUOTED]]


def test_a_key_that_is_lost_leaves_the_passages(model, llm):
    model.provider_key_encrypted = "not-ours"
    assert answer_of(Asked(model, QUESTION)).text == QUOTED
    assert "enter it again" in Turn.objects.get().degraded
    assert llm.requests == []


def test_a_contact_is_offered_where_nothing_answers_and_the_model_takes_addresses(model, llm):
    model.takes_emails = True
    llm.will(refusal(401), refusal(401), refusal(401), refusal(401))
    assert answer_of(Asked(model, "Giraffes?")).offers_contact
    assert not answer_of(Asked(model, QUESTION)).offers_contact
    model.takes_emails = False
    assert not answer_of(Asked(model, "Giraffes?")).offers_contact


def test_one_deadline_covers_all_llms_and_each_has_its_share(model, llm, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 3
    llm.will(Reply(hangs=True), streamed("At nine."))
    began = time.monotonic()
    assert answer_of(Asked(model, QUESTION)).text == "At nine."
    assert time.monotonic() - began < 10
    assert "first: The LLM did not answer in time." in Turn.objects.get().degraded


def test_llms_that_all_hang_leave_the_passages_at_the_deadline(model, llm, settings):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 0.6
    llm.will(Reply(hangs=True), Reply(hangs=True))
    assert answer_of(Asked(model, QUESTION)).text == QUOTED
    assert asked_llms(llm) == ["first", "second"]


@pytest.mark.parametrize("how", [{"breaks_off": True}, {"hangs": True}])
def test_a_stream_that_breaks_ends_with_what_came_and_tells_the_visitor(model, llm, settings, how):
    settings.SITEWISE_LLM_TIMEOUT_SECONDS = 3
    llm.will(Reply(chunks=[delta(content="We open "), delta(content="at ")], **how))
    events = events_of(Asked(model, QUESTION, session_key="s"))
    seen, answered = "".join(event.text for event in events if isinstance(event, Piece)), events[-1]
    assert seen == answered.text
    assert seen.startswith("We open at ")
    assert "breaks off here" in seen
    assert (answered.finish_reason, answered.is_cut, answered.answered_by) == ("length", True, "llm")
    assert asked_llms(llm) == ["first"], "no other answer is put behind the half of one"
    turn = Turn.objects.get()
    assert (turn.outcome, turn.answer, turn.llm) == ("cut", seen, "first")
    assert turn.error.startswith("first: ")
    assert Session.objects.get().memory == [[QUESTION, "We open at "]], "the note is no part of what was said"


def test_an_answer_nobody_has_seen_is_taken_over_when_its_stream_breaks(model, llm, case):
    llm.will(Reply(chunks=case("S05")["input"]["cases"][1]), streamed("At nine."))
    answered = answer_of(Asked(model, QUESTION))
    assert (answered.text, answered.is_cut, Turn.objects.get().llm) == ("At nine.", False, "second")


def test_an_embedding_service_that_is_away_is_told_beside_the_llm_that_is(model, llm):
    model.retrieval = "hybrid"
    llm.will(refusal(401), streamed("At nine."))
    answer_of(Asked(model, QUESTION))
    turn = Turn.objects.get()
    assert "Vectorise" in turn.degraded
    assert "first: The LLM refused the key" in turn.degraded
