"""A session's memory: earlier questions and answers, until the conversation has rested too long."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from chat.models import Session
from models_app.models import MLModel
from tenants.store import tenant_atomic


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


def recall(model: MLModel, key: str, now: datetime) -> Memory:
    """Return what the model's session of this key remembers: nothing once it has expired, or was never begun."""
    session = Session.objects.filter(model=model, key=key).first()
    if session is None or _is_expired(session, model, now):
        return Memory()
    return Memory(_exchanges(session.memory), _exchanges(session.questionnaire_answers))


def remember(model: MLModel, key: str, exchange: Exchange, now: datetime) -> None:
    """Add an exchange to the session, beginning it if need be; what Max session items leaves no room for is dropped."""
    with tenant_atomic():
        session = Session.objects.filter(model=model, key=key).first() or Session(model=model, key=key)
        if session.pk and _is_expired(session, model, now):
            session.memory, session.questionnaire_answers = [], []
        exchanges = latest_exchanges([*_exchanges(session.memory), exchange], model.max_session_items)
        session.memory = [[kept.question, kept.answer] for kept in exchanges]
        session.last_used_at = now
        session.save()


def keep_questionnaire(model: MLModel, key: str, answers: Sequence[Exchange], now: datetime) -> None:
    """Let the session remember what the visitor answered before the chat, in place of what was answered earlier."""
    with tenant_atomic():
        session = Session.objects.filter(model=model, key=key).first() or Session(model=model, key=key)
        if session.pk and _is_expired(session, model, now):
            session.memory = []
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


def _exchanges(pairs: list) -> tuple[Exchange, ...]:
    return tuple(Exchange(question, answer) for question, answer in pairs)
