"""Signing up and in, by e-mail: with limits, with links on the installation's address, and open or by invitation."""

import re
from ipaddress import ip_network

import pytest
from django.test import Client

from tenants import invitations
from tenants.accounts import own_address
from tenants.models import Role

SECRET = "a-long-enough-secret"


def sign_up(client, email="bo@example.test", secret=SECRET):
    return client.post("/accounts/signup/", {"email": email, "password1": secret, "password2": secret})


def log_in(client, email, secret):
    return client.post("/accounts/login/", {"login": email, "password": secret})


def test_signing_up_leads_to_making_a_workspace(db, mailoutbox):
    client = Client()
    assert sign_up(client)["Location"] == "/"
    assert client.get("/")["Location"] == "/workspaces/new/"
    assert [mail.to for mail in mailoutbox] == [["bo@example.test"]]
    assert mailoutbox[0].subject.startswith("Sitewise: ")


@pytest.mark.parametrize("email", ["ann@acme.test", "ANN@Acme.Test"])
def test_an_address_signs_up_once_however_it_is_spelled(ann, django_user_model, email):
    response = sign_up(Client(), email)
    assert response.status_code == 200
    assert django_user_model.objects.count() == 1


def test_a_login_does_not_mind_how_the_address_is_spelled(ann):
    assert log_in(Client(), "ANN@ACME.test", "annann-pass").status_code == 302


def test_a_wrong_password_does_not_tell_whether_the_address_is_known(ann):
    pages = [log_in(Client(), email, "wrong").content.decode() for email in ("ann@acme.test", "nobody@acme.test")]
    errors = [re.findall(r"not correct", page) for page in pages]
    assert errors[0] and errors[0] == errors[1]


def test_guessing_a_password_is_stopped_even_when_the_right_one_comes(ann):
    for _ in range(5):
        log_in(Client(), "ann@acme.test", "wrong")
    response = log_in(Client(), "ann@acme.test", "annann-pass")
    assert response.status_code == 200
    assert "Too many failed login attempts" in response.content.decode()


def test_behind_a_proxy_the_tries_are_counted_for_each_visitor(ann, settings):
    """Else ten wrong passwords from anywhere would lock everybody out."""
    settings.SITEWISE_TRUSTED_PROXIES = (ip_network("127.0.0.1"),)
    guesser = Client(headers={"x-forwarded-for": "192.0.2.1"})
    for number in range(11):
        log_in(guesser, f"guess{number}@acme.test", "wrong")
    page = log_in(guesser, "ann@acme.test", "annann-pass").content.decode()
    assert "Too many failed login attempts" in page
    visitor = Client(headers={"x-forwarded-for": "192.0.2.1, 198.51.100.7"})  # the first is what the visitor claims
    assert log_in(visitor, "ann@acme.test", "annann-pass").status_code == 302


def test_what_a_password_must_be_stands_beside_the_field(db):
    page = Client().get("/accounts/signup/").content.decode()
    assert "At least 8 characters" in page and "placeholder" not in page


def test_after_the_login_the_page_that_was_asked_for_opens(ann):
    response = Client().post(
        "/accounts/login/", {"login": "ann@acme.test", "password": "annann-pass", "next": "/acme/members/"}
    )
    assert response["Location"] == "/acme/members/"


def test_a_login_never_leads_to_another_site(ann):
    response = Client().post(
        "/accounts/login/", {"login": "ann@acme.test", "password": "annann-pass", "next": "https://evil.test/"}
    )
    assert response["Location"] == "/"


@pytest.mark.parametrize("secret", ["short", "12345678901", "password123"])
def test_a_weak_password_is_refused(db, secret, django_user_model):
    assert sign_up(Client(), secret=secret).status_code == 200
    assert not django_user_model.objects.exists()


def test_logging_out_is_a_post(browse, ann):
    client = browse(ann)
    client.get("/accounts/logout/")
    assert client.get("/acme/").status_code == 200
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/acme/").status_code == 302


