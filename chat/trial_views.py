"""The Test tab: one question under all three retrievals, why a snippet is not among the hits, and knobs to try."""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import push_url, trigger_client_event

from chat.answer import answer_now
from chat.context import Context, PackedHit, get_context
from chat.turns import Asked, QuestionTooLong, QuotaReached, refuse_long_question
from chat.why_not import why_not
from models_app.knobs import KnobsForm
from models_app.listing import titled_first
from models_app.llm import ProviderError
from models_app.models import MLModel, Retrieval, TrainingSnippet
from models_app.overview import overview_of
from models_app.retrieval import NO_VECTORS
from models_app.views import behaviour_events
from tenants.dialogs import saved
from tenants.permissions import editor_required

LEAST_SHOWN, SHOWN_BEHIND_USED = 8, 4
CHOICES = 8
LONGEST_IN_ADDRESS = 1_500  # characters of a question: servers and programs cut longer addresses


@dataclass(frozen=True)
class Segment:
    """A used hit as it is drawn in the bar of tokens: where it begins, and how wide it is."""

    packed: PackedHit
    start: int


@dataclass(frozen=True)
class Column:
    """What one retrieval finds for the question of the Test tab."""

    is_models_own: bool
    context: Context
    notice: str

    @property
    def used(self) -> list[PackedHit]:
        return [packed for packed in self.context.packed if packed.is_used]

    @property
    def passed_over_count(self) -> int:
        return len(self.context.packed) - len(self.used)

    @property
    def segments(self) -> list[Segment]:
        """The used hits side by side, as they lie in the context, without the few tokens between them."""
        return [Segment(packed, self.context.budget - packed.tokens_left) for packed in self.used]

    @property
    def shown(self) -> tuple[PackedHit, ...]:
        """The hits up to a few behind the last one used."""
        last_used = max((place for place, packed in enumerate(self.context.packed) if packed.is_used), default=0)
        return self.context.packed[: max(last_used + SHOWN_BEHIND_USED, LEAST_SHOWN)]

    @property
    def hidden_count(self) -> int:
        return len(self.context.packed) - len(self.shown)


@dataclass(frozen=True)
class Trial:
    """What is tried: a question, asked after an earlier one or by itself, of the model with its knobs turned."""

    question: str
    earlier: str
    knobs: KnobsForm
    refusal: str = ""

    @classmethod
    def of(cls, request: HttpRequest, model: MLModel) -> "Trial":
        """Return the trial that was sent; its refusal says why it cannot be made."""
        question, earlier = (request.POST.get(name, "").strip() for name in ("question", "earlier"))
        knobs = KnobsForm(model, request.POST)
        refusal = _refusal(model, question)
        if not knobs.is_valid():
            refusal = refusal or "One of the settings is refused."
        return cls(question, earlier, knobs, refusal)

    @property
    def model(self) -> MLModel:
        return self.knobs.tried

    @property
    def earlier_questions(self) -> list[str]:
        return [self.earlier] if self.earlier else []

    def query(self, **more: str) -> dict[str, str]:
        """Return what stands for it in an address."""
        turned = {name: str(self.knobs.cleaned_data[name]) for name in self.knobs.changed_data}
        asked = {"question": self.question, "earlier": self.earlier}
        return {name: value for name, value in {**asked, **turned, **more}.items() if value}


