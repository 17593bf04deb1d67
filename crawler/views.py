"""Import as people see it: the dialogs that start one, its progress, and how it ended."""

from collections.abc import Callable

from django.conf import settings
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseStopPolling, trigger_client_event

from crawler.crawl import ImportRunning, NothingToImport, retry_failed, start_import, start_split
from crawler.forms import ImportForm, PagesForm, WayForm
from crawler.models import Import
from crawler.overview import TimeLeft, counts_of, money_of, troubles_of
from crawler.web.site import SiteUnreachable
from models_app.models import MLModel
from models_app.overview import overview_of
from tenants.dialogs import dialog, saved
from tenants.permissions import editor_required

PAGE_SIZE = 50


@require_http_methods(["GET", "POST"])
@editor_required
def import_dialog(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that starts the import of a website; while an import runs it shows that one instead."""
    return _way_dialog(request, model_slug, Import.Kind.SITE, ImportForm)


@require_http_methods(["GET", "POST"])
@editor_required
def pages_dialog(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that starts the import of single pages; while an import runs it shows that one instead."""
    return _way_dialog(request, model_slug, Import.Kind.PAGES, PagesForm)


def _way_dialog(request: HttpRequest, model_slug: str, kind: str, form_class: type[WayForm]) -> HttpResponse:
    model = get_object_or_404(MLModel, slug=model_slug)
    running = model.imports.filter(state__in=Import.OPEN_STATES).first()
    if running is not None and request.method == "GET":
        return _job_dialog(request, running)
    form = form_class(request.POST or None, initial=_first_choices(model, kind))
    if request.method == "POST" and form.is_valid():
        return _started(request, model, lambda: start_import(model, kind=kind, **form.cleaned_data))
    context = {"form": form, "model": model, "way": kind, "last_import": model.imports.filter(kind=kind).first()}
    return dialog(request, "partials/import_dialog.html", context, _behind(request, model))


def _first_limits() -> dict:
    return {"max_pages": settings.SITEWISE_CRAWL_MAX_PAGES, "delay_seconds": settings.SITEWISE_CRAWL_DELAY_SECONDS}


def _first_choices(model: MLModel, kind: str) -> dict:
    """Return what the form starts with: the model's own settings, and what the last import of the kind was told."""
    own = {"import_images": model.import_images, "insert_source_url": model.insert_source_url}
    last = model.imports.filter(kind=kind).first()
    if last is None:
        return own | {"address": model.website} | _first_limits()
    return last.options | own | {"address": model.website or last.address, "addresses": "\n".join(last.addresses)}


@require_GET
def import_job(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog of one import: its progress while it runs, then how it ended."""
    return _job_dialog(request, import_or_404(model_slug, pk))


@require_GET
def import_progress(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """How far the import is: polled until it ends, with what the page showed last."""
    job = import_or_404(model_slug, pk)
    response = render(request, "partials/import_progress.html", job_context(job, request.GET))
    if not job.is_open:
        return trigger_client_event(HttpResponseStopPolling(response.content), "import-ended")
    was_paused = request.GET.get("state") == Import.State.PAUSED
    if was_paused != (job.state == Import.State.PAUSED):
        trigger_client_event(response, "import-turned")
    return response


@require_POST
@editor_required
def import_stop(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Ask the running import to stop; the pages it has finished stay."""
    return _after(request, import_or_404(model_slug, pk), Import.request_stop)


@require_POST
@editor_required
def import_pause(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Let the running import rest after its current page, until somebody resumes it."""
    return _after(request, import_or_404(model_slug, pk), Import.request_pause)


@require_POST
@editor_required
def import_resume(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Go on with a paused import where it was."""
    return _after(request, import_or_404(model_slug, pk), Import.resume)


@require_POST
@editor_required
def import_retry(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Import the pages again that have failed."""
    job = import_or_404(model_slug, pk)
    return _started(request, job.model, lambda: retry_failed(job))


@require_POST
@editor_required
def split_again(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Split the stored pages anew, without fetching one: after Max context tokens has changed."""
    model = get_object_or_404(MLModel, slug=model_slug)
    return _started(request, model, lambda: start_split(model))


def _after(request: HttpRequest, job: Import, ask: Callable[[Import], None]) -> HttpResponse:
    ask(job)
    job.refresh_from_db()
    return trigger_client_event(_job_dialog(request, job), "job-changed")


def _started(request: HttpRequest, model: MLModel, start: Callable[[], Import]) -> HttpResponse:
    """Start an import and show it; where one runs already it is shown, and what cannot be started says why."""
    try:
        job = start()
    except ImportRunning as error:
        return _job_dialog(request, error.job, is_refused=True)
    except (SiteUnreachable, NothingToImport) as error:
        return saved(toast=str(error), level="bad")
    return trigger_client_event(_job_dialog(request, job), "job-changed")


def _job_dialog(request: HttpRequest, job: Import, is_refused: bool = False) -> HttpResponse:
    context = job_context(job) | {"is_refused": is_refused}
    return dialog(request, "partials/import_job.html", context, _behind(request, job.model))


def job_context(job: Import, shown: dict | None = None) -> dict:
    """Return what is told of an import; `shown` is what the page that polls has shown last."""
    skipped, failed = troubles_of(job)
    return {
        "job": job,
        "model": job.model,
        **counts_of(job),
        "skipped": skipped,
        "failed": failed,
        "snippet_count": job.model.snippets.count(),
        "left": TimeLeft.of(job, shown or {}, timezone.now()),
        "money": money_of(job),
    }


@require_GET
def import_list(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The model's Imports tab: what was imported, when, and how it ended."""
    model = get_object_or_404(MLModel, slug=model_slug)
    jobs = model.imports.annotate(page_count=Count("pages")).order_by("-id")
    page = Paginator(jobs, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {"model": model, "overview": overview_of(model), "tab": "imports", "page_obj": page}
    return render(request, "pages/import_list.html", context)


def import_or_404(model_slug: str, pk: int) -> Import:
    """Return the import of the model with that slug, which is the active tenant's."""
    return get_object_or_404(Import.objects.select_related("model"), pk=pk, model__slug=model_slug)


def _behind(request: HttpRequest, model: MLModel) -> str:
    """Return the page that a dialog opened by its own address belongs to."""
    page = reverse("models_app:training_data", args=[request.tenant.slug, model.slug], query={"dialog": "import"})
    return page if request.role.may_edit else reverse("crawler:import_list", args=[request.tenant.slug, model.slug])
