"""Snippets from files have a name for an address: it is told, and never becomes a link."""

import pytest
from django.urls import reverse

from chat.context import get_context, sources_of
from chat.extract import extract_answer
from models_app import snippets
from models_app.retrieval import retrieve


@pytest.fixture(params=["prices.pdf", "javascript:alert(1).txt", "httpd.txt"])
def named(support, request):
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Bike prices", "A city bike costs 12 euros a day.", uri=request.param, source="upload")
    return support, request.param


def test_a_source_from_a_file_has_its_name_and_no_url(named):
    model, name = named
    source = get_context(model, "What does a city bike cost?").sources[0]
    assert (source.title, source.url) == (f"Bike prices ({name})", "")
    quote = extract_answer(get_context(model, "What does a city bike cost?"))[0]
    assert quote.text.endswith("— Bike prices")


def test_a_page_stays_a_link(support):
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Bike prices", "A city bike costs 12 euros.", uri="https://acme.test/p", source="crawl")
    source = sources_of(retrieve(support, "city bike").hits)[0]
    assert (source.title, source.url) == ("Bike prices", "https://acme.test/p")


def test_no_page_of_the_dashboard_links_a_files_name(named, browse, ann):
    model, name = named
    page = browse(ann).get(reverse("models_app:training_data", args=["acme", model.slug])).content.decode()
    assert name in page
    assert f'href="{name}"' not in page
    row = model.snippets.get()
    dialog = browse(ann).get(
        reverse("models_app:snippet", args=["acme", model.slug, row.pk]), headers={"HX-Request": "true"}
    )
    assert name in dialog.content.decode()
    assert f'href="{name}"' not in dialog.content.decode()
