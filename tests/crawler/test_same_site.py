"""Which imports are of the website that a model names, and what the next import takes over from them."""

import pytest

from crawler.crawl import split_options
from crawler.models import Import
from crawler.same_site import imports_of_site, options_of_site
from models_app.models import MLModel

SITE = "https://example.com/"


@pytest.fixture
def model(support) -> MLModel:
    support.website = "example.com"
    support.save()
    return support


def imported(model: MLModel, address: str, start_url: str = "", scope: str = "", **options) -> Import:
    fields = {"max_pages": 50, "state": "done", "start_url": start_url or address, "scope": scope or address} | options
    return Import.objects.create(model=model, address=address, **fields)


@pytest.mark.parametrize("address", ["example.com", "http://www.example.com/", "HTTPS://Example.com", SITE])
def test_an_import_of_the_site_in_another_spelling_counts(model, address):
    job = imported(model, address, "https://www.example.com/en/", SITE)
    assert imports_of_site(model) == [job]


def test_an_import_of_an_address_that_led_to_the_site_counts(model):
    job = imported(model, "old.test", SITE, SITE)
    assert imports_of_site(model) == [job]


@pytest.mark.parametrize("address", ["https://other.test/", "https://example.com/help/", "https://docs.example.com/"])
def test_an_import_of_another_site_or_another_part_counts_not(model, address):
    imported(model, address)
    assert imports_of_site(model) == []
    assert options_of_site(model) == {}


@pytest.mark.parametrize("kind", [Import.Kind.PAGES, Import.Kind.STORED, Import.Kind.FILES])
def test_an_import_that_read_no_site_lends_nothing(model, kind):
    imported(model, SITE, kind=kind)
    assert options_of_site(model) == {}


def test_of_a_model_that_names_no_website_every_site_counts(model):
    model.website, job = "", imported(model, "https://other.test/")
    assert imports_of_site(model) == [job]


def test_a_split_takes_the_options_of_the_models_own_site_and_leaves_the_models_settings_to_it(model):
    own = imported(model, SITE, max_pages=12, exclude_paths="/old", import_images=False, insert_source_url=True)
    own.pages.create(url=SITE, state="done", markdown="Text")
    imported(model, "https://other.test/", max_pages=3, exclude_paths="/")
    imported(model, "a page", kind=Import.Kind.PAGES, max_pages=1)
    options = split_options(model)
    assert (options["max_pages"], options["exclude_paths"]) == (12, "/old")
    assert (options["start_url"], options["scope"], options["kind"]) == (SITE, SITE, Import.Kind.STORED)
    assert options.keys().isdisjoint({"import_images", "insert_source_url"})


def test_a_split_of_another_sites_pages_stands_for_that_site(model):
    other = imported(model, "https://other.test/", exclude_paths="/old")
    other.pages.create(url=other.address, state="done", markdown="Text")
    options = split_options(model)
    assert (options["start_url"], options.get("exclude_paths")) == (other.address, None)
