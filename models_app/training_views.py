"""Training data as people see it: search, read and delete snippets, and make their vectors."""

import re

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseStopPolling, replace_url, trigger_client_event

from models_app import snippets
from models_app.listing import FILTERS, SORTS, Listing, as_ranges, in_ranges, pages_with
from models_app.models import MLModel, TrainingSnippet, Vectorising
from models_app.overview import overview_of
from models_app.switching import without_vector
from models_app.tasks import start_vectorising
from models_app.vector_work import VectorWork
from tenants.dialogs import dialog, given, saved
from tenants.permissions import editor_required, refused

PAGE_SIZE = 25
DELETED_AT_ONCE = 2_000  # about half a second of one request; the dialog asks for the next, and shows how far it is


@require_GET
def training_data(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The model's first tab: its snippets. `?dialog=` opens one of the model's dialogs over it."""
    model = get_object_or_404(MLModel, slug=model_slug)
    context = _table_context(request, model) | {"overview": overview_of(model), "tab": "training"}
    return render(request, "pages/training_data.html", context)


@require_GET
def snippet_table(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The list alone, as searched and filtered; the address bar follows."""
    model = get_object_or_404(MLModel, slug=model_slug)
    response = render(request, "partials/snippet_table.html", _table_context(request, model))
    return replace_url(response, _page_of(tenant_slug, model, given(request)))


def _table_context(request: HttpRequest, model: MLModel) -> dict:
    listing = Listing.of(request.GET)
    page = Paginator(listing.ids(model), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = model.snippets.defer("source_completion", "new_completion").in_bulk(list(page))
    page.object_list = [rows[pk] for pk in page if pk in rows]
    lacking = without_vector(model).filter(pk__in=rows)
    return {
        "model": model,
        "listing": listing,
        "words": listing.words,
        "filters": FILTERS,
        "sorts": {value: label for value, (label, _) in SORTS.items()},
        "page_obj": page,
        "conflict_count": model.snippets.exclude(conflict=TrainingSnippet.Conflict.NONE).count(),
        "missing_ids": set(lacking.values_list("pk", flat=True)) if model.needs_vectors else set(),
    }


@require_GET
def snippet_pages(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The pages to choose from that hold what is typed so far, each with its snippets counted."""
    model = get_object_or_404(MLModel, slug=model_slug)
    pages = pages_with(model, request.GET.get("uri", ""))
    return render(request, "partials/snippets_pages.html", {"pages": pages})


@require_http_methods(["GET", "POST"])
@editor_required
def snippets_delete(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that names how many ticked or listed snippets will be deleted, and deletes exactly those."""
    model = get_object_or_404(MLModel, slug=model_slug)
    if request.method == "POST":
        return _delete_ticked(request, model)
    ids = _ticked(request.GET, model)
    if request.htmx and not ids:
        return saved(toast="Nothing is ticked: tick the snippets to delete first.", level="bad")
    context = {"model": model, "ids": as_ranges(ids), "count": len(ids), **_losses(model, ids)}
    return dialog(request, "partials/snippets_delete.html", context, _page_of(tenant_slug, model))


def _ticked(sent: QueryDict, model: MLModel) -> list[int]:
    """Return the ids of the snippets that are meant: those ticked, or all that are listed."""
    if "all" in sent:
        return list(Listing.of(sent).ids(model))
    return in_ranges(sent.getlist("ids"), model.snippets.order_by().values_list("pk", flat=True))


def _losses(model: MLModel, ids: list[int]) -> dict[str, int]:
    """Return what the owner should know before: how many were edited, and how many are from pages and files."""
    wanted = set(ids)
    rows = [row for row in model.snippets.order_by().values_list("pk", "is_edited", "source") if row[0] in wanted]
    return {
        "edited_count": sum(is_edited for _, is_edited, _ in rows),
        "imported_count": sum(source != TrainingSnippet.Source.MANUAL for _, _, source in rows),
    }


def _delete_ticked(request: HttpRequest, model: MLModel) -> HttpResponse:
    """Delete as many as one request may; what is left comes back by the dialog itself."""
    ids = _ticked(request.POST, model)
    given_total = request.POST.get("total", "")
    total = int(given_total) if re.fullmatch("[0-9]{1,9}", given_total) else len(ids)
    snippets.delete(model, ids[:DELETED_AT_ONCE])
    left = ids[DELETED_AT_ONCE:]
    if not left:
        return saved("snippets-changed", toast=f"{total:,} snippet{pluralize(total)} deleted.")
    context = {"model": model, "ids": as_ranges(left), "total": total, "done": total - len(left)}
    template = "partials/snippets_deleting.html" if given_total else "partials/snippets_delete.html"
    return trigger_client_event(render(request, template, context), "snippets-changed")


@require_GET
def snippet(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog to read one snippet in."""
    row = get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)
    context = {
        "snippet": row,
        "model": row.model,
        "version_count": row.versions.count(),
        "has_vector": not without_vector(row.model).filter(pk=pk).exists(),
    }
    return dialog(request, "partials/snippet.html", context, _page_of(tenant_slug, row.model))


@require_http_methods(["GET", "POST"])
@editor_required
def snippet_delete(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog that asks before a snippet is deleted."""
    row = get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)
    if request.method == "POST":
        snippets.delete(row.model, [row.pk])
        return saved("snippets-changed", toast="Snippet deleted.")
    context = {"snippet": row, "model": row.model}
    return dialog(request, "partials/snippet_delete.html", context, _page_of(tenant_slug, row.model))


@require_http_methods(["GET", "POST"])
def vectorise(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that says how many vectors are missing, and makes them."""
    model = get_object_or_404(MLModel, slug=model_slug)
    if request.method == "POST":
        if not request.role.may_edit:
            return refused(request, "Only editors and owners make vectors.")
        start_vectorising(model)
    context = _vectorise_context(model)
    response = dialog(
        request, "partials/vectorise.html", context, _page_of(tenant_slug, model, {"dialog": "vectorise"})
    )
    return trigger_client_event(response, "job-changed") if request.method == "POST" else response


@require_GET
def vectorise_progress(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """How far the vectors are: polled by the dialog until they stand."""
    context = _vectorise_context(get_object_or_404(MLModel, slug=model_slug))
    response = render(request, "partials/vectorise_progress.html", context)
    if context["job"] and context["job"].is_open:
        return response
    return trigger_client_event(HttpResponseStopPolling(response.content), "vectors-changed")


@require_POST
@editor_required
def vectorise_stop(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Ask the running vectorising to stop; what it made stays."""
    model = get_object_or_404(MLModel, slug=model_slug)
    for job in model.vectorisings.filter(state__in=Vectorising.OPEN_STATES):
        job.request_stop()
    response = render(request, "partials/vectorise.html", _vectorise_context(model))
    return trigger_client_event(response, "job-changed")


def _vectorise_context(model: MLModel) -> dict:
    work = VectorWork.of(model)
    return {"model": model, "work": work, "job": work.job}


def _page_of(tenant_slug: str, model: MLModel, query: dict | None = None) -> str:
    return reverse("models_app:training_data", args=[tenant_slug, model.slug], query=query)
