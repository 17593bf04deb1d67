"""The tenants' walls, over every route there is: logged out, as another tenant's owner, with another tenant's key.

A route that is added later is walked by itself; one that belongs behind no known wall fails the first test.
"""

from itertools import product
from uuid import UUID

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
    everything_stored,
    own_one_of_everything,
    routes,
    shown,
)

METHODS = ("get", "post", "delete")
HTMX = ({}, {"HX-Request": "true"})
API = "v1/"
WIDGET = "widget/v1/"
STAFF = "staff/"
ACCOUNTS = "accounts/"
# Addresses that belong to no tenant, and who may open them.
FOR_EVERYBODY = {
    "",
    "v1/openapi.json",
    "v1/reference",
    "workspaces/invitations/<str:token>/",
    "widget/v1.js",
    r"widget/v1-<version>\.js",
}
FOR_PEOPLE_WITH_A_LOGIN = {"workspaces/", "workspaces/new/"}

ROUTES = sorted(routes(), key=lambda route: route.pattern)
OF_TENANTS = [route for route in ROUTES if "tenant_slug" in route.parameters]
OF_OBJECTS = [route for route in OF_TENANTS if route.parameters - {"tenant_slug"}]
OF_API = [route for route in ROUTES if route.pattern.startswith(API) and route.pattern not in FOR_EVERYBODY]
OF_WIDGET = [route for route in ROUTES if route.pattern.startswith(WIDGET)]
OF_STAFF = [route for route in ROUTES if route.pattern.startswith(STAFF)]


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


def send(client: Client, method: str, address: str, headers=None, model: str = OWNED_SLUG):
    """Return the answer to a request, which asks the model a question where the method has a body."""
    asked = {"model": model, "messages": [{"role": "user", "content": SECRET_WORD}]}
    asked |= {"inputs": {"model": model}, "query": SECRET_WORD, "user": "eve", "rating": "like"}
    body = {} if method == "get" else {"data": asked, "content_type": "application/json"}
    return getattr(client, method)(address, headers=headers or {}, **body)


def test_every_route_stands_behind_a_wall_that_is_tested_here():
    known = {*FOR_EVERYBODY, *FOR_PEOPLE_WITH_A_LOGIN}
    unknown = [
        route.pattern
        for route in ROUTES
        if route.pattern not in known
        and "tenant_slug" not in route.parameters
        and not route.pattern.startswith((API, WIDGET, STAFF, ACCOUNTS))
    ]
    assert not unknown, "say who may open these, and test it"
    assert len(OF_TENANTS) > 15 and len(OF_OBJECTS) > 5 and OF_API and OF_STAFF and OF_WIDGET


def test_every_route_of_a_tenant_starts_with_its_slug():
    """The middleware finds the tenant by the parameter: one under another name would stand outside of the walls."""
    assert all(route.pattern.startswith("<slug:tenant_slug>/") for route in OF_TENANTS)
    assert {name for route in OF_TENANTS for name in route.parameters} <= {"tenant_slug", "model_slug", "pk", "page_pk"}


def test_the_owner_gets_in(owned, browse, ann, subtests):
    """Else the other tests would only prove that the addresses they try are wrong."""
    client = browse(ann)
    for route, headers in product(OF_TENANTS, HTMX):
        with subtests.test(route.pattern, headers=headers):
            response = client.get(route.address("acme", OWNED_SLUG, OWNED_ID), headers=headers)
            assert response.status_code in (200, 204, 286, 302, 405)
            assert "/accounts/login/" not in response.headers.get("Location", "")


def test_logged_out_every_page_leads_to_the_login(owned, subtests):
    before, client = owned(), Client()
    for route, headers in product(OF_TENANTS, HTMX):
        with subtests.test(route.pattern, headers=headers):
            for method in METHODS:
                response = send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
                target = response.headers.get("HX-Redirect" if headers else "Location")
                assert target.startswith("/accounts/login/?next=/")
                assert response.status_code == (200 if headers else 302)
                assert SECRET_WORD not in shown(response)
            assert owned() == before


