"""Files on their way in: chosen, looked at, then imported or discarded."""

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import trigger_client_event

from crawler.crawl import ImportRunning
from crawler.documents.reader import READABLE, DocumentUnreadable
from crawler.models import Import, Upload
from crawler.previews import (
    MAX_FILES,
    UploadGone,
    UploadPreview,
    error_of,
    file_name,
    previews_of,
    start_upload,
    take_in,
    too_large,
)
from crawler.views import job_context
from models_app.models import MLModel
from tenants.dialogs import dialog, saved
from tenants.permissions import editor_required

ROLES = ("prompt", "completion", "uri")
ACCEPTED = ".pdf,.docx,.pptx,.xlsx,.html,.htm,.md,.markdown,.txt,.csv,.tsv,.json,.jsonl,.ndjson,.yaml,.yml"


@require_GET
@editor_required
def upload_dialog(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that takes files; while an import runs it shows that one instead."""
    model = get_object_or_404(MLModel, slug=model_slug)
    running = model.imports.filter(state__in=Import.OPEN_STATES).first()
    return _job_dialog(request, running) if running else _files_dialog(request, model, [])


@require_POST
@editor_required
def upload_preview(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What would be imported from the files: those just sent, and those sent before, with the columns as chosen."""
    model = get_object_or_404(MLModel, slug=model_slug)
    waiting = _waiting(request, model)
    waiting.filter(pk__in=_numbers(request, "remove")).delete()
    _keep_choices(request, waiting)
    problems, added = _take_in_all(request, model, room=MAX_FILES - waiting.count())
    uploads = model.uploads.filter(job=None, pk__in=[*_numbers(request, "upload"), *added])
    previews = previews_of(uploads.select_related("model"))
    if not previews:
        return _files_dialog(request, model, problems)
    return _preview_dialog(request, model, previews, problems)


@require_POST
@editor_required
def upload_start(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Import what was looked at; a file that cannot be imported yet leads back to the preview."""
    model = get_object_or_404(MLModel, slug=model_slug)
    waiting = _waiting(request, model)
    _keep_choices(request, waiting)
    uploads = waiting.select_related("model")
    if any(error_of(upload) for upload in uploads):
        return _preview_dialog(request, model, previews_of(uploads), [], is_refused=True)
    try:
        job = start_upload(model, [upload.pk for upload in uploads])
    except UploadGone as error:
        return _files_dialog(request, model, [str(error)])
    except ImportRunning as error:
        return _preview_dialog(request, model, previews_of(uploads), [f"Nothing was started: {error}"])
    return trigger_client_event(_job_dialog(request, job), "job-changed")


@require_POST
@editor_required
def upload_discard(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Forget the files that were looked at; closes the dialog."""
    model = get_object_or_404(MLModel, slug=model_slug)
    _waiting(request, model).delete()
    return saved()


def _waiting(request: HttpRequest, model: MLModel) -> QuerySet[Upload]:
    """Return the files that the request names and that wait for their import."""
    return model.uploads.filter(job=None, pk__in=_numbers(request, "upload"))


def _numbers(request: HttpRequest, name: str) -> list[int]:
    return [int(each) for each in request.POST.getlist(name) if each.isascii() and each.isdigit() and len(each) < 18]


def _keep_choices(request: HttpRequest, waiting: QuerySet[Upload]) -> None:
    """Store the columns that were chosen, so that a file added later or a mistake elsewhere loses none of them."""
    for pk in waiting.values_list("pk", flat=True):
        chosen = {role: request.POST.get(f"{role}-{pk}") for role in ROLES}
        if all(value is not None for value in chosen.values()):
            waiting.filter(pk=pk).update(options=chosen)


def _take_in_all(request: HttpRequest, model: MLModel, room: int) -> tuple[list[str], list[int]]:
    """Keep the files that were sent; returns what is wrong with the others, and the keys of those kept."""
    problems, added, names = [], [], set()
    for sent in request.FILES.getlist("files"):
        name = file_name(sent.name)
        if name in names:  # of two that wait under one name the later would replace the first
            problems.append(f"Two of the files are called {name}: rename one of them.")
            continue
        try:
            if len(added) == room:
                raise DocumentUnreadable(f"is one too many: at most {MAX_FILES} files are imported at once")
            if sent.size > settings.SITEWISE_MAX_UPLOAD_BYTES:
                raise DocumentUnreadable(too_large())
            added.append(take_in(model, name, sent.read()).pk)
            names.add(name)
        except DocumentUnreadable as error:
            problems.append(f"{name} {error.message}.")
    return problems, added


def _files_dialog(request: HttpRequest, model: MLModel, problems: list[str]) -> HttpResponse:
    if request.method == "POST" and not problems:
        problems = ["Choose at least one file."]
    context = {"model": model, "way": "files", "problems": problems, "accepted": ACCEPTED, "readable": READABLE}
    limits = {"max_files": MAX_FILES, "max_bytes": settings.SITEWISE_MAX_UPLOAD_BYTES}
    return dialog(request, "partials/upload_dialog.html", context | limits, _behind(request, model))


def _preview_dialog(
    request: HttpRequest, model: MLModel, previews: list[UploadPreview], problems: list[str], is_refused: bool = False
) -> HttpResponse:
    context = {
        "model": model,
        "previews": previews,
        "problems": problems,
        "is_refused": is_refused,
        "accepted": ACCEPTED,
        "can_add": len(previews) < MAX_FILES,
    }
    return dialog(request, "partials/upload_preview.html", context, _behind(request, model))


def _job_dialog(request: HttpRequest, job: Import) -> HttpResponse:
    return dialog(request, "partials/import_job.html", job_context(job), _behind(request, job.model))


def _behind(request: HttpRequest, model: MLModel) -> str:
    """Return the page that a dialog opened by its own address belongs to."""
    return reverse("models_app:training_data", args=[request.tenant.slug, model.slug])
