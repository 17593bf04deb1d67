"""Splits a page's Markdown into snippets, each about one subject: whole, by the LLM's view of it, or by its headings.

The texts of the snippets are always the page's own: the LLM says which numbered parts belong together, never what they
say. So nothing can be lost or invented on the way, and what it says wrong shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from crawler.split_headings import Piece, split_by_headings
from crawler.split_subjects import SplitterRefused, split_by_subject
from models_app.tokens import count_tokens

Splitter = Callable[[list[dict], dict], dict]


@dataclass(frozen=True)
class SnippetDraft:
    """A snippet that is not saved yet: its title, and its text in Markdown."""

    prompt: str
    completion: str


@dataclass(frozen=True)
class Split:
    """A page's drafts in the page's order, how they were made ("one", "llm" or "headings"), and what to know of it."""

    drafts: tuple[SnippetDraft, ...]
    method: str
    report: str = ""


def split_page(
    markdown: str, title: str, threshold_tokens: int, splitter: Splitter | None = None, window_tokens: int = 8_192
) -> Split:
    """Return the page as snippets of at most `threshold_tokens` each, title included; an empty page gives none.

    `splitter` takes chat messages and a JSON schema and returns the LLM's answer; whatever it raises or returns, the
    page is split, by its headings then. `window_tokens` is what the LLM can hold; a larger page goes to it in parts.
    """
    markdown = markdown.strip()
    if not markdown:
        return Split((), "one", "The page has no text.")
    if count_tokens(f"{title}\n\n{markdown}") <= threshold_tokens:
        return Split((SnippetDraft(title, markdown),), "one")
    if splitter is None:
        return _drafts_of(split_by_headings(markdown, title, threshold_tokens), "headings", "")
    try:
        pieces, report = split_by_subject(markdown, title, threshold_tokens, splitter, window_tokens)
    except SplitterRefused as error:
        report = f"The LLM did not split this page, so its headings did: {error}"
        return _drafts_of(split_by_headings(markdown, title, threshold_tokens), "headings", report)
    return _drafts_of(pieces, "llm", report)


def _drafts_of(pieces: list[Piece], method: str, report: str) -> Split:
    return Split(tuple(SnippetDraft(piece.title, piece.text) for piece in pieces), method, report)
