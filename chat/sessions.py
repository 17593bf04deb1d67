"""A session's memory: earlier questions and answers, until the conversation has rested too long."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from chat.models import Session
from models_app.jobs import send_task
from models_app.models import MLModel
from tenants.store import active_store, on_tenant_commit, tenant_atomic

SUMMARY_TASK = "chat.compress_history"
WAITING_FOR_SUMMARY = 2  # times Max session items: what is kept at most until a worker has summed up the oldest
MOST_DOUBTED = 200


@dataclass(frozen=True)
class Exchange:
    """A question and its answer; the answer is empty where there was none."""

    question: str
    answer: str


@dataclass(frozen=True)
class Memory:
    """What of a conversation goes into the next request, oldest first."""

    exchanges: tuple[Exchange, ...] = ()
    questionnaire_answers: tuple[Exchange, ...] = ()
    summary: str = ""  # of what was said before the exchanges
    doubted: frozenset[str] = frozenset()  # facts of its answers that the guard found in no source
    is_ours: bool = False  # kept here: what a client sends as our answers may be anything


@dataclass(frozen=True)
class Said:
    """What a turn adds to its session."""

    exchange: Exchange
    doubted: Sequence[str] = ()  # facts of the answer that the guard found in no source
    left_out: int = 0  # of the oldest exchanges, as many as did not fit the LLM's context window


def recall(model: MLModel, key: str, now: datetime) -> Memory:
    """Return what the model's session of this key remembers: nothing once it has expired, or was never begun."""
    session = Session.objects.filter(model=model, key=key).first()
    if session is None or _is_expired(session, model, now):
        return Memory()
    return Memory(
        exchanges_of_rows(session.memory),
        exchanges_of_rows(session.questionnaire_answers),
        session.summary if model.compresses_history else "",
        frozenset(session.doubted),
        is_ours=True,
    )


def remember(model: MLModel, key: str, said: Said, now: datetime) -> None:
    """Add an exchange to the session, beginning it if need be; what Max session items leaves no room for is dropped.

    Where the model compresses the history it is kept a while longer, and a worker is told to sum it up.
    """
    with tenant_atomic():
        session = Session.objects.filter(model=model, key=key).first() or Session(model=model, key=key)
        if session.pk and _is_expired(session, model, now):
            session.memory, session.questionnaire_answers = [], []
            session.summary, session.doubted = "", []
        exchanges = latest_exchanges([*exchanges_of_rows(session.memory), said.exchange], most_messages(model))
        session.memory = [[kept.question, kept.answer] for kept in exchanges]
        session.doubted = [*session.doubted, *said.doubted][-MOST_DOUBTED:]
        session.last_used_at = now
        session.save()
        is_overdue = len(latest_exchanges(exchanges, model.max_session_items)) < len(exchanges)
        if model.compresses_history and (is_overdue or said.left_out):
            _ask_for_summary(session, said.left_out)


def most_messages(model: MLModel) -> int:
    """Return how many messages a session keeps: with compression twice as many, until they are summed up."""
    return model.max_session_items * (WAITING_FOR_SUMMARY if model.compresses_history else 1)


def _ask_for_summary(session: Session, left_out: int) -> None:
    """Wake a worker once the session is committed. Without one the window slides, as it does without compression."""
    tenant_id, pk = active_store().tenant_id, session.pk
    on_tenant_commit(lambda: send_task(SUMMARY_TASK, tenant_id, pk, left_out))


def keep_questionnaire(model: MLModel, key: str, answers: Sequence[Exchange], now: datetime) -> None:
    """Let the session remember what the visitor answered before the chat, in place of what was answered earlier."""
    with tenant_atomic():
        session = Session.objects.filter(model=model, key=key).first() or Session(model=model, key=key)
        if session.pk and _is_expired(session, model, now):
            session.memory, session.summary, session.doubted = [], "", []
        session.questionnaire_answers = [[kept.question, kept.answer] for kept in answers]
        session.last_used_at = now
        session.save()


def latest_exchanges(exchanges: list[Exchange], max_messages: int) -> list[Exchange]:
    """Return the latest exchanges that have at most so many messages between them; none is torn apart."""
    kept, messages = [], 0
    for exchange in reversed(exchanges):
        messages += 2 if exchange.answer else 1
        if messages > max_messages:
            break
        kept.insert(0, exchange)
    return kept


def _is_expired(session: Session, model: MLModel, now: datetime) -> bool:
    return now - session.last_used_at > timedelta(seconds=model.session_timeout_seconds)


def exchanges_of_rows(pairs: list) -> tuple[Exchange, ...]:
    return tuple(Exchange(question, answer) for question, answer in pairs)
