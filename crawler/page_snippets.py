"""Turns what an import has read into snippets: page by page, and what the site repeats once for all pages.

A page whose text and settings are those of the last import is left as it is, vectors, the owner's edits and all.
Splitting and embedding run outside of transactions; what they gave replaces the old in one, or, on a very large
page, part by part.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from urllib.parse import urlsplit

from crawler.import_llm import ImportLLM
from crawler.loss import loss_as_before
from crawler.markdown import plain_words
from crawler.models import Import, Page
from crawler.page_pool import ChildDied, PagePool, Task
from crawler.page_split import PageSections, PageToSplit, sections_of
from crawler.repeated import (
    UNMARKED,
    PageText,
    RepeatedBlocks,
    SiteBlock,
    blocks_kept,
    collect_site_blocks,
    find_repeated_blocks,
    join_blocks,
    pieces_kept,
    subjects_of,
)
from crawler.titles import bare_site_name, find_site_name, without_site_name
from models_app.dropped import has_dropped
from models_app.jobs import Lease
from models_app.models import TrainingSnippet
from models_app.page_parts import PART, replace_in_parts
from models_app.sections import Section
from models_app.snippets import Replaced, known_hashes, replace_page_snippets, retire_pages
from models_app.vectors import store_vectors, vectors_ahead
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

State, Source = Page.State, TrainingSnippet.Source

BATCH = 10  # pages in memory at once: each may be some megabytes
SHOWN_CHARACTERS = 60
UNCHANGED = "not anew, as nothing has changed since the last import"
SPELLING = re.compile(r"https?://(www\.)?")

# What the report of a page that was left as it was takes over from the last import's.
CARRIED = ("checks", "split_for")
NO_CHANGE = {"added": 0, "changed": 0, "kept": 0, "removed": 0, "conflicts": 0}


@dataclass(frozen=True)
class SplitInHand:
    """A page whose sections are being made, or that is left as the last import made it."""

    page: Page
    split_hash: str
    last: dict | None = None
    asked: PageToSplit | None = None
    splitting: Task | None = None


@dataclass(frozen=True)
class SnippetMaker:
    """What making the snippets of an import takes.

    Several pages may be in hand, being split by the pool; their snippets are written in the order of the pages.
    """

    job: Import
    lease: Lease
    repeated: RepeatedBlocks
    site_name: str
    llm: ImportLLM

    @classmethod
    def prepare(cls, job: Import, lease: Lease) -> "SnippetMaker":
        """Return the maker for an import whose pages are read; keeps what the site repeats, once."""
        if job.kind == Import.Kind.FILES:  # which belong to no site that says anything around them
            return cls(job, lease, RepeatedBlocks(), "", ImportLLM(job, lease))
        titles = _titles(job)
        repeated = find_repeated_blocks(page_texts(job, lease))
        are_single = not job.scope  # pages of which no import of their whole site is known
        elsewhere = _kept_elsewhere(job) if are_single else []
        kept = blocks_kept(elsewhere)
        known = RepeatedBlocks(repeated.keys | kept.keys)
        maker = cls(job, lease, known, find_site_name(titles.iterator()), ImportLLM(job, lease))
        if are_single:
            maker.keep_further_blocks(RepeatedBlocks(repeated.keys - kept.keys), pieces_kept(elsewhere))
        else:
            maker.keep_site_blocks()
        return maker

    def keep_further_blocks(self, repeated: RepeatedBlocks, said: set[str]) -> None:
        """Keep what single pages say around their own text and the site's snippets do not, under the pages' addresses.

        An import of the whole site, which has seen all of it, takes these in again.
        """
        said = said.union(*map(subjects_of, page_texts(self.job, self.lease)))
        blocks = collect_site_blocks(page_texts(self.job, self.lease), repeated, said)
        for url in _own_addresses(self.job):
            own = join_blocks(block for block in blocks if block.url == url)
            sections = self._site_sections(own, url)
            with tenant_atomic():
                self.lease.check()
                replace_page_snippets(self.job.model, url, sections, Source.SITE)

    def keep_site_blocks(self) -> None:
        """Replace the site's own snippets by what it says around its pages now."""
        subjects = {subject for text in page_texts(self.job, self.lease) for subject in subjects_of(text)}
        blocks = collect_site_blocks(page_texts(self.job, self.lease), self.repeated, subjects)
        sections = self._site_sections(join_blocks(blocks), self.job.start_url)
        with tenant_atomic():
            self.lease.check()
            replace_page_snippets(self.job.model, self.job.start_url, sections, Source.SITE)
            retire_pages(self.job.model, _former_addresses(self.job), Source.SITE)
        if blocks:
            self.job.add_note(_site_note(blocks))

    def _name_of_site_blocks(self, url: str) -> str:
        front = self.job.pages.filter(final_url=url).values_list("title", flat=True).first() or ""
        name = bare_site_name(self.site_name) or front
        return f"{name}: header, menu and footer of the site".lstrip(": ")

    def split(self, page: Page, pool: PagePool) -> SplitInHand:
        """Return the page on its way to be split, unless nothing of it has changed; `finish` makes its snippets so."""
        has_main = page.report.get("selected_by") not in UNMARKED
        markdown = page.markdown if has_main else self.repeated.without(page.markdown)
        split_hash = self._split_hash(page, markdown)
        last = _last_made(page) if self.has_earlier else None
        if last and self._is_unchanged(page, last, split_hash):
            return SplitInHand(page, split_hash, last)
        asked = PageToSplit(
            markdown,
            self._title_of(page),
            self.job.model.split_threshold,
            self._citation(page.url),
            self._plan_of(last),
            page.markdown,
            page.report.get("loss"),
            known_hashes(self.job.model, page.url, page.snippet_source) if self.has_earlier else frozenset(),
        )
        splitting = None if self.llm.splitter else pool.submit(sections_of, asked)
        return SplitInHand(page, split_hash, last, asked, splitting)

    def finish(self, in_hand: SplitInHand) -> None:
        """Make the page's snippets those of its text now."""
        page, asked = in_hand.page, in_hand.asked
        if asked is None:
            self._leave(page, in_hand.last)
            return
        made = self._sections_of(in_hand)
        split, plan = made.split, asked.plan
        self.llm.note(split)
        page.report |= self._report(made)
        vectors = vectors_ahead(self.job.model, page.url, made.sections)
        before = self._approach(in_hand, made.sections, vectors)
        with tenant_atomic():
            self.lease.check()
            last = replace_page_snippets(self.job.model, page.url, made.sections, page.snippet_source)
            replaced = last.after(before)
            store_vectors(self.job.model, page.url, vectors)
            page.report["snippets"] = {name: getattr(replaced, name) for name in NO_CHANGE}
            self._finish(
                page,
                # A page that the LLM could not split is tried again by the next import, changed or not.
                split_hash="" if split.has_llm_failed else in_hand.split_hash,
                snippet_count=replaced.standing,
                plan=plan if split.has_llm_failed else split.plan,
            )

    def _approach(self, in_hand: SplitInHand, sections: list[Section], vectors: dict) -> Replaced:
        """Do for a page of very many sections all but the last step, in short transactions of its own."""
        page = in_hand.page
        if max(len(sections), len(in_hand.asked.known)) <= PART:
            return Replaced()

        def within_part() -> None:
            self.lease.check()
            store_vectors(self.job.model, page.url, vectors)
            # Should the import end here, the page is not as the last one made it: the next one must not leave it so.
            _earlier(page).update(split_hash="")

        return replace_in_parts(self.job.model, page.url, sections, page.snippet_source, within_part)

    def _sections_of(self, in_hand: SplitInHand) -> PageSections:
        if in_hand.splitting is None:
            return sections_of(in_hand.asked, self.llm.splitter)
        try:
            return in_hand.splitting.result()
        except (ChildDied, MemoryError):  # this process may take more than a child
            return sections_of(in_hand.asked)

    def _leave(self, page: Page, last: dict) -> None:
        """Note that the page's snippets stand as the last import made them."""
        count = self._standing(page).count()
        page.report |= {name: last["report"][name] for name in CARRIED if name in last["report"]}
        loss = loss_as_before(page.report.get("loss") or {}, last["report"].get("loss") or {})
        page.report |= {"split": UNCHANGED, "snippets": NO_CHANGE | {"kept": count}, "loss": loss}
        with tenant_atomic():
            self.lease.check()
            self._finish(page, split_hash=last["split_hash"], snippet_count=count, plan=last["plan"])

    def _plan_of(self, last: dict | None) -> list[dict]:
        """Return how the LLM sorted the page the last time, unless that was for other sizes or by another LLM."""
        is_wanted = last and self.job.kind != Import.Kind.STORED and last["report"].get("split_for") == self._split_for
        return last["plan"] if is_wanted else []

    @property
    def _split_for(self) -> str:
        return f"{self.job.model.split_threshold} {self.llm.name}"

    def _report(self, made: PageSections) -> dict:
        """Return what the page's report says of its splitting."""
        split = made.split
        return {
            "split": split.method,
            "split_report": split.report,
            "split_for": self._split_for,
            "checks": split.checks,
            "llm": split.usage,
            "loss": made.loss,
        }

    def _site_sections(self, markdown: str, url: str) -> list[Section]:
        """Return the sections of what a site says around its pages, to stand under the address."""
        title = self._name_of_site_blocks(url)
        return sections_of(PageToSplit(markdown, title, self.job.model.split_threshold, self._citation(url))).sections

    def _citation(self, url: str) -> str:
        return f"\n\nSource: {url}" if self.job.insert_source_url else ""

    def _title_of(self, page: Page) -> str:
        return without_site_name(page.title, self.site_name)

    def _split_hash(self, page: Page, markdown: str) -> str:
        parts = (
            self._title_of(page),
            markdown,
            self.job.model.split_threshold,
            self.llm.name,
            self.job.insert_source_url,
        )
        return sha256("\0".join(map(str, parts)).encode()).hexdigest()

    def _is_unchanged(self, page: Page, last: dict, split_hash: str) -> bool:
        """Return whether the last import made this page's snippets from the same, and they still stand."""
        if last["split_hash"] != split_hash:
            return False
        # Edited ones that stand alone say that the page was gone: what it says now comes back.
        standing = self._standing(page).exclude(conflict=TrainingSnippet.Conflict.GONE)
        return last["snippet_count"] == 0 or standing.exists() or has_dropped(self.job.model, page.url)

    def _standing(self, page: Page):
        return self.job.model.snippets.filter(uri=page.url, source=page.snippet_source)

    def _finish(self, page: Page, **fields) -> None:
        """Note, in a transaction, that the page is done; of earlier imports only the report is kept, not the text."""
        Page.objects.filter(pk=page.pk).update(state=State.DONE, report=page.report, **fields)
        if self.has_earlier:
            _earlier(page).update(markdown="", landmarks=[], source=b"")

    @cached_property
    def has_earlier(self) -> bool:
        """Whether the model has been imported before: a first import need not look for each page."""
        return Import.objects.filter(model=self.job.model_id, pk__lt=self.job.pk).exists()


