"""The crawl journey: a website, some of its pages, files or stored pages become a model's snippets.

First all is read, then snippets are made, so that what repeats across pages is known and a re-split needs no re-fetch.
All that is known stands in the rows of the import and its pages, so that a worker can take up a killed one's import
where it was. The old snippets answer until a page's new ones stand.
"""

from collections import deque
from collections.abc import Callable, Iterator

from django.conf import settings

from crawler.models import Import, Page
from crawler.outcome import note_outcome, prune, summary
from crawler.page_pool import PagePool
from crawler.page_snippets import SnippetMaker, SplitInHand, pages_to_split
from crawler.retire import move_pages, refuse_emptied, retire_gone_pages
from crawler.same_site import imports_of_site, options_of_site
from crawler.sources import Watch, copy_stored, read_listed, read_site, stored_pages
from crawler.upload import pages_of_upload
from crawler.web.site import SiteUnreachable, start_candidates
from models_app.embedder import EmbeddingError
from models_app.jobs import JobFailed, Lease
from models_app.memory import rare_garbage_searches
from models_app.models import MLModel
from models_app.snippets import SnippetQuotaReached
from models_app.vectors import vectorise_missing
from tenants.addresses import crawler_policy
from tenants.store import tenant_atomic

Phase, State, Kind = Import.Phase, Page.State, Import.Kind


class ImportRunning(Exception):
    """The model has an import already that waits, runs or is paused."""

    def __init__(self, job: Import):
        is_paused = job.state == Import.State.PAUSED
        super().__init__(
            "An import of this model is paused. Resume it, or stop it."
            if is_paused
            else "An import of this model is running already. Wait until it ends, or stop it."
        )
        self.job = job


class NothingToImport(Exception):
    """There is nothing that the import could work on; the message says why, for a person."""


class NothingStored(NothingToImport):
    """The model has no page whose text is stored."""

    def __init__(self):
        super().__init__("No page of this model is stored. Import its website first.")


def start_import(model: MLModel, address: str = "", **options) -> Import:
    """Return a new import, and wake a worker for it once it is committed.

    Options are fields of Import, `kind` and `addresses` among them. An import that was interrupted, or that no worker
    takes, gives way to the new one.
    Errors: ImportRunning; SiteUnreachable for what is no address, or a private one.
    """
    with tenant_atomic():
        job = new_import(model, address, **options)
        job.wake_worker()
        return job


def start_split(model: MLModel) -> Import:
    """Return a new import that splits the model's stored pages anew and fetches nothing, as start_import does.

    Errors: ImportRunning, NothingStored.
    """
    return start_import(model, **split_options(model))


def split_options(model: MLModel) -> dict:
    """Return the options of an import that splits the model's stored pages anew. Errors: NothingStored."""
    if not stored_pages(model).exists():
        raise NothingStored
    # Where its own website was never read, the site whose pages are stored.
    read = [*imports_of_site(model), *model.imports.filter(kind=Kind.SITE)]
    site = next((job for job in read if job.start_url), None)
    kept = {"start_url": site.start_url, "scope": site.scope} if site else {}
    return {**options_of_site(model), **kept, "kind": Kind.STORED}


def retry_failed(job: Import) -> Import:
    """Return a new import of the pages that failed in the job, with its options, as start_import does.

    Errors: ImportRunning, NothingToImport.
    """
    failed = job.pages.filter(state=State.FAILED, url__startswith="http").values_list("url", flat=True)
    if not failed:
        raise NothingToImport("No page of this import has failed that could be read again.")
    return start_import(job.model, kind=Kind.PAGES, addresses=list(failed), **job.options)


def new_import(model: MLModel, address: str = "", **options) -> Import:
    """Return a new import as start_import does, for a caller who does the work themselves."""
    fields = {
        "max_pages": settings.SITEWISE_CRAWL_MAX_PAGES,
        "delay_seconds": settings.SITEWISE_CRAWL_DELAY_SECONDS,
        "import_images": model.import_images,
        "insert_source_url": model.insert_source_url,
        **options,
    }
    match options.get("kind", Kind.SITE):
        case Kind.SITE:
            start_candidates(address, crawler_policy())
        case Kind.PAGES:
            address = _name_of_list(fields["addresses"])
            fields["max_pages"] = len(fields["addresses"])
    with tenant_atomic():
        other = Import.objects.filter(model=model, state__in=Import.OPEN_STATES).first()
        is_given_up = other and (other.is_interrupted or other.is_left_waiting)
        if other and not (is_given_up and other.end_if_abandoned("A newer import took its place.")):
            raise ImportRunning(other)
        return Import.objects.create(model=model, address=address.strip(), **fields)


