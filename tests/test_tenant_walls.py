"""The tenants' walls, over every route there is: logged out, as another tenant's owner, with another tenant's key.

A route that is added later is walked by itself; one that belongs behind no known wall fails the first test.
"""

import pytest
from django.test import Client

from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated
from tests.walls import (
    OWNED_ID,
    OWNED_SLUG,
    SECRET_WORD,
    UNKNOWN_ID,
    UNKNOWN_SLUG,
    Route,
    everything_stored,
    own_one_of_everything,
    routes,
    shown,
)

METHODS = ("get", "post", "put", "patch", "delete")
HTMX = ({}, {"HX-Request": "true"})
API = "v1/"
STAFF = "staff/"
ACCOUNTS = "accounts/"
# Addresses that belong to no tenant, and who may open them.
FOR_EVERYBODY = {"", "workspaces/invitations/<str:token>/"}
FOR_PEOPLE_WITH_A_LOGIN = {"workspaces/", "workspaces/new/"}

ROUTES = sorted(routes(), key=lambda route: route.pattern)
OF_TENANTS = [route for route in ROUTES if "tenant_slug" in route.parameters]
OF_OBJECTS = [route for route in OF_TENANTS if route.parameters - {"tenant_slug"}]
OF_API = [route for route in ROUTES if route.pattern.startswith(API)]
OF_STAFF = [route for route in ROUTES if route.pattern.startswith(STAFF)]

each_method = pytest.mark.parametrize("method", METHODS)


def each(walked: list[Route]):
    return pytest.mark.parametrize("route", walked, ids=lambda route: route.pattern)


@pytest.fixture
def owned(acme, globex):
    """Acme owns one of everything; returns the function that says all that is stored, of both tenants."""
    own_one_of_everything(acme)
    return lambda: everything_stored(acme, globex)


@pytest.fixture
def globex_key(globex) -> str:
    """A secret key of globex for a model of its own, and for one that is called as acme's."""
    with activated(globex):
        MLModel.objects.create(slug="gadgets", name="Gadgets")
    models = ["gadgets", OWNED_SLUG, UNKNOWN_SLUG]
    return ApiKey.mint(tenant=globex, name="Server", kind="secret", model_slugs=models)[1]


def send(client: Client, method: str, address: str, headers=None):
    asked = {"model": OWNED_SLUG, "messages": [{"role": "user", "content": SECRET_WORD}]}
    return getattr(client, method)(address, headers=headers or {}, **({} if method == "get" else as_json(asked)))


def as_json(body: dict) -> dict:
    return {"data": body, "content_type": "application/json"}


def test_every_route_stands_behind_a_wall_that_is_tested_here():
    known = {*FOR_EVERYBODY, *FOR_PEOPLE_WITH_A_LOGIN}
    unknown = [
        route.pattern
        for route in ROUTES
        if route.pattern not in known
        and "tenant_slug" not in route.parameters
        and not route.pattern.startswith((API, STAFF, ACCOUNTS))
    ]
    assert not unknown, "say who may open these, and test it"
    assert len(OF_TENANTS) > 15 and len(OF_OBJECTS) > 5 and OF_API and OF_STAFF


def test_every_route_of_a_tenant_starts_with_its_slug():
    """The middleware finds the tenant by the parameter: one under another name would stand outside of the walls."""
    assert all(route.pattern.startswith("<slug:tenant_slug>/") for route in OF_TENANTS)
    assert {name for route in OF_TENANTS for name in route.parameters} <= {"tenant_slug", "model_slug", "pk"}


@each(OF_TENANTS)
def test_the_owner_gets_in(route, owned, browse, ann):
    """Else the other tests would only prove that the addresses they try are wrong."""
    for headers in HTMX:
        response = browse(ann).get(route.address("acme", OWNED_SLUG, OWNED_ID), headers=headers)
        assert response.status_code in (200, 204, 286, 302, 405), response.status_code
        assert "/accounts/login/" not in response.headers.get("Location", "")


