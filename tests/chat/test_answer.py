"""The chat journey: what is streamed, remembered and logged, however it ends."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from chat.answer import Answered, Asked, Piece, Started, answer_now, answer_question, whole_answer
from chat.models import QuestionCount, Session, Turn
from chat.sessions import Exchange, Said, remember
from chat.turns import QuestionTooLong, QuotaReached
from models_app import snippets
from models_app.models import MLModel
from tenants.store import active_store
from tests.fakes.openai_server import OpenAIServer, Reply, delta, streamed

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
QUESTION = "When do you open?"


class Clock:
    """Time that only tests move."""

    def __init__(self):
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def model(support):
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
    model.llm, model.provider_base_url, model.provider_key = "small", llm.url, "sk-own"
    model.input_price, model.output_price = Decimal(2), Decimal(10)
    model.save()
    return model


def answer_of(asked: Asked, clock=timezone.now) -> Answered:
    return async_to_sync(whole_answer)(active_store(), asked, clock)


def events_of(asked: Asked) -> list:
    async def collect():
        return [event async for event in answer_question(store, asked)]

    store = active_store()
    return async_to_sync(collect)()


def sent_texts(llm: OpenAIServer, number: int = -1) -> list[str]:
    return [message["content"] for message in llm.requests[number].body["messages"]]


def test_without_an_llm_the_best_passages_answer_with_their_source(model):
    events = events_of(Asked(model, QUESTION))
    assert events[0] == Started()
    assert events[-1].text == "".join(event.text for event in events if isinstance(event, Piece))
    answered = events[-1]
    assert answered.text == "> We open at 9.\n\n— [Opening hours](https://ex.test/hours)"
    assert (answered.answered_by, answered.finish_reason, answered.is_unanswered) == ("extract", "stop", False)
    assert [source.url for source in answered.sources] == ["https://ex.test/hours"]
    turn = Turn.objects.get()
    assert (turn.question, turn.answer, turn.answered_by) == (QUESTION, answered.text, "extract")
    assert (turn.outcome, turn.retrieval, turn.context_tokens) == ("stop", "keyword", answered.context_tokens)
    assert (turn.cost, turn.hits[0]["title"], turn.hits[0]["rank"]) == (None, "Opening hours", 1)


def test_quoted_passages_name_as_sources_only_what_they_quote(model):
    snippets.add(
        model, "Winter", "From November on the harbour is closed for ships, and we open later.", uri="https://ex.test/w"
    )
    answered = answer_of(Asked(model, "When do you open in winter, with the harbour closed?"))
    assert len(Turn.objects.get().hits) == 2
    assert [source.url for source in answered.sources] == ["https://ex.test/w"]


def test_an_llm_answers_from_the_context_and_its_usage_is_logged(talker, llm):
    llm.will(streamed("At ", "nine.", usage=(1_000, 500)))
    events = events_of(Asked(talker, QUESTION))
    assert [event.text for event in events if isinstance(event, Piece)] == ["At ", "nine."]
    assert (events[-1].text, events[-1].answered_by) == ("At nine.", "llm")
    instruction, context, question = sent_texts(llm)
    assert instruction == talker.system_instruction
    assert "We open at 9." in context
    assert question == QUESTION
    turn = Turn.objects.get()
    assert (turn.answer, turn.outcome, turn.error) == ("At nine.", "stop", "")
    assert (turn.prompt_tokens, turn.completion_tokens, turn.cost) == (1_000, 500, Decimal("0.007"))


def test_tokens_are_counted_where_the_server_does_not_tell(talker, llm):
    llm.will(streamed("At nine.", usage=None))
    answered = answer_of(Asked(talker, QUESTION))
    assert answered.prompt_tokens > 30
    assert 2 <= answered.completion_tokens <= 5


def test_an_answer_cut_at_max_tokens_says_so(talker, llm):
    llm.will(streamed("At", finish_reason="length"))
    assert (answer_of(Asked(talker, QUESTION, max_tokens=20))).finish_reason == "length"
    assert Turn.objects.get().outcome == "length"
    assert llm.requests[0].body["max_tokens"] == 20


def test_a_caller_may_lower_max_tokens_but_not_raise_them(talker, llm):
    answer_of(Asked(talker, QUESTION, max_tokens=10_000_000, temperature=1.5))
    assert (llm.requests[0].body["max_tokens"], llm.requests[0].body["temperature"]) == (4_000, 1.5)


def test_finding_nothing_is_told_to_the_llm_and_marked(talker, llm):
    answered = answer_of(Asked(talker, "Giraffes?"))
    assert answered.is_unanswered
    assert answered.sources == ()
    assert "nothing was found" in sent_texts(llm)[1]
    assert Turn.objects.get().is_unanswered


def test_finding_nothing_without_an_llm_is_said_politely(model):
    answered = answer_of(Asked(model, "Giraffes?"))
    assert (answered.answered_by, answered.is_unanswered) == ("extract", True)
    assert "Sorry" in answered.text


def test_what_was_away_is_noted(model):
    model.retrieval = "hybrid"
    answered = answer_of(Asked(model, QUESTION))
    assert "Vectorise" in answered.degraded
    assert Turn.objects.get().degraded == answered.degraded


def test_a_session_is_remembered_pruned_and_expires(talker, llm, clock):
    talker.max_session_items = 4
    for number in range(1, 4):
        llm.will(streamed(f"Answer {number}."))
        asked = Asked(talker, f"When do you open, {number}?", session_key="s")
        answer_of(asked, clock)
        clock.forward(1_000)
    answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    instruction, context, *history, question = sent_texts(llm)
    assert history == ["When do you open, 2?", "Answer 2.", "When do you open, 3?", "Answer 3."]
    assert (instruction, question, "We open at 9." in context) == (talker.system_instruction, QUESTION, True)
    clock.forward(1_201)
    answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    assert len(sent_texts(llm)) == 3


def test_a_short_window_drops_whole_exchanges_and_nothing_else(talker, llm, clock):
    talker.context_window, talker.max_tokens = 1_000, 500
    for number in range(1, 8):
        llm.will(streamed(f"Answer {number}. " + "word " * 60))
        answer_of(Asked(talker, f"When do you open, {number}?", session_key="s"), clock)
    instruction, context, *history, question = sent_texts(llm)
    assert 0 < len(history) < 12
    assert history[0::2] == [f"When do you open, {number}?" for number in range(7 - len(history) // 2, 7)]
    assert (instruction, "We open at 9." in context) == (talker.system_instruction, True)
    assert question == "When do you open, 7?"


def test_a_question_that_only_the_sites_menu_came_up_for_is_left_unanswered(model):
    title = "Acme: header, menu and footer of the site"
    snippets.add(model, title, "- [Home](/)", uri="https://ex.test/", source="site")
    answered = answer_of(Asked(model, "Who invented the footer?"))
    assert (answered.answered_by, answered.is_unanswered, answered.sources) == ("extract", True, ())
    assert "Home" not in answered.text
    assert Turn.objects.get().is_unanswered


def test_a_follow_up_is_answered_by_what_it_asks_itself(model, clock):
    question = "how much is the blue widget"
    snippets.add(model, "Blue widget", "The blue widget costs nine euros, as much as any widget.")
    snippets.add(model, "Questions", "## Can I return what I bought?\n\nYes, within 31 days.")
    first = answer_of(Asked(model, question, session_key="s"), clock)
    assert "nine euros" in first.text
    second = answer_of(Asked(model, "can I return it", session_key="s"), clock)
    assert second.text.startswith("> ## Can I return what I bought?")


def test_the_context_is_made_anew_and_never_kept(talker, llm, clock):
    for _ in range(3):
        answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    assert sum("We open at 9." in text for text in sent_texts(llm)) == 1
    assert "We open at 9." not in str(Session.objects.get().memory)


def test_a_follow_up_is_searched_with_the_sessions_earlier_questions(model, clock):
    remember(model, "s", Said(Exchange("What are your opening hours on weekdays?", "Nine to six.")), NOON)
    alone = answer_of(Asked(model, "and on that day?"), clock)
    followed = answer_of(Asked(model, "and on that day?", session_key="s"), clock)
    assert (alone.is_unanswered, followed.is_unanswered) == (True, False)


def test_the_clients_history_counts_where_there_is_no_session(talker, llm):
    answer_of(Asked(talker, QUESTION, history=(Exchange("Hello", "Hi there"),)))
    assert sent_texts(llm)[2:4] == ["Hello", "Hi there"]


def test_thoughts_reach_neither_the_log_nor_the_next_request(talker, llm, case, clock):
    llm.will(streamed(*case("S11")["input"]["pieces"]))
    answered = answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    assert answered.text == Turn.objects.last().answer == case("S11")["expected"]["answer"]
    for word in case("S11")["expected"]["not_contains"]:
        assert word not in " ".join(sent_texts(llm))


async def test_a_visitor_who_leaves_is_logged_once_with_what_they_saw(talker, acme_store, llm):
    llm.will(streamed(*(f"word {number} " for number in range(50)), pause_seconds=0.1))
    async with aclosing(answer_question(acme_store, Asked(talker, QUESTION, session_key="s"))) as events:
        pieces = 0
        async for event in events:
            pieces += isinstance(event, Piece)
            if pieces == 2:
                break
    turn = await acme_store.run(Turn.objects.get)
    assert (turn.question, turn.answer, turn.outcome) == (QUESTION, "word 0 word 1 ", "disconnected")
    assert await asyncio.to_thread(llm.requests[0].was_closed.wait, 2)
    assert await acme_store.run(Session.objects.count) == 0


async def test_a_task_that_is_cancelled_again_and_again_still_writes_its_turn(talker, acme_store, llm):
    llm.will(Reply(chunks=[delta(content="You can ")], hangs=True))

    async def ask():
        async for event in answer_question(acme_store, Asked(talker, QUESTION)):
            if isinstance(event, Piece):
                started.set()

    started = asyncio.Event()
    task = asyncio.create_task(ask())
    await started.wait()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert [(turn.answer, turn.outcome) for turn in await acme_store.run(list, Turn.objects.all())] == [
        ("You can ", "disconnected")
    ]


async def test_a_process_that_is_killed_leaves_the_question_in_the_log(model, acme_store):
    events = answer_question(acme_store, Asked(model, QUESTION))
    await anext(events)
    assert [(turn.question, turn.outcome) for turn in await acme_store.run(list, Turn.objects.all())] == [
        (QUESTION, "disconnected")
    ]
    await events.aclose()


def test_a_question_that_is_too_long_names_both_numbers_and_leaves_no_trace(model):
    with pytest.raises(QuestionTooLong, match=r"4,\d\d\d tokens.*at most 1,000"):
        answer_of(Asked(model, "word " * 4_000))
    assert (Turn.objects.count(), QuestionCount.objects.count()) == (0, 0)


def test_a_models_monthly_cap_is_counted_by_calendar_month(model, clock):
    model.monthly_request_cap = 2
    for _ in range(2):
        answer_of(Asked(model, QUESTION), clock)
    with pytest.raises(QuotaReached, match="chatbot has answered the 2 questions"):
        answer_of(Asked(model, QUESTION), clock)
    assert Turn.objects.count() == 2
    clock.forward(31 * 86_400)
    answer_of(Asked(model, QUESTION), clock)


def test_the_tenants_quota_holds_for_all_models_together_and_without_a_log(model, clock):
    other = MLModel.objects.create(slug="sales", name="Sales", retrieval="keyword", logs_questions=False)
    answer_of(Asked(model, QUESTION, question_quota=2), clock)
    answer_of(Asked(other, QUESTION, question_quota=2), clock)
    with pytest.raises(QuotaReached, match="workspace"):
        answer_of(Asked(other, QUESTION, question_quota=2), clock)
    snippets.delete_model(other)
    with pytest.raises(QuotaReached):
        answer_of(Asked(model, QUESTION, question_quota=2), clock)


def test_without_logging_nothing_is_logged_and_the_session_still_remembers(talker, llm, clock):
    talker.logs_questions = False
    for _ in range(2):
        answer_of(Asked(talker, QUESTION, session_key="s"), clock)
    assert Turn.objects.count() == 0
    assert sent_texts(llm)[2:4] == [QUESTION, "All is well."]


def test_synchronous_callers_get_the_whole_answer_out_of_the_active_store(model):
    answered = answer_now(Asked(model, QUESTION, channel="test"))
    assert isinstance(answered, Answered)
    assert Turn.objects.get().channel == "test"
