"""What becomes of the snippets of pages that an import no longer finds where they were.

They go where the site says that the page is gone, move where it says that the page has moved for good, and go where the
owner leaves the page out. All else may pass, a failure, a detour, an answer of another kind: then the old ones stand.
"""

from collections import Counter

from django.db.models import Q, QuerySet

from crawler.frontier import NOT_ASKED, WRITTEN_OTHERWISE
from crawler.models import Import, Page
from crawler.pages import OTHER_KIND, READABLE_KINDS, REDIRECTS, SAME_TEXT
from crawler.sources import known_uris
from crawler.web.path_patterns import EXCLUDED
from crawler.web.site import DISALLOWED, OUT_OF_SCOPE
from models_app.jobs import JobFailed, Lease
from models_app.models import TrainingSnippet
from models_app.snippets import move_page, retire_pages
from tenants.store import tenant_atomic

State, Kind = Page.State, Import.Kind

# Fewer pages than this may well have become one; where more of them show but one text, it is a sign that hangs there.
MIN_SHOWN_AS_ONE = 3
TEXTS = ("markdown", "landmarks", "source", "plan")
NO_TEXT_STORED = {"markdown": "", "landmarks": [], "source": b"", "split_hash": ""}

# A page of these says where its text is now; a redirect does so only if it is meant for good.
HAS_MOVED = Q(state=State.SAME) & (
    Q(reason__in=(SAME_TEXT, WRITTEN_OTHERWISE)) | Q(reason=REDIRECTS, report__is_for_good=True)
)
IS_DETOUR = Q(state=State.SAME, reason=REDIRECTS, report__is_for_good=False) | Q(
    state=State.SKIPPED, report__leads_to__isnull=False, report__is_for_good=False
)
IS_DOCUMENT = Q(state=State.SKIPPED, reason__in=[f"{OTHER_KIND}{kind}" for kind in READABLE_KINDS])
# Why snippets stand whose page was not read, and the note of it.
KEPT = (
    (IS_DETOUR, "Leads elsewhere for now", "Pages that lead elsewhere for now"),
    (
        IS_DOCUMENT,
        "A document, and “Documents” is not ticked",
        "Documents that were not read, as “Documents” is not ticked",
    ),
    (
        Q(state=State.SKIPPED, reason=DISALLOWED),
        "The site’s robots.txt keeps crawlers from this page now",
        "Pages that robots.txt closes to crawlers now",
    ),
    (
        Q(state=State.SKIPPED) & ~Q(reason__in=NOT_ASKED),
        "What came this time is no page",
        "Addresses at which there was no page this time",
    ),
)


def refuse_emptied(job: Import) -> None:
    """Raise JobFailed where nothing was read, or where most known pages of a site now show one and the same."""
    if job.kind in (Kind.FILES, Kind.STORED):
        return
    if not job.pages.filter(state__in=(State.READ, State.DONE)).exists():
        if job.kind == Kind.PAGES and job.pages.filter(report__is_gone=True).exists():
            return
        raise JobFailed(_why_nothing(job))
    if job.kind == Kind.SITE:
        _refuse_one_for_all(job)


def _refuse_one_for_all(job: Import) -> None:
    _follow_to_the_end(job)
    known = job.pages.filter(url__in=known_uris(job)).exclude(state=State.FOUND).exclude(reason__in=NOT_ASKED)
    leads = Counter(known.filter(state=State.SAME).values_list("final_url", flat=True))
    leads.update(known.filter(reason=OUT_OF_SCOPE).values_list("report__leads_to", flat=True))
    for target, count in leads.most_common(1):
        shown, total = count + known.filter(url=target).count(), known.count()
        if shown < MIN_SHOWN_AS_ONE or shown <= total / 2:
            return
        title = job.pages.filter(url=target).values_list("title", flat=True).first() or target
        which = "Every page of the site leads" if shown == total else f"{shown:,} of {total:,} known pages lead"
        raise JobFailed(
            f"{which} to “{title}” now. The site may be under maintenance: nothing was changed. "
            "If it is so from now on, delete the old snippets and import it again."
        )


def _why_nothing(job: Import) -> str:
    page = job.pages.filter(state=State.FAILED).first() or job.pages.first()
    reason = page and (page.report.get("message") or page.reason)
    return f"No page could be read: {(reason or 'there was none').rstrip('.')}."


