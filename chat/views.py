"""Asking as the owner sees it: the Test tab, and the History of what visitors asked."""

from dataclasses import dataclass

from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import replace_url

from chat.answer import answer_now
from chat.context import Context, PackedHit, get_context
from chat.models import Turn
from chat.turns import Asked, QuestionTooLong, QuotaReached, refuse_long_question
from models_app.llm import ProviderError
from models_app.models import MLModel, Retrieval
from models_app.overview import overview_of
from models_app.retrieval import NO_VECTORS
from tenants.dialogs import given
from tenants.permissions import editor_required

PAGE_SIZE = 30
LEAST_SHOWN, SHOWN_BEHIND_USED = 8, 4
FILTERS = {
    "": ("All questions", Q()),
    "unanswered": ("Nothing found", Q(is_unanswered=True)),
    "failed": ("Failed or left", Q(outcome__in=[Turn.Outcome.ERROR, Turn.Outcome.DISCONNECTED])),
    "degraded": ("Something was away", ~Q(degraded="")),
    "unreviewed": ("Not reviewed", Q(is_reviewed=False)),
}


@dataclass(frozen=True)
class Column:
    """What one retrieval finds for the question of the Test tab."""

    is_models_own: bool
    context: Context
    notice: str

    @property
    def used_count(self) -> int:
        return sum(packed.is_used for packed in self.context.packed)

    @property
    def passed_over_count(self) -> int:
        return len(self.context.packed) - self.used_count

    @property
    def shown(self) -> tuple[PackedHit, ...]:
        """The hits up to a few behind the last one used."""
        last_used = max((place for place, packed in enumerate(self.context.packed) if packed.is_used), default=0)
        return self.context.packed[: max(last_used + SHOWN_BEHIND_USED, LEAST_SHOWN)]

    @property
    def hidden_count(self) -> int:
        return len(self.context.packed) - len(self.shown)


@require_GET
def test(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The Test tab: a question against all three retrievals, and the answer a visitor would get."""
    model = get_object_or_404(MLModel, slug=model_slug)
    question = request.GET.get("question", "")
    return render(
        request,
        "pages/test.html",
        {"model": model, "overview": overview_of(model), "tab": "test", "question": question},
    )


# A question of thousands of characters does not fit an address, so it is posted, though nothing is changed.
@require_POST
def test_results(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What each retrieval finds for the question, side by side."""
    model = get_object_or_404(MLModel, slug=model_slug)
    question, refusal = _question_of(request, model)
    columns = [] if refusal else _columns(model, question)
    context = {"model": model, "question": question, "refusal": refusal, "columns": columns}
    return render(request, "partials/test_results.html", context)


def _question_of(request: HttpRequest, model: MLModel) -> tuple[str, str]:
    """Return the question, and why it cannot be asked, or ""."""
    question = request.POST.get("question", "").strip()
    if not question:
        return question, "Type a question first."
    try:
        refuse_long_question(model, question)
    except QuestionTooLong as error:
        return question, f"{error} Shorten it, or raise Max request tokens under Behaviour."
    return question, ""


def _columns(model: MLModel, question: str) -> list[Column]:
    contexts = [get_context(model, question, mode=mode) for mode in Retrieval.values]
    return [Column(context.mode == model.retrieval, context, _notice(model, context)) for context in contexts]


def _notice(model: MLModel, context: Context) -> str:
    """Return what was away, told for this page: a Keyword model lacks its vectors by choice."""
    if context.degraded == NO_VECTORS and not model.needs_vectors:
        return "This model searches by keyword and has no vectors, so words alone were searched here too."
    return context.degraded


@require_POST
@editor_required
def test_answer(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The answer a visitor would get; it is logged and counted like a visitor's."""
    model = get_object_or_404(MLModel, slug=model_slug)
    question, refusal = _question_of(request, model)
    answered = None
    if not refusal:
        asked = Asked(model, question, channel="test", question_quota=request.tenant.question_quota)
        try:
            answered = answer_now(asked)
        except (QuestionTooLong, QuotaReached) as error:
            refusal = str(error)
        except ProviderError as error:
            refusal = f"There is no answer: {error.message}"
    context = {"model": model, "answered": answered, "refusal": refusal}
    return render(request, "partials/test_answer.html", context)


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
