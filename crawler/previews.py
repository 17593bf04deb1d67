"""Files before they are imported: taken in, looked into, and started as one import. Nothing is written until then.

A preview reads the beginning of a document, and says what would become of the file: its snippets and what to look at.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath

from django.conf import settings
from django.template.defaultfilters import filesizeformat

from crawler.crawl import start_import
from crawler.documents.reader import DocumentUnreadable, ReadingTooSlow, kind_of, read_document
from crawler.models import Import, Upload
from crawler.split import split_page
from crawler.upload import forget_stale_uploads
from models_app.exchange import Columns, RowsUnreadable, guess_columns, is_our_export, read_rows, snippets_of
from models_app.models import MLModel
from models_app.rows import KINDS as ROW_KINDS
from models_app.snippets import Draft
from tenants.store import tenant_atomic
from tenants.texts import storable

MAX_FILES = 10
NAME_LENGTH = Upload._meta.get_field("name").max_length
SHOWN_SNIPPETS = 3
SHOWN_CHARACTERS = 1_500
SAMPLES = 3
SAMPLE_CHARACTERS = 80
ALL_SECONDS = 20
LOOKED_AT = 200  # rows whose faults a preview finds
KIND_NAMES = {
    "pdf": "PDF",
    "docx": "Word document",
    "pptx": "PowerPoint slides",
    "xlsx": "Excel workbook",
    "html": "HTML page",
    "markdown": "Markdown",
    "text": "Text",
    "csv": "CSV table",
    "json": "JSON",
    "jsonl": "JSON lines",
    "yaml": "YAML",
}
PART_NAMES = {"pdf": "page", "pptx": "slide", "xlsx": "sheet"}


class UploadGone(Exception):
    """The files are imported or discarded already, in another window or by another member."""

    def __init__(self):
        super().__init__("These files are not waiting any more: they were imported or discarded. Choose them again.")


@dataclass(frozen=True)
class Column:
    """A column of a file of rows, with a few of its cells."""

    name: str
    samples: tuple[str, ...]


@dataclass(frozen=True)
class UploadPreview:
    """What a file would bring. Of rows `columns` and `chosen` are set; `error` says why it cannot be imported yet."""

    upload: Upload
    kind_name: str
    title: str = ""
    size: str = ""
    beginning: str = ""
    snippet_count: int = 0
    snippets: Sequence[Draft] = ()
    is_partial: bool = False  # there is more than was looked at
    is_export: bool = False  # written by our own export: comes back as it was
    columns: tuple[Column, ...] = ()
    chosen: Columns = field(default_factory=Columns)
    warnings: tuple[str, ...] = ()
    error: str = ""

    @property
    def is_rows(self) -> bool:
        return bool(self.columns) and not self.is_export


def take_in(model: MLModel, name: str, body: bytes) -> Upload:
    """Keep a file for its preview; one of the same name that still waits is replaced. Raises DocumentUnreadable."""
    name = file_name(name)
    if len(body) > settings.SITEWISE_MAX_UPLOAD_BYTES:
        raise DocumentUnreadable(too_large())
    kind = kind_of(body, name)
    forget_stale_uploads()
    with tenant_atomic():
        model.uploads.filter(job=None, name=name).delete()
        return Upload.objects.create(model=model, name=name, kind=kind, body=body)


def too_large() -> str:
    """Return what is said of a file above the limit."""
    return f"is too large: at most {filesizeformat(settings.SITEWISE_MAX_UPLOAD_BYTES)} are read of one file"


def file_name(name: str) -> str:
    """Return the name that a file's snippets stand under: without folders, and short enough to be stored."""
    name = PurePosixPath(storable(name).replace("\\", "/")).name
    name = " ".join("".join(each for each in name if each.isprintable()).split()) or "file"
    ending = PurePosixPath(name).suffix[:20]
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - len(ending)] + ending


def previews_of(uploads: Iterable[Upload]) -> list[UploadPreview]:
    """Return the previews of files that are shown together, within a time that a person waits; keeps their errors."""
    end = time.monotonic() + ALL_SECONDS
    previews = [preview(upload) if time.monotonic() < end else _unseen(upload) for upload in uploads]
    for each in previews:
        Upload.objects.filter(pk=each.upload.pk).update(report={"error": each.error})
    return previews


