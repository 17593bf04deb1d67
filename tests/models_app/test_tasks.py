"""What a worker does when it starts: indexes that older code made are made anew."""

import pytest

from models_app import index, snippets
from models_app.index.connection import write
from models_app.models import MLModel
from models_app.tasks import rebuild_outdated_indexes
from tenants.store import activated
from tests.tenants.test_installation import break_store

pytestmark = pytest.mark.django_db(transaction=True)


def make_outdated_model(tenant) -> MLModel:
    with activated(tenant):
        model = MLModel.objects.create(slug="support", name="Support")
        snippets.add(model, "Hours", "Open from nine to five.")
        write("UPDATE ret_model SET terms_version = 'older'")
        assert index.check_model(model.pk)
    return model


def test_outdated_indexes_of_all_tenants_are_rebuilt_once(acme, globex):
    models = {tenant: make_outdated_model(tenant) for tenant in (acme, globex)}
    assert rebuild_outdated_indexes() == 2
    for tenant, model in models.items():
        with activated(tenant):
            assert index.check_model(model.pk) == []
    assert rebuild_outdated_indexes() == 0


def test_a_broken_store_does_not_keep_the_others_outdated(acme, globex):
    make_outdated_model(globex)
    break_store(acme)
    assert rebuild_outdated_indexes() == 1
