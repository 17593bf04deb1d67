"""Reads one page of an import and stores what came of it: its text, a twin's address, or why it was not had.

A failure is the page's, not the import's. What a page adds, its text, its links and its state, is stored in one
transaction, so that a killed import finds each page either read or not. What its bytes say is page_content.py's matter.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Protocol
from urllib.parse import unquote, urlsplit

from django.db.models import Q

from crawler.documents.reader import DocumentUnreadable, read_document
from crawler.frontier import READ_STATES, Frontier
from crawler.models import TITLE_LENGTH, Import, Page
from crawler.page_content import PageContent, read_html, source_html
from crawler.page_pool import PagePool, Task
from crawler.web.decode import DOCUMENT_KINDS
from crawler.web.fetch import (
    LOGIN_REQUIRED,
    NOTHING_KNOWN,
    PAGE,
    PAGE_OR_DOCUMENT,
    FetchedPage,
    FetchError,
    Known,
    Wanted,
    WebClient,
)
from crawler.web.path_patterns import EXCLUDED, NOT_INCLUDED
from crawler.web.site import DISALLOWED, NOT_A_PAGE, OUT_OF_SCOPE, ListRules, SiteRules
from crawler.web.sitemap import ALREADY_READ
from models_app.jobs import Lease
from models_app.page_texts import keep_page_text
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

State, Kind = Page.State, Import.Kind

NO_TEXT = "no text"
NEEDS_SCRIPTS = "needs scripts"
NOT_CONVERTED = "not converted"
NOT_READABLE = "not readable"
SAME_TEXT = "same text"
REDIRECTS = "redirects"
NOT_PAGES = frozenset({OUT_OF_SCOPE, DISALLOWED, NOT_A_PAGE, EXCLUDED, NOT_INCLUDED})
OTHER_KIND = "not html: "
READABLE_KINDS = DOCUMENT_KINDS | {"text", "markdown"}
GONE_STATUSES = frozenset({404, 410})
EMPTY_WITHOUT_SCRIPTS = "The page is empty until scripts draw it."
LITTLE_WITHOUT_SCRIPTS = "The page says little until scripts draw the rest of it, which was not read."
DRAW_IT = "Import it again with “Draw pages that need scripts” ticked."


class ContentMissing(Exception):
    """A page that was fetched and gives no text; `reason` is short and stable, the message is for people."""

    def __init__(self, reason: str, message: str):
        self.reason, self.message = reason, message
        super().__init__(message)


class ScriptRunner(Protocol):
    """What draws a page with its scripts and returns the HTML then."""

    def render(self, url: str, is_followable) -> str: ...


@dataclass(frozen=True)
class PageInHand:
    """A page that was asked for and not stored yet: what came, and the reading of its HTML, or why it did not come.

    `content` is what a document says that has not changed.
    """

    page: Page
    fetched: FetchedPage | None = None
    reading: Task | None = None
    content: PageContent | None = None
    failure: FetchError | None = None


@dataclass(frozen=True)
class PageReader:
    """What reading a page of an import takes. Without a renderer, pages that scripts draw are reported.

    The `start_page` is here already, and not asked for again.

    Several pages may be in hand, their HTML being read by the pool; they are stored in the order they were asked for.
    """

    job: Import
    rules: SiteRules | ListRules
    frontier: Frontier
    client: WebClient
    lease: Lease
    pool: PagePool
    renderer: ScriptRunner | None = None
    start_page: FetchedPage | None = None

    def fetch(self, page: Page) -> PageInHand:
        """Return the page as it came, its HTML on its way to be selected and converted; `finish` stores it."""
        self.frontier.in_hand[page.pk] = page.url
        earlier = self._earlier(page)
        known = Known(earlier.etag, earlier.last_modified) if earlier else NOTHING_KNOWN
        try:
            fetched = self._start_page_at(page.url) or self.client.fetch(
                page.url, self._refuse_hop, self._wanted, known
            )
        except FetchError as error:
            return PageInHand(page, failure=error)
        if fetched.is_unchanged and earlier.kind != "html":
            return PageInHand(page, replace(fetched, kind=earlier.kind), content=_document_as_before(earlier))
        if fetched.kind in READABLE_KINDS:
            return PageInHand(page, fetched)
        html = source_html(earlier.source) if fetched.is_unchanged else fetched.text
        reading = self._start_reading(html, fetched)
        # The HTML is the reading's now: pages in hand are not kept twice.
        return PageInHand(page, replace(fetched, text="", body=b""), reading)

    def _start_page_at(self, url: str) -> FetchedPage | None:
        is_start = self.start_page and self.rules.address_of(self.start_page.final_url) == url
        return self.start_page if is_start else None

    def finish(self, together: Sequence[PageInHand]) -> list[str]:
        """Store what the pages say, their links and states, in one transaction; returns why each was not had, or ""."""
        came = [(in_hand, self._came_of(in_hand)) for in_hand in together]
        with tenant_atomic():
            self.lease.check()  # only the worker who holds the job comes to the end of it
            return [self._note(in_hand, content) for in_hand, content in came]

    def _came_of(self, in_hand: PageInHand) -> PageContent | ContentMissing | FetchError | None:
        """Return what the page says, or why it was not had; None where another page in hand has led to it."""
        if self.frontier.was_stored(in_hand.page):
            return None
        try:
            return in_hand.failure or self._content_of(in_hand)
        except ContentMissing as missing:
            return missing
        except Exception:
            # Markup of any kind comes in: a page that breaks the converter must not end the import.
            logger.exception("%s could not be converted.", in_hand.page.url)
            return ContentMissing(NOT_CONVERTED, "The page's markup could not be converted.")

    def _note(self, in_hand: PageInHand, content: PageContent | ContentMissing | FetchError | None) -> str:
        """Store one page, in the transaction of all; returns why it was not had, or ""."""
        page = in_hand.page
        self.frontier.in_hand.pop(page.pk)
        if content is None or self.frontier.was_stored(page):
            return ""
        match content:
            case FetchError():
                self._note_failure(page, content)
                return content.reason
            case ContentMissing():
                page.note_failure(content.reason, content.message)
                return content.reason
        self._store(page, in_hand.fetched, content)
        return ""

    @cached_property
    def _wanted(self) -> Wanted:
        is_document_wanted = self.job.imports_documents or self.job.kind == Kind.PAGES
        return PAGE_OR_DOCUMENT if is_document_wanted else PAGE

    @cached_property
    def _has_earlier(self) -> bool:
        return Import.objects.filter(model=self.job.model_id, pk__lt=self.job.pk).exists()

    def _earlier(self, page: Page) -> Page | None:
        """Return the newest earlier page of this address that is stored: the server may say that it still stands.

        Of a page that was drawn it can only say so of the shell. What is stored of a document is its Markdown.
        """
        if not self._has_earlier:
            return None
        kept = ~Q(source=b"") | Q(kind__in=self._wanted.kinds - {"html"}) & ~Q(markdown="")
        stored = Page.objects.filter(
            kept, job__model=self.job.model_id, job__lt=self.job.pk, url=page.url, state=State.DONE
        )
        newest = stored.order_by("-job_id").only("etag", "last_modified", "report", "kind").first()
        return None if newest and newest.report.get("rendered") else newest

    def _refuse_hop(self, target: str) -> str | None:
        return (
            self.rules.refusal(target)
            or self.frontier.refusal_by_patterns(target)
            or (ALREADY_READ if self.frontier.is_read(target) else None)
        )

    def _start_reading(self, html: str, fetched: FetchedPage) -> Task:
        return self.pool.submit(read_html, html, fetched.final_url, fetched.robots_header, self.job.import_images)

    def _content_of(self, in_hand: PageInHand) -> PageContent:
        """Return what the page says. Errors: ContentMissing."""
        fetched = in_hand.fetched
        if in_hand.reading is None:
            return in_hand.content or _document(fetched)
        content = in_hand.reading.result()
        if content.needs_scripts and not content.is_login_wall:
            return self._drawn(fetched, content)
        return content

    def _drawn(self, fetched: FetchedPage, plain: PageContent) -> PageContent:
        """Return what the page says once its scripts have run, or without them where that is more."""
        if not self.job.renders_scripts:
            return _without_scripts(plain, DRAW_IT)
        from crawler.web.render import RenderError

        try:
            html = self.renderer.render(fetched.final_url, self.rules.refusal)
        except RenderError as error:
            return _without_scripts(plain, str(error))
        drawn = self._start_reading(html, fetched).result()
        content = drawn if plain.is_shell or drawn.word_count >= plain.word_count else plain
        content.report["rendered"] = True
        return content

    def _store(self, asked: Page, fetched: FetchedPage, content: PageContent) -> None:
        address = self.rules.address_of(fetched.final_url)
        canonical = self.rules.address_of(content.canonical) or ""
        links = [*content.links, canonical] if self.job.kind == Kind.SITE else []
        linked = self.frontier.pages_of(links, asked.depth + 1)
        page = self._page_at(address, asked)
        if page.state not in READ_STATES:
            if not content.report.get("rendered"):  # of those the server names but the shell's version
                page.etag, page.last_modified = fetched.etag, fetched.last_modified
            content.report["canonical"] = canonical
            self._store_text(page, content)
        if page.pk != asked.pk:
            self._lead_to(asked, page, REDIRECTS, fetched.is_for_good)
            self.frontier.note_stored(page)
        self.frontier.store(linked)

    def _page_at(self, address: str, asked: Page) -> Page:
        """Return the page of the address where redirects ended, which may not have been met yet."""
        if address == asked.url:
            return asked
        return self.job.pages.get_or_create(url=address, defaults={"depth": asked.depth})[0]

    def _store_text(self, page: Page, content: PageContent) -> None:
        """Keep the page's text, unless another page has it: then the one that both call canonical keeps it."""
        page.title, page.report, page.content_hash = content.title, content.report, content.content_hash
        page.kind, page.word_count = content.kind, content.word_count
        refusal = self.frontier.refusal_by_patterns(page.url)
        if refusal:
            page.end(State.SKIPPED, refusal, "The import starts at this page and read it for its links alone.")
            return
        if content.is_login_wall:
            page.note_failure(LOGIN_REQUIRED, f"{page.url} is not open to visitors: it asks to log in.")
            return
        if content.lack:
            page.note_failure(NEEDS_SCRIPTS, content.lack)
            return
        if not page.content_hash:
            page.note_failure(NO_TEXT, "No text was found on the page; scripts may be what draws it.")
            return
        page.markdown, page.landmarks, page.source = content.markdown, list(content.landmarks), content.source
        twin = self._page_of_same_text(page) if page.content_hash in self._known_hashes else None
        if twin and twin.report.get("canonical") != page.url:
            self._lead_to(page, twin, SAME_TEXT)
            return
        page.state, page.final_url = State.READ, page.url
        page.save()
        if content.shown:
            keep_page_text(self.job.model, page.url, content.shown)
        self._known_hashes.add(page.content_hash)
        if twin:
            self._lead_to(twin, page, SAME_TEXT)
            self.job.pages.filter(state=State.SAME, final_url=twin.url).update(final_url=page.url)

    @cached_property
    def _known_hashes(self) -> set[str]:
        """The texts that pages of this import have: most pages have another, and none need be looked for."""
        return set(self.job.pages.filter(state=State.READ).values_list("content_hash", flat=True))

    def _page_of_same_text(self, page: Page) -> Page | None:
        return self.job.pages.filter(state=State.READ, content_hash=page.content_hash).defer("source").first()

    def _lead_to(self, page: Page, other: Page, reason: str, is_for_good: bool = True) -> None:
        """Note that the page's text, if any, is the other page's, from now on or but for now."""
        page.report["is_for_good"] = is_for_good
        page.markdown, page.landmarks, page.source = "", [], b""
        page.final_url = other.final_url or other.url
        page.end(State.SAME, reason, f"See {page.final_url}")

    def _note_failure(self, page: Page, error: FetchError) -> None:
        if error.reason in NOT_PAGES:
            page.report |= {"leads_to": error.url, "is_for_good": error.is_for_good}
        if error.reason == ALREADY_READ:
            other = self.job.pages.get(url=self.rules.address_of(error.url))
            self._lead_to(page, other, REDIRECTS, error.is_for_good)
        elif error.reason == OUT_OF_SCOPE:
            way = f"{page.url} redirects to {error.url}"
            page.end(State.SKIPPED, error.reason, f"{way}, which is outside the imported part of the site")
        elif error.reason.removeprefix(OTHER_KIND) in READABLE_KINDS:
            kind = error.reason.removeprefix(OTHER_KIND).upper()
            page.end(State.SKIPPED, error.reason, f"A document ({kind}): tick “Documents” to import it as well.")
        elif error.reason in NOT_PAGES or error.reason.startswith(OTHER_KIND):
            page.end(State.SKIPPED, error.reason, error.message)
        else:
            page.report["is_gone"] = error.status in GONE_STATUSES and error.is_for_good
            page.report["is_retryable"] = error.is_retryable and "is_retryable" not in page.report
            page.note_failure(error.reason, error.message)


