"""The answer without an LLM: the best passages of the context, quoted word for word, each with its link."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt

from chat.context import Context
from chat.passages import Passage, passages_of, shortened
from models_app.models import TrainingSnippet
from models_app.retrieval import RetrievedSnippet
from models_app.terms import EXACT_MARK, index_terms, question_terms

NOTHING_FOUND = "Sorry, nothing about this was found here. Could you ask it in other words?"
MOST_QUOTES = 3
QUOTE_CHARACTERS = 900
# A short snippet is quoted whole unless one passage of it has so much of the question's words: then that one answers.
CLEAR_SHARE = 0.5
# Retrieval has understood the question better than words can: a passage of a lower rank has to make up for it.
# bench_extract: with .2, .3, .5 the answer is quoted for 95, 96, 96 % of the questions if the right snippet is first,
# and for 75, 72, 63 % if it is third. A share of .6, .75, .85 makes quotes of 1,300, 1,000, 900 characters.
WORTH_OF_RANK = 0.3
SHARE_OF_BEST = 0.75
TITLE_SHARE = 0.3
# What the earlier questions of a follow-up weigh together, where its own words weigh 1: of equals theirs comes first.
WORTH_OF_TOPIC = 0.2


@dataclass(frozen=True)
class Quote:
    """A part of the answer as Markdown, and the snippet it is quoted from; None for words of our own."""

    text: str
    hit: RetrievedSnippet | None = None


@dataclass(frozen=True)
class _Candidate:
    hit: RetrievedSnippet
    passage: Passage

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(index_terms(self.passage.markdown))

    @cached_property
    def title_terms(self) -> frozenset[str]:
        return frozenset(index_terms(self.hit.title))


def extract_answer(context: Context) -> list[Quote]:
    """Return the answer's parts in their order; a single one without a snippet when nothing was found."""
    hits = [packed.hit for packed in context.packed if packed.is_used]
    if not hits:
        return [Quote(NOTHING_FOUND)]
    by_hit = [[_Candidate(hit, passage) for passage in passages_of(hit.text)] for hit in hits]
    weights = _weights(context, [candidate for passages in by_hit for candidate in passages])
    candidates = [
        candidate
        for hit, passages in zip(hits, by_hit, strict=True)
        for candidate in _whole_or_parts(hit, passages, weights)
        if _may_answer(candidate, weights)
    ]
    if not candidates:
        return [Quote(NOTHING_FOUND)]
    return [_quote(candidate, weights) for candidate in _best(candidates, weights)]


def _whole_or_parts(hit: RetrievedSnippet, passages: list[_Candidate], weights: dict[str, float]) -> list[_Candidate]:
    is_clear = any(_share(candidate.terms, weights) >= CLEAR_SHARE for candidate in passages)
    if passages and (is_clear or len(hit.text) > QUOTE_CHARACTERS):
        return passages
    return [_Candidate(hit, Passage("", hit.text.strip()))]


def _may_answer(candidate: _Candidate, weights: dict[str, float]) -> bool:
    """Return whether a passage may be quoted: the site's menus and footers only where they have a word asked for."""
    return candidate.hit.source != TrainingSnippet.Source.SITE or _share(candidate.terms, weights) > 0


def _weights(context: Context, candidates: list[_Candidate]) -> dict[str, float]:
    """Return what each root of the question tells: the fewer passages have it, the more; all add up to 1.

    To those of a follow-up come the roots of what it is about; they stand in for its own where no passage has any.
    """
    spread = Counter(term for candidate in candidates for term in candidate.terms | candidate.title_terms)
    own, all_roots = _roots(context.question or context.query), _roots(context.query)
    if not any(spread[root] for root in own):
        own = all_roots
    topic = [root for root in all_roots if root not in own]

    def shared_out(roots: list[str], worth: float) -> dict[str, float]:
        told = {root: log(1 + (1 + len(candidates)) / max(spread[root], 1)) for root in roots}
        return {root: worth * weight / sum(told.values()) for root, weight in told.items()}

    return shared_out(topic, WORTH_OF_TOPIC) | shared_out(own, 1)


def _roots(question: str) -> list[str]:
    return [term for term in question_terms(question) if not term.startswith(EXACT_MARK)]


def _best(candidates: list[_Candidate], weights: dict[str, float]) -> list[_Candidate]:
    """Return the best candidates, best first, as long as they are nearly as good as the first and new."""
    scores = {candidate: _score(candidate, weights) for candidate in candidates}
    ranked = sorted(candidates, key=scores.get, reverse=True)
    chosen: list[_Candidate] = []
    for candidate in ranked:
        is_new = all(candidate.passage.text != other.passage.text for other in chosen)
        if is_new and scores[candidate] >= SHARE_OF_BEST * scores[ranked[0]]:
            chosen.append(candidate)
    return chosen[:MOST_QUOTES]


def _score(candidate: _Candidate, weights: dict[str, float]) -> float:
    own = _share(candidate.terms, weights)
    of_title = _share(candidate.title_terms - candidate.terms, weights)
    return (WORTH_OF_RANK + own + TITLE_SHARE * of_title) / sqrt(candidate.hit.rank)


def _share(terms: Iterable[str], weights: dict[str, float]) -> float:
    """Return how much of the question these terms cover, from 0 to 1."""
    return sum(weights.get(term, 0.0) for term in terms)


def _quote(candidate: _Candidate, weights: dict[str, float]) -> Quote:
    def worth(text: str) -> float:
        return _share(set(index_terms(text)), weights)

    passage = candidate.passage
    text = Passage(passage.heading, shortened(passage.text, QUOTE_CHARACTERS, worth)).markdown
    quoted = "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
    return Quote(f"{quoted}\n\n— {_link(candidate.hit)}", candidate.hit)


def _link(hit: RetrievedSnippet) -> str:
    title = re.sub(r"([\\\[\]*_`<>])", r"\\\1", hit.title.strip() or hit.uri)
    if not hit.address:
        return title
    target = f"<{hit.address}>" if re.search(r"[\s()]", hit.address) else hit.address
    return f"[{title}]({target})"