def test_another_tenants_owner_finds_what_a_stranger_finds_where_no_tenant_is(owned, browse, gil, subtests):
    before, client = owned(), browse(gil)
    for route, headers in product(OF_TENANTS, HTMX):
        with subtests.test(route.pattern, headers=headers):
            for method in METHODS:
                foreign = send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
                absent = send(client, method, route.address("nobody", OWNED_SLUG, OWNED_ID), headers)
                assert foreign.status_code == absent.status_code == 404
                assert shown(foreign, "acme") == shown(absent, "nobody")
            assert owned() == before


def test_another_tenants_objects_are_not_there_under_ones_own_slug(owned, browse, gil, subtests):
    before, client = owned(), browse(gil)
    for route, headers in product(OF_OBJECTS, HTMX):
        with subtests.test(route.pattern, headers=headers):
            statuses = set()
            for method in METHODS:
                foreign = send(client, method, route.address("globex", OWNED_SLUG, OWNED_ID), headers)
                absent = send(client, method, route.address("globex", UNKNOWN_SLUG, UNKNOWN_ID), headers)
                assert foreign.status_code == absent.status_code
                assert shown(foreign, OWNED_SLUG, str(OWNED_ID)) == shown(absent, UNKNOWN_SLUG, str(UNKNOWN_ID))
                statuses.add(foreign.status_code)
            assert 404 in statuses <= {404, 405}
            assert owned() == before


def test_an_object_of_one_model_is_not_there_under_another(owned, browse, acme, ann, subtests):
    with activated(acme):
        MLModel.objects.create(slug="second", name="Second")
    before, client = owned(), browse(ann)
    for route, headers in product(OF_OBJECTS, HTMX):
        if not {"model_slug", "pk"} <= route.parameters:
            continue
        with subtests.test(route.pattern, headers=headers):
            for method in METHODS:
                sibling = send(client, method, route.address("acme", "second", OWNED_ID), headers)
                assert sibling.status_code in (404, 405)
                assert SECRET_WORD not in shown(sibling)
            assert owned() == before


def test_a_suspended_tenant_is_closed_to_its_owner(owned, browse, acme, ann, subtests):
    acme.is_suspended = True
    acme.save()
    before, client = owned(), browse(ann)
    for route, method in product(OF_TENANTS, ("get", "post")):
        with subtests.test(route.pattern, method=method):
            assert send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID)).status_code == 404
            assert owned() == before


def test_a_reader_changes_nothing(owned, browse, ray, subtests):
    """But their own membership, which they may end."""
    before, client = owned(), browse(ray)
    for route, headers in product(OF_TENANTS, HTMX):
        if route.pattern.endswith("members/leave/"):
            continue
        with subtests.test(route.pattern, headers=headers):
            for method in METHODS:
                send(client, method, route.address("acme", OWNED_SLUG, OWNED_ID), headers)
            assert owned() == before


def test_without_a_key_the_api_opens_nothing(owned, subtests):
    before, client = owned(), Client()
    no_keys = ({}, {"Authorization": "Bearer sws_0123456789ab_x"}, {"Authorization": "Basic YTpi"})
    for route, headers in product(OF_API, no_keys):
        with subtests.test(route.pattern, headers=headers):
            statuses = set()
            for method in METHODS:
                response = send(client, method, route.address("", OWNED_SLUG, OWNED_ID), headers)
                assert {"error", "code"} & set(response.json())
                assert SECRET_WORD not in shown(response)
                statuses.add(response.status_code)
            assert statuses <= {401, 404, 405}
            assert owned() == before


