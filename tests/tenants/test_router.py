"""The router: tenant rows go to the active store, all others to the control database, and none to a default."""

import pytest
from django.db import connections, router

from chat.models import Session, Turn
from crawler.models import Import, Page
from models_app.models import MLModel, TrainingSnippet
from tenants.models import Membership, Tenant
from tenants.store import TENANT_APPS, NoActiveStore

TENANT_MODELS = [MLModel, TrainingSnippet, Import, Page, Session, Turn]


@pytest.mark.parametrize("model", TENANT_MODELS)
def test_with_no_store_active_a_tenant_query_raises(model, db):
    for use in (model.objects.count, lambda: list(model.objects.all()), lambda: model().save()):
        with pytest.raises(NoActiveStore):
            use()


@pytest.mark.parametrize("model", TENANT_MODELS)
def test_tenant_rows_are_read_and_written_in_the_active_store(model, acme_store):
    assert router.db_for_read(model) == router.db_for_write(model) == acme_store.alias


def test_control_rows_stay_in_the_control_database_whatever_is_active(acme_store):
    assert router.db_for_read(Tenant) == router.db_for_write(Membership) == "default"


def test_tables_are_made_only_where_their_rows_go(acme_store):
    with connections[acme_store.alias].cursor() as cursor:
        in_store = set(connections[acme_store.alias].introspection.table_names(cursor))
    with connections["default"].cursor() as cursor:
        in_control = set(connections["default"].introspection.table_names(cursor))

    assert {model._meta.db_table for model in TENANT_MODELS} <= in_store
    assert not {model._meta.db_table for model in TENANT_MODELS} & in_control
    assert "tenants_tenant" in in_control - in_store
    assert "auth_user" in in_control - in_store


def test_no_foreign_key_crosses_stores(acme_store):
    model, tenant = MLModel(slug="support"), Tenant(slug="acme")
    assert router.allow_relation(model, TrainingSnippet(model=model))
    assert not router.allow_relation(model, tenant)
    for tenant_model in TENANT_MODELS:
        related = {field.related_model for field in tenant_model._meta.get_fields() if field.is_relation}
        assert {each._meta.app_label for each in related if each} <= TENANT_APPS
