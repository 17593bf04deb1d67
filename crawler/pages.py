"""Reads one page of an import and stores what came of it: its text, a twin's address, or why it was not had.

A failure is the page's, not the import's. What a page adds, its text, its links and its state, is stored in one
transaction, so that a killed import finds each page either read or not.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256

from crawler.convert import landmark_markdown, plain_words, to_markdown
from crawler.fetch import LOGIN_REQUIRED, FetchedPage, FetchError, WebClient
from crawler.frontier import READ_STATES, Frontier
from crawler.models import TITLE_LENGTH, Import, Page
from crawler.select import select_content
from crawler.site import DISALLOWED, NOT_A_PAGE, OUT_OF_SCOPE, SiteRules
from crawler.sitemap import ALREADY_READ
from models_app.jobs import Lease
from tenants.store import tenant_atomic

logger = logging.getLogger(__name__)

State = Page.State

NO_TEXT = "no text"
NOT_CONVERTED = "not converted"
SAME_TEXT = "same text"
REDIRECTS = "redirects"
NOT_PAGES = frozenset({OUT_OF_SCOPE, DISALLOWED, NOT_A_PAGE})
GONE_STATUSES = frozenset({404, 410})


@dataclass(frozen=True)
class PageContent:
    """What a page says, ready to be stored under the address where its redirects end."""

    address: str
    title: str
    markdown: str
    landmarks: tuple[str, ...]
    links: tuple[str, ...]
    canonical: str
    is_login_wall: bool
    content_hash: str  # equal for two pages that show the same words; empty for a page without any
    report: dict = field(default_factory=dict)


@dataclass(frozen=True)
class PageReader:
    """What reading a page of an import takes."""

    job: Import
    rules: SiteRules
    frontier: Frontier
    client: WebClient
    lease: Lease

    def read(self, page: Page) -> str:
        """Fetch, select, convert and store the page; returns why it was not had, or ""."""
        try:
            fetched = self.client.fetch(page.url, self._refuse_hop)
        except FetchError as error:
            self._note_failure(page, error)
            return error.reason
        try:
            content = self._convert(fetched)
        except Exception:
            # Markup of any kind comes in: a page that breaks the converter must not end the import.
            logger.exception("%s could not be converted.", page.url)
            with self._writing():
                page.note_failure(NOT_CONVERTED, "The page's markup could not be converted.")
            return NOT_CONVERTED
        self._store(page, content)
        return ""

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction that only the worker who holds the job comes to the end of."""
        with tenant_atomic():
            self.lease.check()
            yield

    def _refuse_hop(self, target: str) -> str | None:
        return self.rules.refusal(target) or (ALREADY_READ if self.frontier.is_read(target) else None)

    def _convert(self, fetched: FetchedPage) -> PageContent:
        content = select_content(fetched.text, fetched.final_url)
        images = self.job.import_images
        markdown = to_markdown(content, images)
        words = plain_words(markdown)
        return PageContent(
            address=self.frontier.address_of(fetched.final_url),
            title=content.title[:TITLE_LENGTH],
            markdown=markdown,
            landmarks=landmark_markdown(content, images),
            links=content.links,
            canonical=self.frontier.address_of(content.canonical or "") or "",
            is_login_wall=content.is_login_wall,
            content_hash=sha256(words.encode()).hexdigest() if words else "",
            report={
                "selected_by": content.selected_by,
                "warnings": list(content.warnings),
                "language": content.language,
                # Said to search engines: an owner who imports their own site wants these pages too.
                "is_noindex": content.is_noindex or "noindex" in fetched.robots_header.lower(),
            },
        )

    def _store(self, asked: Page, content: PageContent) -> None:
        linked = self.frontier.pages_of([*content.links, content.canonical], asked.depth + 1)
        with self._writing():
            page = self._page_at(content.address, asked)
            if page.state not in READ_STATES:
                self._store_text(page, content)
            if page.pk != asked.pk:
                self._lead_to(asked, page, REDIRECTS)
            self.frontier.store(linked)

    def _page_at(self, address: str, asked: Page) -> Page:
        """Return the page of the address where redirects ended, which may not have been met yet."""
        if address == asked.url:
            return asked
        return self.job.pages.get_or_create(url=address, defaults={"depth": asked.depth})[0]

    def _store_text(self, page: Page, content: PageContent) -> None:
        """Keep the page's text, unless another page has it: then the one that both call canonical keeps it."""
        page.title, page.report, page.content_hash = content.title, content.report, content.content_hash
        if content.is_login_wall:
            page.note_failure(LOGIN_REQUIRED, f"{page.url} is not open to visitors: it asks to log in.")
            return
        if not page.content_hash:
            page.note_failure(NO_TEXT, "No text was found on the page; scripts may be what draws it.")
            return
        page.report["canonical"] = content.canonical
        page.markdown, page.landmarks = content.markdown, content.landmarks
        twin = self.job.pages.filter(state=State.READ, content_hash=page.content_hash).first()
        if twin and twin.report.get("canonical") != page.url:
            self._lead_to(page, twin, SAME_TEXT)
            return
        page.state, page.final_url = State.READ, page.url
        page.save()
        if twin:
            self._lead_to(twin, page, SAME_TEXT)
            self.job.pages.filter(state=State.SAME, final_url=twin.url).update(final_url=page.url)

    def _lead_to(self, page: Page, other: Page, reason: str) -> None:
        """Note that the page's text, if any, is the other page's."""
        page.markdown, page.landmarks, page.final_url = "", [], other.final_url or other.url
        page.end(State.SAME, reason, f"See {page.final_url}")

    def _note_failure(self, page: Page, error: FetchError) -> None:
        with self._writing():
            if error.reason == ALREADY_READ:
                other = self.job.pages.get(url=self.frontier.address_of(error.url))
                self._lead_to(page, other, REDIRECTS)
            elif error.reason == OUT_OF_SCOPE:
                way = f"{page.url} redirects to {error.url}"
                page.end(State.SKIPPED, error.reason, f"{way}, which is outside the imported part of the site")
            elif error.reason in NOT_PAGES or error.reason.startswith("not html"):
                page.end(State.SKIPPED, error.reason, error.message)
            else:
                page.report["is_gone"] = error.status in GONE_STATUSES
                page.note_failure(error.reason, error.message)
