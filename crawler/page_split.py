"""A page's sections, from its Markdown alone: split, verified, indexed and counted, so that only writing is left.

It needs neither store nor network, unless an LLM is handed in, and so may run in another process.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crawler.loss import loss_at_splitting
from crawler.split import Split, split_page
from crawler.split.splitter import Splitter
from models_app.sections import Section, made_ahead
from models_app.tokens import count_tokens


@dataclass(frozen=True)
class PageToSplit:
    """What a page's sections are made of: `markdown` is its text without what the site repeats, `selected` all of it.

    `citation` goes below each section, `loss` is what its report says of its reading, `known` names the texts that
    stand already.
    """

    markdown: str
    title: str
    threshold: int
    citation: str = ""
    plan: Sequence[dict] = ()
    selected: str = ""
    loss: dict | None = None
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class PageSections:
    """A page's sections, how they were made, and what of the page they lost (shape: see loss.py)."""

    sections: list[Section]
    split: Split
    loss: dict


def sections_of(page: PageToSplit, splitter: Splitter | None = None) -> PageSections:
    """Return the page's sections with all made that takes time."""
    threshold = page.threshold - (count_tokens(page.citation) if page.citation else 0)
    split = split_page(page.markdown, page.title, threshold, splitter, page.plan, facts=_known_facts(page))
    texts = [draft.completion for draft in split.drafts]
    loss = loss_at_splitting(page.loss or {}, page.selected, page.markdown, texts)
    drafts = [replace(draft, completion=draft.completion + page.citation) for draft in split.drafts]
    return PageSections(made_ahead(drafts, page.known), replace(split, drafts=()), loss)


def _known_facts(page: PageToSplit) -> int | None:
    """Return how many facts were counted in the page's text when it was read, unless some of it is left out here."""
    counted = (page.loss or {}).get("selected")
    return counted["facts"] if counted and page.markdown == page.selected else None
