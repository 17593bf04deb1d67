"""From a website to the owner's decision: an edit outlives the next imports, and its neighbours notice nothing."""

import re

import pytest
from django.urls import reverse

from crawler.crawl import import_site, new_import
from crawler.models import Import
from models_app import index, snippets
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval
from tests.conftest import needs_local_embedder
from tests.fakes.website import Website

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS = {
    "How long is delivery?": "Delivery takes 3 working days within the country and up to 9 working days abroad.",
    "What does delivery cost?": "Delivery costs 4.90 euros; orders above 60 euros are delivered for free.",
    "Can I return a lamp?": "Lamps can be returned within 30 days, in their box and with the receipt.",
    "Do you repair lamps?": "We repair every lamp that we have sold, for 25 euros and the price of the parts.",
}
RETURNS = "Can I return a lamp?"


def faq(**changed: str) -> str:
    """The page: a heading and enough words for each question that the page is split by them."""
    answers = ANSWERS | {RETURNS: changed.get("returns", ANSWERS[RETURNS])}
    answers["Do you repair lamps?"] = changed.get("repairs", answers["Do you repair lamps?"])
    more = "Our shop in the old mill has sold lamps, shades and cables to the people of the valley since 1962. " * 2
    sections = "".join(f"<h2>{title}</h2><p>{text} {more}</p>" for title, text in answers.items())
    return f"<!doctype html><title>Questions</title><main><h1>Questions</h1>{sections}</main>"


@pytest.fixture
def model(support) -> MLModel:
    needs_local_embedder()
    support.retrieval, support.max_context_tokens = Retrieval.HYBRID, 200
    support.save()
    return support


@pytest.fixture
def website():
    with Website({"/": faq()}) as website:
        yield website


def crawl(model: MLModel, website: Website) -> Import:
    job = new_import(model, website.url("/"))
    perform_taken(Import.take(job.pk), lambda job, lease: import_site(job, lease, lambda job: None))
    return Import.objects.get(pk=job.pk)


def rows(model: MLModel) -> dict[int, tuple]:
    """The page's snippets as they answer: row -> title, text, and since when."""
    standing = model.snippets.filter(source="crawl")
    return {row.pk: (row.prompt, row.completion, row.embedded_in, row.updated_at) for row in standing}


def about(model: MLModel, words: str):
    return model.snippets.get(source="crawl", prompt__contains=words)


def test_an_edit_survives_the_change_of_its_source_and_the_card_shows_three_texts(model, website, browse, ann):
    crawl(model, website)
    assert len(rows(model)) == len(ANSWERS)
    returns = about(model, RETURNS)
    own = returns.completion.replace("30 days", "60 days, as our club members")
    snippets.edit(returns, returns.prompt, own, returns.uri, "ann@acme.test")
    crawl(model, website)
    returns.refresh_from_db()
    assert (returns.completion, returns.conflict) == (own, "")

    before = rows(model)
    website.paths["/"] = faq(returns="Lamps can be returned within 14 days, in their box and with the receipt.")
    crawl(model, website)
    after = rows(model)
    assert after.keys() == before.keys()
    assert all(after[pk] == before[pk] for pk in after if pk != returns.pk)
    assert after[returns.pk][1] == own
    returns.refresh_from_db()
    assert returns.conflict == "changed"

    browser, headers = browse(ann), {"HX-Request": "true"}
    card = reverse("models_app:snippet_conflict", args=["acme", model.slug, returns.pk])
    shown = browser.get(card, headers=headers).content.decode()
    assert all(days in shown for days in ("30", "14", "60")) and shown.count("compared__head") == 3
    seen = re.search(r'name="seen" value="(\w+)"', shown)[1]
    assert browser.post(card, {"choice": "theirs", "seen": seen}, headers=headers).status_code == 204
    assert "14 days" in about(model, RETURNS).completion
    crawl(model, website)
    assert about(model, RETURNS).pk == returns.pk
    assert len(rows(model)) == len(ANSWERS)
    assert index.check_model(model.pk) == []


def test_one_changed_answer_changes_exactly_its_snippet_and_nothing_changed_writes_nothing(model, website):
    crawl(model, website)
    before = rows(model)
    crawl(model, website)
    assert rows(model) == before
    website.paths["/"] = faq(repairs="We repair every lamp that we have sold, for 35 euros and the price of the parts.")
    crawl(model, website)
    after = rows(model)
    [changed] = [pk for pk in after if after[pk] != before.get(pk)]
    assert after.keys() == before.keys()
    assert "35 euros" in after[changed][1]
    assert {embedded for *_, embedded, _ in after.values()} == {model.snippets.first().embedded_in} != {""}


def test_a_page_that_was_gone_for_a_while_comes_back_whole(model, website):
    page = '<main><h1>Start</h1><p>Welcome to the mill.</p><a href="/faq">Questions</a></main>'
    website.paths |= {"/": page, "/faq": faq()}
    crawl(model, website)
    returns = about(model, RETURNS)
    snippets.edit(returns, returns.prompt, "Never.", returns.uri)
    standing = set(rows(model))
    del website.paths["/faq"]
    crawl(model, website)
    returns.refresh_from_db()
    assert (returns.completion, returns.conflict) == ("Never.", "gone")
    website.paths["/faq"] = faq()
    crawl(model, website)
    returns.refresh_from_db()
    assert (returns.completion, returns.conflict) == ("Never.", "")
    assert len(rows(model)) == len(standing)


def test_to_switch_the_source_line_or_images_asks_about_no_edit(model, website):
    picture = (
        '<p>With <img src="/lamp.png" alt="a lamp"> and <a href="/all"><img src="/all.png" alt="All lamps"></a>, '
        '<a href="/none"><img src="/none.png"></a>.</p>'
    )
    website.paths["/"] = faq(returns=f"Lamps can be returned within 30 days. {picture}")
    model.import_images, model.insert_source_url = False, False
    model.max_context_tokens = 600
    model.save()
    crawl(model, website)
    returns = model.snippets.get(source="crawl")
    snippets.edit(returns, returns.prompt, "Never.", returns.uri)
    for images, source_url in ((True, False), (True, True), (False, True), (False, False)):
        model.import_images, model.insert_source_url = images, source_url
        model.save()
        job = crawl(model, website)
        assert job.changes["snippets"]["conflicts"] == 0
        returns.refresh_from_db()
        assert (returns.completion, returns.is_edited, returns.conflict) == ("Never.", True, "")
        assert ("lamp.png" in returns.source_completion, "\nSource: " in returns.source_completion) == (
            images,
            source_url,
        )
