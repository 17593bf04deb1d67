"""The cast and the places of all tests: tenant acme with owner Ann and reader Ray, tenant globex with owner Gil."""

import json
import os
import shutil
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from models_app.model_files import ModelFilesMissing, embedder_files
from models_app.models import MLModel
from tenants.models import Membership, Role, Tenant
from tenants.store import activated, create_store, delete_store, store_of

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"


def needs(is_there: bool, what: str) -> None:
    """Skip the test, saying what is missing; where everything is required it fails instead."""
    if not is_there:
        if os.environ.get("SITEWISE_REQUIRE_ALL") == "1":
            pytest.fail(f"{what} is missing, and SITEWISE_REQUIRE_ALL=1 asks for it")
        pytest.skip(f"{what} is missing")


def needs_local_embedder() -> None:
    """Skip the test where the local embedder's files have not been fetched."""
    try:
        embedder_files()
    except ModelFilesMissing:
        needs(False, "the local embedder (manage.py fetch_models)")


@pytest.fixture(scope="session", autouse=True)
def quick_settings():
    """Spare what is slow and no matter of ours: hashing passwords, and listing all static files for each client."""
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"], WHITENOISE_AUTOREFRESH=True
    ):
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of cases and data beside the project; tests that need it skip where it is not laid."""
    if not SHARED.is_dir():
        pytest.skip("the folder ../shared with cases and data is missing")
    return SHARED


@pytest.fixture(scope="session")
def case(shared):
    """Return the function that gives one of the real-world cases by its number."""
    rows = (json.loads(line) for line in (shared / "cases" / "cases.jsonl").read_text().splitlines())
    cases = {row["id"]: row for row in rows}
    return cases.__getitem__


@pytest.fixture(scope="session")
def store_template(django_db_setup, django_db_blocker, tmp_path_factory) -> Path:
    """A migrated, empty store: each test's tenants get a copy of it."""
    template = Tenant(pk=999_999, slug="template")
    with django_db_blocker.unblock():
        path = create_store(template).path
    copy = path.replace(tmp_path_factory.mktemp("store") / "template.sqlite3")
    delete_store(template)
    return copy


@pytest.fixture
def make_tenant(db, store_template):
    """Return the function that makes a tenant with an empty store; all are removed after the test."""
    made = []

    def make(slug: str) -> Tenant:
        tenant = Tenant.objects.create(slug=slug, name=slug.title())
        shutil.copyfile(store_template, store_of(tenant).path)
        made.append(tenant)
        return tenant

    yield make
    for tenant in made:
        delete_store(tenant)


def make_person(email: str, tenant: Tenant, role: Role):
    """Return a user who is a member of the tenant; the password is the e-mail's name, twice."""
    name = email.partition("@")[0]
    user = get_user_model().objects.create_user(username=name, email=email, password=name * 2 + "-pass")
    Membership.objects.create(tenant=tenant, user=user, role=role)
    return user


@pytest.fixture
def acme(make_tenant) -> Tenant:
    return make_tenant("acme")


@pytest.fixture
def globex(make_tenant) -> Tenant:
    return make_tenant("globex")


@pytest.fixture
def ann(acme):
    """The owner of acme."""
    return make_person("ann@acme.test", acme, Role.OWNER)


@pytest.fixture
def ray(acme):
    """A reader of acme."""
    return make_person("ray@acme.test", acme, Role.READER)


@pytest.fixture
def gil(globex):
    """The owner of globex."""
    return make_person("gil@globex.test", globex, Role.OWNER)


@pytest.fixture
def acme_store(acme):
    """Acme's store, active until the test ends."""
    with activated(acme) as store:
        yield store


@pytest.fixture
def globex_store(globex):
    """Globex' store, active until the test ends."""
    with activated(globex) as store:
        yield store


@pytest.fixture
def support(acme_store) -> MLModel:
    """Acme's model "support", with the default behaviour."""
    return MLModel.objects.create(slug="support", name="Support")


@pytest.fixture
def browse():
    """Return the function that gives a test client logged in as a person."""

    def as_person(person) -> Client:
        client = Client()
        client.force_login(person, backend=settings.AUTHENTICATION_BACKENDS[0])
        return client

    return as_person
