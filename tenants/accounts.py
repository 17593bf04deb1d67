"""How people sign up and in: what django-allauth leaves to the installation to decide."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings

from tenants.models import Invitation


class AccountAdapter(DefaultAccountAdapter):
    """Closes sign-up where the operator wants that, except for people who hold an invitation."""

    def is_open_for_signup(self, request):
        if settings.SITEWISE_SIGNUP_OPEN:
            return True
        invitation = Invitation.objects.filter(token=request.session.get("invitation", "")).first()
        return invitation is not None and invitation.is_open
