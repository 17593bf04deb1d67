"""Which snippets an answer really stands on, and links that lead to the sentences it took from them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    """Return the sources that the answer was taken from, best first, each with a link to its sentence.

    An answer in whose words nothing of the context shows (one in another language) has all of the context as its source.
    """
    hits = [packed.hit for packed in context.packed if packed.is_used]
    said = [sentence for hit in hits for sentence in _sentences_of(hit)]
    taken = _taken_from(answer, said)
    if not taken:
        return sources_of(hits)
    return _linked(model, {sentence.hit.id: sentence for sentence in reversed(taken)}, hits)


def cite_quotes(model: MLModel, quotes: Iterable[tuple[RetrievedSnippet, str]]) -> tuple[Source, ...]:
    """Return the sources of passages that are quoted word for word, each with a link to its first sentence."""
    quotes = list(quotes)
    first = {}
    for hit, passage in quotes:
        said = next(_sentences(passage), "")
        first.setdefault(hit.id, _Said(hit, said, frozenset()))
    return _linked(model, first, [hit for hit, _ in quotes])


def _taken_from(answer: str, said: Sequence[_Said]) -> list[_Said]:
    """Return what each sentence of the answer was most likely taken from, in the answer's order."""
    spread = Counter(root for sentence in said for root in sentence.roots)
    taken = []
    for text in _sentences(answer):
        roots = _roots(text)
        if len(roots) < FEWEST_ROOTS:
            continue
        weights = {root: log(1 + len(said) / max(spread[root], 1)) for root in roots}
        shares = [sum(weights[root] for root in roots & sentence.roots) for sentence in said]
        best = max(range(len(said)), key=lambda place: (shares[place], -len(said[place].roots)), default=None)
        if best is not None and shares[best] >= LEAST_SUPPORT * sum(weights.values()):
            taken.append(said[best])
    return taken


def _linked(model: MLModel, taken: dict[int, _Said], hits: Sequence[RetrievedSnippet]) -> tuple[Source, ...]:
    """Return the sources of those hits that something was taken from, linked to it where their page is known."""
    used = [hit for hit in hits if hit.id in taken]
    pages = shown_pages(model, {hit.uri for hit in used if hit.address})
    sources = []
    for hit in used:
        source = sources_of([hit])[0]
        if hit.uri in pages:
            near = [sentence.text for sentence in _sentences_of(hit)]
            source = replace(source, url=pages[hit.uri].address(hit.uri, taken[hit.id].text, near))
        sources.append(source)
    by_place = {(source.title, source.url): source for source in reversed(sources)}
    return tuple(sorted(by_place.values(), key=lambda source: source.rank))


def _sentences_of(hit: RetrievedSnippet) -> list[_Said]:
    return [_Said(hit, text, _roots(text)) for text in _sentences(hit.text)]


def _sentences(markdown: str) -> Iterator[str]:
    for block in plain_blocks(markdown):
        yield from (found.strip() for found in SENTENCE.findall(block) if found.strip())


def _roots(text: str) -> frozenset[str]:
    return frozenset(term for term in index_terms(text) if not term.startswith(EXACT_MARK))
