"""What an import has come to: its pages against what the model knew, what the LLM was asked, and the words for it.

All of it is counted from the pages' rows, so that a taken-up import tells the same as an undisturbed one.
"""

from collections import Counter
from collections.abc import Iterator

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from crawler.models import Import, Page
from crawler.page_snippets import UNCHANGED
from crawler.same_site import imports_of_site
from models_app.jobs import Lease
from models_app.snippets import vector_counts
from models_app.vectors import PAGE_SOURCES
from tenants.store import tenant_atomic

State, Change = Page.State, Page.Change

BATCH = 500
# Ended imports whose pages are kept for a model: enough to see what changed over months.
KEPT_IMPORTS = 20
# A page's text, which a later split starts from; of a file of rows its plan, which tells what the next one replaces.
HOLDS_TEXT = Q(markdown__gt="") | Q(report__selected_by="rows")
SNIPPET_COUNTS = ("added", "changed", "kept", "removed", "conflicts")
USAGE_COUNTS = ("calls", "input_tokens", "output_tokens")


def note_outcome(job: Import, lease: Lease) -> None:
    """Compare the import's pages with what the model knew, and note in the import what changed and what was spent."""
    spent, saved = Counter(), Counter()
    snippets = Counter(_counts(job.changes, "site_snippets", SNIPPET_COUNTS))
    for pages in _batches(job):
        with tenant_atomic():
            lease.check()
            _compare(job, pages)
        for page in pages:
            spent.update(_counts(page.report, "llm", USAGE_COUNTS))
            saved.update(_counts(page.report, "llm_saved", USAGE_COUNTS))
            snippets.update(_counts(page.report, "snippets", SNIPPET_COUNTS))
    job.note_progress(
        changes={
            **job.changes,
            "pages": _page_counts(job),
            "snippets": {name: snippets[name] for name in SNIPPET_COUNTS},
        },
        usage={name: spent[name] for name in USAGE_COUNTS} | {f"saved_{name}": saved[name] for name in USAGE_COUNTS},
    )


def summary(job: Import) -> str:
    """Return the sentences that tell a person how the import ended."""
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
    rows, imported = row_count(job), f"{_counted(counts.get(State.DONE, 0), job.unit)} imported"
    pages = ", ".join([f"{imported} with {_counted(rows, 'row')}" if rows else imported, *parts])
    vectors = f", {with_vector:,} with a vector" if job.model.needs_vectors else ""
    told = [pages, *_told_changes(job), *_told_usage(job), f"The model has {_counted(snippets, 'snippet')}{vectors}"]
    return "".join(f"{sentence}. " for sentence in told).rstrip()


def row_count(job: Import) -> int:
    """Return how many rows of the import's files have become snippets as they are."""
    if job.kind != Import.Kind.FILES:
        return 0
    return job.pages.filter(report__selected_by="rows").aggregate(rows=Sum("snippet_count"))["rows"] or 0


def prune(job: Import, lease: Lease) -> None:
    """Delete the oldest imports of the model, and texts that a newer import has of the same page.

    Of each address the newest row that holds its text stays, however old, and with it its import: a page that was
    imported alone, a file and the pages of another website are in no newer one.
    """
    ended = job.model.imports.exclude(state__in=Import.OPEN_STATES)
    newest_site = ended.filter(kind=Import.Kind.SITE).values_list("pk", flat=True).first()
    needed = {newest_site, *(each.pk for each in imports_of_site(job.model)[:1])}
    for pk in ended.values_list("pk", flat=True)[KEPT_IMPORTS:]:
        if pk in needed:
            continue
        while pages := list(_outdated(job, pk)[:BATCH]):
            with tenant_atomic():
                lease.check()
                Page.objects.filter(pk__in=pages).delete()
        Import.objects.filter(pk=pk, pages=None).delete()
    # What an import that was stopped has read, and this one has read anew.
    stale = Page.objects.filter(job__model=job.model_id, job__lt=job.pk, state=State.READ)
    with tenant_atomic():
        lease.check()
        done = job.pages.filter(state=State.DONE).values("url")
        stale.exclude(markdown="").filter(url__in=done).update(markdown="", landmarks=[], source=b"")


