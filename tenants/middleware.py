"""Takes the tenant out of the address, lets its members in, and activates its store while the page is made."""

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django_htmx.http import HttpResponseClientRedirect, trigger_client_event

from tenants.models import Membership, Role
from tenants.store import StoreNotReady, activated


class TenantMiddleware:
    """Sets request.tenant and request.role on every address with a tenant in it; 404 for everyone else."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        slug = _tenant_slug(request.path_info)
        if slug is None:
            return self.get_response(request)
        if not request.user.is_authenticated:
            return _to_login(request)
        membership = (
            Membership.objects.select_related("tenant")
            .filter(tenant__slug=slug, tenant__is_suspended=False, user=request.user)
            .first()
        )
        if membership is None:
            raise Http404
        request.tenant, request.role = membership.tenant, Role(membership.role)
        try:
            with activated(membership.tenant):
                return self.get_response(request)
        except StoreNotReady as error:
            return _not_ready(request, error)

    def process_exception(self, request, error):
        """Answer for a view whose query came upon damage: around the view Django makes a plain 500 of all errors."""
        return _not_ready(request, error) if isinstance(error, StoreNotReady) else None


def _not_ready(request: HttpRequest, error: StoreNotReady) -> HttpResponse:
    response = render(request, "pages/store_not_ready.html", {"error": error}, status=503)
    # The page takes the place of no part of another one: there it is said in a line.
    text = f"This did not work. {error}."
    return trigger_client_event(response, "toast", {"text": text, "level": "bad"}) if request.htmx else response


def _tenant_slug(path: str) -> str | None:
    try:
        return resolve(path).kwargs.get("tenant_slug")
    except Resolver404:
        return None


def _to_login(request: HttpRequest) -> HttpResponse:
    """Send a person whose session has ended to the login page, and from there back to the page they were looking at."""
    if request.htmx:
        return HttpResponseClientRedirect(redirect_to_login(request.htmx.current_url_abs_path or "/").url)
    return redirect_to_login(request.get_full_path() if request.method == "GET" else "/")
