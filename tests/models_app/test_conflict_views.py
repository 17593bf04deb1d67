"""The conflict card and a snippet's history, as a browser asks for them."""

import json
import re

import pytest
from django.urls import reverse

from models_app import index, snippets
from models_app.models import TrainingSnippet
from models_app.snippets import replace_page_snippets
from tests.models_app.test_snippets import URL, Draft

HTMX = {"HX-Request": "true"}
WORDS = re.compile(r"<[^>]+>")
OWN = "The lamp costs 40 euros. Ask <us> first."


def address(name, pk, tenant="acme"):
    return reverse(f"models_app:{name}", args=[tenant, "support", pk])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def asked(support):
    """Ann's edit of a section that costs 45 euros now."""
    replace_page_snippets(support, URL, [Draft("Lamp", "The lamp costs 40 euros & is <b>big</b>.")])
    row = snippets.edit(
        support.snippets.get(), "Lamp", "The lamp costs 40 euros. Ask <us> first.", URL, "ann@acme.test"
    )
    replace_page_snippets(support, URL, [Draft("Lamp", "The lamp costs 45 euros & is <b>big</b>.")])
    row.refresh_from_db()
    return row


@pytest.fixture
def gone(support, asked):
    replace_page_snippets(support, URL, [])
    asked.refresh_from_db()
    return asked


def card(browser, row) -> str:
    return browser.get(address("snippet_conflict", row.pk), headers=HTMX).content.decode()


def decide(browser, row, choice, **typed):
    seen = re.search(r'name="seen" value="(\w+)"', card(browser, row))
    sent = {"choice": choice, "seen": seen[1] if seen else "", **typed}
    return browser.post(address("snippet_conflict", row.pk), sent, headers=HTMX)


def marked(page: str, tag: str) -> list[str]:
    return [WORDS.sub("", found) for found in re.findall(rf"<{tag}>(.*?)</{tag}>", page)]


def test_three_texts_stand_side_by_side_with_what_differs_marked(asked, ann_browser):
    page = card(ann_browser, asked)
    headings = re.findall(r'<h3 class="compared__head">(.*?)</h3>', page)
    assert headings == ["What the page said", "What the page says now", "Your text"]
    assert marked(page, "del") == ["[removed: 40]"]
    assert marked(page, "ins") == ["[added: 45]", "[added: euros. Ask &lt;us&gt; first.]"]
    assert "<b>big" not in page and "&lt;b&gt;big&lt;/b&gt;" in page
    assert all(f'value="{choice}"' in page for choice in ("mine", "theirs", "merged"))
    assert "of 2,000 tokens" in page


@pytest.mark.parametrize(
    ("choice", "text", "is_edited"),
    [
        ("mine", OWN, True),
        ("theirs", "The lamp costs 45 euros & is <b>big</b>.", False),
        ("merged", "It costs 45 euros.\nAsk first.", True),
    ],
)
def test_each_choice_works(support, asked, ann_browser, choice, text, is_edited):
    response = decide(ann_browser, asked, choice, prompt="Lamp", completion="It costs 45 euros.\r\nAsk first.")
    asked.refresh_from_db()
    assert (response.status_code, asked.completion, asked.is_edited, asked.conflict) == (204, text, is_edited, "")
    assert "snippets-changed" in json.loads(response.headers["HX-Trigger"])
    assert asked.versions.first().author == "ann@acme.test"
    assert index.check_model(support.pk) == []
    assert "Nothing to decide" in card(ann_browser, asked)


@pytest.mark.parametrize(("choice", "left"), [("mine", [("manual", False)]), ("theirs", [])])
def test_a_gone_section_is_kept_or_deleted(support, gone, ann_browser, choice, left):
    page = card(ann_browser, gone)
    assert "Keep as my own" in page and "What the page says now" not in page
    assert decide(ann_browser, gone, choice).status_code == 204
    assert list(support.snippets.values_list("source", "is_edited")) == left


def test_an_empty_merged_text_is_refused_beside_its_field(asked, ann_browser):
    response = decide(ann_browser, asked, "merged", prompt="Lamp", completion=" \n")
    page = response.content.decode()
    assert (response.status_code, 'id="id_completion_error"' in page, '<details class="more" open>' in page) == (
        200,
        True,
        True,
    )
    asked.refresh_from_db()
    assert asked.conflict == "changed"


