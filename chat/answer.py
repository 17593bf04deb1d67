"""The chat journey: from a question to its answer, streamed, remembered and logged, however it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

from asgiref.sync import async_to_sync
from django.utils import timezone

from chat.citations import cite, cite_quoted
from chat.context import Source, get_context
from chat.models import Turn
from chat.rewriting import rewrite_follow_up
from chat.speaking import speak
from chat.turns import Answered, Asked, OpenTurn, open_turn
from models_app.llm import Piece, ProviderError
from tenants.store import Store, active_store

__all__ = ["Answered", "Asked", "Piece", "Started", "answer_now", "answer_question", "whole_answer"]


@dataclass(frozen=True)
class Started:
    """The question was taken: from here on whatever happens is logged."""


Event = Started | Piece | Answered


async def answer_question(
    store: Store, asked: Asked, clock: Callable[[], datetime] = timezone.now
) -> AsyncIterator[Event]:
    """Yield Started, the answer piece by piece, then Answered; and log the turn when it ends, however it ends.

    Raises QuestionTooLong and QuotaReached instead of Started; a provider that is away is no error, others take its
    place. The caller closes the iterator (`aclosing`) when the visitor has left; that closes the LLM's connection too.
    """
    turn = await store.run(open_turn, asked, clock())
    try:
        yield Started()
        await store.run(_search, turn)
        async with aclosing(speak(turn)) as spoken:
            async for part in spoken:
                if isinstance(part, Piece):
                    turn.add(part.text)
                    yield part
                else:
                    yield replace(part, sources=await store.run(_sources, turn, part))
    except ProviderError as error:
        turn.fail(f"{error.reason}: {error.message}")
        raise
    except Exception as error:
        turn.fail(f"internal error: {type(error).__name__}")
        raise
    finally:
        await _to_the_end(store.run(turn.close, clock()))


def _sources(turn: OpenTurn, answered: Answered) -> tuple[Source, ...]:
    """Return what the answer really stands on, with links to the sentences."""
    if answered.answered_by == Turn.AnsweredBy.EXTRACT:
        return cite_quoted(turn.asked.model, answered.text, answered.sources, turn.context)
    return cite(turn.asked.model, answered.text, turn.context)


def _search(turn: OpenTurn) -> None:
    """Find what the answer may stand on; a follow-up is reworded before, if the model's setting says so."""
    asked, memory = turn.asked, turn.memory
    rewritten, trouble = rewrite_follow_up(asked.model, asked.question, memory)
    turn.misses(trouble)
    earlier = [exchange.question for exchange in memory.exchanges]
    turn.found(get_context(asked.model, asked.question, earlier, rewritten=rewritten))


async def _to_the_end(step: Coroutine) -> None:
    """Await a step that has to be done also when this task is cancelled meanwhile, however often."""
    task, cancelled = asyncio.ensure_future(step), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled
    task.result()


async def whole_answer(store: Store, asked: Asked, clock: Callable[[], datetime] = timezone.now) -> Answered:
    """Return the answer once it is whole; raises as answer_question does."""
    async with aclosing(answer_question(store, replace(asked, is_buffered=True), clock)) as events:
        async for event in events:
            if isinstance(event, Answered):
                answered = event
    return answered


def answer_now(asked: Asked) -> Answered:
    """Return the answer out of the active store, to synchronous callers; raises as answer_question does."""
    return async_to_sync(whole_answer)(active_store(), asked)
