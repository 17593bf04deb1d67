"""The port to chat LLMs behind any OpenAI-compatible API: an answer streamed, or one JSON object.

One deadline covers all attempts together; there is one retry, and none once text was shown. Errors are neutral: what
the provider said stays here, as it may quote keys, prompts or addresses.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings

from models_app.llm_chunks import AnswerReader, Ending, Piece, Usage, content_text, find_json_object, first_choice
from models_app.provider_errors import LLMError, NotSpoken, ProviderError, Reason
from models_app.providers import Provider
from models_app.tokens import count_tokens
from tenants.addresses import AddressPolicy, AddressRefused, guarded_async_http_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ATTEMPTS = 2
RETRY_PAUSE_SECONDS = 0.5
# Nobody waits in front of a page that is being split: it may take as long as so many answers.
JSON_DEADLINE_ANSWERS = 5
THOUGHT_TOKENS = 2_000  # beside the JSON that is asked for: what an LLM thinks before it answers is counted too
BUDGET_IS_USED_UP = "insufficient_quota"  # OpenAI's name for a limit that no waiting lifts
END = object()  # of a stream, in which a chunk may be None
NO_KEY = "none"  # the client insists on one; servers without keys ignore it


RETRIED = frozenset({Reason.RATE_LIMITED, Reason.BROKEN_ANSWER, Reason.AWAY})


@dataclass(frozen=True)
class Deadlines:
    """When an answer has to be whole, and when it must have begun at the latest, by the loop's clock."""

    whole: float
    begun: float

    @classmethod
    def of_seconds(cls, seconds: float) -> "Deadlines":
        end = asyncio.get_running_loop().time() + seconds
        return cls(end, end)

    def share(self, count: int) -> "Deadlines":
        """Return the same end, and a beginning early enough that as many LLMs as this may be asked in turn."""
        now = asyncio.get_running_loop().time()
        return Deadlines(self.whole, now + (self.whole - now) / count)


async def stream_answer(
    provider: Provider, messages: list[dict], max_tokens: int, temperature: float, deadlines: Deadlines | None = None
) -> AsyncIterator[Piece | Ending]:
    """Yield the answer's text piece by piece, then its Ending; closing the iterator closes the upstream connection.

    Raises LLMError; after an error the pieces already yielded are all the text there is.
    """
    request = {"model": provider.llm, "messages": messages, "max_tokens": max_tokens, "temperature": temperature}
    request |= {"stream": True, "stream_options": {"include_usage": True}}
    deadlines = deadlines or Deadlines.of_seconds(settings.SITEWISE_LLM_TIMEOUT_SECONDS)
    for attempt in range(1, ATTEMPTS + 1):
        reader = AnswerReader(provider.llm)
        try:
            async with aclosing(_read_stream(provider, request, reader, deadlines)) as texts:
                async for text in texts:
                    yield Piece(text)
            yield _complete(reader, provider)
            return
        except foreign_errors() as error:
            failure = failure_of(error, LLMError, "The LLM")
            if attempt == ATTEMPTS or reader.has_shown_text or failure.reason not in RETRIED:
                raise failure from None
        await asyncio.sleep(RETRY_PAUSE_SECONDS)


async def _read_stream(
    provider: Provider, request: dict, reader: AnswerReader, deadlines: Deadlines
) -> AsyncIterator[str]:
    def deadline() -> float:
        return deadlines.whole if reader.has_shown_text else deadlines.begun

    async with connected(provider.base_url, provider.key, provider.policy, deadlines.whole) as client:
        stream = await send_adapted(client.chat.completions.create, request, deadline())
        async with stream:
            # The deadline covers each wait, not the yields between: a timeout must not strike the reader's own work.
            while (chunk := await _before(deadline(), anext(stream, END))) is not END:
                if text := reader.add(_plain(chunk)):
                    yield text
        if text := reader.rest():
            yield text


def _complete(reader: AnswerReader, provider: Provider) -> Ending:
    ending = reader.ending()
    if not reader.has_read_a_choice:
        raise NotSpoken(provider.base_url)
    if not reader.finish_reason:
        raise LLMError(Reason.BROKEN_ANSWER, "The LLM broke off in the middle of its answer.")
    if not ending.text.strip():
        raise LLMError(Reason.BROKEN_ANSWER, "The LLM ended without an answer.")
    return ending