@pytest.mark.parametrize("sent", [{}, {"choice": "all"}, {"choice": ["mine", "nothing"]}])
def test_without_a_choice_nothing_is_decided(asked, ann_browser, sent):
    page = card(ann_browser, asked)
    seen = re.search(r'name="seen" value="(\w+)"', page)[1]
    response = ann_browser.post(address("snippet_conflict", asked.pk), {"seen": seen, **sent}, headers=HTMX)
    assert (response.status_code, "Choose one" in response.content.decode()) == (200, True)
    asked.refresh_from_db()
    assert asked.conflict == "changed"


def test_a_page_that_changed_meanwhile_is_shown_anew_and_not_decided_about(support, asked, ann_browser):
    seen = re.search(r'name="seen" value="(\w+)"', card(ann_browser, asked))[1]
    replace_page_snippets(support, URL, [Draft("Lamp", "The lamp costs 99 euros.")])
    sent = {"choice": "theirs", "seen": seen}
    page = ann_browser.post(address("snippet_conflict", asked.pk), sent, headers=HTMX).content.decode()
    assert "has changed since you opened this" in page and "99" in page
    asked.refresh_from_db()
    assert "Ask" in asked.completion


def test_a_reader_sees_the_texts_and_decides_nothing(asked, browse, ray):
    browser = browse(ray)
    page = card(browser, asked)
    assert page.count("compared__head") == 3
    assert 'name="choice"' not in page and "<form" not in page
    seen = {"choice": "theirs", "seen": "x"}
    assert browser.post(address("snippet_conflict", asked.pk), seen, headers=HTMX).status_code == 403
    history = browser.get(address("snippet_history", asked.pk), headers=HTMX).content.decode()
    assert "ann@acme.test" in history and "Restore" not in history
    sent = {"version": asked.versions.get().pk}
    assert browser.post(address("snippet_restore", asked.pk), sent, headers=HTMX).status_code == 403
    asked.refresh_from_db()
    assert (asked.conflict, "Ask" in asked.completion) == ("changed", True)


@pytest.mark.parametrize("name", ["snippet_conflict", "snippet_history", "snippet_restore"])
def test_another_tenant_finds_nothing(asked, browse, gil, name):
    browser = browse(gil)
    for tenant in ("acme", "globex"):
        assert browser.post(address(name, asked.pk, tenant), headers=HTMX).status_code in (404, 405)
        assert browser.get(address(name, asked.pk, tenant), headers=HTMX).status_code in (404, 405)


def test_the_snippet_leads_to_its_conflict_and_its_history(asked, ann_browser):
    page = ann_browser.get(address("snippet", asked.pk), headers=HTMX).content.decode()
    assert address("snippet_conflict", asked.pk) in page
    assert address("snippet_history", asked.pk) in page
    edit = ann_browser.get(address("snippet_edit", asked.pk), headers=HTMX).content.decode()
    assert address("snippet_conflict", asked.pk) in edit


def test_the_history_names_what_changed_when_and_by_whom(asked, ann_browser):
    sent = {"prompt": "Lamps", "completion": asked.completion, "uri": URL}
    assert ann_browser.post(address("snippet_edit", asked.pk), sent, headers=HTMX).status_code == 204
    page = ann_browser.get(address("snippet_history", asked.pk), headers=HTMX).content.decode()
    assert page.count("by ann@acme.test") == 2
    assert marked(page, "ins") == ["[added: Lamps]", "[added: euros. Ask &lt;us&gt; first.]"]
    assert marked(page, "del") == ["[removed: Lamp]", "[removed: euros &amp; is &lt;b&gt;big&lt;/b&gt;.]"]


def test_an_earlier_text_is_restored(support, asked, ann_browser):
    version = asked.versions.get()
    page = ann_browser.get(address("snippet_history", asked.pk), headers=HTMX).content.decode()
    assert f'{{"version": {version.pk}, "seen": "' in page
    response = ann_browser.post(address("snippet_restore", asked.pk), {"version": version.pk}, headers=HTMX)
    asked.refresh_from_db()
    assert (response.status_code, asked.completion) == (204, version.completion)
    assert asked.versions.first().cause == "restored"
    other = snippets.add(support, "Other", "Text")
    for number in (version.pk, "x", ""):
        found = ann_browser.post(address("snippet_restore", other.pk), {"version": number}, headers=HTMX)
        assert found.status_code == 404
    assert TrainingSnippet.objects.get(pk=other.pk).completion == "Text"
