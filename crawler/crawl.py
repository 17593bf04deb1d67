"""The crawl journey: a website becomes a model's snippets.

First the site is read, then snippets are made, so that what repeats across pages is known and a re-split needs no
re-fetch. All that is known stands in the rows of the import and its pages, so that a worker can take up a killed one's
import where it was. The old snippets answer until a page's new ones stand.
"""

from collections.abc import Callable, Iterator
from urllib.parse import urljoin, urlsplit

from django.conf import settings
from django.db.models import QuerySet

from crawler.fetch import NETWORK_REASONS, WebClient
from crawler.frontier import NOT_ASKED, READ_STATES, Frontier
from crawler.models import Import, Page
from crawler.page_snippets import SnippetMaker, pages_to_split
from crawler.pages import PageReader
from crawler.site import SiteRules, SiteUnreachable, read_site_rules, start_candidates
from crawler.sitemap import read_sitemaps
from models_app.embedder import EmbeddingError
from models_app.jobs import JobFailed, Lease
from models_app.models import MLModel, TrainingSnippet
from models_app.snippets import SnippetQuotaReached, retire_pages, vector_counts
from models_app.vectors import vectorise_missing
from tenants.addresses import crawler_policy
from tenants.public_addresses import is_loopback_address
from tenants.store import tenant_atomic

Phase, State = Import.Phase, Page.State

MAX_CRAWL_DELAY_SECONDS = 10.0
# A site that has not answered so often in a row is not asked again: what was read until then is imported.
MAX_SILENCES = 10
# Fewer pages than this may well have become one; a site of more that shows but one text is under maintenance.
MIN_KNOWN_PAGES = 3

Watch = Callable[[Import], None]


class ImportRunning(Exception):
    """The model has an import already that waits or runs."""

    def __init__(self, job: Import):
        super().__init__("An import of this model is running already. Wait until it ends, or stop it.")
        self.job = job


def start_import(model: MLModel, address: str, **options) -> Import:
    """Return a new import, and wake a worker for it once it is committed.

    Options are fields of Import: max_pages, delay_seconds, import_images, insert_source_url. An interrupted import
    gives way to the new one. Errors: ImportRunning; SiteUnreachable for what is no address, or a private one.
    """
    with tenant_atomic():
        job = new_import(model, address, **options)
        job.wake_worker()
        return job


def new_import(model: MLModel, address: str, **options) -> Import:
    """Return a new import as start_import does, for a caller who does the work themselves."""
    start_candidates(address, crawler_policy())
    fields = {
        "max_pages": settings.SITEWISE_CRAWL_MAX_PAGES,
        "delay_seconds": settings.SITEWISE_CRAWL_DELAY_SECONDS,
        "import_images": model.import_images,
        "insert_source_url": model.insert_source_url,
    }
    with tenant_atomic():
        other = Import.objects.filter(model=model, state__in=Import.OPEN_STATES).first()
        if other and not (other.is_interrupted and other.end_if_abandoned("A newer import took its place.")):
            raise ImportRunning(other)
        return Import.objects.create(model=model, address=address.strip(), **{**fields, **options})


def import_site(job: Import, lease: Lease, watch: Watch = lambda job: None) -> str:
    """Read the site, then turn its changed pages into snippets; returns the message of success.

    `watch` gets the import after each step. Errors: JobFailed, and what `lease.check` raises.
    """
    try:
        if job.phase == Phase.READING:
            read_site(job, lease, watch)
            refuse_emptied_site(job)
            _enter(job, Phase.SPLITTING)
        if job.phase == Phase.SPLITTING:
            make_snippets(job, lease, watch)
            retire_gone_pages(job, lease)
            _enter(job, Phase.EMBEDDING)
        if job.model.needs_vectors:
            make_vectors(job, lease, watch)
    except SiteUnreachable as error:
        raise JobFailed(error.message) from error
    except SnippetQuotaReached as error:
        raise JobFailed(f"{error} The pages imported until then stand.") from error
    return _summary(job)


def read_site(job: Import, lease: Lease, watch: Watch) -> None:
    """Read every page of the site once: those that sitemaps list, that links lead to, that are known from before."""
    with WebClient(sleep=lease.wait) as client:
        rules = read_site_rules(client, job.address)
        job.note_progress(start_url=rules.start_url, scope=urljoin(rules.start_url, rules.path_prefix))
        pause = pause_seconds(job, rules)
        frontier = Frontier(job, rules)
        reader = PageReader(job, rules, frontier, client, lease)
        frontier.add([rules.start_url], depth=0, is_listed=True)
        listed, problems = read_sitemaps(client, rules, lambda: lease.wait(pause))
        frontier.add(listed, depth=1, is_listed=True)
        for problem in problems:
            job.add_note(problem)
        silences = 0
        for page in _all_pages(job, frontier):
            lease.wait(pause)
            job.note_progress(message=f"Reading {page.url}")
            silences = silences + 1 if reader.read(page) in NETWORK_REASONS else 0
            job.note_progress(**frontier.progress)
            watch(job)
            if silences == MAX_SILENCES:
                job.add_note(
                    "The site stopped answering: pages that were found are left unread. Import it again later."
                )
                break
    if job.pages.filter(state=State.FOUND).exists() and silences < MAX_SILENCES:
        job.add_note(f"The limit of {job.max_pages:,} pages was reached: pages that were found are left unread.")


