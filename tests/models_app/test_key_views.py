"""The keys page: for owners; a key is shown once, limited to models and origins, and revoked for good."""

import re

import pytest
from rest_framework.exceptions import AuthenticationFailed

from models_app.key_forms import MOST_LIVE_KEYS
from models_app.models import MLModel
from tenants.authentication import authenticate
from tenants.models import ApiKey, Role
from tenants.store import activated
from tests.conftest import make_person

HTMX = {"HX-Request": "true"}
KEYS = "/acme/keys/"
SECRET = {"name": "Server", "kind": "secret", "model_slugs": ["support"], "origins": ""}
PUBLIC = {"name": "Widget", "kind": "public", "model_slugs": ["support"], "origins": "shop.test\n*.multi.test"}


@pytest.fixture(autouse=True)
def models(acme, globex):
    """Acme has the models support and sales; globex has one of its own."""
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
        MLModel.objects.create(slug="sales", name="Sales & <b>more</b>")
    with activated(globex):
        MLModel.objects.create(slug="gadgets", name="Gadgets")


@pytest.fixture
def owner(browse, ann):
    return browse(ann)


def make(client, wanted):
    return client.post(f"{KEYS}new/", wanted, headers=HTMX)


def test_a_new_key_is_shown_once_and_works(owner):
    response = make(owner, SECRET)
    text = re.search(r'id="key-text">(sws_\S+?)<', response.content.decode())[1]
    assert response.status_code == 200
    assert "keys-changed" in response.headers["HX-Trigger"]
    assert "no-store" in response.headers["Cache-Control"]
    caller = authenticate(f"Bearer {text}", None)
    assert caller.tenant.slug == "acme" and caller.may_use("support") and not caller.may_use("sales")
    listed = owner.get(KEYS).content.decode()
    assert caller.key.prefix in listed and text not in listed


def test_a_public_key_keeps_its_origins_in_one_form(owner):
    make(owner, PUBLIC | {"origins": " https://Shop.test/ \n\n*.multi.test\nshop.test"})
    assert ApiKey.objects.get().allowed_origins == ["https://shop.test", "*.multi.test"]
    assert "https://shop.test" in owner.get(f"{KEYS}table/").content.decode()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": ""}, "This field is required"),
        ({"model_slugs": []}, "This field is required"),
        ({"model_slugs": ["gadgets"]}, "not one of the available choices"),
        ({"model_slugs": ["support", "gadgets"]}, "not one of the available choices"),
        ({"kind": "master"}, "not one of the available choices"),
        ({"origins": ""}, "write at least one"),
        ({"origins": "*"}, "is no site"),
        ({"origins": "https://shop.test/page"}, "is no site"),
        ({"kind": "secret"}, "leave this empty"),
        ({"origins": "\n".join(f"s{number}.test" for number in range(51))}, "At most 50"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field_and_no_key_is_made(owner, change, reason):
    response = make(owner, PUBLIC | change)
    assert response.status_code == 200
    assert reason in response.content.decode()
    assert not ApiKey.objects.exists()


def test_a_models_name_is_text(owner):
    page = owner.get(f"{KEYS}new/", headers=HTMX).content.decode()
    assert "Sales &amp; &lt;b&gt;more&lt;/b&gt;" in page and "gadgets" not in page


def test_a_key_is_changed_but_not_its_kind(owner, acme):
    key, text = ApiKey.mint(
        tenant=acme, name="Widget", kind="public", model_slugs=["support"], allowed_origins=["https://shop.test"]
    )
    assert "kind" not in owner.get(f"{KEYS}{key.pk}/edit/", headers=HTMX).content.decode().split("<form")[1]
    changed = {"name": "Blog", "model_slugs": ["sales"], "origins": "blog.test", "kind": "secret"}
    assert owner.post(f"{KEYS}{key.pk}/edit/", changed, headers=HTMX).status_code == 204
    key.refresh_from_db()
    assert (key.name, key.kind, key.model_slugs, key.allowed_origins) == (
        "Blog",
        "public",
        ["sales"],
        ["https://blog.test"],
    )
    assert authenticate(f"Bearer {text}", "https://blog.test").may_use("sales")


def test_a_public_key_cannot_lose_its_last_origin(owner, acme):
    key, _ = ApiKey.mint(
        tenant=acme, name="Widget", kind="public", model_slugs=["support"], allowed_origins=["https://shop.test"]
    )
    response = owner.post(
        f"{KEYS}{key.pk}/edit/", {"name": "W", "model_slugs": ["support"], "origins": ""}, headers=HTMX
    )
    assert "write at least one" in response.content.decode()
    key.refresh_from_db()
    assert key.allowed_origins == ["https://shop.test"]


def test_a_deleted_model_can_be_taken_off_a_key(owner, acme):
    key, _ = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["gone", "support"])
    assert "gone (deleted)" in owner.get(f"{KEYS}{key.pk}/edit/", headers=HTMX).content.decode()
    owner.post(f"{KEYS}{key.pk}/edit/", {"name": "Server", "model_slugs": ["support"]}, headers=HTMX)
    key.refresh_from_db()
    assert key.model_slugs == ["support"]


