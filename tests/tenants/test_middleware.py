"""The edge of the dashboard: members get in, for everyone else there is no such page."""

import sqlite3
from contextlib import closing

import pytest
from django.test import Client

from models_app import snippets
from models_app.models import MLModel
from tenants.models import Membership
from tenants.store import NoActiveStore, activated, active_store, delete_store, store_of
from tests.damage import damage_table
from tests.walls import shown

ACME = "/acme/"


def test_a_member_gets_in(browse, ray):
    response = browse(ray).get(ACME)
    assert response.status_code == 200
    assert response.wsgi_request.tenant.slug == "acme"
    assert response.wsgi_request.role == "reader"


def test_after_the_page_nothing_is_active(browse, ray):
    browse(ray).get(ACME)
    with pytest.raises(NoActiveStore):
        active_store()


def test_somebody_without_a_login_is_led_to_it_and_back(acme):
    response = Client().get("/acme/members/?a=1&b=2")
    assert response.status_code == 302
    assert response["Location"] == "/accounts/login/?next=/acme/members/%3Fa%3D1%26b%3D2"


def test_a_login_that_ended_on_a_post_leads_home_not_to_an_address_that_cannot_be_opened(acme):
    assert Client().post("/acme/members/leave/")["Location"] == "/accounts/login/?next=/"


def test_a_part_of_a_page_is_not_replaced_by_the_login_page(acme):
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/acme/members/?q=1"}
    response = Client().get("/acme/members/table/", headers=headers)
    assert response.status_code == 200 and not response.content
    assert response["HX-Redirect"] == "/accounts/login/?next=/acme/members/%3Fq%3D1"


def test_logged_out_nobody_learns_which_tenants_there_are(acme):
    assert Client().get(ACME).status_code == Client().get("/nobody/").status_code == 302


def test_another_tenants_owner_sees_what_a_tenant_that_is_not_there_shows(browse, acme, gil):
    foreign, unknown = browse(gil).get(ACME), browse(gil).get("/nobody/")
    assert foreign.status_code == unknown.status_code == 404
    assert shown(foreign) == shown(unknown)


def test_the_operator_is_no_member(browse, acme, django_user_model):
    operator = django_user_model.objects.create_superuser("op", "op@sitewise.test", "x")
    assert browse(operator).get(ACME).status_code == 404


def test_a_suspended_tenant_is_closed_to_its_members(browse, acme, ann):
    acme.is_suspended = True
    acme.save()
    assert browse(ann).get(ACME).status_code == 404


def test_who_was_removed_is_out_at_once(browse, ann):
    client = browse(ann)
    assert client.get(ACME).status_code == 200
    Membership.objects.filter(user=ann).delete()
    assert client.get(ACME).status_code == 404


def test_a_deleted_tenants_member_finds_no_page(browse, acme, ann):
    acme.delete()
    assert browse(ann).get(ACME).status_code == 404


def test_a_store_that_lacks_a_migration_closes_its_tenant_and_no_other(browse, acme, ann, globex, gil):
    with closing(sqlite3.connect(store_of(acme).path)) as file:
        file.execute("PRAGMA user_version = 1")

    response = browse(ann).get(ACME)

    assert response.status_code == 503
    assert "migrate_tenants" in response.content.decode()
    assert browse(gil).get("/globex/").status_code == 200


def test_a_store_damaged_past_its_header_says_so_on_the_page_that_meets_it(browse, acme, ann):
    with activated(acme):
        snippets.add(MLModel.objects.create(slug="support", name="Support"), "Hours", "We open at 9.")
    damage_table(store_of(acme), "models_app_trainingsnippet")
    response = browse(ann).get("/acme/models/support/")
    assert response.status_code == 503
    assert "its file is broken" in response.content.decode()


def test_a_missing_store_says_so(browse, acme, ann):
    delete_store(acme)
    response = browse(ann).get(ACME)
    assert response.status_code == 503
    assert "its file is missing" in response.content.decode()
