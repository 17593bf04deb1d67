"""Verifies a page's sections against the page: every fact and sentence is in one, and none says what the page does not.

It counts as the loss meter does, on the texts themselves, and so trusts neither an LLM nor our own splitting.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from crawler.loss import WORD, Counted, count_markdown, count_text, facts_of, loss_between, unknown_facts
from crawler.split.headings import Piece, join_texts

_SENTENCE = re.compile(r"[^\n.!?…。！？]*\w(?:[^\n.!?…。！？]|[.!?…](?=\S))*")


@dataclass(frozen=True)
class Checks:
    """What was compared: the page's facts and sentences, those that no section has, and facts that the page has not."""

    facts: int
    missing: int
    invented: int
    sentences: int
    uncovered: int


def check_pieces(markdown: str, page_title: str, pieces: Sequence[Piece], facts: int | None = None) -> Checks:
    """Return how the pieces compare with the page they were made of.

    `facts` is how many it holds, where that is known: then pieces that are the page to the letter need no counting.
    """
    whole = join_texts(piece.text for piece in pieces)
    titles = dict.fromkeys(piece.title for piece in pieces if piece.title != page_title)
    if facts is not None and whole == markdown and _are_said(titles, f"{page_title}\n{markdown}"):
        return Checks(facts, 0, 0, len(_SENTENCE.findall(markdown)), 0)
    page, sections = count_markdown(markdown), count_markdown(whole)
    sentences = _SENTENCE.findall(page.text)
    loss = loss_between(page, sections)
    uncovered = _uncovered(sentences, sections.text) if loss.words else []
    invented = unknown_facts(sections, page)
    said = Said(page, count_text(page_title))
    invented += [fact for title in titles for fact in said.unsaid_facts(title)]
    return Checks(len(page.facts), len(loss.facts), len(invented), len(sentences), len(uncovered))


def _are_said(titles: Iterable[str], text: str) -> bool:
    """Return whether each fact of the titles stands in the text as it is written."""
    return all(fact in text for title in titles for fact in facts_of(title))


class Said:
    """What may be said in a title: the facts and words of the texts that it stands for."""

    def __init__(self, *texts: Counted):
        self._texts = texts

    def unsaid_facts(self, title: str) -> list[str]:
        """Return the title's facts that the texts do not say, whatever the case of their letters."""
        return [fact for fact in facts_of(title) if not self._holds(fact)]

    def _holds(self, fact: str) -> bool:
        if any(fact in counted.facts for counted in self._texts):
            return True
        if not self._words.issuperset(WORD.findall(fact.casefold())):
            return False
        return not any(map(str.isdigit, fact)) or any(fact in counted.text for counted in self._texts)

    @cached_property
    def _words(self) -> set[str]:
        return {word.casefold() for counted in self._texts for word in counted.words}


def _uncovered(sentences: list[str], text: str) -> list[str]:
    """Return the sentences that the text does not hold, whatever stands between their words."""
    known = {"".join(WORD.findall(sentence)) for sentence in _SENTENCE.findall(text)}
    whole = "".join(WORD.findall(text))
    squeezed = ((sentence, "".join(WORD.findall(sentence))) for sentence in sentences)
    return [sentence for sentence, letters in squeezed if letters not in known and letters not in whole]