@require_GET
def test(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The Test tab; its address may hold a question, settings to try, and a snippet to explain."""
    model = get_object_or_404(MLModel, slug=model_slug)
    context = {
        "model": model,
        "overview": overview_of(model),
        "tab": "test",
        "question": request.GET.get("question", ""),
        "earlier": request.GET.get("earlier", ""),
        "knobs": KnobsForm(model, request.GET),
        "snippet": model.snippets.filter(pk=_number(request.GET.get("snippet", ""))).first(),
    }
    return render(request, "pages/test.html", context)


# A question of thousands of characters does not fit an address, so it is posted, though nothing is changed.
@require_POST
def test_results(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What each retrieval finds for the question, side by side."""
    model = get_object_or_404(MLModel, slug=model_slug)
    trial = Trial.of(request, model)
    columns = [] if trial.refusal else _columns(trial)
    response = render(request, "partials/test_results.html", {"model": model, "trial": trial, "columns": columns})
    if not trial.refusal:
        trigger_client_event(response, "test-asked")  # what is explained is explained for this question from now on
    return _addressed(request, response, trial, snippet=request.POST.get("snippet", ""))


def _columns(trial: Trial) -> list[Column]:
    contexts = [get_context(trial.model, trial.question, trial.earlier_questions, mode) for mode in Retrieval.values]
    return [
        Column(context.mode == trial.model.retrieval, context, _notice(trial.model, context)) for context in contexts
    ]


def _notice(model: MLModel, context: Context) -> str:
    """Return what was away, told for this page: a Keyword model lacks its vectors by choice."""
    if context.degraded == NO_VECTORS and not model.needs_vectors:
        return "This model searches by keyword and has no vectors, so words alone were searched here too."
    return context.degraded


@require_GET
def test_snippets(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The snippets to choose from that hold what is typed so far, in their title before their text."""
    model = get_object_or_404(MLModel, slug=model_slug)
    words = request.GET.get("q", "").strip()
    context = {"model": model, "words": words, "choices": titled_first(model, words, CHOICES) if words else []}
    return render(request, "partials/test_snippets.html", context)


@require_POST
def test_why_not(request: HttpRequest, tenant_slug: str, model_slug: str, pk: int) -> HttpResponse:
    """Why one snippet is, or is not, in the context under each of the three retrievals."""
    row = get_object_or_404(TrainingSnippet.objects.select_related("model"), pk=pk, model__slug=model_slug)
    trial = Trial.of(request, row.model)
    verdicts = [] if trial.refusal else why_not(trial.model, trial.question, row, trial.earlier_questions)
    explanations = list({verdict.context.query: verdict.explanation for verdict in verdicts}.values())
    context = {
        "model": row.model,
        "trial": trial,
        "snippet": row,
        "verdicts": verdicts,
        "explanations": explanations,
        "is_reloading": "is_reloading" in request.POST,
    }
    return _addressed(request, render(request, "partials/test_why_not.html", context), trial, snippet=str(row.pk))


@require_POST
@editor_required
def test_save(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Save the knobs that were turned to the model."""
    model = get_object_or_404(MLModel, slug=model_slug)
    knobs = KnobsForm(model, request.POST)
    if not knobs.is_valid():
        reasons = " ".join(f"{knobs.fields[name].label}: {' '.join(errors)}" for name, errors in knobs.errors.items())
        return saved(toast=f"Nothing was saved. {reasons}", level="bad")
    if not knobs.changed_data:
        return saved(toast="The model has these settings already.")
    told = ", ".join(f"{label} {value}" for label, value, _ in knobs.differences)
    return saved(*behaviour_events(model, knobs.save()), toast=f"Saved to the model: {told}.")


@require_POST
@editor_required
def test_answer(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The answer a visitor would get; it is logged and counted like a visitor's."""
    model = get_object_or_404(MLModel, slug=model_slug)
    question = request.POST.get("question", "").strip()
    refusal = _refusal(model, question)
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


def _refusal(model: MLModel, question: str) -> str:
    """Return why the question cannot be asked, or ""."""
    if not question:
        return "Type a question first."
    try:
        refuse_long_question(model, question)
    except QuestionTooLong as error:
        return f"{error} Shorten it, or raise Max request tokens under Behaviour."
    return ""


def _addressed(request: HttpRequest, response: HttpResponse, trial: Trial, **more: str) -> HttpResponse:
    """Let the browser's address lead to what is shown, so that it can be shared and come back to.

    What a page asks for by itself as it is opened stands in its address already.
    """
    if trial.refusal or len(trial.question) > LONGEST_IN_ADDRESS or "is_reloading" in request.POST:
        return response
    query = trial.query(**more)
    shown = parse_qs(urlsplit(request.htmx.current_url or "").query)
    if shown == {name: [value] for name, value in query.items()}:
        return response
    return push_url(response, reverse("chat:test", args=[request.tenant.slug, trial.model.slug], query=query))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
