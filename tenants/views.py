"""A person's workspaces: the way in, their list, a new one, and joining one by invitation."""

from allauth.core import ratelimit
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.shortcuts import redirect, render
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from tenants import invitations
from tenants.accounts import PENDING_INVITATION
from tenants.forms import TenantForm
from tenants.models import Membership, Role

FORM_METHODS = ["GET", "POST"]


@require_GET
def home(request):
    """The way in: what Sitewise is, for a visitor; for a member their only workspace, or the list of all."""
    if not request.user.is_authenticated:
        return render(request, "pages/home.html")
    memberships = _memberships(request)
    if not memberships:
        return redirect("admin:index" if request.user.is_staff else "tenants:tenant_new")
    if len(memberships) == 1 and not memberships[0].tenant.is_suspended:
        return redirect("models_app:model_list", memberships[0].tenant.slug)
    return redirect("tenants:tenant_list")


@require_GET
@login_required
def tenant_list(request):
    return render(request, "pages/tenant_list.html", {"memberships": _memberships(request)})


@require_http_methods(FORM_METHODS)
@login_required
def tenant_new(request):
    """Make a workspace whose owner the person is."""
    form = TenantForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        limited = ratelimit.consume_or_429(request, action="create_tenant")
        if limited:
            return limited
        tenant = form.create(owner=request.user)
        if tenant is not None:
            messages.success(request, f"The workspace {tenant.name} is ready.")
            return redirect("models_app:model_list", tenant.slug)
    return render(request, "pages/tenant_new.html", {"form": form, "is_first": not _memberships(request)})


@require_http_methods(FORM_METHODS)
@never_cache
def invitation_page(request, token):
    """What an invitation's link opens. Joining is a POST: an address alone changes nothing."""
    invitation = invitations.find_open(token)
    if invitation is None:
        return render(request, "pages/invitation_gone.html", status=404)
    if request.method == "POST" and not request.user.is_authenticated:
        return _join_after_login(request, invitation)
    if request.method == "POST" and invitations.is_for(invitation, request.user):
        return _join(request, invitation)
    return _invitation(request, invitation, status=403 if request.method == "POST" else 200)


def _invitation(request: HttpRequest, invitation, status: int):
    context = {"invitation": invitation, "role": Role(invitation.role), "membership": _membership(request, invitation)}
    context["is_for_user"] = request.user.is_authenticated and invitations.is_for(invitation, request.user)
    return render(request, "pages/invitation_page.html", context, status=status)


def _join(request: HttpRequest, invitation):
    membership = invitations.accept(invitation, request.user)
    if membership is None:
        return render(request, "pages/invitation_gone.html", status=404)
    messages.success(request, f"You are now a member of {invitation.tenant.name}.")
    return redirect("models_app:model_list", invitation.tenant.slug)


def _join_after_login(request: HttpRequest, invitation):
    """Remember that this person said yes; accounts.AccountAdapter lets them join once they are logged in."""
    request.session[PENDING_INVITATION] = invitation.token
    if request.POST.get("way") == "login":
        return redirect("account_login")
    response = redirect("account_signup")
    response["Location"] += "?" + urlencode({"email": invitation.email})
    return response


def _membership(request: HttpRequest, invitation) -> Membership | None:
    if not request.user.is_authenticated:
        return None
    return Membership.objects.filter(tenant=invitation.tenant, user=request.user).first()


def _memberships(request: HttpRequest) -> list[Membership]:
    return list(request.user.memberships.select_related("tenant").order_by("tenant__name"))