def _name_of_list(addresses: list[str]) -> str:
    """Return what a list of pages is called. Errors: SiteUnreachable where none of them can be asked for."""
    refusal = SiteUnreachable("bad address", "The list names no address.")
    for address in addresses:
        try:
            start_candidates(address, crawler_policy())
            return address if len(addresses) == 1 else f"{address} and {len(addresses) - 1:,} more"
        except SiteUnreachable as error:
            refusal = error
    raise refusal


def import_site(
    job: Import, lease: Lease, watch: Watch = lambda job: None, new_pool: Callable[[], PagePool] = PagePool
) -> str:
    """Read the pages, then turn the changed ones into snippets; returns the message of success.

    `watch` gets the import after each step. Errors: JobFailed, and what `lease.check` raises.
    """
    try:
        with new_pool() as pool, rare_garbage_searches():
            if job.phase == Phase.READING:
                read_pages(job, lease, pool, watch)
                refuse_emptied(job)
                move_pages(job, lease)
                _enter(job, Phase.SPLITTING)
            if job.phase == Phase.SPLITTING:
                make_snippets(job, lease, pool, watch)
        if job.phase == Phase.SPLITTING:
            retire_gone_pages(job, lease)
            note_outcome(job, lease)
            _enter(job, Phase.EMBEDDING)
        if job.model.needs_vectors:
            make_vectors(job, lease, watch)
        prune(job, lease)
    except SiteUnreachable as error:
        raise JobFailed(error.message) from error
    except SnippetQuotaReached as error:
        raise JobFailed(f"{error} The {job.unit}s imported until then stand.") from error
    return summary(job)


def read_pages(job: Import, lease: Lease, pool: PagePool, watch: Watch) -> None:
    """Leave a row of each page of the import, with its text or why it was not had."""
    match job.kind:
        case Kind.SITE:
            read_site(job, lease, pool, watch)
        case Kind.PAGES:
            read_listed(job, lease, pool, watch)
        case Kind.STORED:
            copy_stored(job, lease, watch)
        case Kind.FILES:
            pages_of_upload(job, lease, watch)


def make_snippets(job: Import, lease: Lease, pool: PagePool, watch: Watch) -> None:
    """Turn the pages that were read into snippets, and what the site repeats around them into its own."""
    job.note_progress(message="Comparing the pages")
    maker = SnippetMaker.prepare(job, lease, pool)
    done = job.pages.filter(state=State.DONE).count()
    total = done + job.pages.filter(state=State.READ).count()
    for together in _split_ahead(pages_to_split(job), maker, pool):
        lease.check()
        page = together[0].page
        if job.is_progress_due:
            job.note_progress(message=f"Making snippets of {page.url}", done_count=done, total_count=total)
        try:
            maker.finish(together)
        except EmbeddingError as error:
            page.note_failure("no vectors", str(error))
            raise JobFailed(f"{error} {page.url} and the changed pages after it keep their old snippets.") from error
        done += len(together)
        job.done_count, job.total_count = done, total
        watch(job)
    job.note_progress(done_count=done, total_count=total)


def _split_ahead(pages: Iterator[Page], maker: SnippetMaker, pool: PagePool) -> Iterator[list[SplitInHand]]:
    """Yield the pages in their order, some together, while the next ones are being split."""
    in_hand: deque[SplitInHand] = deque()
    for page in pages:
        in_hand.append(maker.split(page, pool))
        # What the LLM made of one page may decide whether it is asked about the next.
        while len(in_hand) >= (1 if maker.llm.splitter else pool.room + pool.at_once):
            yield _together(in_hand, maker, pool.at_once)
    while in_hand:
        yield _together(in_hand, maker, pool.at_once)


def _together(in_hand: deque[SplitInHand], maker: SnippetMaker, at_once: int) -> list[SplitInHand]:
    """Take the first page, and the next ones too where these and it are new."""
    pages = [in_hand.popleft()]
    while in_hand and len(pages) < at_once and maker.is_new(pages[0]) and maker.is_new(in_hand[0]):
        pages.append(in_hand.popleft())
    return pages


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
