"""The dialogs to write and to change a snippet in. No text is saved over another that its writer has not seen."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from models_app import snippets
from models_app.conflict_views import Text
from models_app.forms import SnippetForm
from models_app.models import MLModel, SnippetVersion, TrainingSnippet
from models_app.snippets import SnippetMoved, seen_hash
from models_app.tokens import count_tokens
from models_app.word_diff import mark_sides
from tenants.dialogs import dialog, saved
from tenants.permissions import editor_required

CHANGED = "This snippet was changed while you were editing: {who} changed it. What you typed is not saved yet."
DELETED = "This snippet was deleted while you were editing. What you typed can be added as a new one."


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
    return _dialog(request, {"form": form, "model": model})


@require_http_methods(["GET", "POST"])
@editor_required
def snippet_edit(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The dialog to change a snippet in. Where it has changed meanwhile, it comes back with both texts."""
    model = get_object_or_404(MLModel, slug=model_slug)
    row = model.snippets.filter(pk=pk).first()
    if row is None:
        if "seen" in request.POST:
            return _offer_as_new(request, model)
        raise Http404
    seen = request.POST.get("seen") or seen_hash(row, row.uri)
    form = SnippetForm(request.POST or None, instance=row)
    context = {"form": form, "model": model, "snippet": row, "tokens": row.token_count, "seen": seen}
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        try:
            snippets.edit(row, fields["prompt"], fields["completion"], fields["uri"], request.user.email, seen=seen)
        except SnippetMoved as moved:
            if moved.row is None:
                return _offer_as_new(request, model)
            context |= _comparison(request, moved.row, form, seen)
        else:
            return saved("snippets-changed", toast="Snippet saved.")
    return _dialog(request, context)


def _offer_as_new(request: HttpRequest, model: MLModel) -> HttpResponse:
    """Return the dialog that adds what was typed, as the snippet that it was typed for is gone."""
    typed = request.POST.copy()
    page = typed.get("page", "")
    if page.startswith(("http://", "https://")):
        typed.setdefault("uri", page)  # the field of an address that may not be changed is not sent
    return _dialog(request, {"form": SnippetForm(typed), "model": model, "notice": DELETED, "is_unsaved": True})


def _comparison(request: HttpRequest, row: TrainingSnippet, form: SnippetForm, seen: str) -> dict:
    """Return what the dialog shows beside the typed text: what the snippet says now, and who wrote it."""
    typed = form.cleaned_data
    titles = mark_sides(row.prompt, typed["prompt"])
    texts = mark_sides(row.completion, typed["completion"])
    headings = ("What the snippet says now", "What you typed")
    return {
        "snippet": row,
        "seen": seen_hash(row, row.uri),
        "is_unsaved": True,
        "notice": CHANGED.format(who=_who_changed(row, seen, request.user.email)),
        "texts": [Text(*columns) for columns in zip(headings, titles, texts, strict=True)],
    }


def _who_changed(row: TrainingSnippet, seen: str, reader: str) -> str:
    """Return who has written what the snippet says now, as far as its versions tell."""
    versions = list(row.versions.all())
    if seen not in [seen_hash(version, row.uri) for version in versions]:
        return "another member"
    if versions[0].cause == SnippetVersion.Cause.IMPORTED:
        return "an import"
    return "you, in another window," if versions[0].author == reader else versions[0].author or "another member"


@require_POST
def snippet_tokens(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """How much of the budget the title and text in the dialog take, as they are typed."""
    model = get_object_or_404(MLModel, slug=model_slug)
    typed = TrainingSnippet(prompt=request.POST.get("prompt", ""), completion=request.POST.get("completion", ""))
    tokens = count_tokens(snippets.embedded_text(typed))
    return render(request, "partials/snippet_tokens.html", {"model": model, "tokens": tokens})


def _dialog(request: HttpRequest, context: dict) -> HttpResponse:
    behind = reverse("models_app:training_data", args=[request.tenant.slug, context["model"].slug])
    return dialog(request, "partials/snippet_edit.html", context, behind)
