"""What an installation consists of: made when it is missing, migrated by itself for each tenant, deleted whole."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError

from models_app.models import MLModel
from tenants import installation
from tenants.models import ApiKey, Membership, Role, Tenant
from tenants.store import StoreNotReady, activated, delete_store, store_of


@pytest.fixture
def made(db):
    """Return the function that makes a tenant the whole way; its store is removed after the test."""
    tenants = []

    def make(slug, **options):
        tenants.append(installation.create_tenant(slug, **options))
        return tenants[-1]

    yield make
    for tenant in tenants:
        delete_store(tenant)


def outdate(tenant):
    """Let the store look as one that another version of Sitewise left."""
    with closing(sqlite3.connect(store_of(tenant).path)) as file:
        file.execute("PRAGMA user_version = 1")


def break_store(tenant):
    """Let the store lack a migration that cannot be made: a table of that name is in the way."""
    with closing(sqlite3.connect(store_of(tenant).path)) as file, file:
        file.execute("DELETE FROM django_migrations WHERE app = 'chat'")
        file.execute("PRAGMA user_version = 1")


def test_a_new_tenant_has_an_owner_and_an_empty_store(made, ann):
    tenant = made("bakery", name="The Bakery", owner=ann)
    assert Membership.objects.get(tenant=tenant).role == Role.OWNER
    with activated(tenant):
        assert not MLModel.objects.exists()


def test_a_new_tenant_never_gets_what_lay_in_its_stores_place(made, ann):
    older = made("bakery", owner=ann)
    left_over = store_of(Tenant(pk=older.pk + 1, slug="x")).path
    left_over.write_bytes(b"somebody's data")

    tenant = made("cafe", owner=ann)

    assert store_of(tenant).path == left_over
    with activated(tenant):
        assert not MLModel.objects.exists()
    kept = list(left_over.parent.glob(f"{tenant.pk}.left-over-*"))
    assert [file.read_bytes() for file in kept] == [b"somebody's data"]
    kept[0].unlink()


@pytest.mark.parametrize(
    "slug",
    [
        "accounts",
        "staff",
        "workspaces",
        "v1",
        "static",
        "widget",
        "Acme",
        "a_b",
        "a b",
        "-acme",
        "acme-",
        "",
        "a" * 41,
        "ünique",
        "acme\n",
        "../acme",
        "a/b",
    ],
)
def test_a_slug_that_is_an_address_of_ours_or_no_address_at_all_is_refused(slug, db):
    with pytest.raises(ValidationError):
        installation.create_tenant(slug)
    assert not Tenant.objects.exists()


@pytest.mark.parametrize("name", ["Acme\nBcc: all@acme.test", "Acme\x00", "Acme\u202e", "a" * 101])
def test_a_name_that_could_break_an_emails_head_is_refused(name, db):
    with pytest.raises(ValidationError):
        installation.create_tenant("acme", name)


def test_a_slug_is_given_once(made, ann):
    made("bakery", owner=ann)
    with pytest.raises(ValidationError, match="taken"):
        made("bakery", owner=ann)
    assert Tenant.objects.filter(slug="bakery").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_that_ask_for_a_slug_at_once_one_gets_it():
    def ask(number):
        try:
            return installation.create_tenant("bakery", f"Bakery {number}")
        except ValidationError:
            return None

    with ThreadPoolExecutor(4) as pool:
        made = [tenant for tenant in pool.map(ask, range(4)) if tenant is not None]
    assert len(made) == 1
    with activated(made[0]):
        assert not MLModel.objects.exists()
    delete_store(made[0])


def test_deleting_a_tenant_removes_members_keys_and_the_store(made, ann):
    tenant = made("bakery", owner=ann)
    ApiKey.mint(tenant=tenant, name="Server", kind="secret", model_slugs=[])
    path = store_of(tenant).path

    installation.delete_tenant(tenant)

    assert not list(path.parent.glob(f"{path.name}*"))
    assert not ApiKey.objects.exists()
    assert not Membership.objects.filter(tenant__slug="bakery").exists()
    assert get_user_model().objects.filter(pk=ann.pk).exists()


def test_prepare_brings_an_outdated_store_up_to_date(acme):
    outdate(acme)
    assert installation.prepare() == []
    with activated(acme):
        assert not MLModel.objects.exists()


def test_one_tenants_failing_migration_stops_no_other(acme, globex):
    break_store(acme)
    outdate(globex)

    failures = installation.prepare()

    assert [error.slug for error in failures] == ["acme"]
    assert "could not be brought up to date" in failures[0].reason
    with activated(globex):
        assert not MLModel.objects.exists()
    with pytest.raises(StoreNotReady), activated(acme):
        pass
    assert installation.ready_tenants() == [globex]


def test_a_store_that_is_missing_is_reported_and_not_replaced_by_an_empty_one(acme, globex):
    delete_store(acme)
    failures = installation.prepare()
    assert [(error.slug, "missing" in error.reason) for error in failures] == [("acme", True)]
    assert not store_of(acme).path.exists()


def test_suspended_tenants_are_not_worked_for(acme, globex):
    acme.is_suspended = True
    acme.save()
    assert installation.ready_tenants() == [globex]
