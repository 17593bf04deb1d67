"""A person's workspaces: the way in, a new one, and joining one by a link."""

import pytest
from django.conf import settings
from django.contrib.messages import get_messages
from django.test import Client

from models_app.models import MLModel
from tenants import invitations
from tenants.models import Invitation, Membership, Role, Tenant
from tenants.store import activated, delete_store

XSS = "<script>alert(1)</script>"


@pytest.fixture
def bo(django_user_model):
    """Somebody with an account and no workspace."""
    return django_user_model.objects.create_user(username="bo", email="bo@example.test", password="bo-bo-pass")


@pytest.fixture
def bakery(db):
    """Nothing yet: what is made under the slug bakery is removed after the test."""
    yield "bakery"
    for tenant in Tenant.objects.filter(slug__startswith="bakery"):
        delete_store(tenant)


def test_a_visitor_sees_what_it_is_and_how_to_get_in(db):
    page = Client().get("/").content.decode()
    assert "/accounts/signup/" in page and "/accounts/login/" in page


def test_a_person_without_a_workspace_is_led_to_making_one(browse, bo):
    assert browse(bo).get("/")["Location"] == "/workspaces/new/"


def test_an_operator_without_a_workspace_is_led_to_the_operators_pages(browse, django_user_model):
    operator = django_user_model.objects.create_superuser("op", "op@sitewise.test", "op-op-pass")
    assert browse(operator).get("/")["Location"] == "/staff/"


def test_a_person_with_one_workspace_is_led_into_it(browse, ray):
    assert browse(ray).get("/")["Location"] == "/acme/"


def test_a_person_with_two_workspaces_chooses(browse, ann, globex):
    Membership.objects.create(tenant=globex, user=ann, role=Role.READER)
    response = browse(ann).get("/", follow=True)
    assert response.redirect_chain == [("/workspaces/", 302)]
    assert 'href="/acme/"' in response.content.decode() and 'href="/globex/"' in response.content.decode()


def test_a_suspended_workspace_is_said_to_be(browse, acme, ann):
    acme.is_suspended = True
    acme.save()
    page = browse(ann).get("/", follow=True).content.decode()
    assert "Suspended" in page and 'href="/acme/"' not in page


def test_a_name_is_text_wherever_it_stands(browse, acme, ann):
    Tenant.objects.update(name=XSS)
    for address in ("/workspaces/", "/acme/", "/acme/members/", "/acme/keys/"):
        page = browse(ann).get(address).content.decode()
        assert XSS not in page
        assert "&lt;script&gt;alert(1)" in page


def test_a_new_workspace_belongs_to_who_made_it(browse, bo, bakery):
    response = browse(bo).post("/workspaces/new/", {"name": "The Bakery", "slug": bakery})
    assert response["Location"] == "/bakery/"
    assert Membership.objects.get(tenant__slug=bakery, user=bo).role == Role.OWNER
    with activated(Tenant.objects.get()):
        assert not MLModel.objects.exists()


def test_without_a_slug_the_name_makes_it(browse, bo, bakery):
    browse(bo).post("/workspaces/new/", {"name": "Bakery: Bread & Cäke", "slug": ""})
    assert Tenant.objects.get().slug == "bakery-bread-cake"


@pytest.mark.parametrize(
    ("name", "slug", "reason"),
    [
        ("Staff", "", "is reserved: choose another name"),
        ("Acme", "", "This address is taken"),
        ("Acme", "A b", "Use lower-case letters, digits and hyphens"),
        ("面包店", "", "No address can be made from this name"),
        ("", "fine", "This field is required"),
        ("Line\nbreak", "fine", "in one line"),
    ],
)
def test_what_will_not_do_is_said_beside_the_field_and_nothing_is_lost(browse, bo, acme, name, slug, reason):
    response = browse(bo).post("/workspaces/new/", {"name": name, "slug": slug})
    assert response.status_code == 200
    assert reason in response.content.decode()
    assert response.context["form"]["name"].value() == name
    assert Tenant.objects.count() == 1


def test_a_disk_that_takes_no_store_leaves_no_half_made_workspace(browse, bo, settings, tmp_path):
    settings.STORES_DIR = tmp_path / "a file"
    settings.STORES_DIR.touch()
    response = browse(bo).post("/workspaces/new/", {"name": "Bakery"})
    assert response.status_code == 200
    assert "could not be made just now" in response.content.decode()
    assert not Tenant.objects.exists()


def test_workspaces_are_not_made_by_the_hundred(browse, bo, bakery):
    client = browse(bo)
    for number in range(10):
        assert client.post("/workspaces/new/", {"name": f"Bakery {number}"}).status_code == 302
    assert client.post("/workspaces/new/", {"name": "Bakery 11"}).status_code == 429
    assert Tenant.objects.count() == 10