def error_of(upload: Upload) -> str:
    """Return why a file that was looked at cannot be imported, with the columns as they are chosen now."""
    return preview(upload).error if upload.kind in ROW_KINDS else upload.report.get("error", "")


def preview(upload: Upload) -> UploadPreview:
    """Return what the file would bring, with the columns as its options choose them, else as their names suggest."""
    try:
        return _preview_rows(upload) if upload.kind in ROW_KINDS else _preview_document(upload)
    except ReadingTooSlow:
        return _unseen(upload)
    except DocumentUnreadable as error:
        return UploadPreview(upload, KIND_NAMES[upload.kind], error=f"It {error.message}.")
    except RowsUnreadable as error:
        return UploadPreview(upload, KIND_NAMES[upload.kind], error=str(error))


def _unseen(upload: Upload) -> UploadPreview:
    told = "It takes long to read, so there is no preview. The import takes more time for it, and reads it whole."
    return UploadPreview(upload, KIND_NAMES[upload.kind], is_partial=True, warnings=(told,))


def start_upload(model: MLModel, keys: Sequence[int]) -> Import:
    """Return a new import of these files, and wake a worker for it. Errors: UploadGone, crawl.ImportRunning."""
    with tenant_atomic():
        waiting = model.uploads.filter(job=None, pk__in=keys)
        names = list(waiting.values_list("name", flat=True))
        if not names:
            raise UploadGone
        job = start_import(model, name_of(names), kind=Import.Kind.FILES, max_pages=len(names))
        waiting.update(job=job)
        return job


def name_of(names: Sequence[str]) -> str:
    """Return what an import of these files is called."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _preview_document(upload: Upload) -> UploadPreview:
    document = read_document(bytes(upload.body), upload.kind, upload.name, is_preview=True)
    split = split_page(document.markdown, document.title, upload.model.split_threshold)
    part = PART_NAMES.get(upload.kind, "")
    size = f"{document.part_count:,} {part}{'' if document.part_count == 1 else 's'}" if part else ""
    return UploadPreview(
        upload=upload,
        kind_name=KIND_NAMES[upload.kind],
        title=document.title,
        size=size,
        beginning=_beginning(document.markdown),
        snippet_count=len(split.drafts),
        snippets=split.drafts[:SHOWN_SNIPPETS],
        is_partial=document.is_partial,
        warnings=document.warnings,
    )


def _beginning(markdown: str) -> str:
    """Return the first lines, which end where a line does."""
    if len(markdown) <= SHOWN_CHARACTERS:
        return markdown
    return markdown[:SHOWN_CHARACTERS].rpartition("\n")[0] or markdown[:SHOWN_CHARACTERS]


def _preview_rows(upload: Upload) -> UploadPreview:
    rows = read_rows(bytes(upload.body), upload.kind)
    chosen = _chosen_columns(upload, rows.columns)
    is_export = is_our_export(rows)
    first = list(islice(rows.rows, LOOKED_AT))
    looked_at = chosen if not is_export else Columns("prompt", "completion")
    made, left_out = snippets_of(first, looked_at, upload.name) if looked_at.completion else ([], ())
    error = "" if chosen.completion or is_export else "Choose the column that holds the texts."
    samples = [
        Column(name, tuple(row.get(name, "")[:SAMPLE_CHARACTERS] for row in first[:SAMPLES])) for name in rows.columns
    ]
    return UploadPreview(
        upload=upload,
        kind_name=KIND_NAMES[upload.kind],
        size=f"{rows.count:,} row{'' if rows.count == 1 else 's'}",
        snippet_count=rows.count - len(left_out) if made else 0,
        snippets=made[:SHOWN_SNIPPETS],
        is_partial=rows.count > len(first),
        is_export=is_export,
        columns=tuple(samples),
        chosen=chosen,
        warnings=(*rows.warnings, *left_out),
        error=error,
    )


def _chosen_columns(upload: Upload, names: Sequence[str]) -> Columns:
    """Return the columns that were chosen, if the file has them; before a choice those that their names suggest."""
    if not upload.options:
        return guess_columns(names)
    return Columns(**{role: name if name in names else "" for role, name in upload.options.items()})
