"""Which snippets an answer really stands on, and links that lead to the sentences it took from them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

from chat.context import Context, Source, sources_of
from models_app.markdown import plain_blocks
from models_app.models import MLModel
from models_app.page_texts import shown_pages
from models_app.retrieval import RetrievedSnippet
from models_app.terms import EXACT_MARK, index_terms

SENTENCE = re.compile(r".+?(?:[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？]|$)", re.DOTALL)
# Share of a sentence's weight that a sentence of a snippet has to hold to be what it was taken from: an LLM adds words
# of its own to those of the page.
LEAST_SUPPORT = 0.4
FEWEST_ROOTS = 2


@dataclass(frozen=True)
class _Said:
    """A sentence of a snippet."""

    hit: RetrievedSnippet
    text: str
    roots: frozenset[str]


def cite(model: MLModel, answer: str, context: Context) -> tuple[Source, ...]:
    """Return the sources that an LLM's answer was taken from, best first, each with a link to its sentence.

    An answer in whose words nothing of the context shows, as one in another language, has all of it as its source.
    """
    hits = [packed.hit for packed in context.packed if packed.is_used]
    taken = _taken_from(answer, hits)
    return _linked(model, taken, [hit for hit in hits if hit.id in taken] or hits)


def cite_quoted(model: MLModel, answer: str, quoted: tuple[Source, ...], context: Context) -> tuple[Source, ...]:
    """Return the sources of an answer that quotes them word for word, each with a link to its first sentence."""
    ranks = {source.rank for source in quoted}
    hits = [packed.hit for packed in context.packed if packed.hit.rank in ranks]
    return _linked(model, _taken_from(answer, hits), hits)


def _taken_from(answer: str, hits: Sequence[RetrievedSnippet]) -> dict[int, str]:
    """Return the first sentence that was most likely taken from each of the hits, by the hits' ids."""
    said = [sentence for hit in hits for sentence in _sentences_of(hit)]
    spread = Counter(root for sentence in said for root in sentence.roots)
    taken: dict[int, str] = {}
    for text in _sentences(answer):
        roots = _roots(text)
        if len(roots) < FEWEST_ROOTS or not said:
            continue
        weights = {root: log(1 + len(said) / max(spread[root], 1)) for root in roots}
        shares = [sum(weights[root] for root in roots & sentence.roots) for sentence in said]
        best = max(range(len(said)), key=lambda place: (shares[place], -len(said[place].roots)))
        if shares[best] >= LEAST_SUPPORT * sum(weights.values()):
            taken.setdefault(said[best].hit.id, said[best].text)
    return taken


def _linked(model: MLModel, taken: dict[int, str], hits: Sequence[RetrievedSnippet]) -> tuple[Source, ...]:
    """Return the sources of the hits, led to what was taken from them where their pages' texts are known."""
    pages = shown_pages(model, {hit.uri for hit in hits if hit.address and hit.id in taken})
    linked: dict[tuple[str, str], Source] = {}
    for hit in hits:
        (source,) = sources_of([hit])
        if hit.id in taken and hit.uri in pages:
            near = _around(taken[hit.id], hit)
            source = replace(source, url=pages[hit.uri].address(hit.uri, taken[hit.id], near))
        linked.setdefault((source.title, source.url), source)
    return tuple(sorted(linked.values(), key=lambda source: source.rank))


def _around(sentence: str, hit: RetrievedSnippet) -> list[str]:
    """Return the snippet's other sentences: those before this one, nearest first, then those behind it."""
    sentences = list(_sentences(hit.text))
    place = sentences.index(sentence)
    return [*reversed(sentences[:place]), *sentences[place + 1 :]]


def _sentences_of(hit: RetrievedSnippet) -> list[_Said]:
    return [_Said(hit, text, _roots(text)) for text in _sentences(hit.text)]


def _sentences(markdown: str) -> Iterator[str]:
    for block in plain_blocks(markdown):
        yield from (found.strip() for found in SENTENCE.findall(block) if found.strip())


def _roots(text: str) -> frozenset[str]:
    return frozenset(term for term in index_terms(text) if not term.startswith(EXACT_MARK))
