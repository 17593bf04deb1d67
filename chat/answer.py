"""The chat journey: from a question to its answer, streamed, remembered and logged, however it ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from chat.context import get_context, sources_of
from chat.extract import extract_answer
from chat.models import Turn
from chat.prompt import Conversation, assemble_messages
from chat.turns import Answered, Asked, OpenTurn, open_turn
from models_app.llm import Ending, Piece, Provider, ProviderError, stream_answer
from models_app.providers import chat_provider
from models_app.tokens import count_tokens
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

    Raises QuestionTooLong and QuotaReached instead of Started; after it LLMError and EmbeddingError. The caller closes
    the iterator (`aclosing`) when the visitor has left; that closes the LLM's connection too.
    """
    turn = await store.run(open_turn, asked, clock())
    try:
        yield Started()
        earlier = [exchange.question for exchange in turn.memory.exchanges]
        turn.found(await store.run(get_context, asked.model, asked.question, earlier))
        provider = chat_provider(asked.model)
        async with aclosing(_speak(turn, provider)) as spoken:
            async for part in spoken:
                if isinstance(part, Piece):
                    turn.add(part.text)
                yield part
    except ProviderError as error:
        turn.fail(f"{error.reason}: {error.message}")
        raise
    except Exception as error:
        turn.fail(f"internal error: {type(error).__name__}")
        raise
    finally:
        await _to_the_end(store.run(turn.close, clock()))


def _speak(turn: OpenTurn, provider: Provider | None) -> AsyncIterator[Piece | Answered]:
    return _quote_passages(turn) if provider is None else _ask_llm(turn, provider)


async def _ask_llm(turn: OpenTurn, provider: Provider) -> AsyncIterator[Piece | Answered]:
    asked, model = turn.asked, turn.asked.model
    turn.is_answered_by(Turn.AnsweredBy.LLM)
    # Tokens are counted in a thread: other visitors' streams share this one.
    prompt = await sync_to_async(assemble_messages)(
        model,
        Conversation(asked.question, turn.context, turn.memory),
        provider,
        min(asked.max_tokens or model.max_tokens, model.max_tokens),
    )
    temperature = model.temperature if asked.temperature is None else asked.temperature
    async with aclosing(stream_answer(provider, prompt.messages, prompt.max_tokens, temperature)) as parts:
        async for part in parts:
            if isinstance(part, Ending):
                yield turn.finish(part, prompt.tokens, turn.context.sources, provider.llm)
            else:
                yield part


async def _quote_passages(turn: OpenTurn) -> AsyncIterator[Piece | Answered]:
    """Without an LLM the best passages answer, in their own words."""
    turn.is_answered_by(Turn.AnsweredBy.EXTRACT)
    quotes = await sync_to_async(extract_answer)(turn.context)
    if not any(quote.hit for quote in quotes):
        turn.is_left_unanswered()
    for number, quote in enumerate(quotes):
        yield Piece(f"\n\n{quote.text}" if number else quote.text)
    ending = Ending("\n\n".join(quote.text for quote in quotes), "stop", None, None)
    sources = sources_of(quote.hit for quote in quotes if quote.hit)
    yield turn.finish(ending, count_tokens(turn.asked.question), sources)


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
    async with aclosing(answer_question(store, asked, clock)) as events:
        async for event in events:
            if isinstance(event, Answered):
                answered = event
    return answered


def answer_now(asked: Asked) -> Answered:
    """Return the answer out of the active store, to synchronous callers; raises as answer_question does."""
    return async_to_sync(whole_answer)(active_store(), asked)
