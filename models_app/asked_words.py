"""The words of a question as a person typed them, each with what it is worth for one snippet.

The index knows terms, of which a word gives several: its root, its spelling, its parts. An owner knows words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models_app.index.explain import TermShare
from models_app.terms import ENDING_MARK, EXACT_MARK, UNSPACED_RUN, question_terms

WORD = re.compile(r"[^\s\"“”„«»()<>\[\]{}?!;:…。，、？！]+")


@dataclass(frozen=True)
class AskedWord:
    """A word of the question: how rare it is in the model, how often the snippet has it, and what that is worth."""

    word: str
    snippets: int  # how many of the model have any form of it
    in_title: int
    in_text: int
    weight: float  # of one occurrence, before the length of the snippet counts
    points: float  # its part of the snippet's BM25
    is_as_spelled: bool  # the snippet has this very spelling
    is_only_ending: bool = False  # the snippet has it only as what a longer word ends with, as in compounds

    @property
    def is_in_snippet(self) -> bool:
        return bool(self.in_title or self.in_text)


def asked_words(question: str, shares: Sequence[TermShare]) -> tuple[AskedWord, ...]:
    """Return the question's words that are searched for, in its order; their points add up to the snippet's BM25."""
    left = {share.term: share for share in shares}
    words = []
    for word in dict.fromkeys(_typed(question)):
        own = [left.pop(term) for term in question_terms(word) if term in left]
        if own:
            words.append(_asked(word, own))
    # Of scripts without blanks, and of two words that may be written as one, the terms are what is told.
    return (*words, *(_asked(_shown(share.term), [share]) for share in left.values()))


def _typed(question: str) -> Iterator[str]:
    """Yield what stands between blanks and marks, without the scripts that have none."""
    for match in WORD.finditer(question):
        yield from (part.strip(".,'’-") for part in UNSPACED_RUN.split(match[0]) if not UNSPACED_RUN.match(part))


def _shown(term: str) -> str:
    return f"…{term.removeprefix(ENDING_MARK)}" if _is_ending(term) else term.removeprefix(EXACT_MARK)


def _is_ending(term: str) -> bool:
    return term.startswith(ENDING_MARK)


def _asked(word: str, shares: list[TermShare]) -> AskedWord:
    endings = [share for share in shares if _is_ending(share.term)]
    forms = [share for share in shares if not _is_ending(share.term)]
    spellings = [share for share in forms if share.term.startswith(EXACT_MARK)]
    in_forms, in_endings = _most(forms), _most(endings)
    return AskedWord(
        word=word,
        snippets=max(share.snippets for share in shares),
        in_title=in_forms[0] + in_endings[0],  # no word is an ending of its own
        in_text=in_forms[1] + in_endings[1],
        weight=sum(share.weight or 0.0 for share in shares),
        points=sum(share.points for share in shares),
        is_as_spelled=any(share.points for share in spellings) if spellings else bool(forms),
        is_only_ending=any(in_endings) and not any(in_forms),
    )


def _most(shares: list[TermShare]) -> tuple[int, int]:
    """Return how often a title and a text have what they have most often of some terms."""
    return max((share.in_title for share in shares), default=0), max((share.in_text for share in shares), default=0)
