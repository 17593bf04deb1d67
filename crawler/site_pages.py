"""Which pages make up which website of a model: those that an import has read, and those of earlier ones that stand."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db.models import Exists, OuterRef, QuerySet

from crawler.models import Import, Page
from crawler.repeated import UNMARKED, PageText
from crawler.retire import gone_pages
from models_app.jobs import Lease
from models_app.models import TrainingSnippet, is_web_address

State, Kind = Page.State, Import.Kind

BATCH = 10  # pages in memory at once: each may be some megabytes
SPELLING = re.compile(r"^https?://(www\.)?")


@dataclass(frozen=True)
class Site:
    """A website of the model, or pages of one host of which no import of their whole site is known.

    `pages` are those that stand, address -> key of the row that holds their text, the start first; `gone` are addresses
    of pages that stand no more. Without a `start_url` the site is of single pages.
    """

    name: str
    start_url: str
    scope: str
    pages: Mapping[str, int]
    gone: frozenset[str]


class Websites:
    """The websites of a model, by the imports that read them, newest first."""

    def __init__(self, job: Import):
        read = Page.objects.filter(job=OuterRef("pk"), state=State.DONE)
        earlier = job.model.imports.filter(kind=Kind.SITE, pk__lt=job.pk).exclude(start_url="").exclude(scope="")
        imports = [job] if job.kind == Kind.SITE else []
        imports += earlier.filter(Exists(read)).order_by("-pk")
        # By their scopes; of two imports of one scope the newer one says where it starts.
        self._sites = {bare(each.scope): each for each in reversed(imports)}
        self._scopes = list(dict.fromkeys(bare(each.scope) for each in imports))
        self.own = bare(job.scope) if job.kind == Kind.SITE else ""
        self._read = set(_read(job).values_list("url", flat=True)) if self.own else set()

    def name_of(self, url: str) -> str:
        """Return what names the site that the page belongs to; empty where it is no page of the web.

        It is the newest that holds it: one that was imported in parts, and then whole, is one site.
        """
        if not is_web_address(url):
            return ""
        if url in self._read:
            return self.own
        address = bare(url)
        folder = f"{re.split('[?#]', address, maxsplit=1)[0].rstrip('/')}/"
        return next((scope for scope in self._scopes if folder.startswith(scope)), urlsplit(f"//{address}").netloc)

    def start_and_scope(self, name: str) -> tuple[str, str]:
        """Return the site's start address and scope; empty for single pages."""
        job = self._sites.get(name)
        return (job.start_url, job.scope) if job else ("", "")


def sites_of(job: Import, websites: Websites) -> Iterator[Site]:
    """Yield the sites that the import has read pages of, or found some gone, with all their pages."""
    read = dict(_read(job).values_list("url", "pk"))
    gone = {url for pages, _ in gone_pages(job) for url in pages.values_list("url", flat=True)} - read.keys()
    standing = {url: key for url, key in _earlier_pages(job).items() if url not in gone} | read
    names = {url: websites.name_of(url) for url in (*standing, *gone)}
    concerned = {websites.own} if websites.own else {names[url] for url in (*read, *gone)} - {""}
    for name in sorted(concerned):
        start_url, scope = websites.start_and_scope(name)
        # In an order that no crawl changes, so that what is the same stays the same text.
        own = sorted((url for url in standing if names[url] == name), key=lambda url: (url != start_url, url))
        yield Site(
            name,
            start_url,
            scope,
            {url: standing[url] for url in own},
            frozenset(url for url in gone if names[url] == name),
        )


def page_texts(site: Site, lease: Lease, are_all: bool = True) -> Iterator[PageText]:
    """Yield the texts of the site's pages in their order, a few at a time: of all, or of those with marked parts."""
    rows = Page.objects.defer("source", "plan")
    rows = rows if are_all else rows.exclude(landmarks=[])
    keys = list(site.pages.values())
    for start in range(0, len(keys), BATCH):
        lease.check()
        pages = rows.in_bulk(keys[start : start + BATCH])
        for page in (pages[key] for key in keys[start : start + BATCH] if key in pages):
            has_main = page.report.get("selected_by") not in UNMARKED
            yield PageText(page.url, page.title, page.markdown, tuple(page.landmarks), has_main)


def bare(address: str) -> str:
    """Return the address without what a move to TLS, to or from www changes."""
    return SPELLING.sub("", address)


def _read(job: Import) -> QuerySet[Page]:
    return job.pages.filter(state__in=(State.READ, State.DONE))


def _earlier_pages(job: Import) -> dict[str, int]:
    """Return the keys of the newest stored texts of the pages that earlier imports made and whose snippets stand."""
    stored = Page.objects.filter(job__model=job.model_id, job__lt=job.pk, state=State.DONE)
    stored = stored.exclude(markdown="", landmarks=[]).order_by("job_id")
    with_snippets = set(
        job.model.snippets.filter(source=TrainingSnippet.Source.CRAWL).values_list("uri", flat=True).distinct()
    )
    rows = stored.values_list("url", "pk", "snippet_count")
    return {url: key for url, key, count in rows if count == 0 or url in with_snippets}
