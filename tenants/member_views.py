"""A workspace's members and open invitations, which its owners see and change. Every member may leave."""

from allauth.core import ratelimit
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from tenants import invitations, members
from tenants.accounts import own_address
from tenants.dialogs import dialog, saved
from tenants.forms import InvitationForm, RoleForm
from tenants.models import Invitation, Role
from tenants.permissions import owner_required

FORM_METHODS = ["GET", "POST"]


@require_GET
@owner_required
def member_list(request, tenant_slug):
    return render(request, "pages/member_list.html", _table(request))


@require_GET
@owner_required
def member_table(request, tenant_slug):
    return render(request, "partials/member_table.html", _table(request))


@require_http_methods(FORM_METHODS)
@owner_required
def member_edit(request, tenant_slug, pk):
    """The dialog of a member's role."""
    membership = get_object_or_404(request.tenant.memberships.select_related("user"), pk=pk)
    form = RoleForm(request.POST or None, instance=membership)
    if request.method == "POST" and form.is_valid():
        try:
            members.change_role(membership, Role(form.cleaned_data["role"]))
            return _done(request, f"{membership.user.email} now has the role {membership.role}.")
        except members.LastOwner as error:
            form.add_error("role", str(error))
    return _dialog(request, "partials/member_edit.html", {"form": form, "membership": membership})


@require_http_methods(FORM_METHODS)
@owner_required
def member_remove(request, tenant_slug, pk):
    membership = get_object_or_404(request.tenant.memberships.select_related("user"), pk=pk)
    refusal = ""
    if request.method == "POST":
        try:
            members.remove(membership)
            return _done(request, f"{membership.user.email} is no longer a member.")
        except members.LastOwner as error:
            refusal = str(error)
    return _dialog(request, "partials/member_remove.html", {"membership": membership, "refusal": refusal})


@require_POST
def member_leave(request, tenant_slug):
    """End the person's own membership, whatever their role."""
    membership = get_object_or_404(request.tenant.memberships, user=request.user)
    try:
        members.remove(membership)
        messages.success(request, f"You have left {request.tenant.name}.")
    except members.LastOwner as error:
        messages.error(request, str(error))
    return redirect("tenants:tenant_list")


@require_http_methods(FORM_METHODS)
@owner_required
def member_invite(request, tenant_slug):
    form = InvitationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            invitation = invitations.invite(request.tenant, form.cleaned_data["email"], Role(form.cleaned_data["role"]))
            return _send(request, invitation)
        except ValidationError as error:
            form.add_error("email", error)
    return _dialog(request, "partials/member_invite.html", {"form": form})


@require_POST
@owner_required
def invitation_resend(request, tenant_slug, pk):
    invitation = get_object_or_404(request.tenant.invitations, pk=pk)
    invitations.renew(invitation)
    return _send(request, invitation)


@require_http_methods(FORM_METHODS)
@owner_required
def invitation_revoke(request, tenant_slug, pk):
    invitation = get_object_or_404(request.tenant.invitations, pk=pk)
    if request.method == "POST":
        invitation.delete()
        return saved("members-changed", toast=f"The invitation of {invitation.email} no longer works.")
    return _dialog(request, "partials/invitation_revoke.html", {"invitation": invitation})


def _send(request: HttpRequest, invitation: Invitation):
    """Mail the invitation; when that fails, or is done too often, it stands all the same, with its link to copy."""
    if not ratelimit.consume(request, action="invite", user=request.user):
        text = "The invitation stands, but no more e-mails go out for a while: pass its link on yourself."
        return saved("members-changed", toast=text, level="bad")
    try:
        invitations.send(invitation, _link(request, invitation), inviter=request.user)
    except invitations.MailNotSent as error:
        text = f"{error} The invitation stands: pass its link on yourself."
        return saved("members-changed", toast=text, level="bad")
    return saved("members-changed", toast=f"An invitation is on its way to {invitation.email}.")


def _done(request: HttpRequest, toast: str):
    """Close the dialog; who is no owner any more is led away from the page, which is for owners."""
    if not request.tenant.memberships.filter(user=request.user, role=Role.OWNER).exists():
        return HttpResponseClientRedirect(reverse("home"))
    return saved("members-changed", toast=toast)


def _dialog(request: HttpRequest, template: str, context: dict):
    return dialog(request, template, context, behind=reverse("tenant:member_list", args=[request.tenant.slug]))


def _table(request: HttpRequest) -> dict:
    return {
        "memberships": request.tenant.memberships.select_related("user"),
        "invitations": [(each, _link(request, each)) for each in request.tenant.invitations.all()],
    }


def _link(request: HttpRequest, invitation: Invitation) -> str:
    return own_address(request.build_absolute_uri(reverse("tenants:invitation_page", args=[invitation.token])))
