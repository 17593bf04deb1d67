"""The stream of an answer: its signs of life, and how it ends."""

import asyncio
import json

from chat.api_shapes import DONE, PING, Completion, stream_parts
from models_app.llm import LLMError, Piece, Reason


async def parts_of(events, heartbeat_seconds: float = 60) -> list[str]:
    return [part async for part in stream_parts(Completion("support", "t1"), events, heartbeat_seconds)]


async def test_a_silence_is_filled_with_comments_and_nothing_is_lost():
    async def slow():
        yield Piece("one")
        await asyncio.sleep(0.1)
        yield Piece("two")

    first, one, *pings, two, done = await parts_of(slow(), heartbeat_seconds=0.02)
    assert json.loads(first.removeprefix("data: "))["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert '"one"' in one and '"two"' in two
    assert pings and set(pings) == {PING}
    assert done == DONE


async def test_an_event_is_one_line_of_ascii_whatever_it_holds():
    async def odd():
        yield Piece("a\r\n\n\u2028\u0085 data: x\n\né😀")

    piece = (await parts_of(odd()))[1]
    assert piece.isascii()
    assert len(piece.removesuffix("\n\n").splitlines()) == 1
    assert json.loads(piece.removeprefix("data: "))["choices"][0]["delta"]["content"].endswith("é😀")


async def test_an_error_ends_the_stream_without_done():
    async def failing():
        yield Piece("You can ")
        raise LLMError(Reason.AWAY, "The LLM cannot be reached.")

    *_, last = await parts_of(failing())
    assert json.loads(last.removeprefix("data: "))["error"]["message"] == "The LLM cannot be reached."


async def test_an_error_that_nobody_foresaw_says_nothing_of_itself():
    async def broken():
        raise KeyError("sk-secret")
        yield

    *_, last = await parts_of(broken())
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "internal_error"
    assert "sk-secret" not in last


async def test_closing_the_stream_ends_the_answer_in_the_middle_of_a_wait():
    ended = asyncio.Event()

    async def endless():
        try:
            yield Piece("one")
            await asyncio.Event().wait()
        finally:
            ended.set()

    parts = stream_parts(Completion("support", "t1"), endless(), heartbeat_seconds=0.02)
    while await anext(parts) != PING:
        pass
    async with asyncio.timeout(10):
        await parts.aclose()
    assert ended.is_set()
