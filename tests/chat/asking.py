"""Asks a question out of the active store, as a client that waits for the whole or one that reads the stream."""

from contextlib import aclosing

from asgiref.sync import async_to_sync

from chat.answer import Answered, Asked, Event, answer_question, whole_answer
from tenants.store import active_store


def answer_of(asked: Asked) -> Answered:
    """Return the answer as a client gets it that waits for the whole."""
    return async_to_sync(whole_answer)(active_store(), asked)


def events_of(asked: Asked) -> list[Event]:
    """Return what a client sees of a streamed answer."""

    async def collect():
        async with aclosing(answer_question(store, asked)) as events:
            return [event async for event in events]

    store = active_store()
    return async_to_sync(collect)()
