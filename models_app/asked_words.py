"""The words of a question as a person typed them, each with what it is worth for one snippet.

The index knows terms, of which a word gives several: its root, its spelling, its parts. An owner knows words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models_app.index.explain import TermShare
from models_app.terms import EXACT_MARK, UNSPACED_RUN, question_terms

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
    return (*words, *(_asked(share.term.removeprefix(EXACT_MARK), [share]) for share in left.values()))


def _typed(question: str) -> Iterator[str]:
    """Yield what stands between blanks and marks, without the scripts that have none."""
    for match in WORD.finditer(question):
        yield from (part.strip(".,'’-") for part in UNSPACED_RUN.split(match[0]) if not UNSPACED_RUN.match(part))


def _asked(word: str, shares: list[TermShare]) -> AskedWord:
    return AskedWord(
        word=word,
        snippets=max(share.snippets for share in shares),
        in_title=max(share.in_title for share in shares),
        in_text=max(share.in_text for share in shares),
        weight=sum(share.weight or 0.0 for share in shares),
        points=sum(share.points for share in shares),
        is_as_spelled=any(share.points for share in shares if share.term.startswith(EXACT_MARK))
        or not any(share.term.startswith(EXACT_MARK) for share in shares),
    )
