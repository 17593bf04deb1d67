"""The Embed tab: the tag that puts a model's widget on a page, as chosen, and how that will look."""

from urllib.parse import urlsplit

from csp.constants import SELF
from csp.decorators import csp_replace
from django import forms
from django.conf import settings
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import replace_url

from chat.widget_script import keep_current_script
from chat.widget_words import languages
from models_app.key_forms import VISITORS_REQUESTS_A_MINUTE, KeyForm
from models_app.models import MLModel
from models_app.overview import overview_of
from tenants.dialogs import dialog, given, saved
from tenants.models import ApiKey, Tenant
from tenants.permissions import owner_required

COLOUR = "#0a6a64"
LANGUAGE_NAMES = {
    "ar": "العربية", "cs": "Čeština", "da": "Dansk", "de": "Deutsch", "en": "English", "es": "Español", "fi": "Suomi",
    "fr": "Français", "he": "עברית", "it": "Italiano", "ja": "日本語", "nb": "Norsk", "nl": "Nederlands",
    "pl": "Polski", "pt": "Português", "ro": "Română", "sv": "Svenska", "tr": "Türkçe", "uk": "Українська",
    "zh": "中文",
}  # fmt: skip
NAMELESS = ("key", "pinned")  # what the form asks that is no attribute of its own


class EmbedForm(forms.Form):
    """How the widget shall look; each choice but the key and the version becomes an attribute of the tag."""

    key = forms.ChoiceField(label="Key", required=False)
    mode = forms.ChoiceField(
        label="Form",
        required=False,
        choices=[("", "A chat button"), ("inline", "The chat in the page"), ("search", "A search box")],
    )
    position = forms.ChoiceField(required=False, choices=[("", "By language"), ("right", "Right"), ("left", "Left")])
    theme = forms.ChoiceField(
        label="Light or dark",
        required=False,
        choices=[("", "As the visitor’s device"), ("light", "Light"), ("dark", "Dark")],
    )
    color = forms.CharField(
        label="Colour",
        required=False,
        initial=COLOUR,
        validators=[RegexValidator(r"^#[0-9a-fA-F]{6}\Z", "Write a colour as in #0a6a64.")],
        widget=forms.TextInput(attrs={"type": "color"}),
        help_text="Words on it are black or white, links are made darker or lighter: whatever can be read.",
    )
    language = forms.ChoiceField(required=False)
    title = forms.CharField(
        required=False, max_length=60, help_text="Above the chat. Empty: “How can we help?” in its language."
    )
    pinned = forms.BooleanField(
        label="Pin this version",
        required=False,
        initial=True,
        help_text="The browser runs exactly this script, by its hash (subresource integrity). Updates then come when "
        "you copy the tag again; without it they come by themselves.",
    )

    def __init__(self, keys: list[ApiKey], *arguments, **options):
        super().__init__(*arguments, **options)
        self.fields["key"].choices = [(key.prefix, key.name) for key in keys]
        named = [(code, LANGUAGE_NAMES[code]) for code in languages()]
        self.fields["language"].choices = [("", "As the page’s"), *named]
        if len(keys) < 2:
            del self.fields["key"]

    @property
    def attributes(self) -> dict[str, str]:
        """The tag's attributes, without `data-`, that differ from what the widget does by itself."""
        chosen = self.cleaned_data if self.is_bound and self.is_valid() else {}
        named = {name: value for name, value in chosen.items() if value and name not in NAMELESS}
        if named.get("mode") == "inline" or named.get("mode") == "search":
            named.pop("position", None)
        if named.get("color", COLOUR).lower() == COLOUR:
            named.pop("color", None)
        return named

    @property
    def is_pinned(self) -> bool:
        return not self.is_bound or (self.is_valid() and self.cleaned_data["pinned"])


@require_GET
def embed(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The Embed tab."""
    model = get_object_or_404(MLModel, slug=model_slug)
    context = _code_context(request, model) | {"overview": overview_of(model), "tab": "embed"}
    return render(request, "pages/embed.html", context)


@require_GET
def embed_code(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The tag and its preview alone, as chosen; the address bar follows."""
    model = get_object_or_404(MLModel, slug=model_slug)
    response = render(request, "partials/embed_code.html", _code_context(request, model))
    return replace_url(response, reverse("chat:embed", args=[tenant_slug, model_slug], query=given(request)))


@require_GET
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})
def embed_preview(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """A page with the widget on it, as chosen: the very script, which answers as it will on the customer's page."""
    context = _code_context(request, get_object_or_404(MLModel, slug=model_slug))
    return render(request, "pages/embed_preview.html", context)


@require_http_methods(["GET", "POST"])
@owner_required
def embed_key(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that makes a public key for the model's widget."""
    model = get_object_or_404(MLModel, slug=model_slug)
    origins = request.POST.get("origins", _origin_of(model.website))
    fields = {
        "name": f"Widget of {model.name}"[:80],
        "kind": ApiKey.Kind.PUBLIC,
        "model_slugs": [model.slug],
        "origins": origins,
        "visitor_requests_a_minute": VISITORS_REQUESTS_A_MINUTE,
    }
    form = KeyForm(fields, instance=ApiKey(tenant=request.tenant))
    if request.method == "POST" and form.is_valid():
        form.mint(request.tenant)
        return saved("embed-changed", toast="The key was made: the tag below holds it.")
    context = {"model": model, "origins": origins, "errors": form.errors if request.method == "POST" else {}}
    behind = reverse("chat:embed", args=[tenant_slug, model_slug])
    return dialog(request, "partials/embed_key.html", context, behind)


def _code_context(request: HttpRequest, model: MLModel) -> dict:
    keys = _public_keys(request.tenant, model.slug)
    is_chosen = any(name in request.GET for name in EmbedForm.base_fields)
    form = EmbedForm(keys, request.GET if is_chosen else None)
    prefix = request.GET.get("key", "")
    key = next((each for each in keys if each.prefix == prefix), keys[0] if keys else None)
    script = keep_current_script()
    return {
        "model": model,
        "form": form,
        "key": key,
        "attributes": form.attributes,
        "script": script,
        "host": settings.SITEWISE_URL,
        "address": settings.SITEWISE_URL + (script.path if form.is_pinned else reverse("widget:script_latest")),
        "query": request.GET.urlencode(),
    }


def _public_keys(tenant: Tenant, slug: str) -> list[ApiKey]:
    """Return the live public keys that open the model, of those whose text was kept when they were made."""
    keys = tenant.api_keys.filter(kind=ApiKey.Kind.PUBLIC, revoked_at=None).exclude(public_text="")
    return [key for key in keys if slug in key.model_slugs]


def _origin_of(website: str) -> str:
    parts = urlsplit(website)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""