def _outdated(job: Import, pk: int) -> QuerySet:
    """Return the keys of those rows of an old import that hold nothing, or what a newer one holds of their address."""
    holding = Page.objects.filter(HOLDS_TEXT, job__model=job.model_id, state=State.DONE)
    newest = holding.filter(job=pk).exclude(Exists(holding.filter(url=OuterRef("url"), job__gt=pk)))
    return Page.objects.filter(job=pk).exclude(pk__in=newest.values("pk")).values_list("pk", flat=True)


def _batches(job: Import) -> Iterator[list[Page]]:
    """Yield the pages of the import that are done or gone, some hundred at a time and without their texts."""
    last = 0
    rows = job.pages.filter(state__in=(State.DONE, State.FAILED, State.SAME, State.SKIPPED))
    rows = rows.only("url", "state", "change", "content_hash", "report", "job_id").order_by("pk")
    while pages := list(rows.filter(pk__gt=last)[:BATCH]):
        yield pages
        last = pages[-1].pk


def _compare(job: Import, pages: list[Page]) -> None:
    """Say of each page whether it is new, changed or the same; of one left as it was, what its splitting has spared."""
    done = {page.url: page for page in pages if page.state == State.DONE}
    earlier = _earlier_pages(job, list(done))
    known = set(
        job.model.snippets.filter(
            uri__in=list(done), source__in=PAGE_SOURCES, created_at__lt=job.created_at
        ).values_list("uri", flat=True)
    )
    for url, page in done.items():
        before = earlier.get(url)
        if before is None:
            page.change = Change.CHANGED if url in known else Change.NEW
            continue
        page.change = Change.SAME if before["content_hash"] == page.content_hash else Change.CHANGED
        spent = before["report"].get("llm_saved") or before["report"].get("llm")
        if page.report.get("split") == UNCHANGED and spent:
            page.report["llm_saved"] = spent
            page.save(update_fields=["report"])
    for change in (Change.NEW, Change.CHANGED, Change.SAME):
        marked = [page.pk for page in done.values() if page.change == change]
        Page.objects.filter(pk__in=marked).update(change=change)


def _earlier_pages(job: Import, urls: list[str]) -> dict[str, dict]:
    """Return what the newest earlier import of each of these pages made of it."""
    rows = Page.objects.filter(job__model=job.model_id, job__lt=job.pk, url__in=urls, state=State.DONE)
    # Of an address the newest comes last, and stands.
    return {row["url"]: row for row in rows.order_by("job_id").values("url", "content_hash", "report")}


def _counts(report: dict, key: str, names: tuple[str, ...]) -> dict[str, int]:
    counted = report.get(key) or {}
    return {name: counted.get(name) or 0 for name in names}


def _page_counts(job: Import) -> dict[str, int]:
    changes = Counter(job.pages.exclude(change=Change.UNKNOWN).values_list("change", flat=True))
    checked = job.pages.filter(state__in=(State.DONE, State.SAME, State.FAILED)).count()
    return {"checked": checked, **{change.value: changes[change.value] for change in Change if change.value}}


def _told_changes(job: Import) -> list[str]:
    """Return a sentence of what changed, unless all of it is new."""
    pages = job.changes["pages"]
    if not (pages["changed"] or pages["same"] or pages["gone"]):
        return []
    named = (("changed", "changed"), ("new", "new"), ("gone", "gone"), ("same", "as before"))
    told = ", ".join(f"{pages[key]:,} {words}" for key, words in named if pages[key])
    return [f"Of {_counted(pages['checked'], job.unit)} checked: {told}"]


def _told_usage(job: Import) -> list[str]:
    told = []
    for prefix, verb in (("", "spent"), ("saved_", "saved")):
        calls, tokens = (
            job.usage[f"{prefix}calls"],
            job.usage[f"{prefix}input_tokens"] + job.usage[f"{prefix}output_tokens"],
        )
        if calls or tokens:
            told.append(f"{_counted(calls, 'LLM call')} with {_counted(tokens, 'token')} {verb}")
    return [", ".join(told)] if told else []


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
