"""Asks a provider for as long as waiting helps: for work in the background, in front of which nobody sits."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count

from models_app.llm import ATTEMPTS, RETRIED, RETRY_PAUSE_SECONDS, ProviderError, failure_of, foreign_errors

TOO_MANY_REQUESTS = 429


async def ask_patiently(
    ask: Callable[[float], Coroutine],
    answer_seconds: float,
    all_seconds: float,
    error_class: type[ProviderError],
    service: str,
):
    """Return what ask(deadline) returns; raises error_class.

    An attempt may take `answer_seconds`, all of them with the pauses between `all_seconds`. A limit is waited out, for
    as long as the service says or longer each time; after other failures that may pass, one more attempt is made.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + all_seconds
    for attempt in count(1):
        deadline = min(end, clock() + answer_seconds)
        try:
            async with asyncio.timeout_at(deadline):
                return await ask(deadline)
        except foreign_errors() as error:
            failure = failure_of(error, error_class, service)
            pause = _pause_after(error, failure, attempt)
            if pause is None or clock() + pause > end:
                raise failure from None
        await asyncio.sleep(pause)
    return None


def _pause_after(error: Exception, failure: ProviderError, attempt: int) -> float | None:
    """Return how many seconds to wait before the next attempt; None: it would not help."""
    if failure.reason not in RETRIED:
        return None
    response = getattr(error, "response", None)
    asked_for = _seconds(response.headers.get("retry-after", "")) if response is not None else None
    if asked_for is not None:
        return max(asked_for, RETRY_PAUSE_SECONDS)
    if getattr(error, "status_code", 0) == TOO_MANY_REQUESTS:
        return RETRY_PAUSE_SECONDS * 2**attempt
    return RETRY_PAUSE_SECONDS if attempt < ATTEMPTS else None


def _seconds(retry_after: str) -> float | None:
    """Return the seconds that a Retry-After header means, given as a number or as a date (RFC 9110, 10.2.3)."""
    try:
        return float(retry_after)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
