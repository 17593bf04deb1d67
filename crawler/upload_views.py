"""Files on their way in: chosen, previewed, then imported or discarded."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET, require_POST

from models_app.models import MLModel
from tenants.permissions import editor_required


@require_GET
@editor_required
def upload_dialog(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """The dialog that takes files."""
    get_object_or_404(MLModel, slug=model_slug)
    return HttpResponse(status=204)


@require_POST
@editor_required
def upload_preview(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """What would be imported from the chosen files."""
    get_object_or_404(MLModel, slug=model_slug)
    return HttpResponse(status=204)


@require_POST
@editor_required
def upload_start(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Import what was previewed."""
    get_object_or_404(MLModel, slug=model_slug)
    return HttpResponse(status=204)


@require_POST
@editor_required
def upload_discard(request: HttpRequest, tenant_slug: str, model_slug: str) -> HttpResponse:
    """Forget what was previewed."""
    get_object_or_404(MLModel, slug=model_slug)
    return HttpResponse(status=204)
