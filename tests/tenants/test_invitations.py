"""Invitations: the invited person joins with the link, once, in time, and keeps a role they have already."""

from datetime import timedelta

import pytest
from django.core.exceptions import ValidationError
from django.core.mail.backends.base import BaseEmailBackend
from django.utils import timezone

from tenants import invitations
from tenants.models import Invitation, Membership, Role


class BrokenMailServer(BaseEmailBackend):
    """A mail server that cannot be reached."""

    def send_messages(self, messages):
        raise ConnectionRefusedError("Connection refused")


def invited(acme, email="bo@acme.test", role=Role.EDITOR):
    return invitations.invite(acme, email, role)


@pytest.mark.parametrize("email", ["gil@globex.test", "Gil@GLOBEX.test"])
def test_an_invitation_is_accepted_once(acme, gil, email):
    invitation = invited(acme, email)
    membership = invitations.accept(invitation, gil)
    assert (membership.tenant, membership.user, membership.role) == (acme, gil, Role.EDITOR)
    assert invitations.find_open(invitation.token) is None
    assert invitations.accept(invitation, gil) is None


def test_an_address_is_the_same_in_whatever_case_an_account_was_made_with_it(acme, django_user_model):
    bo = django_user_model.objects.create_user(username="bo", email="Bo@Acme.test")
    assert invitations.accept(invited(acme, "bo@acme.test"), bo).user == bo


def test_a_link_that_went_astray_lets_nobody_in_and_stays_open(acme, gil):
    invitation = invited(acme, role=Role.OWNER)
    with pytest.raises(invitations.OtherAddress, match=r"for bo@acme\.test.*as gil@globex\.test"):
        invitations.accept(invitation, gil)
    assert not Membership.objects.filter(tenant=acme).exists()
    assert invitations.find_open(invitation.token) == invitation


def test_an_address_is_invited_in_one_spelling_and_one_invitation(acme):
    first = invited(acme, "Bo@ACME.test")
    second = invited(acme, "bo@acme.test", Role.OWNER)
    assert Invitation.objects.get() == second
    assert second.email == "bo@acme.test"
    assert invitations.find_open(first.token) is None
    assert invitations.find_open(second.token).role == Role.OWNER


@pytest.mark.parametrize("email", ["ann@acme.test", "ANN@acme.test"])
def test_a_member_is_not_invited_again(acme, ann, email):
    with pytest.raises(ValidationError, match="member already"):
        invited(acme, email)


def test_a_member_who_accepts_keeps_the_role_they_have(acme, ann):
    invitation = invited(acme, role=Role.READER)
    ann.email = invitation.email  # changed since
    assert invitations.accept(invitation, ann).role == Role.OWNER
    assert Membership.objects.filter(tenant=acme).count() == 1


def test_an_expired_invitation_opens_nothing_until_it_is_renewed(acme):
    invitation = invited(acme)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert invitations.find_open(invitation.token) is None
    invitations.renew(invitation)
    assert invitations.find_open(invitation.token) == invitation


def test_a_suspended_tenants_invitations_wait(acme):
    invitation = invited(acme)
    acme.is_suspended = True
    acme.save()
    assert invitations.find_open(invitation.token) is None


def test_an_invitation_ends_with_its_tenant(acme):
    invitation = invited(acme)
    acme.delete()
    assert invitations.find_open(invitation.token) is None


@pytest.mark.parametrize("token", ["", "x", "' OR 1=1 --", "a" * 500])
def test_a_made_up_token_opens_nothing(acme, token):
    invited(acme)
    assert invitations.find_open(token) is None


def test_a_workspace_is_no_way_to_mail_strangers(acme):
    for number in range(invitations.MOST_OPEN):
        invited(acme, f"guest{number}@acme.test")
    with pytest.raises(ValidationError, match="revoke"):
        invited(acme, "one-more@acme.test")
    assert invited(acme, "guest0@acme.test")  # again, in place of the first


def test_the_mail_says_who_invites_whereto_and_how(acme, ann, mailoutbox):
    acme.name = "Fish & <b>Chips</b>"
    invitation = invited(acme)
    invitations.send(invitation, "https://chat.example.com/join", inviter=ann)
    [mail] = mailoutbox
    assert mail.to == ["bo@acme.test"]
    assert mail.subject == "Join Fish & <b>Chips</b> on Sitewise"
    assert 'ann@acme.test invites you to the workspace "Fish & <b>Chips</b>"' in mail.body
    assert "https://chat.example.com/join" in mail.body
    assert mail.content_subtype == "plain" and not mail.alternatives


def test_a_mail_that_cannot_be_sent_leaves_the_invitation(acme, ann, settings):
    settings.EMAIL_BACKEND = "tests.tenants.test_invitations.BrokenMailServer"
    invitation = invited(acme)
    with pytest.raises(invitations.MailNotSent, match="Connection refused"):
        invitations.send(invitation, "https://chat.example.com/join", inviter=ann)
    assert invitations.find_open(invitation.token) == invitation
