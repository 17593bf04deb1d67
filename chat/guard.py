"""The verbatim guard: which facts of an answer stand in no source. It asks no LLM, and takes milliseconds.

Sources are the snippets in the context with their addresses, and what else the LLM was told and may repeat: the system
instruction, the questionnaire, the visitor's questions, and of a session its earlier answers but for what was flagged
in them. A total that the LLM computed stands nowhere, and is flagged like any other number.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

from chat.facts.fact import Fact, Keys
from chat.facts.reading import facts_in
from chat.prompt import Conversation
from models_app.models import MLModel

MOST_FLAGS = 50
LONGEST_FACT = 200
MOST_NAMED = 10
MARKDOWN = re.compile(r"([\\`*_\[\]<>|#])")


@dataclass(frozen=True)
class Flag:
    """A fact of an answer that stands in no source."""

    kind: str
    text: str

    @property
    def row(self) -> dict[str, str]:
        return asdict(self)


def flags_of(answer: str, model: MLModel, conversation: Conversation) -> list[Flag]:
    """Return what of an answer stands in none of the sources it may be taken from."""
    context, memory = conversation.context, conversation.memory
    sources = [f"{packed.block}\n{packed.hit.address}" for packed in context.packed if packed.is_used]
    sources += [model.system_instruction, conversation.question]
    sources += [exchange.question for exchange in memory.exchanges]
    sources += [f"{asked.question}\n{asked.answer}" for asked in memory.questionnaire_answers]
    known = keys_of(sources)
    if memory.is_ours:
        earlier = [memory.summary, *(exchange.answer for exchange in memory.exchanges)]
        facts = (fact for text in earlier for fact in facts_in(text, is_source=True))
        known |= {key for fact in facts if fact.text not in memory.doubted for key in fact.gives}
    return _not_borne_out(answer, known)


def note_of(flags: Sequence[Flag]) -> str:
    """Return the Markdown that names the flagged facts below an answer."""
    named = ", ".join(MARKDOWN.sub(r"\\\1", flag.text) for flag in flags[:MOST_NAMED])
    return f"\n\n*Not found in the sources: {named}{' …' if len(flags) > MOST_NAMED else ''}. Please check.*"


def unsupported(answer: str, sources: Iterable[str]) -> list[Flag]:
    """Return the facts of the answer that no source holds, each once."""
    return _not_borne_out(answer, keys_of(sources))


def _not_borne_out(answer: str, known: set[str]) -> list[Flag]:
    facts = facts_in(answer, is_source=False)
    flags = (Flag(fact.kind, fact.text[:LONGEST_FACT]) for fact in facts if not is_borne_out(fact, known))
    return list(dict.fromkeys(flags))[:MOST_FLAGS]


def keys_of(sources: Iterable[str]) -> set[str]:
    """Return what the sources give, for is_borne_out."""
    return set().union(*map(_keys_of, sources))


def forget_sources() -> None:
    """Let the next answer be checked as if its sources had never been read: for benchmarks."""
    _keys_of.cache_clear()


@lru_cache(maxsize=256)  # the same few snippets answer most questions
def _keys_of(source: str) -> Keys:
    return frozenset(key for fact in facts_in(source, is_source=True) for key in fact.gives)


def is_borne_out(fact: Fact, known: set[str]) -> bool:
    return any(needed <= known for needed in fact.needs)
