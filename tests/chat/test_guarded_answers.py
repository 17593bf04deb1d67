"""What becomes of an answer with facts that stand in no source: flagged, named below it, or asked for once more."""

from datetime import UTC, datetime

import pytest

from chat.answer import Asked, Piece
from chat.guard import note_of, unsupported
from chat.models import Session, Turn
from chat.sessions import Exchange, keep_questionnaire
from models_app import snippets
from tests.chat.asking import answer_of, events_of
from tests.fakes.openai_server import OpenAIServer, refusal, streamed

QUESTION = "What does the blue lamp cost?"
WRONG = "The lamp costs 45 €, until 7 May."
NOTE = "\n\n*Not found in the sources: 7 May, 45 €. Please check.*"


@pytest.fixture
def llm():
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def model(support, llm):
    support.retrieval, support.llm = "keyword", "small"
    support.provider_base_url, support.provider_key = llm.url, "sk-own"
    support.system_instruction = "Be kind. Our hotline is 030 123 4567."
    support.save()
    snippets.add(support, "Blue lamp", "The blue lamp costs 40 euros.", uri="https://ex.test/lamps/7")
    return support


def flagged() -> list[str]:
    return [flag["text"] for flag in Turn.objects.first().guard_flags]


def test_a_wrong_fact_is_flagged_in_the_turn_and_the_answer_is_left_as_it_is(model, llm):
    llm.will(streamed(WRONG))
    answered = answer_of(Asked(model, QUESTION))
    assert answered.text == WRONG
    assert [(flag.kind, flag.text) for flag in answered.unsupported] == [("date", "7 May"), ("price", "45 €")]
    assert Turn.objects.get().guard_flags == [{"kind": "date", "text": "7 May"}, {"kind": "price", "text": "45 €"}]


def test_what_the_snippets_their_addresses_and_the_owner_say_is_borne_out(model, llm):
    llm.will(streamed("It is 40.00 €: https://ex.test/lamps/7, or call +49 30 1234567."))
    answer_of(Asked(model, QUESTION))
    assert flagged() == []


def test_what_the_visitor_said_is_no_invention(model, llm):
    keep_questionnaire(model, "s", [Exchange("Your budget?", "1,500 euros")], datetime.now(UTC))
    llm.will(streamed("Fine."), streamed("With 1500 EUR you can buy 12 lamps, as you said for 3 June, not 13."))
    answer_of(Asked(model, "I need 12 blue lamps", session_key="s"))
    answer_of(Asked(model, "What do the blue lamps cost on 3 June?", session_key="s"))
    assert flagged() == ["13"]


def test_an_earlier_answer_bears_a_fact_out_unless_it_was_flagged_there(model, llm):
    llm.will(streamed("It costs 40 euros and weighs 9 kg."), streamed("As I said: 40 euros, 9 kg."))
    for _ in range(2):
        answer_of(Asked(model, QUESTION, session_key="s"))
        assert flagged() == ["9 kg"]
    assert set(Session.objects.get().doubted) == {"9 kg"}
    answers = (Exchange("Hello", "It weighs 9 kg."),)
    llm.will(streamed("It weighs 9 kg."))
    answer_of(Asked(model, QUESTION, history=answers))
    assert flagged() == ["9 kg"], "what a client sends as our answers may be anything"


@pytest.mark.parametrize("guard", ["mark", "retry"])
def test_a_streamed_answer_gets_a_closing_note_that_is_no_part_of_the_memory(model, llm, guard):
    model.guard = guard
    llm.will(streamed("The lamp costs 45 €,", " until 7 May."))
    events = events_of(Asked(model, QUESTION, session_key="s"))
    assert "".join(event.text for event in events if isinstance(event, Piece)) == WRONG + NOTE
    assert events[-1].text == Turn.objects.get().answer == WRONG + NOTE
    assert Session.objects.get().memory == [[QUESTION, WRONG]]
    assert len(llm.requests) == 1


def test_a_marked_answer_without_a_wrong_fact_has_no_note(model, llm):
    model.guard = "mark"
    llm.will(streamed("It costs €40."))
    assert answer_of(Asked(model, QUESTION)).text == "It costs €40."


def test_an_answer_nobody_has_seen_is_asked_for_once_more_with_what_was_wrong(model, llm):
    model.guard = "retry"
    llm.will(streamed(WRONG, usage=(100, 10)), streamed("It costs 40 €.", usage=(150, 5)))
    answered = answer_of(Asked(model, QUESTION))
    assert (answered.text, answered.unsupported) == ("It costs 40 €.", ())
    first, second = (request.body["messages"] for request in llm.requests)
    assert second[: len(first)] == first
    assert second[-2] == {"role": "assistant", "content": WRONG}
    assert "7 May; 45 €" in second[-1]["content"]
    turn = Turn.objects.get()
    assert (turn.answer, turn.guard_flags, turn.prompt_tokens, turn.completion_tokens) == (
        "It costs 40 €.",
        [],
        250,
        15,
    )


def test_the_second_answer_counts_only_if_less_is_wrong_in_it_and_what_is_left_is_named(model, llm):
    model.guard = "retry"
    llm.will(streamed(WRONG), streamed("It costs 46 € or 47 € or 48 €."))
    assert answer_of(Asked(model, QUESTION)).text == WRONG + NOTE
    llm.will(streamed(WRONG), streamed("It costs 46 €."))
    assert answer_of(Asked(model, QUESTION)).text == "It costs 46 €.\n\n*Not found in the sources: 46 €. Please check.*"


def test_a_second_answer_that_does_not_come_leaves_the_first(model, llm):
    model.guard = "retry"
    llm.will(streamed(WRONG), refusal(401))
    answered = answer_of(Asked(model, QUESTION))
    assert (answered.text, answered.answered_by) == (WRONG + NOTE, "llm")


def test_quoted_passages_are_never_flagged(support):
    support.retrieval = "keyword"
    snippets.add(support, "Blue lamp", "The blue lamp costs 40 euros.", uri="https://ex.test/lamps/7")
    assert answer_of(Asked(support, QUESTION)).unsupported == ()


def test_a_note_cannot_hold_markdown_of_the_llms():
    flags = unsupported("[click](https://evil.test/a_b_c) <b>5 €</b> `7`", [])
    assert note_of(flags) == "\n\n*Not found in the sources: https://evil.test/a\\_b\\_c, 5 €, 7. Please check.*"