def _own_addresses(job: Import) -> list[str]:
    """Return the pages of the import, but for those that stand for a whole site: its own snippets lie there."""
    starts = job.model.imports.filter(kind=Import.Kind.SITE).values("start_url")
    read = job.pages.filter(state__in=(State.READ, State.DONE)).exclude(url__in=starts)
    return list(read.values_list("url", flat=True))


def _titles(job: Import):
    """Return the titles that tell a site's name: those of the import, for single pages those of their site as well."""
    jobs = [job.pk]
    if job.kind == Import.Kind.PAGES:
        sites = job.model.imports.filter(kind=Import.Kind.SITE, state=Import.State.DONE)
        jobs += sites.values_list("pk", flat=True)[:1]
    read = Page.objects.filter(job__in=jobs, state__in=(State.READ, State.DONE))
    return read.values_list("title", flat=True)


def _kept_elsewhere(job: Import) -> list[str]:
    """Return the texts that the model holds of the sites of these pages, under other addresses than theirs."""
    hosts = {urlsplit(url).netloc for url in job.pages.values_list("url", flat=True)}
    kept = job.model.snippets.filter(source=Source.SITE).exclude(uri__in=_own_addresses(job))
    return [text for uri, text in kept.values_list("uri", "completion") if urlsplit(uri).netloc in hosts]