@each(OF_TENANTS)
def test_logged_out_every_page_leads_to_the_login(route, owned):
    before = owned()
    for method in METHODS:
        for headers in HTMX:
            response = send(Client(), method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
            target = response.headers.get("HX-Redirect" if headers else "Location")
            assert target.startswith("/accounts/login/?next=/")
            assert response.status_code == (200 if headers else 302)
            assert SECRET_WORD not in shown(response)
    assert owned() == before


@each(OF_TENANTS)
def test_another_tenants_owner_finds_what_a_stranger_finds_where_no_tenant_is(route, owned, browse, gil):
    before, client = owned(), browse(gil)
    for method in METHODS:
        for headers in HTMX:
            foreign = send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
            absent = send(client, method, route.address("nobody", OWNED_SLUG, OWNED_ID), headers)
            assert foreign.status_code == absent.status_code == 404
            assert shown(foreign, "acme") == shown(absent, "nobody")
    assert owned() == before


@each(OF_OBJECTS)
def test_another_tenants_objects_are_not_there_under_ones_own_slug(route, owned, browse, gil):
    before, client = owned(), browse(gil)
    for headers in HTMX:
        answers = {}
        for method in METHODS:
            foreign = send(client, method, route.address("globex", OWNED_SLUG, OWNED_ID), headers)
            absent = send(client, method, route.address("globex", UNKNOWN_SLUG, UNKNOWN_ID), headers)
            assert foreign.status_code == absent.status_code
            assert foreign.status_code in (404, 405)
            assert shown(foreign, OWNED_SLUG, str(OWNED_ID)) == shown(absent, UNKNOWN_SLUG, str(UNKNOWN_ID))
            answers[method] = foreign.status_code
        assert 404 in answers.values()
    assert owned() == before


@each([route for route in OF_OBJECTS if {"model_slug", "pk"} <= route.parameters])
def test_an_object_of_one_model_is_not_there_under_another(route, owned, browse, acme, ann):
    with activated(acme):
        MLModel.objects.create(slug="second", name="Second")
    before, client = owned(), browse(ann)
    for headers in HTMX:
        for method in METHODS:
            sibling = send(client, method, route.address("acme", "second", OWNED_ID), headers)
            assert sibling.status_code in (404, 405)
            assert SECRET_WORD not in shown(sibling)
    assert owned() == before


@each(OF_TENANTS)
def test_a_suspended_tenant_is_closed_to_its_owner(route, owned, browse, acme, ann):
    acme.is_suspended = True
    acme.save()
    before = owned()
    for method in ("get", "post"):
        assert send(browse(ann), method, route.address("acme", OWNED_SLUG, OWNED_ID)).status_code == 404
    assert owned() == before


@each(OF_TENANTS)
def test_a_reader_changes_nothing(route, owned, browse, ray):
    """What a reader may send besides: leaving, and questions on the Test tab, which change no row of the tenant's."""
    before, client = owned(), browse(ray)
    if route.pattern.endswith("members/leave/"):
        return
    for headers in HTMX:
        for method in METHODS[1:]:
            send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
    assert owned() == before


@each(OF_API)
@each_method
def test_without_a_key_the_api_opens_nothing(route, method, owned):
    before = owned()
    for headers in ({}, {"Authorization": "Bearer sws_0123456789ab_x"}, {"Authorization": "Basic YTpi"}):
        response = send(Client(), method, route.address("", OWNED_SLUG, OWNED_ID), headers)
        assert response.status_code in (401, 404, 405)
        assert "error" in response.json()
        assert SECRET_WORD not in shown(response)
    assert owned() == before


@each(OF_API)
@each_method
def test_with_another_tenants_key_a_model_is_not_there(route, method, owned, globex_key):
    """The key names a model as acme's is called: names are the tenant's own, so it opens nothing of acme's."""
    before = owned()
    headers = {"Authorization": f"Bearer {globex_key}"}
    foreign = send(Client(), method, route.address("", OWNED_SLUG, OWNED_ID), headers)
    asked = {"model": UNKNOWN_SLUG, "messages": [{"role": "user", "content": SECRET_WORD}]}
    body = {} if method == "get" else as_json(asked)
    absent = getattr(Client(), method)(route.address("", UNKNOWN_SLUG, UNKNOWN_ID), headers=headers, **body)
    assert foreign.status_code == absent.status_code
    assert shown(foreign, OWNED_SLUG) == shown(absent, UNKNOWN_SLUG)
    assert SECRET_WORD not in shown(foreign)
    after = owned()
    assert {name: rows for name, rows in after.items() if name != "ApiKey"} == {
        name: rows for name, rows in before.items() if name != "ApiKey"
    }  # that the key was used is noted on the key


def test_a_session_cookie_is_no_key(owned, browse, ann):
    for route in OF_API:
        for method in ("get", "post"):
            answer = send(browse(ann), method, route.address("", OWNED_SLUG, OWNED_ID))
            assert answer.status_code in (401, 404, 405)
            assert SECRET_WORD not in shown(answer)


def test_a_key_is_no_login(owned, acme):
    _, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=[OWNED_SLUG])
    for route in OF_TENANTS:
        response = Client().get(
            route.address("acme", OWNED_SLUG, OWNED_ID), headers={"Authorization": f"Bearer {text}"}
        )
        assert response.status_code == 302


@pytest.mark.parametrize("pattern", sorted(FOR_PEOPLE_WITH_A_LOGIN))
def test_a_persons_own_pages_want_a_login(pattern, db):
    for method in ("get", "post"):
        response = send(Client(), method, f"/{pattern}")
        assert response.status_code in (302, 405)
        assert response.status_code == 405 or response["Location"].startswith("/accounts/login/")


@each([route for route in OF_STAFF if not route.parameters])
def test_the_operators_pages_are_closed_to_everybody_else(route, owned, browse, ann):
    before = owned()
    for client in (Client(), browse(ann)):
        for method in ("get", "post"):
            response = send(client, method, f"/{route.pattern}")
            assert response.status_code in (302, 403, 404, 405)
            assert SECRET_WORD not in shown(response)
    assert owned() == before