def complete_json(
    provider: Provider,
    messages: list[dict],
    schema: dict,
    answer_tokens: int,
    *,
    timeout_seconds: float | None = None,
    usage: Usage | None = None,
) -> dict:
    """Return the JSON object that the LLM answers with, and add to the usage what it cost; raises LLMError.

    The schema should bound its strings and arrays: small LLMs fill what has no end. A server that knows no schemas is
    told of it in words. What comes back has the schema's required keys; all else is the caller's to check. An answer
    that is longer than `answer_tokens`, thoughts aside, may be cut.
    """
    timeout_seconds = timeout_seconds or settings.SITEWISE_LLM_TIMEOUT_SECONDS * JSON_DEADLINE_ANSWERS
    ask = async_to_sync(_complete_json)
    return ask(provider, messages, schema, answer_tokens, timeout_seconds=timeout_seconds, usage=usage or Usage())


async def _complete_json(
    provider: Provider, messages: list[dict], schema: dict, answer_tokens: int, *, timeout_seconds: float, usage: Usage
) -> dict:
    prompt_tokens = sum(count_tokens(message["content"], provider.llm) for message in messages)
    room = max(provider.context_window - prompt_tokens, THOUGHT_TOKENS)
    request = {
        "model": provider.llm,
        "messages": messages,
        "temperature": 0,
        "max_tokens": min(answer_tokens + THOUGHT_TOKENS, room),
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
    }

    async def ask(deadline: float) -> dict:
        async with connected(provider.base_url, provider.key, provider.policy, deadline) as client:
            answer = await ask_whole(client, client.chat.completions.create, request, deadline)
        if not isinstance(answer.get("choices"), list):
            raise NotSpoken(provider.base_url)
        usage.add(answer, prompt_tokens)
        return _read_json(answer, schema)

    return await with_one_retry(ask, timeout_seconds, LLMError, "The LLM")


def _read_json(answer: dict, schema: dict) -> dict:
    choice = first_choice(answer)
    if choice.get("finish_reason") == "length":
        raise LLMError(Reason.CUT_ANSWER, "The LLM's answer was longer than it may be.")
    found = find_json_object(content_text(choice.get("message") or {}))
    if found is None or any(key not in found for key in schema.get("required", ())):
        raise LLMError(Reason.BROKEN_ANSWER, "The LLM did not answer with the JSON it was asked for.")
    return found


# --- Shared with the embedding port: connection, retries, and the meaning of foreign errors ---------------------
#
# openai is imported where it is used: that takes half a second, and most commands and imports ask no provider.


def load_client() -> None:
    """Import the client now: the first visitor who asks would wait for it otherwise."""
    import openai  # noqa: F401


@asynccontextmanager
async def connected(base_url: str, key: str, policy: AddressPolicy, deadline: float) -> AsyncIterator["AsyncOpenAI"]:
    """Open a client that reaches only what the policy opens, and never retries by itself."""
    from openai import AsyncOpenAI

    parts = urlsplit(base_url)
    seconds_left = max(deadline - asyncio.get_running_loop().time(), 0.0)
    async with AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=urlunsplit(parts._replace(query="", fragment="")),
        default_query=dict(parse_qsl(parts.query)),
        http_client=guarded_async_http_client(policy, seconds_left),
        timeout=seconds_left,
        max_retries=0,
    ) as client:
        yield client


async def with_one_retry(
    ask: Callable[[float], Coroutine], timeout_seconds: float, error_class: type[ProviderError], service: str
):
    """Return what ask(deadline) returns, asking a second time where that may help; raises error_class."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return await _before(deadline, ask(deadline))
        except foreign_errors() as error:
            failure = failure_of(error, error_class, service)
            if attempt == ATTEMPTS or failure.reason not in RETRIED:
                raise failure from None
        await asyncio.sleep(RETRY_PAUSE_SECONDS)
    return None


async def send_adapted(create: Callable, request: dict, deadline: float):
    """Return the server's answer, leaving out of the request, one by one, the options that the server refuses."""
    import openai

    while True:
        try:
            return await _before(deadline, create(**request))
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if not _adapt(request, error.param or str(error.body)):
                raise