def move_pages(job: Import, lease: Lease) -> None:
    """Give the snippets of moved pages to the new addresses, where these have none: edits and vectors stay."""
    if job.kind in (Kind.FILES, Kind.STORED):
        return
    read = job.pages.filter(state=State.READ).values("url")
    for page in job.pages.filter(HAS_MOVED, url__in=known_uris(job), final_url__in=read).defer(*TEXTS):
        with tenant_atomic():
            lease.check()
            if move_page(job.model, page.url, page.final_url):
                _forget_text(page)
                page.report["message"] = f"Its text is at {page.final_url} now, and so are its snippets."
                page.save(update_fields=["report"])


def _follow_to_the_end(job: Import) -> None:
    """Let addresses that are written otherwise today lead to where their redirects end."""
    for page in job.pages.filter(state=State.SAME, reason=WRITTEN_OTHERWISE).defer(*TEXTS):
        if then := job.pages.filter(HAS_MOVED, url=page.final_url).exclude(reason=WRITTEN_OTHERWISE).first():
            Page.objects.filter(pk=page.pk).update(final_url=then.final_url)


def retire_gone_pages(job: Import, lease: Lease) -> None:
    """Delete the snippets of pages that are gone, have moved or are excluded, and say of the others why they stand."""
    for pages, why in gone_pages(job):
        _retire(job, lease, pages.filter(url__in=_standing_uris(job)), f"Pages that {why}")
    if job.kind in (Kind.SITE, Kind.PAGES):
        _note_kept(job, lease)


def gone_pages(job: Import) -> list[tuple[QuerySet[Page], str]]:
    """Return the pages that this import has found gone, moved or excluded, and each time why, for a person.

    An import of single pages finds but those that the site says are gone.
    """
    gone = [(job.pages.filter(state=State.FAILED, report__is_gone=True), "are not on the site any more")]
    if job.kind == Kind.SITE:
        stored = job.pages.filter(state__in=(State.READ, State.DONE)).values("url")
        moved = job.pages.filter(HAS_MOVED, final_url__in=stored)
        is_own = Q(report__leads_to__isnull=True) | Q(report__is_for_good=True)
        gone += [
            (moved.exclude(reason=SAME_TEXT), "have moved to another page of the site"),
            (moved.filter(reason=SAME_TEXT), "say what another page of the site says"),
            (
                job.pages.filter(reason=OUT_OF_SCOPE, report__is_for_good=True),
                "have moved out of what is imported",
            ),
            (job.pages.filter(is_own, state=State.SKIPPED, reason=EXCLUDED), "your patterns exclude"),
        ]
    return gone


def _standing_uris(job: Import) -> QuerySet:
    """Return the addresses that the model has snippets of, but for edited ones whose page is known to be gone."""
    return known_uris(job).exclude(conflict=TrainingSnippet.Conflict.GONE)


def _retire(job: Import, lease: Lease, pages: QuerySet, which: str) -> None:
    count = 0
    for page in pages.defer(*TEXTS):
        with tenant_atomic():
            lease.check()
            removed = retire_pages(job.model, [page.url])
            page.report["snippets"] = {"removed": removed}
            page.change = Page.Change.GONE
            page.save(update_fields=["report", "change"])
            _forget_text(page)
        count += bool(removed)
    if count:
        job.add_note(f"{which}: {count:,}. Their snippets were removed.")


def _forget_text(page: Page) -> None:
    """Drop what earlier imports stored of the page: a later split must not bring it back; the site itself may."""
    Page.objects.filter(job__model=page.job.model_id, url=page.url).update(**NO_TEXT_STORED)


def _note_kept(job: Import, lease: Lease) -> None:
    """Say why pages that were not read keep their snippets: in their reports, and in the import's notes."""
    standing, told = _standing_uris(job), set()
    for is_meant, why, which in KEPT:
        pages = list(job.pages.filter(is_meant, url__in=standing).exclude(pk__in=told).defer(*TEXTS))
        told.update(page.pk for page in pages)
        for page in pages:
            page.report["message"] = f"{why}; its old snippets stand."
            page.snippet_count = job.model.snippets.filter(uri=page.url, source=page.snippet_source).count()
            with tenant_atomic():
                lease.check()
                page.save(update_fields=["report", "snippet_count"])
        if pages:
            job.add_note(f"{which}: {len(pages):,}. Their old snippets stand.")