def _document(fetched: FetchedPage) -> PageContent:
    """Return what the document says. Errors: ContentMissing."""
    name = PurePosixPath(unquote(urlsplit(fetched.final_url).path)).name or fetched.final_url
    try:
        document = read_document(fetched.body, fetched.kind, name)
    except DocumentUnreadable as error:
        raise ContentMissing(NOT_READABLE, f"{fetched.final_url} {error.message.rstrip('.')}.") from error
    return PageContent(
        title=(document.title or name)[:TITLE_LENGTH],
        markdown=document.markdown,
        url=fetched.final_url,
        kind=fetched.kind,
        report={"warnings": list(document.warnings)},
    )


def _without_scripts(plain: PageContent, why: str) -> PageContent:
    """Return what the page says as it came; of one that says nothing itself, that this was for want of scripts."""
    if plain.is_shell:
        return replace(plain, lack=f"{EMPTY_WITHOUT_SCRIPTS} {why}")
    plain.report["warnings"].append(f"{LITTLE_WITHOUT_SCRIPTS} {why}")
    return plain


def _document_as_before(earlier: Page) -> PageContent:
    return PageContent(
        title=earlier.title,
        markdown=earlier.markdown,
        url=earlier.url,
        kind=earlier.kind,
        report={"warnings": earlier.report.get("warnings", [])},
    )
