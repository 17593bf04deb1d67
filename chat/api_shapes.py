"""The shapes of the public API's answers: OpenAI's chat completion, whole or as a stream of events.

What is ours beside them (sources, who answered, the session) stands in extra fields, which other clients ignore.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field

from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse

from chat.answer import Answered, Event, Piece
from chat.api_errors import api_error_of

HEARTBEAT_SECONDS = 10.0  # proxies give up on a connection that is silent for a minute or two
PING = ": ping\n\n"
DONE = "data: [DONE]\n\n"
STREAM_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


@dataclass(frozen=True)
class Completion:
    """One completion; id, time and model are the same in all that is sent of it."""

    model: str
    turn: str  # what the turn is known by
    wants_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.turn}"

    def whole(self, answered: Answered) -> dict:
        """Return the answer in one."""
        message = {"role": "assistant", "content": answered.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answered.finish_reason}
        head = self._head("chat.completion")
        return {**head, "choices": [choice], "usage": _usage(answered), **_extra_fields(answered)}

    def first(self) -> str:
        """Return the event that says that an answer will come."""
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> str:
        """Return the event with some more text."""
        return self._chunk({"content": text})

    def last(self, answered: Answered) -> str:
        """Return the events that end the answer: the reason, and what it cost if that was asked for."""
        events = self._chunk({}, answered.finish_reason, _extra_fields(answered))
        if self.wants_usage:
            events += event_line({**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(answered)})
        return events

    def _chunk(self, delta: dict, finish_reason: str | None = None, extra_fields: dict | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self.wants_usage else {}
        return event_line({**self._head("chat.completion.chunk"), "choices": [choice], **usage, **(extra_fields or {})})

    def _head(self, kind: str) -> dict:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


class StreamedAnswer(StreamingHttpResponse):
    """The response that carries an answer as it is made. Nothing of it is held back by the server or a proxy."""

    def __init__(self, parts: AsyncIterator[str], events: AsyncIterator[Event], headers: dict[str, str]):
        """Send the parts, which are made of the events; the headers stand beside those of a stream."""
        self._parts, self._events = parts, events
        super().__init__(parts, headers=STREAM_HEADERS | headers)

    def close(self) -> None:
        """End the turn, if the visitor left it while nobody was waiting for its next piece."""
        async_to_sync(self._close_iterators)()
        super().close()

    async def _close_iterators(self) -> None:
        await self._parts.aclose()
        await self._events.aclose()


async def stream_parts(
    completion: Completion, events: AsyncIterator[Event], heartbeat_seconds: float
) -> AsyncIterator[str]:
    """Yield the answer as server-sent events, at once and with a sign of life in every silence."""
    yield completion.first()
    try:
        async with aclosing(with_heartbeat(events, heartbeat_seconds)) as beating:
            async for event in beating:
                if event is None:
                    yield PING
                elif isinstance(event, Piece):
                    yield completion.piece(event.text)
                elif isinstance(event, Answered):
                    yield completion.last(event)
    except Exception as error:
        yield event_line(api_error_of(error).body)
        return
    yield DONE


async def with_heartbeat(events: AsyncIterator[Event], seconds: float) -> AsyncIterator[Event | None]:
    """Yield the events, and None whenever so many seconds went by without one."""
    upcoming = None
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(events))
            await asyncio.wait({upcoming}, timeout=seconds)
            if not upcoming.done():
                yield None
                continue
            finished, upcoming = upcoming, None
            try:
                yield finished.result()
            except StopAsyncIteration:
                return
    finally:
        if upcoming:
            upcoming.cancel()
            await asyncio.wait({upcoming})
        await events.aclose()


def event_line(content: dict) -> str:
    """Return the content as one server-sent event."""
    # One line of ASCII: whatever the text holds, no reader of lines can take a part of it for the event's end.
    return f"data: {json.dumps(content)}\n\n"


def _usage(answered: Answered) -> dict:
    return {
        "prompt_tokens": answered.prompt_tokens,
        "completion_tokens": answered.completion_tokens,
        "total_tokens": answered.prompt_tokens + answered.completion_tokens,
    }


def _extra_fields(answered: Answered) -> dict:
    return {
        "sources": [asdict(source) for source in answered.sources],
        "answered_by": answered.answered_by,
        "unanswered": answered.is_unanswered,
        "cut": answered.is_cut,
        "unsupported": [flag.row for flag in answered.unsupported],
        "offers_contact": answered.offers_contact,
        "session_id": answered.session_key or None,
    }