def _former_addresses(job: Import) -> list[str]:
    """Return the addresses that the site's own snippets stood under when it started elsewhere.

    That is before it moved to TLS, to or from www, or to another start page; and those under the address of all that
    was to be imported, which may be no page. What an import of single pages kept of this import's pages is among them.
    """
    starts = job.model.imports.values_list("scope", "start_url")
    former = {_bare(uri) for scope, start in starts if _bare(scope) == _bare(job.scope) for uri in (scope, start)}
    stored = job.model.snippets.filter(source=Source.SITE).exclude(uri=job.start_url)
    uris = stored.order_by("uri").values_list("uri", flat=True).distinct()
    read = set(job.pages.filter(url__in=uris, state__in=(State.READ, State.DONE)).values_list("url", flat=True))
    return [uri for uri in uris if _bare(uri) in former or uri in read]


def _bare(address: str) -> str:
    return SPELLING.sub("", address)


def pages_to_split(job: Import) -> Iterator[Page]:
    """Yield the pages that are read and not yet snippets, a few at a time: to ask for each costs as much as a step."""
    last = 0
    left = job.pages.filter(state=State.READ).defer("source").order_by("pk")
    while batch := list(left.filter(pk__gt=last)[:BATCH]):
        yield from batch
        last = batch[-1].pk


