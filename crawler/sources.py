"""Where an import's pages come from: a website, single pages, or what earlier imports have stored.

Each leaves rows of pages that are read; making snippets of them is the same for all.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from django.db.models import Max, QuerySet

from crawler.frontier import Frontier
from crawler.models import Import, Page
from crawler.page_pool import PagePool
from crawler.pages import PageInHand, PageReader
from crawler.web.fetch import NETWORK_REASONS, WebClient
from crawler.web.site import ListRules, SiteRules, SiteUnreachable, read_list_rules, read_site_rules
from crawler.web.sitemap import read_sitemaps
from models_app.jobs import Lease
from models_app.models import MLModel, TrainingSnippet
from tenants.public_addresses import is_loopback_address
from tenants.store import tenant_atomic

State = Page.State
Watch = Callable[[Import], None]
Rules = TypeVar("Rules", SiteRules, ListRules)

MAX_CRAWL_DELAY_SECONDS = 10.0
# A site that has not answered so often in a row is not asked again: what was read until then is imported.
MAX_SILENCES = 10
STOPPED_ANSWERING = "The site stopped answering: pages that were found are left unread. Import it again later."
BATCH = 20  # stored pages in memory at once: each may be some megabytes
# What the page says of its making; what its snippets were is told anew.
KEPT_OF_REPORTS = ("selected_by", "warnings", "language", "is_noindex", "is_nofollow", "rendered", "canonical", "loss")


def read_site(job: Import, lease: Lease, pool: PagePool, watch: Watch) -> None:
    """Read every page of the site once: those that sitemaps list, that links lead to, that are known from before."""
    with WebClient(sleep=lease.wait) as client:
        rules = _rules_or_what_was_read(job, lambda: read_site_rules(client, job.address))
        if rules is None:
            return
        job.note_progress(start_url=rules.start_url, scope=urljoin(rules.start_url, rules.path_prefix))
        pause = pause_seconds(job, rules)
        frontier = Frontier(job, rules)
        frontier.add([rules.start_url], depth=0, is_listed=True)
        listed, problems = read_sitemaps(client, rules, lambda: lease.wait(pause))
        frontier.add(listed, depth=1, is_listed=True)
        for problem in problems:
            job.add_note(problem)
        with _renderer(job, client, rules) as renderer:
            pool = pool_at(pause, pool)
            reader = PageReader(job, rules, frontier, client, lease, pool, renderer, rules.start_page)
            is_silent = _read_pages(_site_pages(job, frontier), reader, pause, watch)
    if is_silent:
        job.add_note(STOPPED_ANSWERING)
    elif job.pages.filter(state=State.FOUND).exists():
        job.add_note(f"The limit of {job.max_pages:,} pages was reached: pages that were found are left unread.")


def read_listed(job: Import, lease: Lease, pool: PagePool, watch: Watch) -> None:
    """Read the single pages that the import names, and follow no link."""
    with WebClient(sleep=lease.wait) as client:
        rules = _rules_or_what_was_read(job, lambda: read_list_rules(client, job.addresses, lease.check))
        if rules is None:
            return
        job.note_progress(start_url=rules.start_url)
        frontier = Frontier(job, rules)
        for problem in rules.problems:
            job.add_note(problem)
        frontier.add(rules.addresses, depth=0, is_listed=True)
        with _renderer(job, client, rules) as renderer:
            pause = pause_seconds(job, rules)
            reader = PageReader(job, rules, frontier, client, lease, pool_at(pause, pool), renderer)
            if _read_pages(_pages_twice(frontier), reader, pause, watch):
                job.add_note("The site stopped answering: some pages are left unread. Import them again later.")


def _rules_or_what_was_read(job: Import, read_rules: Callable[[], Rules]) -> Rules | None:
    """Return the rules, or None where they cannot be had and the import has pages already: it goes on with these.

    Errors: SiteUnreachable.
    """
    try:
        return read_rules()
    except SiteUnreachable as error:
        if not job.pages.filter(state=State.READ).exists():
            raise
        job.add_note(STOPPED_ANSWERING if error.is_retryable else f"{error.message} Found pages are left unread.")
        return None


def copy_stored(job: Import, lease: Lease, watch: Watch) -> None:
    """Copy the newest stored text of each page into the import, so that it is split anew and nothing is fetched."""
    newest = stored_pages(job.model).filter(job__lt=job.pk).values("url").annotate(newest=Max("pk"))
    waiting = sorted(newest.exclude(url__in=job.pages.values("url")).values_list("newest", flat=True))
    total = job.pages.count() + len(waiting)
    for start in range(0, len(waiting), BATCH):
        with tenant_atomic():
            lease.check()
            originals = Page.objects.filter(pk__in=waiting[start : start + BATCH]).order_by("pk")
            Page.objects.bulk_create([_copy(original, job) for original in originals], ignore_conflicts=True)
        job.note_progress(message="Taking the stored pages", done_count=job.pages.count(), total_count=total)
        watch(job)


def stored_pages(model: MLModel) -> QuerySet[Page]:
    """Return the pages of the model's imports whose text is stored."""
    return Page.objects.filter(job__model=model, state=State.DONE).exclude(markdown="")


