"""Websites that are read again when their time has come, each with the options of its last import."""

from datetime import timedelta

import pytest
from django.utils import timezone

from crawler.crawl import new_import
from crawler.models import Import
from crawler.tasks import start_due_imports, take_up_abandoned_jobs
from models_app.models import MLModel, Retrieval
from tenants.models import Tenant
from tenants.store import activated, delete_store

pytestmark = pytest.mark.django_db(transaction=True)

SITE = "http://127.0.0.1:9/"


@pytest.fixture
def model(support) -> MLModel:
    support.website, support.recrawl_days, support.retrieval = SITE, 7, Retrieval.KEYWORD
    support.save()
    return support


def ended(model: MLModel, days_ago: int, address: str = SITE, **options) -> Import:
    job = new_import(model, address, **options)
    since = timezone.now() - timedelta(days=days_ago)
    Import.objects.filter(pk=job.pk).update(state=Import.State.FAILED, created_at=since)
    return job


def test_a_site_that_was_never_imported_is_due(model):
    assert start_due_imports() == 1
    job = model.imports.get()
    assert (job.address, job.kind, job.is_scheduled, job.state) == (SITE, Import.Kind.SITE, True, Import.State.QUEUED)


def test_a_due_site_is_started_once(model):
    assert [start_due_imports(), start_due_imports()] == [1, 0]


@pytest.mark.parametrize(("days_ago", "count"), [(6, 0), (8, 1)])
def test_a_site_is_due_when_its_days_are_over(model, days_ago, count):
    ended(model, days_ago)
    assert start_due_imports() == count


def test_the_options_are_those_of_the_last_import_of_the_site(model):
    ended(model, 9, max_pages=12, exclude_paths="/old", imports_documents=True, max_depth=3)
    Import.objects.create(model=model, address="files", kind="files", max_pages=1, state=Import.State.DONE)
    start_due_imports()
    job = model.imports.first()
    assert (job.max_pages, job.exclude_paths, job.imports_documents) == (12, "/old", True)
    assert (job.max_depth, job.is_scheduled) == (3, True)


def test_images_and_source_addresses_are_settings_of_the_model(model):
    ended(model, 9, import_images=True, insert_source_url=False)
    model.import_images, model.insert_source_url = False, True
    model.save()
    start_due_imports()
    job = model.imports.first()
    assert (job.import_images, job.insert_source_url) == (False, True)


def test_an_import_of_another_site_lends_no_options(model):
    ended(model, 9, max_pages=12, exclude_paths="/old")
    ended(model, 8, "https://other.test/", max_pages=3, exclude_paths="/")
    start_due_imports()
    job = model.imports.first()
    assert (job.address, job.max_pages, job.exclude_paths) == (SITE, 12, "/old")


def test_an_import_of_another_site_resets_no_timer(model):
    ended(model, 9)
    ended(model, 1, "https://other.test/")
    assert start_due_imports() == 1


@pytest.mark.parametrize("field", ["website", "recrawl_days"])
def test_without_a_website_or_days_nothing_is_due(model, field):
    setattr(model, field, "" if field == "website" else None)
    model.save()
    assert start_due_imports() == 0


@pytest.mark.parametrize("kind", [Import.Kind.SITE, Import.Kind.STORED])
def test_an_open_import_of_any_kind_is_waited_for(model, kind):
    ended(model, 9)
    waiting = new_import(model, SITE, kind=kind)
    assert start_due_imports() == 0
    waiting.request_pause()
    assert start_due_imports() == 0


def test_a_website_that_cannot_be_asked_keeps_no_other_waiting(model, settings):
    model.website = "http://10.0.0.1/"
    model.save()
    MLModel.objects.create(slug="other", name="Other", website=SITE, recrawl_days=1)
    assert start_due_imports() == 1


def test_every_tenants_sites_are_looked_at(acme, globex, model):
    with activated(globex):
        MLModel.objects.create(slug="support", name="Support", website=SITE, recrawl_days=1)
    assert start_due_imports() == 2


def test_neither_a_broken_store_nor_a_suspended_tenant_keeps_others_waiting(acme, globex, make_tenant):
    third = make_tenant("third")
    for tenant in (globex, third):
        with activated(tenant):
            MLModel.objects.create(slug="support", name="Support", website=SITE, recrawl_days=1)
    delete_store(acme)
    Tenant.objects.filter(pk=third.pk).update(is_suspended=True)
    assert start_due_imports() == 1


def test_a_paused_import_is_not_taken_up(model):
    new_import(model, SITE).request_pause()
    assert take_up_abandoned_jobs() == 0