def page_texts(job: Import, lease: Lease) -> Iterator[PageText]:
    """Yield the texts of all pages that were read, a few at a time: also those whose snippets are made already."""
    last = 0
    pages = job.pages.filter(state__in=(State.READ, State.DONE)).defer("source", "plan").order_by("pk")
    while batch := list(pages.filter(pk__gt=last)[:BATCH]):
        lease.check()
        for page in batch:
            has_main = page.report.get("selected_by") not in UNMARKED
            yield PageText(page.url, page.title, page.markdown, tuple(page.landmarks), has_main)
        last = batch[-1].pk


def _earlier(page: Page):
    return Page.objects.filter(job__model=page.job.model_id, job__lt=page.job_id, url=page.url, state=State.DONE)


def _last_made(page: Page) -> dict | None:
    """Return what the last import made of the page."""
    last = _earlier(page).order_by("-job_id")
    return last.values("split_hash", "snippet_count", "plan", "report").first()


def _site_note(blocks: list[SiteBlock]) -> str:
    """Return a sentence that names those of the blocks that stand on most pages, and where."""
    told = [(plain_words(block.markdown)[:SHOWN_CHARACTERS], block) for block in blocks]
    most = sorted(((words, block) for words, block in told if words), key=lambda shown: -shown[1].page_count)[:3]
    shown = "; ".join(f"“{words}” ({_places(block)})" for words, block in most)
    kept = "1 block that stands" if len(blocks) == 1 else f"{len(blocks):,} blocks that stand"
    verb = "is" if len(blocks) == 1 else "are"
    return f"{kept} around the pages’ own text {verb} kept apart, once for the site: {shown or 'images'}."


def _places(block: SiteBlock) -> str:
    return f"on {block.url}" if block.page_count == 1 else f"on {block.page_count:,} pages, first {block.url}"
