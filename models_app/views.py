"""Pages and dialogs about models: the list, a new one, its state at a glance, its behaviour, its end."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from models_app import snippets
from models_app.behaviour import BehaviourForm
from models_app.embedder import space_of
from models_app.forms import DeleteModelForm, NewModelForm
from models_app.key_limits import drop_from_keys, rename_in_keys
from models_app.models import MLModel, TrainingSnippet
from models_app.overview import overview_of, overviews
from models_app.questionnaire import questions_of
from tenants.dialogs import dialog, saved
from tenants.permissions import editor_required, refused

# What was imported was split by Max context tokens; what was written by hand never is.
SPLIT_SOURCES = (TrainingSnippet.Source.CRAWL, TrainingSnippet.Source.SITE)


@require_GET
def model_list(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """The workspace's first page: all its models."""
    return render(request, "pages/model_list.html", {"overviews": overviews(MLModel.objects.all())})


@require_http_methods(["GET", "POST"])
@editor_required
def model_new(request: HttpRequest, tenant_slug: str) -> HttpResponse:
    """The dialog that makes a model, and leads on to importing its website."""
    form = NewModelForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        model = form.save()
        query = {"dialog": "import"} if model.website else {}
        return HttpResponseClientRedirect(_page_of(tenant_slug, model, query))
    behind = reverse("models_app:model_list", args=[tenant_slug])
    return dialog(request, "partials/model_new.html", {"form": form}, behind)


@require_GET
def model_status(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What the model knows and is doing: polled while something runs, and saying when that has ended."""
    overview = overview_of(get_object_or_404(MLModel, slug=model_slug))
    response = render(request, "partials/model_status.html", {"overview": overview, "model": overview.model})
    if "busy" in request.GET and not overview.is_busy:
        for event in ("snippets-changed", "vectors-changed"):
            trigger_client_event(response, event)
    return response


@require_http_methods(["GET", "POST"])
@editor_required
def model_delete(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that deletes a model once its slug has been typed."""
    model = get_object_or_404(MLModel, slug=model_slug)
    form = DeleteModelForm(model, request.POST or None)
    if request.method == "POST" and form.is_valid():
        drop_from_keys(request.tenant, model.slug)
        snippets.delete_model(model)
        messages.success(request, f"The model {model.name} was deleted.")
        return HttpResponseClientRedirect(reverse("models_app:model_list", args=[tenant_slug]))
    context = {"form": form, "model": model, "overview": overview_of(model)}
    return dialog(request, "partials/model_delete.html", context, _page_of(tenant_slug, model))


@require_http_methods(["GET", "POST"])
def behaviour(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog with every knob; readers see it, editors turn them, owners also the provider's."""
    model = get_object_or_404(MLModel, slug=model_slug)
    if request.method == "POST" and not request.role.may_edit:
        return refused(request, "You may look at the settings, but only editors and owners change them.")
    form = BehaviourForm(request.role, request.POST or None, instance=get_object_or_404(MLModel, pk=model.pk))
    if request.method == "POST" and form.is_valid():
        return _behaviour_saved(request, model, form.save())
    context = {"form": form, "model": model, "questions": questions_of(form["questionnaire"].value() or "")}
    return dialog(request, "partials/behaviour.html", context, _page_of(tenant_slug, model, {"dialog": "behaviour"}))


@require_POST
def questionnaire(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What a visitor would be asked, by the lines that are being written."""
    model = get_object_or_404(MLModel, slug=model_slug)
    text = request.POST.get("questionnaire", "")
    return render(request, "partials/questionnaire.html", {"model": model, "questions": questions_of(text)})


def _behaviour_saved(request: HttpRequest, old: MLModel, new: MLModel) -> HttpResponse:
    is_new_space = new.needs_vectors and (not old.needs_vectors or space_of(new) != space_of(old))
    has_missing = is_new_space and snippets.missing_vectors(new).exists()
    if new.slug != old.slug:
        rename_in_keys(request.tenant, old.slug, new.slug)
    if (new.slug, new.name) != (old.slug, old.name):
        messages.success(request, "Behaviour saved.")
        return HttpResponseClientRedirect(
            _page_of(request.tenant.slug, new, {"dialog": "vectorise"} if has_missing else None)
        )
    toast, events = "Behaviour saved.", behaviour_events(old, new)
    if "split-changed" in events:
        toast += " Its vectors are still to be made: press Vectorise." if has_missing else ""
    elif has_missing:
        events.append("vectors-wanted")
    return saved(*events, toast=toast)


def behaviour_events(old: MLModel, new: MLModel) -> list[str]:
    """Return what those who show the model, and those who offer to split its pages anew, should hear of."""
    is_split_changed = new.max_context_tokens != old.max_context_tokens
    if is_split_changed and new.snippets.filter(source__in=SPLIT_SOURCES).exists():
        return ["behaviour-changed", "vectors-changed", "split-changed"]
    return ["behaviour-changed", "vectors-changed"]


def _page_of(tenant_slug: str, model: MLModel, query: dict | None = None) -> str:
    return reverse("models_app:training_data", args=[tenant_slug, model.slug], query=query)