def test_with_another_tenants_key_a_model_is_not_there(owned, globex_key, subtests):
    """The key names a model as acme's is called: names are the tenant's own, so it opens nothing of acme's."""
    before, client = owned(), Client()
    headers = {"Authorization": f"Bearer {globex_key}"}
    for route, method in product(OF_API, METHODS):
        with subtests.test(route.pattern, method=method):
            foreign = send(client, method, route.address("", OWNED_SLUG, OWNED_ID), headers, model=OWNED_SLUG)
            absent = send(client, method, route.address("", UNKNOWN_SLUG, UNKNOWN_ID), headers, model=UNKNOWN_SLUG)
            assert foreign.status_code == absent.status_code
            assert shown(foreign, OWNED_SLUG) == shown(absent, UNKNOWN_SLUG)
            assert SECRET_WORD not in shown(foreign)
            # That the key was used is noted on it, and nothing else.
            assert owned() | {"ApiKey": None} == before | {"ApiKey": None}


def test_the_widget_opens_nothing_of_another_tenant(owned, globex, subtests):
    """Nor without a key, with one from another origin, or with a secret one."""
    before, client = owned(), Client()
    origin, models = "https://globex.test", ["gadgets", OWNED_SLUG]
    public = ApiKey.mint(tenant=globex, name="W", kind="public", model_slugs=models, allowed_origins=[origin])[1]
    secret = ApiKey.mint(tenant=globex, name="S", kind="secret", model_slugs=models)[1]
    before = owned()
    tries = ((public, origin), (public, "https://evil.test"), (public, ""), (secret, origin), ("", origin), (7, origin))
    for route, (key, sent_from) in product(OF_WIDGET, tries):
        with subtests.test(route.pattern, key=key, origin=sent_from):
            fields = {"key": key, "model": OWNED_SLUG, "session": f"w-{'0' * 32}", "text": SECRET_WORD, "answers": []}
            fields |= {"turn": str(UUID(int=0)), "rating": 1, "email": "eve@globex.test"}
            headers = {"Origin": sent_from} if sent_from else {}
            response = client.post(f"/{route.pattern}", fields, content_type="application/json", headers=headers)
            assert response.status_code in (401, 403, 404)
            assert SECRET_WORD not in shown(response)
            # That the key was used, and how often by whom today, is noted, and nothing else.
            noted = {"ApiKey": None, "RequestCount": None, "DailySalt": None}
            assert owned() | noted == before | noted


def test_a_session_cookie_is_no_key(owned, browse, ann, subtests):
    client = browse(ann)
    for route, method in product(OF_API, ("get", "post")):
        with subtests.test(route.pattern, method=method):
            answer = send(client, method, route.address("", OWNED_SLUG, OWNED_ID))
            assert answer.status_code in (401, 404, 405)
            assert SECRET_WORD not in shown(answer)


def test_a_key_is_no_login(owned, acme, subtests):
    _, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=[OWNED_SLUG])
    client = Client(headers={"Authorization": f"Bearer {text}"})
    for route in OF_TENANTS:
        with subtests.test(route.pattern):
            assert client.get(route.address("acme", OWNED_SLUG, OWNED_ID)).status_code == 302


@pytest.mark.parametrize("pattern", sorted(FOR_PEOPLE_WITH_A_LOGIN))
def test_a_persons_own_pages_want_a_login(pattern, db):
    assert Client().get(f"/{pattern}")["Location"].startswith("/accounts/login/")
    assert send(Client(), "post", f"/{pattern}").status_code in (302, 405)


def test_the_operators_pages_are_closed_to_everybody_else(owned, browse, ann, subtests):
    before = owned()
    walked = [route for route in OF_STAFF if not route.parameters]
    for route, client in product(walked, (Client(), browse(ann))):
        with subtests.test(route.pattern):
            for method in ("get", "post"):
                response = send(client, method, f"/{route.pattern}")
                assert response.status_code in (302, 403, 404, 405)
                assert SECRET_WORD not in shown(response)
            assert owned() == before