def _copy(original: Page, job: Import) -> Page:
    names = ("url", "depth", "kind", "etag", "last_modified", "source", "title", "word_count", "markdown", "landmarks")
    copied = {name: getattr(original, name) for name in (*names, "content_hash", "plan")}
    report = {name: original.report[name] for name in KEPT_OF_REPORTS if name in original.report}
    return Page(job=job, final_url=original.url, state=State.READ, report=report, **copied)


def known_uris(job: Import) -> QuerySet:
    """Return the addresses of all pages that the model has snippets of."""
    crawled = job.model.snippets.filter(source=TrainingSnippet.Source.CRAWL)
    return crawled.order_by("uri").values_list("uri", flat=True).distinct()


def pause_seconds(job: Import, rules: SiteRules | ListRules) -> float:
    """Return how long to wait between two pages; a site on this very machine needs no such care."""
    host = urlsplit(rules.start_url).hostname
    if host == "localhost" or is_loopback_address(host):
        return 0.0
    return max(job.delay_seconds, min(rules.crawl_delay_seconds, MAX_CRAWL_DELAY_SECONDS))


def pool_at(pause: float, pool: PagePool) -> PagePool:
    """Return the pool to read pages with: none where the pauses between them are longer than reading one takes."""
    return PagePool(size=0) if pause else pool


def _site_pages(job: Import, frontier: Frontier) -> Iterator[Page | None]:
    """Yield the pages to read; when no link leads on, those whose snippets an earlier import made: are they gone?"""
    yield from frontier
    frontier.add_known(known_uris(job))
    yield from _pages_twice(frontier)


def _pages_twice(frontier: Frontier) -> Iterator[Page | None]:
    """Yield the pages to read, and at the end once more those that may answer now, and what these lead to."""
    yield from frontier
    yield from frontier.second_tries()
    yield from frontier


def _read_pages(pages: Iterator[Page | None], reader: PageReader, pause: float, watch: Watch) -> bool:
    """Read the pages at the site's pace; returns whether the site stopped answering."""
    job, silences = reader.job, 0
    in_hand: deque[PageInHand] = deque()
    job.note_progress(**reader.frontier.progress)
    for page in pages:
        reader.lease.wait(pause)
        if page:
            if job.is_progress_due:
                job.note_progress(message=f"Reading {page.url}", **reader.frontier.progress)
            reader.pool.expect(reader.frontier.known_count)
            in_hand.append(reader.fetch(page))
            if len(in_hand) < reader.pool.room + reader.pool.at_once:
                continue
        together = [in_hand.popleft() for _ in range(min(len(in_hand), reader.pool.at_once))]
        for reason in reader.finish(together):
            silences = silences + 1 if reason in NETWORK_REASONS else 0
            if silences == MAX_SILENCES:
                break
        watch(job)
        if silences == MAX_SILENCES:
            break
    job.note_progress(**reader.frontier.progress)
    return silences == MAX_SILENCES


def _renderer(job: Import, client: WebClient, rules: SiteRules | ListRules):
    """Return the context of what draws pages with their scripts; of nothing where the import does not want it."""
    if not job.renders_scripts:
        return nullcontext()
    from crawler.web.render import Renderer

    return Renderer(client, rules.is_allowed)