def test_a_forgotten_password_is_replaced_through_the_mail(ann, mailoutbox):
    client = Client()
    assert client.post("/accounts/password/reset/", {"email": "Ann@acme.test"})["Location"].endswith("/reset/done/")
    [mail] = mailoutbox
    address = re.search(r"http://testserver(/\S+)", mail.body)[1]
    form = client.get(address, follow=True)
    client.post(form.request["PATH_INFO"], {"password1": SECRET, "password2": SECRET})
    assert log_in(Client(), "ann@acme.test", SECRET).status_code == 302
    assert "not valid any more" in Client().get(address, follow=True).content.decode()


def test_an_unknown_address_gets_the_same_page(ann):
    answers = [Client().post("/accounts/password/reset/", {"email": f"{who}@acme.test"}) for who in ("ann", "nobody")]
    assert answers[0]["Location"] == answers[1]["Location"]


def test_the_links_in_mails_do_not_follow_the_host_header(ann, mailoutbox, settings):
    """Else whoever asks for a reset under a forged Host gets the link sent to an address of their own."""
    settings.SITEWISE_URL = "https://chat.example.com"
    Client().post("/accounts/password/reset/", {"email": "ann@acme.test"}, headers={"host": "localhost:9"})
    [mail] = mailoutbox
    assert "https://chat.example.com/accounts/password/reset/key/" in mail.body
    assert "localhost" not in mail.body


@pytest.mark.parametrize(
    ("site", "asked", "address"),
    [
        ("http://127.0.0.1:8000", "http://localhost:9000/x?a=1", "http://localhost:9000/x?a=1"),
        ("http://127.0.0.1:8000", "/x", "http://127.0.0.1:8000/x"),
        ("https://chat.example.com", "http://10.0.0.3:8000/x?a=1", "https://chat.example.com/x?a=1"),
        ("https://chat.example.com", "/x", "https://chat.example.com/x"),
    ],
)
def test_addresses_are_those_people_reach_us_under(settings, site, asked, address):
    settings.SITEWISE_URL = site
    assert own_address(asked) == address


def test_a_mail_server_that_is_away_loses_no_sign_up(db, settings, django_user_model):
    settings.EMAIL_BACKEND = "tests.tenants.test_invitations.BrokenMailServer"
    client = Client()
    assert sign_up(client).status_code == 302
    assert django_user_model.objects.filter(email="bo@example.test").exists()
    assert "could not be sent" in client.get("/workspaces/new/").content.decode()


def test_where_sign_up_is_closed_only_the_invited_get_in(acme, settings, django_user_model):
    settings.SITEWISE_SIGNUP_OPEN = False
    assert "Sign-up is closed" in Client().get("/accounts/signup/").content.decode()
    sign_up(Client())
    assert not django_user_model.objects.exists()

    invitation = invitations.invite(acme, "bo@example.test", Role.READER)
    client = Client()
    client.post(f"/workspaces/invitations/{invitation.token}/", {"way": "signup"})
    assert sign_up(client)["Location"] == "/acme/"


def test_an_account_that_was_closed_does_not_get_in(ann):
    ann.is_active = False
    ann.save()
    response = log_in(Client(), "ann@acme.test", "annann-pass")
    assert Client().get("/acme/").status_code == 302
    assert response.status_code in (200, 302)


@pytest.mark.parametrize(
    "address",
    [
        "login/",
        "signup/",
        "password/reset/",
        "password/reset/done/",
        "password/reset/key/done/",
        "confirm-email/",
        "confirm-email/nonsense/",
        "password/reset/key/1-nonsense/",
        "inactive/",
    ],
)
def test_every_page_for_visitors_is_in_our_look(db, address):
    page = Client().get(f"/accounts/{address}", follow=True).content.decode()
    assert "css/tokens.css" in page and "Skip to the content" in page


@pytest.mark.parametrize("address", ["email/", "password/change/", "logout/", "reauthenticate/"])
def test_every_page_of_an_account_is_in_our_look(browse, ann, address):
    page = browse(ann).get(f"/accounts/{address}", follow=True).content.decode()
    assert "css/tokens.css" in page and "Skip to the content" in page
