"""What came of an import, page by page: its report, its pages as a table, and one page with all that is known of it."""

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET
from django_htmx.http import replace_url

from crawler.models import Import, Page
from crawler.views import PAGE_SIZE, import_or_404, job_context
from models_app.models import TrainingSnippet
from models_app.overview import overview_of
from tenants.dialogs import dialog, given


@require_GET
def import_report(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """One import with all its pages."""
    job = import_or_404(model_slug, pk)
    context = job_context(job) | _table_context(request, job)
    return render(request, "pages/import_report.html", context | {"overview": overview_of(job.model), "tab": "imports"})


@require_GET
def page_table(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """An import's pages alone, as filtered; the address bar follows."""
    job = import_or_404(model_slug, pk)
    response = render(request, "partials/page_table.html", _table_context(request, job) | job_context(job))
    report = reverse("crawler:import_report", args=[tenant_slug, model_slug, pk], query=given(request))
    return replace_url(response, report)


def _table_context(request: HttpRequest, job: Import) -> dict:
    chosen, words = request.GET.get("state", ""), request.GET.get("q", "").strip()
    pages = job.pages.defer("markdown", "landmarks", "source", "plan")
    if chosen in Page.State.values:
        pages = pages.filter(state=chosen)
    if words:
        pages = pages.filter(url__icontains=words)
    return {
        "chosen": chosen,
        "words": words,
        "states": Page.State.choices,
        "page_obj": Paginator(pages, PAGE_SIZE).get_page(request.GET.get("page")),
    }


@require_GET
def page_report(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog about one page: how its text was selected and split, and which snippets it gave."""
    page = _page_or_404(model_slug, pk)
    model = page.job.model
    own = model.snippets.filter(uri=page.final_url or page.url, source=TrainingSnippet.Source.CRAWL)
    context = {"page": page, "model": model, "snippets": own}
    report = reverse("crawler:import_report", args=[tenant_slug, model_slug, page.job_id])
    return dialog(request, "partials/page_report.html", context, report)


@require_GET
def page_outline(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The page as it was read, with what was taken from it outlined: for a frame of the page's report."""
    page = _page_or_404(model_slug, pk)
    if not page.source:
        raise Http404
    return HttpResponse(page.url, content_type="text/plain")


def _page_or_404(model_slug: str, pk: int) -> Page:
    return get_object_or_404(Page.objects.select_related("job__model"), pk=pk, job__model__slug=model_slug)
