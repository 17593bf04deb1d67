"""How people sign up and in: what django-allauth leaves to the installation to decide."""

import logging
from smtplib import SMTPException
from types import SimpleNamespace
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib import messages
from django.urls import reverse

from tenants import invitations
from tenants.models import Invitation
from tenants.public_addresses import LOOPBACK_NAMES
from tenants.visitors import client_address

PENDING_INVITATION = "invitation"  # in the session: the token that a person without a login has said yes to

logger = logging.getLogger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Lets invited people join as they sign up or log in, and keeps links in e-mails on the installation's address."""

    def is_open_for_signup(self, request):
        if settings.SITEWISE_SIGNUP_OPEN:
            return True
        return pending_invitation(request) is not None

    def get_client_ip(self, request):
        return client_address(request)

    def post_login(self, request, user, **options):
        membership = _accept_pending(request, user)
        if membership is not None:
            options["redirect_url"] = reverse("models_app:model_list", args=[membership.tenant.slug])
        return super().post_login(request, user, **options)

    def send_mail(self, template_prefix, email, context):
        site = SimpleNamespace(name="Sitewise", domain=urlsplit(settings.SITEWISE_URL).netloc)
        context = {name: own_address(value) if name.endswith("_url") else value for name, value in context.items()}
        context["current_site"] = site
        try:
            super().send_mail(template_prefix, email, context)
        except (SMTPException, OSError):
            logger.exception("The e-mail %s to %s could not be sent.", template_prefix, email)
            messages.error(self.request, "The e-mail could not be sent just now. Try again in a while.")


def pending_invitation(request) -> Invitation | None:
    """Return the invitation that this visitor has said yes to, while it can be accepted."""
    return invitations.find_open(request.session.get(PENDING_INVITATION, ""))


def display_name(user) -> str:
    """Return what a person is called on pages and in e-mails."""
    return user.email or user.username


def own_address(address: str) -> str:
    """Return an address of ours as it is reached from outside.

    SITEWISE_URL decides, not the Host header, which whoever asks for a password reset may choose. On a laptop the
    address as it was asked for stays, as its port may be any.
    """
    site, asked = urlsplit(settings.SITEWISE_URL), urlsplit(address)
    if asked.netloc and site.hostname in LOOPBACK_NAMES:
        return address
    return asked._replace(scheme=site.scheme, netloc=site.netloc).geturl()


def _accept_pending(request, user):
    invitation = pending_invitation(request)
    request.session.pop(PENDING_INVITATION, None)
    try:
        membership = invitations.accept(invitation, user) if invitation is not None else None
    except invitations.OtherAddress as error:
        messages.error(request, str(error))
        return None
    if membership is not None:
        messages.success(request, f"You are now a member of {membership.tenant.name}.")
    return membership
