"""Who answers a turn: the model's LLMs one after another while each is away, then the best passages, quoted.

An answer of an LLM is held against its sources before it counts as whole: what the guard flags is noted with the turn
and, if the model's setting says so, named below the answer, or asked for again where nobody has seen the first answer.
"""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace

from asgiref.sync import sync_to_async
from django.conf import settings

from chat.context import sources_of
from chat.extract import extract_answer
from chat.guard import Flag, flags_of
from chat.models import Turn
from chat.prompt import Conversation, Prompt, assemble_messages
from chat.turns import Answered, OpenTurn
from models_app.llm import Deadlines, Ending, LLMError, Piece, stream_answer
from models_app.models import Guard
from models_app.providers import Provider, answering_providers
from models_app.tokens import count_tokens

ANSWER_AGAIN = """\
Your answer holds facts that stand in none of the excerpts: {facts}. Answer the question once more, from the excerpts \
alone and without these. Where the excerpts do not say something, say so. Do not speak of this request."""
QUOTED_INSTEAD = "The best passages were quoted instead."


async def speak(turn: OpenTurn) -> AsyncIterator[Piece | Answered]:
    """Yield the answer piece by piece, then Answered. There is always an answer, if only that nothing was found.

    One deadline covers all LLMs: each but the last must have begun in its share of the time. A stream that breaks after
    something of it was seen ends with what came, and says so.
    """
    model = turn.asked.model
    providers, trouble = answering_providers(model)
    turn.misses(trouble)
    deadlines = Deadlines.of_seconds(settings.SITEWISE_LLM_TIMEOUT_SECONDS)
    for number, provider in enumerate(providers):
        try:
            async with aclosing(_ask_llm(turn, provider, deadlines.share(len(providers) - number))) as parts:
                async for part in parts:
                    yield part
            return
        except LLMError as error:
            if turn.text and not turn.asked.is_buffered:
                async for part in _break_off(turn, provider, error):
                    yield part
                return
            turn.start_over()
            turn.misses(f"{provider.llm}: {error.message}")
    if providers or trouble:
        turn.misses(QUOTED_INSTEAD)
    async for part in _quote_passages(turn):
        yield part


async def _ask_llm(turn: OpenTurn, provider: Provider, deadlines: Deadlines) -> AsyncIterator[Piece | Answered]:
    asked, model = turn.asked, turn.asked.model
    turn.is_answered_by(Turn.AnsweredBy.LLM, provider.llm)
    # Tokens are counted in a thread: other visitors' streams share this one.
    prompt = await sync_to_async(assemble_messages)(
        model, _conversation(turn), provider, min(asked.max_tokens or model.max_tokens, model.max_tokens)
    )
    turn.leaves_out(prompt.left_out)
    async with aclosing(_answers(turn, provider, prompt, deadlines)) as parts:
        async for part in parts:
            if isinstance(part, Piece):
                yield part
                continue
            ending, flags = await _held_against_sources(turn, provider, prompt, part, deadlines)
            answered = turn.finish(ending, prompt.tokens, turn.context.sources, flags)
            if turn.note:
                yield Piece(turn.note)
            yield answered


def _answers(turn: OpenTurn, provider: Provider, prompt: Prompt, deadlines: Deadlines) -> AsyncIterator[Piece | Ending]:
    asked = turn.asked
    temperature = asked.model.temperature if asked.temperature is None else asked.temperature
    return stream_answer(provider, prompt.messages, prompt.max_tokens, temperature, deadlines)


async def _held_against_sources(
    turn: OpenTurn, provider: Provider, prompt: Prompt, ending: Ending, deadlines: Deadlines
) -> tuple[Ending, list[Flag]]:
    """Return the answer with what the guard flags in it; a second one, where that is asked for and has fewer flags."""
    flags = await _flags(turn, ending.text)
    if not flags or turn.asked.model.guard != Guard.RETRY or not turn.asked.is_buffered:
        return ending, flags
    told = ANSWER_AGAIN.format(facts="; ".join(flag.text for flag in flags))
    again = [{"role": "assistant", "content": ending.text}, {"role": "user", "content": told}]
    second = None
    try:
        asked_again = replace(prompt, messages=[*prompt.messages, *again])
        async with aclosing(_answers(turn, provider, asked_again, deadlines)) as parts:
            async for part in parts:
                second = part if isinstance(part, Ending) else second
    except LLMError:
        return ending, flags  # the first answer stands, with its flags
    better = await _flags(turn, second.text)
    cost = _together(ending, second, prompt.tokens + count_tokens(f"{ending.text}{told}", provider.llm))
    if len(better) < len(flags):
        return replace(cost, text=second.text, finish_reason=second.finish_reason), better
    return cost, flags


def _together(first: Ending, second: Ending, second_prompt_tokens: int) -> Ending:
    """Return the first ending with what both have cost, as far as the server says it."""
    if first.prompt_tokens is None or first.completion_tokens is None:
        return first
    return replace(
        first,
        prompt_tokens=first.prompt_tokens + (second.prompt_tokens or second_prompt_tokens),
        completion_tokens=first.completion_tokens + (second.completion_tokens or count_tokens(second.text)),
    )


async def _break_off(turn: OpenTurn, provider: Provider, error: LLMError) -> AsyncIterator[Piece | Answered]:
    flags = await _flags(turn, turn.text)
    answered = turn.break_off(f"{provider.llm}: {error.reason}: {error.message}", turn.context.sources, flags)
    yield Piece(turn.note)
    yield answered


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


async def _flags(turn: OpenTurn, text: str) -> list[Flag]:
    return await sync_to_async(flags_of)(text, turn.asked.model, _conversation(turn))


def _conversation(turn: OpenTurn) -> Conversation:
    return Conversation(turn.asked.question, turn.context, turn.memory)
