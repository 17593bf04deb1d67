"""The members page: for owners; roles, removal and invitations in dialogs; every member may leave."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tenants import invitations
from tenants.models import Invitation, Membership, Role
from tests.conftest import make_person

HTMX = {"HX-Request": "true"}
MEMBERS = "/acme/members/"


@pytest.fixture
def rays(ray) -> Membership:
    return Membership.objects.get(user=ray)


def role_of(person) -> str:
    return Membership.objects.get(user=person).role


def triggers(response) -> str:
    return response.headers.get("HX-Trigger", "")


def test_owners_see_members_and_open_invitations(browse, acme, ann, ray):
    invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    page = browse(ann).get(MEMBERS).content.decode()
    assert "ann@acme.test" in page and "ray@acme.test" in page and "bo@acme.test" in page
    assert f"http://testserver/workspaces/invitations/{invitation.token}/" in page


@pytest.mark.parametrize("role", [Role.READER, Role.EDITOR])
def test_others_are_told_that_the_page_is_for_owners(browse, acme, ann, role):
    ed = make_person("ed@acme.test", acme, role)
    response = browse(ed).get(MEMBERS)
    assert response.status_code == 403
    assert "Only owners" in response.content.decode()
    assert "ann@acme.test" not in response.content.decode()


@pytest.mark.parametrize("role", [Role.READER, Role.EDITOR])
def test_others_change_nothing(browse, acme, ann, role):
    ed = make_person("ed@acme.test", acme, role)
    anns, eds = Membership.objects.get(user=ann), Membership.objects.get(user=ed)
    open_invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    client = browse(ed)
    for address in (
        f"{anns.pk}/remove/",
        f"{eds.pk}/edit/",
        "invite/",
        f"invitations/{open_invitation.pk}/revoke/",
        f"invitations/{open_invitation.pk}/resend/",
    ):
        answer = client.post(MEMBERS + address, {"role": "owner", "email": "x@acme.test"}, headers=HTMX)
        assert answer.status_code == 403
    assert (role_of(ed), role_of(ann)) == (role, Role.OWNER)
    assert [each.email for each in Invitation.objects.all()] == ["bo@acme.test"]


def test_an_owner_changes_a_role(browse, ann, ray, rays):
    client = browse(ann)
    assert "Role of ray@acme.test" in client.get(f"{MEMBERS}{rays.pk}/edit/", headers=HTMX).content.decode()
    response = client.post(f"{MEMBERS}{rays.pk}/edit/", {"role": "editor"}, headers=HTMX)
    assert response.status_code == 204
    assert "members-changed" in triggers(response)
    assert role_of(ray) == Role.EDITOR


def test_a_role_that_is_none_is_refused(browse, ann, ray, rays):
    response = browse(ann).post(f"{MEMBERS}{rays.pk}/edit/", {"role": "emperor"}, headers=HTMX)
    assert response.status_code == 200 and "emperor" in response.content.decode()
    assert role_of(ray) == Role.READER


def test_the_last_owner_stays_and_is_told_why(browse, ann):
    pk = Membership.objects.get(user=ann).pk
    client = browse(ann)
    for answer in (
        client.post(f"{MEMBERS}{pk}/edit/", {"role": "reader"}, headers=HTMX),
        client.post(f"{MEMBERS}{pk}/remove/", headers=HTMX),
        client.post(f"{MEMBERS}leave/", follow=True),
    ):
        assert answer.status_code == 200
        assert "make somebody else an owner first" in answer.content.decode()
    assert role_of(ann) == Role.OWNER


def test_an_owner_who_steps_down_is_led_away_from_the_owners_page(browse, acme, ann):
    make_person("ed@acme.test", acme, Role.OWNER)
    pk = Membership.objects.get(user=ann).pk
    response = browse(ann).post(f"{MEMBERS}{pk}/edit/", {"role": "editor"}, headers=HTMX)
    assert response["HX-Redirect"] == "/"
    assert role_of(ann) == Role.EDITOR


def test_an_owner_removes_a_member(browse, ann, ray, rays):
    response = browse(ann).post(f"{MEMBERS}{rays.pk}/remove/", headers=HTMX)
    assert response.status_code == 204
    assert not Membership.objects.filter(user=ray).exists()
    assert browse(ray).get("/acme/").status_code == 404


def test_a_dialog_opened_as_a_page_leads_to_the_page_it_belongs_to(browse, ann, rays):
    assert browse(ann).get(f"{MEMBERS}{rays.pk}/edit/")["Location"] == MEMBERS


def test_a_reader_leaves(browse, ray):
    response = browse(ray).post(f"{MEMBERS}leave/", follow=True)
    assert "You have left Acme" in response.content.decode()
    assert not Membership.objects.filter(user=ray).exists()


def test_leaving_is_not_a_link(browse, ray):
    assert browse(ray).get(f"{MEMBERS}leave/").status_code == 405


def test_an_invitation_is_mailed_and_listed(browse, ann, mailoutbox):
    response = browse(ann).post(f"{MEMBERS}invite/", {"email": "Bo@Acme.test", "role": "reader"}, headers=HTMX)
    assert response.status_code == 204 and "members-changed" in triggers(response)
    invitation = Invitation.objects.get()
    assert (invitation.email, invitation.role) == ("bo@acme.test", Role.READER)
    [mail] = mailoutbox
    assert f"http://testserver/workspaces/invitations/{invitation.token}/" in mail.body


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ({"email": "ray@acme.test", "role": "reader"}, "is a member already"),
        ({"email": "Bo", "role": "reader"}, "Enter a valid email address"),
        ({"email": "bo@acme.test", "role": "emperor"}, "Select a valid choice"),
        ({"email": "bo@acme.test\nCc: all@acme.test", "role": "reader"}, "Enter a valid email address"),
    ],
)
def test_what_is_wrong_with_an_invitation_stands_beside_the_field(browse, ann, ray, mailoutbox, wanted, reason):
    response = browse(ann).post(f"{MEMBERS}invite/", wanted, headers=HTMX)
    assert response.status_code == 200 and reason in response.content.decode()
    assert not Invitation.objects.exists() and not mailoutbox


def test_a_mail_that_cannot_be_sent_is_said_and_the_link_can_be_copied(browse, ann, settings):
    settings.EMAIL_BACKEND = "tests.tenants.test_invitations.BrokenMailServer"
    client = browse(ann)
    response = client.post(f"{MEMBERS}invite/", {"email": "bo@acme.test", "role": "reader"}, headers=HTMX)
    assert "could not be sent" in triggers(response)
    assert Invitation.objects.get().token in client.get(f"{MEMBERS}table/").content.decode()


def test_invitations_are_not_mailed_without_end(browse, acme, ann, mailoutbox):
    invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    client = browse(ann)
    answers = [client.post(f"{MEMBERS}invitations/{invitation.pk}/resend/", headers=HTMX) for _ in range(31)]
    assert len(mailoutbox) == 30
    assert "no more e-mails" in triggers(answers[-1])


def test_sending_again_lets_an_expired_invitation_run_again(browse, acme, ann, mailoutbox):
    invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    Invitation.objects.update(expires_at=timezone.now() - timedelta(days=1))
    client = browse(ann)
    assert "Expired" in client.get(f"{MEMBERS}table/").content.decode()
    client.post(f"{MEMBERS}invitations/{invitation.pk}/resend/", headers=HTMX)
    assert invitations.find_open(invitation.token) == invitation
    assert invitation.token in mailoutbox[0].body


def test_a_revoked_invitation_opens_nothing(browse, acme, ann):
    invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    response = browse(ann).post(f"{MEMBERS}invitations/{invitation.pk}/revoke/", headers=HTMX)
    assert response.status_code == 204
    assert invitations.find_open(invitation.token) is None
