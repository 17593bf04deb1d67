"""Training data as people see it: search, read, write, edit and delete snippets, and make their vectors."""

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseStopPolling, replace_url, trigger_client_event

from models_app import snippets
from models_app.forms import SnippetForm
from models_app.models import MLModel, Retrieval, TrainingSnippet, Vectorising
from models_app.overview import overview_of
from models_app.retrieval import retrieve
from models_app.tasks import start_vectorising
from models_app.tokens import count_tokens
from tenants.dialogs import dialog, given, saved
from tenants.permissions import editor_required, refused

PAGE_SIZE = 25
FILTERS = {
    "": "All snippets",
    **dict(TrainingSnippet.Source.choices),
    "edited": "Edited by hand",
    "no-vector": "Without a vector",
}


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
    words, chosen = request.GET.get("q", "").strip(), request.GET.get("show", "")
    page = Paginator(_search(_filtered(model, chosen), model, words), PAGE_SIZE).get_page(request.GET.get("page"))
    without_vector = snippets.missing_vectors(model).filter(pk__in=[row.pk for row in page])
    return {
        "model": model,
        "words": words,
        "chosen": chosen,
        "filters": FILTERS,
        "page_obj": page,
        "is_narrowed": bool(words or chosen),
        "missing_ids": set(without_vector.values_list("pk", flat=True)) if model.needs_vectors else set(),
    }


def _filtered(model: MLModel, chosen: str) -> QuerySet[TrainingSnippet]:
    if chosen == "edited":
        return model.snippets.filter(is_edited=True)
    if chosen == "no-vector":
        return snippets.missing_vectors(model)
    return model.snippets.filter(source=chosen) if chosen in FILTERS and chosen else model.snippets.all()


def _search(found: QuerySet[TrainingSnippet], model: MLModel, words: str) -> QuerySet[TrainingSnippet]:
    """Narrow to what holds the words as typed so far, and to what the keyword leg finds for them."""
    if not words:
        return found
    ranked = [hit.id for hit in retrieve(model, words, mode=Retrieval.KEYWORD).hits]
    holds = Q(prompt__icontains=words) | Q(completion__icontains=words) | Q(uri__icontains=words)
    return found.filter(holds | Q(pk__in=ranked))


@require_GET
def snippet(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog to read one snippet in."""
    row = get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)
    context = {
        "snippet": row,
        "model": row.model,
        "has_vector": not snippets.missing_vectors(row.model).filter(pk=pk).exists(),
    }
    return dialog(request, "partials/snippet.html", context, _page_of(tenant_slug, row.model))


@require_http_methods(["GET", "POST"])
@editor_required
def snippet_add(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog to write a snippet in."""
    model = get_object_or_404(MLModel, slug=model_slug)
    form = SnippetForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        try:
            snippets.add(model, fields["prompt"], fields["completion"], fields["uri"])
        except snippets.SnippetQuotaReached as error:
            form.add_error(None, str(error))
        else:
            return saved("snippets-changed", toast="Snippet added. Keyword retrieval finds it at once.")
    return dialog(request, "partials/snippet_edit.html", {"form": form, "model": model}, _page_of(tenant_slug, model))


@require_http_methods(["GET", "POST"])
@editor_required
def snippet_edit(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog to change a snippet in."""
    row = get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)
    form = SnippetForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        snippets.edit(row, fields["prompt"], fields["completion"], fields["uri"])
        return saved("snippets-changed", toast="Snippet saved.")
    context = {"form": form, "model": row.model, "snippet": row, "tokens": row.token_count}
    return dialog(request, "partials/snippet_edit.html", context, _page_of(tenant_slug, row.model))


@require_POST
def snippet_tokens(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """How much of the budget the title and text in the dialog take, as they are typed."""
    model = get_object_or_404(MLModel, slug=model_slug)
    typed = TrainingSnippet(prompt=request.POST.get("prompt", ""), completion=request.POST.get("completion", ""))
    tokens = count_tokens(snippets.embedded_text(typed))
    return render(request, "partials/snippet_tokens.html", {"model": model, "tokens": tokens})


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
    with_vector, total = snippets.vector_counts(model)
    return {
        "model": model,
        "with_vector": with_vector,
        "total": total,
        "missing": total - with_vector,
        "job": model.vectorisings.first(),
    }


def _page_of(tenant_slug: str, model: MLModel, query: dict | None = None) -> str:
    return reverse("models_app:training_data", args=[tenant_slug, model.slug], query=query)
