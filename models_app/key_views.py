"""A workspace's API keys: owners list, make, change and revoke them. A key's text is shown once, when it is made."""

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import trigger_client_event

from models_app.key_forms import MOST_LIVE_KEYS, KeyForm
from models_app.models import MLModel
from tenants.dialogs import dialog, saved
from tenants.limits import used_this_month
from tenants.models import ApiKey
from tenants.permissions import owner_required


@require_GET
@owner_required
def key_list(request, tenant_slug):
    return render(request, "pages/key_list.html", _table(request))


@require_GET
@owner_required
def key_table(request, tenant_slug):
    return render(request, "partials/key_table.html", _table(request))


@require_http_methods(["GET", "POST"])
@owner_required
@never_cache
def key_new(request, tenant_slug):
    """The dialog that makes a key; it answers with the key's text, once."""
    form = KeyForm(request.POST or None, instance=ApiKey(tenant=request.tenant))
    if _live_keys(request).count() >= MOST_LIVE_KEYS:
        refusal = f"This workspace has {MOST_LIVE_KEYS} keys. Revoke one that is no longer used."
        return _dialog(request, "partials/key_refused.html", {"refusal": refusal})
    if request.method == "POST" and form.is_valid():
        key, text = form.mint(request.tenant)
        response = render(request, "partials/key_made.html", {"key": key, "text": text})
        return trigger_client_event(response, "keys-changed")
    return _dialog(request, "partials/key_new.html", {"form": form, "has_models": MLModel.objects.exists()})


@require_http_methods(["GET", "POST"])
@owner_required
def key_edit(request, tenant_slug, pk):
    key = get_object_or_404(_live_keys(request), pk=pk)
    form = KeyForm(request.POST or None, instance=key)
    if request.method == "POST" and form.is_valid():
        form.change()
        return saved("keys-changed", toast="The key was changed.")
    return _dialog(request, "partials/key_edit.html", {"form": form, "key": key})


@require_http_methods(["GET", "POST"])
@owner_required
def key_revoke(request, tenant_slug, pk):
    key = get_object_or_404(_live_keys(request), pk=pk)
    if request.method == "POST":
        _live_keys(request).filter(pk=key.pk).update(revoked_at=timezone.now())
        return saved("keys-changed", toast=f"The key {key.name} no longer works.")
    return _dialog(request, "partials/key_revoke.html", {"key": key})


def _live_keys(request: HttpRequest) -> QuerySet:
    return request.tenant.api_keys.filter(revoked_at=None)


def _table(request: HttpRequest) -> dict:
    keys = list(request.tenant.api_keys.all())
    for key in keys:
        key.limits = _limits_in_words(key)
    return {
        "keys": [key for key in keys if key.revoked_at is None],
        "revoked_keys": [key for key in keys if key.revoked_at is not None],
        "has_models": MLModel.objects.exists(),
    }


def _limits_in_words(key: ApiKey) -> list[str]:
    limits = []
    if key.requests_a_minute:
        limits.append(f"{key.requests_a_minute:,} a minute")
    if key.visitor_requests_a_minute:
        limits.append(f"{key.visitor_requests_a_minute:,} a minute and visitor")
    if key.questions_a_month:
        asked = used_this_month(f"key:{key.pk}", timezone.now())
        limits.append(f"{key.questions_a_month:,} a month ({asked:,} asked)")
    return limits


def _dialog(request: HttpRequest, template: str, context: dict):
    return dialog(request, template, context, behind=reverse("keys:key_list", args=[request.tenant.slug]))
