"""History as the owner sees it: what visitors asked, and what they were answered."""

from django.core.paginator import Paginator
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import replace_url

from chat.models import Lead, Session, Turn
from models_app.models import MLModel
from models_app.overview import overview_of
from tenants.dialogs import given
from tenants.permissions import editor_required

PAGE_SIZE = 30
FILTERS = {
    "": ("All questions", Q()),
    "unanswered": ("Nothing found", Q(is_unanswered=True)),
    "failed": ("Failed or left", Q(outcome__in=[Turn.Outcome.ERROR, Turn.Outcome.CUT, Turn.Outcome.DISCONNECTED])),
    "down": ("Thumb down", Q(rating=Turn.Rating.DOWN)),
    "up": ("Thumb up", Q(rating=Turn.Rating.UP)),
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
        "lead_count": model.leads.count(),
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
    context |= {"turns": _conversation_of(row).order_by("pk"), "session": _session_of(row), "leads": _leads_of(row)}
    return render(request, "pages/conversation.html", context)


@require_POST
@editor_required
def answers_erase(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Erase what the visitor of a conversation answered before the chat."""
    row = _turn_or_404(model_slug, pk)
    Session.objects.filter(model=row.model_id, key=row.session_key).update(questionnaire_answers=[])
    context = {"turn": row, "model": row.model, "session": _session_of(row), "is_erased": True}
    return render(request, "partials/visitor_answers.html", context)


@require_GET
def lead_list(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The e-mails that visitors left, newest first, with what they had asked."""
    context = _leads_context(request, get_object_or_404(MLModel, slug=model_slug))
    return render(request, "pages/lead_list.html", context | {"overview": overview_of(context["model"])})


@require_POST
@editor_required
def lead_erase(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Erase an e-mail that a visitor left."""
    lead = get_object_or_404(Lead.objects.select_related("model"), pk=pk, model__slug=model_slug)
    lead.delete()
    return render(request, "partials/lead_table.html", _leads_context(request, lead.model) | {"is_erased": True})


def _leads_context(request: HttpRequest, model: MLModel) -> dict:
    leads = Paginator(model.leads.select_related("turn"), PAGE_SIZE)
    return {"model": model, "tab": "history", "page_obj": leads.get_page(request.GET.get("page"))}


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


def _session_of(row: Turn) -> Session | None:
    return Session.objects.filter(model=row.model_id, key=row.session_key).first() if row.session_key else None


def _leads_of(row: Turn) -> QuerySet[Lead]:
    """Return the e-mails that were left in the turn's conversation."""
    in_session = Q(session_key=row.session_key) if row.session_key else Q(turn=row)
    return Lead.objects.filter(in_session, model=row.model_id)


def _conversation_of(row: Turn):
    """Return the turns of the same session; a turn without one stands alone."""
    if not row.session_key:
        return Turn.objects.filter(pk=row.pk)
    return Turn.objects.filter(model=row.model_id, session_key=row.session_key)
