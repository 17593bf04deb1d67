"""What a member's role allows: decorators of dashboard views. Who is a member at all is the middleware's matter."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import trigger_client_event

from tenants.models import Role


def editor_required(view: Callable) -> Callable:
    """Return the view, for editors and owners only; a reader gets 403 with the reason."""
    return _allowing(
        view, lambda role: role.may_edit, "You may look at everything here, but only editors and owners change it."
    )


def owner_required(view: Callable) -> Callable:
    """Return the view, for owners only; everyone else gets 403 with the reason."""
    return _allowing(view, lambda role: role.may_own, "Only owners of this workspace may do that.")


def refused(request: HttpRequest, reason: str) -> HttpResponse:
    """Return 403 that says why: a message over the page for htmx, else a page of its own."""
    if request.htmx:
        return trigger_client_event(HttpResponse(reason, status=403), "toast", {"text": reason, "level": "bad"})
    return render(request, "403.html", {"reason": reason}, status=403)


def _allowing(view: Callable, is_allowed: Callable[[Role], bool], reason: str) -> Callable:
    @wraps(view)
    def guarded(request, *arguments, **options):
        return view(request, *arguments, **options) if is_allowed(request.role) else refused(request, reason)

    return guarded
