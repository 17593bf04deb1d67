"""Splits a page's Markdown into snippets, each about one subject: whole, by the LLM's view of it, or by its headings.

The texts of the snippets are always the page's own: the LLM says which numbered parts belong together, never what they
say. What came of it is verified against the page whatever the method.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from crawler.split.checks import check_pieces
from crawler.split.headings import Piece, split_by_headings
from crawler.split.plan import plan_of, sections_again, title_again
from crawler.split.splitter import Splitter, SplitterRefused, Talk
from crawler.split.subjects import Section, Unit, pieces_of, sort_by_subject, units_of
from crawler.split.titles import ask_for_title
from models_app.tokens import fits_tokens

ONE, BY_LLM, BY_HEADINGS = "one", "llm", "headings"


@dataclass(frozen=True)
class SnippetDraft:
    """A snippet that is not saved yet: its title, and its text in Markdown."""

    prompt: str
    completion: str


@dataclass(frozen=True)
class Split:
    """A page's drafts in the page's order, how they were made ("one", "llm" or "headings"), and what to know of it.

    `plan` is what to hand in when the page is split again, `checks` how the drafts compare with the page (shape: as
    split_checks.Checks), `usage` what the LLM cost. `has_llm_failed` says that the LLM was asked in vain.
    """

    drafts: tuple[SnippetDraft, ...]
    method: str
    report: str = ""
    plan: list = field(default_factory=list)
    checks: dict = field(default_factory=dict)
    usage: dict = field(default_factory=dict)
    has_llm_failed: bool = False


@dataclass
class _Page:
    """The page that is split, and what comes of it bit by bit."""

    markdown: str
    title: str
    limit: int
    plan: Sequence[dict]
    talk: Talk | None
    facts: int | None

    def fits(self, title: str) -> bool:
        return fits_tokens(f"{title}\n\n{self.markdown}", self.limit)

    def finish(
        self,
        pieces: list[Piece],
        method: str,
        report: str = "",
        plan: Sequence[dict] = (),
        has_llm_failed: bool = False,
    ) -> Split:
        return Split(
            tuple(SnippetDraft(piece.title, piece.text) for piece in pieces),
            method,
            report,
            list(plan),
            asdict(check_pieces(self.markdown, self.title, pieces, self.facts)),
            asdict(self.talk.usage) if self.talk else {},
            has_llm_failed,
        )


def split_page(
    markdown: str,
    title: str,
    threshold_tokens: int,
    splitter: Splitter | None = None,
    plan: Sequence[dict] = (),
    *,
    facts: int | None = None,
) -> Split:
    """Return the page as snippets of at most `threshold_tokens` each, title included; an empty page gives none.

    Whatever the LLM behind `splitter` does, the page is split, by its headings where it gave nothing usable. `plan` is
    that of the page's last split: what did not change since is not asked about again. `facts` is how many facts the
    Markdown holds, if that is known.
    """
    markdown = markdown.strip()
    if not markdown:
        return Split((), ONE, "The page has no text.")
    page = _Page(markdown, title, threshold_tokens, plan, Talk(splitter) if splitter else None, facts)
    if page.fits(title):
        return _leave_whole(page)
    if page.talk is None:
        return page.finish(split_by_headings(markdown, title, threshold_tokens), BY_HEADINGS)
    return _split_by_subject(page)


def _leave_whole(page: _Page) -> Split:
    """Return the page as one snippet, its title a question where an LLM is there to ask it."""
    if page.talk is None:
        return page.finish([Piece(page.title, page.markdown)], ONE)
    units = units_of(page.markdown)
    title, report = title_again(page.plan, units, page.title), "The title is the one that the LLM gave before."
    if title is None:
        try:
            title, report = ask_for_title(units, page.markdown, page.title, page.talk)
        except SplitterRefused as error:
            report = f"The LLM gave no title, so the page’s own stays: {error}"
            return page.finish([Piece(page.title, page.markdown)], ONE, report, has_llm_failed=True)
    plan = plan_of([Section(title, tuple(range(len(units))))], units)
    shown = title if title and page.fits(title) else page.title
    return page.finish([Piece(shown, page.markdown)], ONE, report, plan)


def _split_by_subject(page: _Page) -> Split:
    units = units_of(page.markdown)
    sections = sections_again(page.plan, units, page.title)
    report = "Sorted as before: its parts are mostly the same, so the LLM was not asked."
    try:
        if sections is None:
            sections, report = sort_by_subject(units, page.title, page.talk)
    except SplitterRefused as error:
        return _fall_back(page, f"The LLM did not split this page, so its headings did: {error}")
    pieces = _pieces(page, sections, units)
    split = page.finish(pieces, BY_LLM, report, plan_of(sections, units))
    if any(split.checks[name] for name in ("missing", "invented", "uncovered")):
        return _fall_back(page, "What the LLM’s sections hold is not what the page says, so its headings split it.")
    return split


def _pieces(page: _Page, sections: list[Section], units: list[Unit]) -> list[Piece]:
    return [piece for section in sections for piece in pieces_of(section, units, page.title, page.limit)]


def _fall_back(page: _Page, report: str) -> Split:
    pieces = split_by_headings(page.markdown, page.title, page.limit)
    return page.finish(pieces, BY_HEADINGS, report, has_llm_failed=True)
