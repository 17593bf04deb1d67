"""Turns the pages that an import has read into snippets; what sites say around them is site_snippets.py's matter.

A page whose text and settings are those of the last import is left as it is, vectors, the owner's edits and all.
Splitting and embedding run outside of transactions; what they gave replaces the old in one, or part by part on a very
large page.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from crawler.import_llm import ImportLLM
from crawler.loss import loss_as_before
from crawler.models import Import, Page
from crawler.page_pool import PagePool, Task, result_of
from crawler.page_split import PageSections, PageToSplit, sections_of
from crawler.repeated import UNMARKED
from crawler.site_pages import Websites, sites_of
from crawler.site_snippets import SOURCE_LINE, KnownSite, SiteChanges, SiteSnippets
from crawler.titles import without_site_name
from models_app.dropped import has_dropped
from models_app.jobs import Lease
from models_app.models import TrainingSnippet
from models_app.page_parts import PART, replace_in_parts
from models_app.sections import Section
from models_app.snippets import Replaced, SnippetQuotaReached, add_pages, replace_page_snippets
from models_app.standing import known_hashes, known_pages
from models_app.vectors import VectorsAhead, store_vectors, vectors_ahead
from tenants.store import tenant_atomic

State = Page.State

BATCH = 10  # pages in memory at once: each may be some megabytes
UNCHANGED = "not anew, as nothing has changed since the last import"

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
    llm: ImportLLM
    websites: Websites
    sites: Mapping[str, KnownSite]

    @classmethod
    def prepare(cls, job: Import, lease: Lease, pool: PagePool) -> "SnippetMaker":
        """Return the maker for an import whose pages are read; keeps what their sites say around them, once."""
        websites, changes = Websites(job), SiteChanges(job)
        sites = {}
        if job.kind != Import.Kind.FILES:  # which belong to no site that says anything around them
            for site in sites_of(job, websites):
                sites[site.name] = SiteSnippets(job, lease, site, changes, pool).keep()
            changes.save()
        return cls(job, lease, ImportLLM(job, lease), websites, sites)

    def _site_of(self, page: Page) -> KnownSite:
        return self.sites.get(self.websites.name_of(page.url), KnownSite())

    def split(self, page: Page, pool: PagePool) -> SplitInHand:
        """Return the page on its way to be split, unless nothing of it has changed; `finish` makes its snippets so."""
        has_main = page.report.get("selected_by") not in UNMARKED
        markdown = page.markdown if has_main else self._site_of(page).repeated.without(page.markdown)
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
            known_hashes(self.job.model, page.url, page.snippet_source) if self._is_known(page) else frozenset(),
        )
        splitting = None if self.llm.splitter else pool.submit(sections_of, asked)
        return SplitInHand(page, split_hash, last, asked, splitting)

    def is_new(self, in_hand: SplitInHand) -> bool:
        """Whether the page has no snippets yet, so that all there is to do is to add them."""
        return in_hand.splitting is not None and not self._is_known(in_hand.page)

    def finish(self, together: Sequence[SplitInHand]) -> None:
        """Make the pages' snippets those of their texts now; several pages are new ones."""
        if self.is_new(together[0]) and self._add_together(together):
            return
        for in_hand in together:
            self._finish_one(in_hand)

    def _add_together(self, together: Sequence[SplitInHand]) -> bool:
        """Add the snippets of new pages in one transaction, most of whose time is its own.

        Returns False, and nothing is added, where it would take long or one of the pages cannot be had: which of them
        shows when they are done one by one.
        """
        try:
            made = [self._sections_of(in_hand) for in_hand in together]
        except Exception:
            return False
        if sum(len(each.sections) for each in made) > PART:
            return False
        pages = [in_hand.page for in_hand in together]
        with tenant_atomic():
            self.lease.check()
            try:
                added = ((page.url, each.sections, page.snippet_source) for page, each in zip(pages, made, strict=True))
                add_pages(self.job.model, added)
            except SnippetQuotaReached:
                return False
            for in_hand, each in zip(together, made, strict=True):
                count = len(each.sections)
                report = self._report(each) | {"snippets": NO_CHANGE | {"added": count}}
                in_hand.page.report |= report
                fields = {"split_hash": in_hand.split_hash, "snippet_count": count, "plan": each.split.plan}
                self._finish_page(in_hand.page, **fields)
        return True

    def _finish_one(self, in_hand: SplitInHand) -> None:
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
            self._finish_page(
                page,
                # A page that the LLM could not split is tried again by the next import, changed or not.
                split_hash="" if split.has_llm_failed else in_hand.split_hash,
                snippet_count=replaced.standing,
                plan=plan if split.has_llm_failed else split.plan,
            )

    def _approach(self, in_hand: SplitInHand, sections: list[Section], vectors: VectorsAhead) -> Replaced:
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
        return result_of(in_hand.splitting, sections_of, in_hand.asked)

    def _leave(self, page: Page, last: dict) -> None:
        """Note that the page's snippets stand as the last import made them."""
        count = self._standing(page).count()
        page.report |= {name: last["report"][name] for name in CARRIED if name in last["report"]}
        loss = loss_as_before(page.report.get("loss") or {}, last["report"].get("loss") or {})
        page.report |= {"split": UNCHANGED, "snippets": NO_CHANGE | {"kept": count}, "loss": loss}
        with tenant_atomic():
            self.lease.check()
            self._finish_page(page, split_hash=last["split_hash"], snippet_count=count, plan=last["plan"])

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

    def _citation(self, url: str) -> str:
        return f"{SOURCE_LINE}{url}" if self.job.insert_source_url else ""

    def _title_of(self, page: Page) -> str:
        return without_site_name(page.title, self._site_of(page).name)

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

    def _finish_page(self, page: Page, **fields) -> None:
        """Note, in a transaction, that the page is done; of earlier imports only the report is kept, not the text."""
        Page.objects.filter(pk=page.pk).update(state=State.DONE, report=page.report, **fields)
        if self.has_earlier:
            _earlier(page).update(markdown="", landmarks=[], source=b"")

    def _is_known(self, page: Page) -> bool:
        return page.url in self._known_pages

    @cached_property
    def _known_pages(self) -> set[str]:
        """The pages that have snippets as the making begins: nothing of the others need be looked for."""
        return known_pages(self.job.model)

    @cached_property
    def has_earlier(self) -> bool:
        """Whether the model has been imported before: a first import need not look for each page."""
        return Import.objects.filter(model=self.job.model_id, pk__lt=self.job.pk).exists()


def pages_to_split(job: Import) -> Iterator[Page]:
    """Yield the pages that are read and not yet snippets, a few at a time: to ask for each costs as much as a step."""
    last = 0
    left = job.pages.filter(state=State.READ).defer("source").order_by("pk")
    while batch := list(left.filter(pk__gt=last)[:BATCH]):
        yield from batch
        last = batch[-1].pk


def _earlier(page: Page):
    return Page.objects.filter(job__model=page.job.model_id, job__lt=page.job_id, url=page.url, state=State.DONE)


def _last_made(page: Page) -> dict | None:
    """Return what the last import made of the page."""
    last = _earlier(page).order_by("-job_id")
    return last.values("split_hash", "snippet_count", "plan", "report").first()