def _all_pages(job: Import, frontier: Frontier) -> Iterator[Page]:
    """Yield the pages to read; when no link leads on, those whose snippets an earlier import made: are they gone?"""
    yield from frontier
    frontier.add_known(_known_uris(job))
    yield from frontier


def _known_uris(job: Import) -> QuerySet:
    """Return the addresses of all pages that the model has snippets of."""
    crawled = job.model.snippets.filter(source=TrainingSnippet.Source.CRAWL)
    return crawled.order_by("uri").values_list("uri", flat=True).distinct()


def pause_seconds(job: Import, rules: SiteRules) -> float:
    """Return how long to wait between two pages; a site on this very machine needs no such care."""
    host = urlsplit(rules.start_url).hostname
    if host == "localhost" or is_loopback_address(host):
        return 0.0
    return max(job.delay_seconds, min(rules.crawl_delay_seconds, MAX_CRAWL_DELAY_SECONDS))


def refuse_emptied_site(job: Import) -> None:
    """Raise JobFailed where nothing was read, or where a site known to have many pages now shows one for all."""
    read = job.pages.filter(state__in=(State.READ, State.DONE))
    if not read.exists():
        raise JobFailed(_why_nothing(job))
    known = job.pages.filter(url__in=_known_uris(job))
    if read.count() > 1 or known.count() < MIN_KNOWN_PAGES or known.exclude(state__in=READ_STATES).exists():
        return
    raise JobFailed(
        f"Every page of the site now leads to “{read.get().title}”. It may be under maintenance: nothing was changed. "
        "If the site has but one page now, delete the old snippets and import it again."
    )


def _why_nothing(job: Import) -> str:
    page = job.pages.filter(state=State.FAILED).first() or job.pages.first()
    reason = page and (page.report.get("message") or page.reason)
    return f"No page could be read: {(reason or 'there was none').rstrip('.')}."


def make_snippets(job: Import, lease: Lease, watch: Watch) -> None:
    """Turn the pages that were read into snippets, and what the site repeats around them into its own."""
    job.note_progress(message="Comparing the pages")
    maker = SnippetMaker.prepare(job, lease)
    total = job.pages.filter(state__in=(State.READ, State.DONE)).count()
    for page in pages_to_split(job):
        lease.check()
        job.note_progress(message=f"Making snippets of {page.url}")
        try:
            maker.make(page)
        except EmbeddingError as error:
            page.note_failure("no vectors", str(error))
            raise JobFailed(f"{error} {page.url} and the changed pages after it keep their old snippets.") from error
        job.note_progress(done_count=job.pages.filter(state=State.DONE).count(), total_count=total)
        watch(job)


def retire_gone_pages(job: Import, lease: Lease) -> None:
    """Delete the snippets of the pages that this import has found gone, moved or closed to crawlers.

    A page that merely failed keeps its old ones, and so does one that this import did not come to.
    """
    met = job.pages.filter(url__in=_known_uris(job))
    stored = job.pages.filter(state=State.DONE).values("url")
    gone = (
        met.filter(state=State.SAME, final_url__in=stored)
        | met.filter(state=State.SKIPPED).exclude(reason__in=NOT_ASKED)
        | met.filter(state=State.FAILED, report__is_gone=True)
    )
    uris = list(gone.values_list("url", flat=True))
    lease.check()
    if retire_pages(job.model, uris):
        job.add_note(f"Pages that are not on the site any more: {len(uris):,}. Their snippets were removed.")


def make_vectors(job: Import, lease: Lease, watch: Watch) -> None:
    """Make the embeddings that are missing; raises JobFailed when the service is away."""

    def note(done: int, total: int) -> None:
        job.note_progress(done_count=done, total_count=total, message="Making vectors")
        watch(job)

    try:
        vectorise_missing(job.model, lease.check, note)
    except EmbeddingError as error:
        raise JobFailed(
            f"The pages are imported and found by their words. Their vectors are still missing: {error} "
            "Press Vectorise to make them."
        ) from error


def _enter(job: Import, phase: Import.Phase) -> None:
    job.note_progress(phase=phase, done_count=0, total_count=0)


def _summary(job: Import) -> str:
    counts = job.pages_by_state()
    with_vector, snippets = vector_counts(job.model)
    parts = [
        f"{counts[state]:,} {words}"
        for state, words in (
            (State.SAME, "led to another page"),
            (State.SKIPPED, "skipped"),
            (State.FAILED, "failed"),
            (State.FOUND, "left unread"),
        )
        if counts.get(state)
    ]
    pages = ", ".join([f"{_counted(counts.get(State.DONE, 0), 'page')} imported", *parts])
    vectors = f", {with_vector:,} with a vector" if job.model.needs_vectors else ""
    return f"{pages}. The model has {_counted(snippets, 'snippet')}{vectors}."


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
