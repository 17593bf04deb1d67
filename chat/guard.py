"""The verbatim guard: which facts of an answer stand in no source. It asks no LLM, and takes milliseconds.

Sources are the snippets in the context with their addresses, and what else the LLM was told and may repeat: the system
instruction, the questionnaire, the visitor's questions, earlier answers but for what was flagged in them. A total that
the LLM computed stands nowhere, and is flagged like any other number.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache

from chat.facts.fact import Fact, Keys
from chat.facts.reading import facts_in

MOST_FLAGS = 50
LONGEST_FACT = 200


@dataclass(frozen=True)
class Flag:
    """A fact of an answer that stands in no source."""

    kind: str
    text: str

    @property
    def row(self) -> dict[str, str]:
        return asdict(self)


def unsupported(answer: str, sources: Iterable[str]) -> list[Flag]:
    """Return the facts of the answer that no source holds, each once."""
    facts = facts_in(answer, is_source=False)
    if not facts:
        return []
    known = keys_of(sources)
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