def test_a_revoked_key_stops_at_once_and_stays_listed(owner, acme):
    key, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])
    assert "stops getting answers" in owner.get(f"{KEYS}{key.pk}/revoke/", headers=HTMX).content.decode()
    assert owner.post(f"{KEYS}{key.pk}/revoke/", headers=HTMX).status_code == 204
    with pytest.raises(AuthenticationFailed):
        authenticate(f"Bearer {text}", None)
    assert "1 revoked key" in owner.get(KEYS).content.decode()
    for address in ("revoke/", "edit/"):
        assert owner.post(f"{KEYS}{key.pk}/{address}", headers=HTMX).status_code == 404


def test_there_is_an_end_to_keys(owner, acme):
    for number in range(MOST_LIVE_KEYS):
        ApiKey.mint(tenant=acme, name=str(number), kind="secret", model_slugs=["support"])
    assert "Revoke one" in make(owner, SECRET).content.decode()
    assert ApiKey.objects.count() == MOST_LIVE_KEYS


def test_without_a_model_the_page_leads_to_making_one(owner, acme):
    with activated(acme):
        MLModel.objects.all().delete()
    assert "Make a model" in owner.get(KEYS).content.decode()


@pytest.mark.parametrize("role", [Role.READER, Role.EDITOR])
def test_keys_are_the_owners_matter(browse, acme, role):
    key, _ = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])
    client = browse(make_person("ed@acme.test", acme, role))
    assert client.get(KEYS).status_code == client.get(f"{KEYS}table/").status_code == 403
    assert key.prefix not in client.get(KEYS).content.decode()
    assert make(client, SECRET).status_code == 403
    assert client.post(f"{KEYS}{key.pk}/revoke/", headers=HTMX).status_code == 403
    assert ApiKey.objects.get().revoked_at is None


LIMITS = {"requests_a_minute": "600", "visitor_requests_a_minute": "20", "questions_a_month": "5000"}


def test_a_keys_limits_are_set_shown_and_lifted(owner):
    make(owner, PUBLIC | LIMITS)
    key = ApiKey.objects.get()
    assert [getattr(key, name) for name in LIMITS] == [600, 20, 5000]
    assert "600 a minute, 20 a minute and visitor, 5,000 a month (0 asked)" in owner.get(KEYS).content.decode()
    owner.post(f"{KEYS}{key.pk}/edit/", PUBLIC | {"requests_a_minute": ""}, headers=HTMX)
    key.refresh_from_db()
    assert [getattr(key, name) for name in LIMITS] == [None, None, None]
    assert "At most" not in owner.get(KEYS).content.decode()


def test_a_new_key_proposes_a_visitors_limit_and_says_what_each_limit_means(owner):
    page = owner.get(f"{KEYS}new/", headers=HTMX).content.decode()
    assert re.search(r'name="visitor_requests_a_minute"[^>]* value="30"|value="30"[^>]* name="visitor_req', page)
    assert "under a secret key the user or the session that your server names" in page


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_a_limit_is_a_number_of_at_least_one(owner, name, value):
    response = make(owner, SECRET | {name: value})
    assert response.status_code == 200 and not ApiKey.objects.exists()
    assert "greater than or equal to" in response.content.decode() or "whole number" in response.content.decode()
