"""Import as people see it: the dialog that starts one, its progress and end, and what came of every page."""

from collections.abc import Callable

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseStopPolling, trigger_client_event

from crawler import crawl
from crawler.crawl import ImportRunning, start_import
from crawler.forms import ImportForm
from crawler.models import Import, Page
from models_app.models import MLModel
from models_app.overview import overview_of
from tenants.dialogs import dialog
from tenants.permissions import editor_required

PAGE_SIZE = 50
TROUBLES_SHOWN = 8


@require_http_methods(["GET", "POST"])
@editor_required
def import_dialog(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that starts an import; while one runs it shows that one instead."""
    model = get_object_or_404(MLModel, slug=model_slug)
    running = model.imports.filter(state__in=Import.OPEN_STATES).first()
    if running is not None and request.method == "GET":
        return _job_dialog(request, running)
    form = ImportForm(request.POST or None, initial=_first_choices(model))
    if request.method == "POST" and form.is_valid():
        try:
            job = start_import(model, **form.cleaned_data)
        except ImportRunning as error:
            return _job_dialog(request, error.job, is_refused=True)
        return trigger_client_event(_job_dialog(request, job), "job-changed")
    context = {"form": form, "model": model, "last_import": model.imports.first()}
    return dialog(request, "partials/import_dialog.html", context, _behind(request, model))


def _first_choices(model: MLModel) -> dict:
    """Return what the form starts with: the model's own settings, and the last import's limits."""
    last = model.imports.first()
    return {
        "address": model.website or (last.address if last else ""),
        "import_images": model.import_images,
        "insert_source_url": model.insert_source_url,
        "max_pages": last.max_pages if last else settings.SITEWISE_CRAWL_MAX_PAGES,
        "delay_seconds": last.delay_seconds if last else settings.SITEWISE_CRAWL_DELAY_SECONDS,
    }


@require_GET
def import_job(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog of one import: its progress while it runs, then how it ended."""
    return _job_dialog(request, import_or_404(model_slug, pk))


@require_GET
def import_progress(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """How far the import is: polled until it ends."""
    job = import_or_404(model_slug, pk)
    response = render(request, "partials/import_progress.html", job_context(job))
    if job.is_open:
        return response
    return trigger_client_event(HttpResponseStopPolling(response.content), "import-ended")


@require_POST
@editor_required
def import_stop(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Ask the running import to stop; the pages it has finished stay."""
    return _after(request, import_or_404(model_slug, pk), "request_stop")


def _after(request: HttpRequest, job: Import, wish: str) -> HttpResponse:
    getattr(job, wish)()
    job.refresh_from_db()
    return trigger_client_event(_job_dialog(request, job), "job-changed")


def _started(request: HttpRequest, model: MLModel, start: Callable[[], Import]) -> HttpResponse:
    """Start an import and show it; where one runs already, or it cannot be started, say so."""
    try:
        job = start()
    except ImportRunning as error:
        return _job_dialog(request, error.job, is_refused=True)
    return trigger_client_event(_job_dialog(request, job), "job-changed")


def _job_dialog(request: HttpRequest, job: Import, is_refused: bool = False) -> HttpResponse:
    context = job_context(job) | {"is_refused": is_refused}
    return dialog(request, "partials/import_job.html", context, _behind(request, job.model))


def job_context(job: Import) -> dict:
    counts = dict.fromkeys(Page.State.values, 0) | job.pages_by_state()
    troubled = job.pages.filter(state__in=[Page.State.SKIPPED, Page.State.FAILED])
    return {
        "job": job,
        "model": job.model,
        "counts": counts,
        "found_count": sum(counts.values()),
        "read_count": counts["read"] + counts["done"] + counts["same"],
        "snippet_count": job.model.snippets.count(),
        "troubled": [] if job.is_open else troubled.order_by("state", "pk")[:TROUBLES_SHOWN],
        "troubled_left_count": counts["skipped"] + counts["failed"] - TROUBLES_SHOWN,
    }


@require_GET
def import_list(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The model's Imports tab: what was imported, when, and how it ended."""
    model = get_object_or_404(MLModel, slug=model_slug)
    jobs = model.imports.annotate(page_count=Count("pages")).order_by("-id")
    page = Paginator(jobs, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"model": model, "overview": overview_of(model), "tab": "imports", "page_obj": page}
    return render(request, "pages/import_list.html", context)


@require_POST
@editor_required
def import_pause(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Let the running import rest after its current page, until somebody resumes it."""
    return _after(request, import_or_404(model_slug, pk), "request_pause")


@require_POST
@editor_required
def import_resume(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Go on with a paused import where it was."""
    return _after(request, import_or_404(model_slug, pk), "resume")


@require_POST
@editor_required
def import_retry(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Import the pages again that have failed."""
    job = import_or_404(model_slug, pk)
    return _started(request, job.model, lambda: crawl.retry_failed(job))


@require_POST
@editor_required
def split_again(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Split the stored pages anew, without fetching one: after Max context tokens has changed."""
    model = get_object_or_404(MLModel, slug=model_slug)
    return _started(request, model, lambda: crawl.start_split(model))


def pages_dialog(request, tenant_slug, model_slug):
    """The dialog that imports single pages."""
    return import_dialog(request, tenant_slug, model_slug)


def import_or_404(model_slug: str, pk: int) -> Import:
    return get_object_or_404(Import.objects.select_related("model"), pk=pk, model__slug=model_slug)


def _behind(request: HttpRequest, model: MLModel) -> str:
    """Return the page that a dialog opened by its own address belongs to."""
    page = reverse("models_app:training_data", args=[request.tenant.slug, model.slug], query={"dialog": "import"})
    return page if request.role.may_edit else reverse("crawler:import_list", args=[request.tenant.slug, model.slug])
