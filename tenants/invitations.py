"""Invitations by e-mail: made and sent by owners, accepted with the link by a person of the invited address alone."""

from smtplib import SMTPException

from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.utils import timezone

from tenants.models import Invitation, Membership, Role, Tenant, invitation_expiry, invitation_token

MOST_OPEN = 50  # a workspace sends no more: it is no way to mail strangers


class MailNotSent(Exception):
    """The invitation stands, but its e-mail did not go out."""


class OtherAddress(Exception):
    """The invitation is for another e-mail address than the person's: a link that went astray opens nothing."""

    def __init__(self, invitation: Invitation, user):
        super().__init__(
            f"The invitation to {invitation.tenant.name} is for {invitation.email}, and you are logged in as "
            f"{user.email or user.username}. To join, log out and open its link again."
        )


def invite(tenant: Tenant, email: str, role: Role) -> Invitation:
    """Return an invitation of this address, in place of an earlier one; raises ValidationError."""
    email = email.lower()
    if tenant.memberships.filter(user__email__iexact=email).exists():
        raise ValidationError(f"{email} is a member already.")
    others = tenant.invitations.exclude(email=email).filter(expires_at__gt=timezone.now())
    if others.count() >= MOST_OPEN:
        raise ValidationError(f"{MOST_OPEN} invitations are open already: revoke some first.")
    fresh = {"role": role, "token": invitation_token(), "expires_at": invitation_expiry()}
    return Invitation.objects.update_or_create(tenant=tenant, email=email, defaults=fresh)[0]


def send(invitation: Invitation, link: str, inviter) -> None:
    """Mail the link to the invited person; raises MailNotSent."""
    context = {"invitation": invitation, "link": link, "inviter": inviter}
    try:
        send_mail(
            subject=f"Join {invitation.tenant.name} on Sitewise",
            message=render_to_string("account/email/invitation.txt", context),
            from_email=None,
            recipient_list=[invitation.email],
        )
    except (SMTPException, OSError) as error:
        raise MailNotSent(f"The e-mail to {invitation.email} could not be sent ({error}).") from error


def renew(invitation: Invitation) -> None:
    """Let an invitation run for its full time again; its link stays the same."""
    invitation.expires_at = invitation_expiry()
    invitation.save(update_fields=["expires_at"])


def find_open(token: str) -> Invitation | None:
    """Return the invitation of this token while it can be accepted, or None."""
    invitation = Invitation.objects.select_related("tenant").filter(token=token).first() if token else None
    return invitation if invitation is not None and invitation.is_open else None


def is_for(invitation: Invitation, user) -> bool:
    """Return whether the invitation was made for this person's e-mail address, in whatever case it is written."""
    return user.email.casefold() == invitation.email.casefold()


def accept(invitation: Invitation, user) -> Membership | None:
    """Make the user a member and use the invitation up; None when it was used up meanwhile. Raises OtherAddress.

    Who is a member already stays what they are: a link must not take a role away.
    """
    if not is_for(invitation, user):
        raise OtherAddress(invitation, user)
    with transaction.atomic():  # noqa: TID251  the control database
        if not Invitation.objects.filter(pk=invitation.pk).delete()[0]:
            return None
        membership, _ = Membership.objects.get_or_create(
            tenant=invitation.tenant, user=user, defaults={"role": invitation.role}
        )
    return membership
