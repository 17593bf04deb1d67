"""History as the owner sees it: what visitors asked, and what they were answered."""

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import replace_url

from chat.models import Turn
from models_app.models import MLModel
from models_app.overview import overview_of
from tenants.dialogs import given
from tenants.permissions import editor_required

PAGE_SIZE = 30
FILTERS = {
    "": ("All questions", Q()),
    "unanswered": ("Nothing found", Q(is_unanswered=True)),
    "failed": ("Failed or left", Q(outcome__in=[Turn.Outcome.ERROR, Turn.Outcome.CUT, Turn.Outcome.DISCONNECTED])),
    "degraded": ("Something was away", ~Q(degraded="")),
    "flagged": ("Flagged by the guard", ~Q(guard_flags=[])),
    "unreviewed": ("Not reviewed", Q(is_reviewed=False)),
}


@require_GET
def history(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The History tab: every question that was asked, newest first."""
    model = get_object_or_404(MLModel, slug=model_slug)
    context = _table_context(request, model) | {"overview": overview_of(model), "tab": "history"}
    return render(request, "pages/history.html", context)


@require_GET
def turn_table(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The list alone, as searched and filtered; the address bar follows."""
    model = get_object_or_404(MLModel, slug=model_slug)
    response = render(request, "partials/turn_table.html", _table_context(request, model))
    return replace_url(response, reverse("chat:history", args=[tenant_slug, model_slug], query=given(request)))


def _table_context(request: HttpRequest, model: MLModel) -> dict:
    words, chosen = request.GET.get("q", "").strip(), request.GET.get("show", "")
    turns = model.turns.filter(FILTERS.get(chosen, FILTERS[""])[1]).defer("hits")
    if words:
        turns = turns.filter(Q(question__icontains=words) | Q(answer__icontains=words))
    return {
        "model": model,
        "words": words,
        "chosen": chosen,
        "filters": [(value, label) for value, (label, _) in FILTERS.items()],
        "page_obj": Paginator(turns, PAGE_SIZE).get_page(request.GET.get("page")),
        "is_narrowed": bool(words or chosen),
    }


@require_GET
def turn(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """One question with its answer, the snippets it stands on, what it cost and how it ended."""
    row = _turn_or_404(model_slug, pk)
    earlier = _conversation_of(row).filter(pk__lt=row.pk).count()
    context = {
        "turn": row,
        "model": row.model,
        "overview": overview_of(row.model),
        "tab": "history",
        "earlier": earlier,
    }
    return render(request, "pages/turn.html", context)


@require_GET
def conversation(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """The whole conversation that a question belongs to, oldest first."""
    row = _turn_or_404(model_slug, pk)
    context = {"turn": row, "model": row.model, "overview": overview_of(row.model), "tab": "history"}
    return render(request, "pages/conversation.html", context | {"turns": _conversation_of(row).order_by("pk")})


@require_POST
@editor_required
def turn_review(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Mark a question as reviewed, or take the mark back."""
    row = _turn_or_404(model_slug, pk)
    row.is_reviewed = request.POST.get("is_reviewed") == "yes"
    row.reviewer = request.user.email if row.is_reviewed else ""
    row.save(update_fields=["is_reviewed", "reviewer"])
    return render(request, "partials/turn_review.html", {"turn": row, "model": row.model})


def _turn_or_404(model_slug: str, pk: int) -> Turn:
    return get_object_or_404(Turn.objects.select_related("model"), pk=pk, model__slug=model_slug)


def _conversation_of(row: Turn):
    """Return the turns of the same session; a turn without one stands alone."""
    if not row.session_key:
        return Turn.objects.filter(pk=row.pk)
    return Turn.objects.filter(model=row.model_id, session_key=row.session_key)