async def ask_whole(client: "AsyncOpenAI", create: Callable, request: dict, deadline: float) -> dict:
    """Return what send_adapted does, of an answer in one piece and as a dictionary; raises NotSpoken for no JSON."""
    try:
        return _plain(await send_adapted(create, request, deadline))
    except json.JSONDecodeError:
        raise NotSpoken(str(client.base_url)) from None


def _adapt(request: dict, complaint: str) -> bool:
    """Change the request by one option that the complaint names; returns False when there is none."""
    complaint = complaint.lower()
    if "response_format" in request and ("response_format" in complaint or "json_schema" in complaint):
        schema = request.pop("response_format")["json_schema"]["schema"]
        told = f"\n\nAnswer with one JSON object that follows this schema:\n{json.dumps(schema)}"
        *earlier, last = request["messages"]
        request["messages"] = [*earlier, {**last, "content": last["content"] + told}]
    elif "max_tokens" in request and "max_tokens" in complaint:
        request["max_completion_tokens"] = request.pop("max_tokens")
    else:
        refused = next(
            (name for name in ("temperature", "stream_options") if name in request and name in complaint), ""
        )
        return request.pop(refused, None) is not None
    return True


async def _before(deadline: float, step):
    async with asyncio.timeout_at(deadline):
        return await step


def _plain(answer) -> dict:
    """Return an answer of the client as a dictionary; servers send chunks that are none, too."""
    import openai

    return answer.to_dict(warnings=False) if isinstance(answer, openai.BaseModel) else {}


def foreign_errors() -> tuple[type[Exception], ...]:
    """Return what asking a provider may raise, for failure_of to tell its meaning."""
    import openai

    return (
        NotSpoken,
        openai.OpenAIError,
        httpx2.InvalidURL,
        AddressRefused,
        ProviderError,
        TimeoutError,
        ValueError,  # JSON that is none
    )


MEANING_OF_STATUS = {
    400: (Reason.REFUSED_REQUEST, "{} refused the request: it may be too long for it."),
    401: (Reason.REFUSED_KEY, "{} refused the key it was sent."),
    402: (Reason.OVER_BUDGET, "{} takes no more requests: its budget is used up."),
    403: (Reason.REFUSED_KEY, "{} refused the key it was sent."),
    404: (Reason.UNKNOWN_MODEL, "{} is not known under its name at the provider's address."),
    413: (Reason.REFUSED_REQUEST, "{} refused the request: it may be too long for it."),
    422: (Reason.REFUSED_REQUEST, "{} refused the request: it may be too long for it."),
    429: (Reason.RATE_LIMITED, "{} takes no more requests for now: its limit is reached."),
}


def failure_of(error: Exception, error_class: type[ProviderError], service: str) -> ProviderError:
    """Return our own error for a foreign one; of the provider's words nothing is kept."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, NotSpoken):
        return error_class(Reason.BROKEN_ANSWER, f"{service} did not answer: {error}")
    reason, message = _meaning_of(error)
    return error_class(reason, message.format(service))


def _meaning_of(error: Exception) -> tuple[Reason, str]:
    import openai

    match error:
        case TimeoutError() | openai.APITimeoutError():
            return Reason.TIMEOUT, "{} did not answer in time."
        case AddressRefused() | httpx2.InvalidURL():
            return Reason.REFUSED_ADDRESS, "{} is at an address that may not be reached from here."
        case openai.APIResponseValidationError() | ValueError():
            return Reason.BROKEN_ANSWER, "{} sent an answer that cannot be read."
        case openai.APIStatusError(code=code, status_code=status):
            status = 402 if code == BUDGET_IS_USED_UP else status
            gone = Reason.AWAY, f"{{}} is away for now (HTTP status {status})."
            return MEANING_OF_STATUS.get(status, gone)
        case openai.APIConnectionError():
            return Reason.AWAY, "{} cannot be reached."
    return Reason.AWAY, "{} failed while it answered."