@pytest.fixture
def invitation(acme) -> Invitation:
    """An open invitation of bo@example.test to acme, as an editor."""
    return invitations.invite(acme, "bo@example.test", Role.EDITOR)


def link(invitation):
    return f"/workspaces/invitations/{invitation.token}/"


def test_opening_the_link_changes_nothing(browse, bo, invitation):
    page = browse(bo).get(link(invitation))
    assert "Join Acme" in page.content.decode()
    assert not Membership.objects.filter(user=bo).exists()
    assert "no-store" in page["Cache-Control"]


def test_a_person_with_a_login_joins(browse, bo, invitation):
    response = browse(bo).post(link(invitation))
    assert response["Location"] == "/acme/"
    assert Membership.objects.get(user=bo).role == Role.EDITOR
    assert not Invitation.objects.exists()


def test_a_link_used_twice_is_gone(browse, bo, gil, invitation):
    browse(bo).post(link(invitation))
    for response in (browse(bo).post(link(invitation)), browse(gil).get(link(invitation))):
        assert response.status_code == 404
        assert "not valid any more" in response.content.decode()
    assert not Membership.objects.filter(user=gil, tenant__slug="acme").exists()


def test_who_is_logged_in_under_another_address_is_told_and_does_not_join(browse, gil, invitation):
    client = browse(gil)
    asked, refused = client.get(link(invitation)), client.post(link(invitation))
    assert (asked.status_code, refused.status_code) == (200, 403)
    for page in (asked.content.decode(), refused.content.decode()):
        assert "bo@example.test" in page and "you are logged in as gil@globex.test" in page
    assert not Membership.objects.filter(user=gil, tenant__slug="acme").exists()
    left = client.post("/accounts/logout/", {"next": link(invitation)})
    assert left["Location"] == link(invitation)
    assert "Sign up and join" in client.get(link(invitation)).content.decode()


def test_who_logs_in_under_another_address_does_not_join_and_is_told(gil, invitation):
    client = Client()
    client.post(link(invitation), {"way": "login"})
    client.post("/accounts/login/", {"login": "gil@globex.test", "password": "gilgil-pass"})
    assert not Membership.objects.filter(user=gil, tenant__slug="acme").exists()
    assert "is for bo@example.test" in client.get("/workspaces/").content.decode()
    assert invitations.find_open(invitation.token) == invitation


def test_who_signs_up_by_an_invitation_gets_the_invited_address(invitation, django_user_model):
    client = Client()
    client.post(link(invitation), {"way": "signup"})
    secret = "a-long-enough-secret"
    client.post("/accounts/signup/", {"email": "eve@example.test", "password1": secret, "password2": secret})
    assert [user.email for user in django_user_model.objects.filter(memberships__tenant__slug="acme")] == [
        "bo@example.test"
    ]
    assert not django_user_model.objects.filter(email="eve@example.test").exists()


def test_a_member_is_told_that_they_are_one(browse, ann, invitation):
    assert "You are a member already" in browse(ann).get(link(invitation)).content.decode()


def test_who_has_no_account_signs_up_and_is_in(invitation, django_user_model):
    client = Client()
    response = client.post(link(invitation), {"way": "signup"})
    assert response["Location"] == "/accounts/signup/?email=bo%40example.test"
    assert "bo@example.test" in client.get(response["Location"]).content.decode()
    secret = "a-long-enough-secret"
    joined = client.post("/accounts/signup/", {"email": "bo@example.test", "password1": secret, "password2": secret})
    assert joined["Location"] == "/acme/"
    bo = django_user_model.objects.get(email="bo@example.test")
    assert Membership.objects.get(user=bo).role == Role.EDITOR
    assert client.get("/acme/").status_code == 200


def test_who_has_an_account_logs_in_and_is_in(bo, invitation):
    client = Client()
    assert client.post(link(invitation), {"way": "login"})["Location"] == "/accounts/login/"
    joined = client.post("/accounts/login/", {"login": "bo@example.test", "password": "bo-bo-pass"})
    assert joined["Location"] == "/acme/"
    assert Membership.objects.get(user=bo).tenant.slug == "acme"
    assert "You are now a member of Acme." in [str(message) for message in get_messages(joined.wsgi_request)]


def test_an_invitation_withdrawn_before_the_login_lets_nobody_in(bo, invitation):
    client = Client()
    client.post(link(invitation), {"way": "login"})
    invitation.delete()
    response = client.post("/accounts/login/", {"login": "bo@example.test", "password": "bo-bo-pass"})
    assert response["Location"] == settings.LOGIN_REDIRECT_URL or response["Location"] == "/"
    assert not Membership.objects.filter(user=bo).exists()


def test_opening_a_link_without_pressing_join_does_not_let_a_later_login_in(bo, invitation):
    client = Client()
    client.get(link(invitation))
    client.post("/accounts/login/", {"login": "bo@example.test", "password": "bo-bo-pass"})
    assert not Membership.objects.filter(user=bo).exists()
