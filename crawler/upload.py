"""Files as the source of an import: documents become its pages, rows of titles and texts become snippets at once.

What came from a file of the same name before is replaced. The journey after that is the one of all imports.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from hashlib import sha256

from django.db.models import QuerySet
from django.utils import timezone

from crawler.documents.reader import DocumentUnreadable, read_document
from crawler.markup.markdown import plain_words
from crawler.models import TITLE_LENGTH, Import, Page, Upload
from crawler.page_content import hash_of_words
from models_app import snippets
from models_app.dropped import without_dropped, without_dropped_rows
from models_app.exchange import (
    Columns,
    RowsUnreadable,
    guess_columns,
    import_rows,
    is_our_export,
    read_rows,
    snippets_of,
)
from models_app.jobs import JobFailed, Lease
from models_app.models import TrainingSnippet
from models_app.rows import KINDS as ROW_KINDS
from models_app.rows import Rows
from models_app.sections import Section, hash_of, known_hashes, page_texts
from models_app.snippets import BATCH, replace_page_snippets
from tenants.store import tenant_atomic
from tenants.texts import storable

State, Source = Page.State, TrainingSnippet.Source

UNREADABLE = "unreadable"
STALE = timedelta(days=1)
SHOWN_ERRORS = 5
MOST_ALIKE = 50  # rows of one title among which an edited one is looked for

Watch = Callable[[Import], None]
Drafts = dict[str, TrainingSnippet]  # by digest


def pages_of_upload(job: Import, lease: Lease, watch: Watch = lambda job: None) -> None:
    """Leave a page of each of the import's files, read or failed. A file that was read before is not read again.

    Errors: JobFailed where no file could be read; SnippetQuotaReached; what `lease.check` raises.
    """
    total = job.uploads.count()
    for number, pk in enumerate(job.uploads.values_list("pk", flat=True)):
        lease.check()
        upload = Upload.objects.get(pk=pk)
        if job.pages.filter(url=upload.name).exists():
            continue
        job.note_progress(message=f"Reading {upload.name}", done_count=number, total_count=total)
        reader = _import_rows if upload.kind in ROW_KINDS else _read_document
        page = Page(job=job, url=upload.name, final_url=upload.name, kind=upload.kind)
        try:
            reader(page, upload, lease)
        except (DocumentUnreadable, RowsUnreadable) as error:
            _store(page, upload, lease, UNREADABLE, _complaint(upload.name, error))
        watch(job)
    job.note_progress(done_count=total, total_count=total)
    if not job.pages.filter(state__in=(State.READ, State.DONE)).exists():
        raise JobFailed(_why_nothing(job))


def forget_stale_uploads() -> int:
    """Delete the files of previews that nobody has confirmed for a day, and of imports that have ended."""
    ended = Upload.objects.filter(job__isnull=False).exclude(job__state__in=Import.OPEN_STATES).exclude(body=b"")
    ended.update(body=b"")
    return Upload.objects.filter(job=None, created_at__lt=timezone.now() - STALE).delete()[0]


def _read_document(page: Page, upload: Upload, lease: Lease) -> None:
    document = read_document(bytes(upload.body), upload.kind, upload.name)
    page.title, page.markdown = storable(document.title)[:TITLE_LENGTH], storable(document.markdown)
    words = plain_words(page.markdown)
    page.word_count, page.content_hash = len(words.split()), hash_of_words(words)
    page.state = State.READ
    page.report = {"selected_by": "document", "warnings": list(document.warnings)}
    _store(page, upload, lease)


def _import_rows(page: Page, upload: Upload, lease: Lease) -> None:
    body = bytes(upload.body)
    rows = read_rows(body, upload.kind)
    page.title, page.state = page.url, State.DONE
    page.content_hash = sha256(body).hexdigest()
    if is_our_export(rows):
        counts = import_rows(page.job.model, rows, check=lease.check, progress=_progress_of(page))
        changed = Counter(added=counts.added, changed=counts.changed, kept=counts.kept)
        warnings = [*rows.warnings, *counts.errors]
    else:
        changed, left_out = _replace_rows(page, rows, _columns_of(upload, rows), lease)
        warnings = [*rows.warnings, *left_out]
    page.snippet_count = sum(changed[name] for name in ("added", "changed", "kept", "protected"))
    page.report = {"selected_by": "rows", "warnings": warnings, "snippets": dict(changed)}
    _store(page, upload, lease)


def _columns_of(upload: Upload, rows: Rows) -> Columns:
    """Return the columns as chosen, else as their names suggest; raises RowsUnreadable where none has the texts."""
    columns = Columns(**upload.options) if upload.options else guess_columns(rows.columns)
    if columns.completion not in rows.columns:
        raise RowsUnreadable(f"None of its columns was chosen as that of the texts: {', '.join(rows.columns)}.")
    return columns


def _store(page: Page, upload: Upload, lease: Lease, reason: str = "", message: str = "") -> None:
    """Store the page, and empty the file: what was read of it stands in the page or in snippets."""
    with tenant_atomic():
        lease.check()
        if reason:
            page.note_failure(reason, message)
        else:
            page.save()
        Upload.objects.filter(pk=upload.pk).update(body=b"")


def _replace_rows(page: Page, rows: Rows, columns: Columns, lease: Lease) -> tuple[Counter, tuple[str, ...]]:
    """Make the file's snippets those of its rows now; returns what changed, and what of the rows was left out.

    Rows without an address stand under the file's name, and are replaced like the sections of a page. Where they are
    many, and where they have addresses that other files may have too, what is new is added and what is gone deleted.
    """
    model = page.job.model
    fresh, left_out = snippets_of(rows.rows, columns, page.url)
    standing = model.snippets.filter(source=Source.UPLOAD)
    own = without_dropped(model, page.url, (snippet for snippet in fresh if snippet.uri == page.url))
    others = without_dropped_rows(model, (snippet for snippet in fresh if snippet.uri != page.url))
    if len(own) > BATCH:
        return _replace_many(page, [*own, *others], standing, lease), left_out
    sections = snippets.prepare_sections(model, page.url, own, Source.UPLOAD)
    with tenant_atomic():
        lease.check()
        replaced = asdict(replace_page_snippets(model, page.url, sections, Source.UPLOAD))
    return Counter(replaced) + _replace_many(page, others, standing.exclude(uri=page.url), lease), left_out


def _replace_many(page: Page, fresh: list[TrainingSnippet], standing: QuerySet, lease: Lease) -> Counter:
    """Add the rows that do not stand, and delete those that an earlier file of this name had and this one has not.

    What a file has is kept in its page's plan, as digests: an address alone does not tell which file a row is from.
    What the owner edited follows the file as it would follow a page.
    """
    wanted = {_digest(hash_of(each.prompt, each.completion), each.uri): each for each in fresh}
    former, kept, gone = set(_former_plan(page)), set(), []
    unedited = standing.filter(is_edited=False).order_by()
    for pk, source_hash, uri in unedited.values_list("pk", "source_hash", "uri").iterator():
        digest = _digest(source_hash, uri)
        if digest in wanted:
            kept.add(digest)
        elif digest in former or uri == page.url:
            gone.append(pk)
    new = {digest: snippet for digest, snippet in wanted.items() if digest not in kept}
    counts = _replace_edited(page, _edited_groups(page, wanted, new, former, standing), lease)
    note, left = _progress_of(page), list(new.values())
    for start in range(0, len(left), BATCH):
        lease.check()
        snippets.add_many(page.job.model, left[start : start + BATCH])
        note(start, len(left))
    lease.check()
    removed = snippets.delete(page.job.model, gone, is_by_hand=False)
    page.plan = sorted(wanted)
    return counts + Counter(added=len(left), kept=len(kept), removed=removed)


def _edited_groups(
    page: Page, wanted: Drafts, new: Drafts, former: set[str], standing: QuerySet
) -> dict[tuple[str, str], tuple[list[int], Drafts]]:
    """Return, by address and title, the edited rows that are of this file, and what of it they may have become.

    That is what has one of their texts, else what is new under their title; it is taken out of `new`.
    """
    titled = defaultdict(list)
    for digest, snippet in new.items():
        titled[snippet.uri, snippet.prompt].append(digest)
    groups = defaultdict(lambda: ([], {}))
    for row in standing.filter(is_edited=True).order_by("position", "pk").iterator():
        digests = {_digest(text_hash, row.uri) for text_hash in known_hashes(row)}
        if row.uri != page.url and wanted.keys().isdisjoint(digests) and former.isdisjoint(digests):
            continue
        titles = [text.prompt for text in page_texts(row)]
        ids, drafts = groups[row.uri, titles[0]]
        ids.append(row.pk)
        alike = [digest for title in titles for digest in titled[row.uri, title][:MOST_ALIKE] if digest in new]
        for digest in [digest for digest in digests if digest in wanted] or alike:
            drafts[digest] = wanted[digest]
            new.pop(digest, None)
    return groups


def _replace_edited(page: Page, groups: dict, lease: Lease) -> Counter:
    """Let each group of edited rows follow what the file says now, and add what is none of theirs."""
    counts = Counter()
    for (uri, _), (ids, drafts) in groups.items():
        sections = [Section(each.prompt, each.completion, each.position).made_ahead() for each in drafts.values()]
        with tenant_atomic():
            lease.check()
            replaced = replace_page_snippets(page.job.model, uri, sections, Source.UPLOAD, among=ids)
        counts.update(asdict(replaced))
    return counts


def _former_plan(page: Page) -> list[str]:
    earlier = Page.objects.filter(job__model=page.job.model_id, url=page.url, state=State.DONE)
    return earlier.order_by("-job_id").values_list("plan", flat=True).first() or []


def _digest(source_hash: str, uri: str) -> str:
    return sha256(f"{source_hash}\0{uri}".encode()).hexdigest()[:20]


def _progress_of(page: Page) -> Callable[[int, int], None]:
    def note(done: int, total: int) -> None:
        page.job.note_progress(message=f"Importing {page.url}: row {done:,} of {total:,}")

    return note


def _complaint(name: str, error: Exception) -> str:
    """Return what is wrong with the file, as a sentence."""
    said = getattr(error, "message", "") or f"cannot be read: {error}"
    return f"{name} {said.rstrip('.')}."


def _why_nothing(job: Import) -> str:
    failed = job.pages.filter(state=State.FAILED).values_list("report__message", flat=True)
    told = " ".join(filter(None, failed[:SHOWN_ERRORS]))
    return f"No file could be read. {told}" if told else "There is no file to read: upload it again."
