"""What a role allows, and how a refusal says why."""

import json

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django_htmx.middleware import HtmxDetails

from tenants.dialogs import dialog, given, saved
from tenants.models import Role
from tenants.permissions import editor_required, owner_required


def asked(role, htmx=False, **query):
    request = RequestFactory().get("/", query, headers={"HX-Request": "true"} if htmx else {})
    request.htmx = HtmxDetails(request)
    request.role = role
    return request


@editor_required
def edit(request):
    return HttpResponse("edited")


@owner_required
def own(request):
    return HttpResponse("owned")


@pytest.mark.parametrize(
    ("view", "allowed"), [(edit, {Role.EDITOR, Role.OWNER}), (own, {Role.OWNER})], ids=["editor", "owner"]
)
def test_a_view_is_open_to_its_role_and_those_above(view, allowed):
    assert {role for role in Role if view(asked(role, htmx=True)).status_code == 200} == allowed


def test_a_refusal_is_shown_over_the_page():
    response = edit(asked(Role.READER, htmx=True))
    assert response.status_code == 403
    assert "only editors and owners" in json.loads(response.headers["HX-Trigger"])["toast"]["text"]


def test_a_dialog_leads_to_its_page_where_it_was_not_asked_for_by_htmx():
    assert dialog(asked(Role.OWNER), "404.html", {}, "/behind/").url == "/behind/"


def test_what_is_saved_closes_the_dialog_and_tells_what_has_changed():
    response = saved("snippets-changed", toast="Saved.")
    assert response.status_code == 204
    told = json.loads(response.headers["HX-Trigger"])
    assert told == {"snippets-changed": {}, "toast": {"text": "Saved.", "level": "good"}}


def test_an_address_says_only_what_is_filled_in():
    assert given(asked(Role.OWNER, q="lens", show="")) == {"q": "lens"}
