"""The edit dialog against an import or another member who is quicker: no text is lost that nobody has seen."""

import re
from html import unescape

import pytest
from django.urls import reverse

from models_app import index, snippets
from models_app.models import TrainingSnippet
from models_app.snippets import replace_page_snippets
from tests.models_app.test_conflict_views import HTMX
from tests.models_app.test_snippets import URL, Draft

LAMP, DEARER = Draft("Lamp", "The lamp costs 40 euros."), Draft("Lamp", "The lamp costs 45 euros.")
TYPED = {"prompt": "Lamp", "completion": "The lamp costs 40 euros & more."}


def address(name: str, *pk: int) -> str:
    return reverse(f"models_app:{name}", args=["acme", "support", *pk])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def lamp(support) -> TrainingSnippet:
    replace_page_snippets(support, URL, [LAMP])
    return support.snippets.get()


def hidden(page: str) -> dict[str, str]:
    """Return what the dialog sends along unseen."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: unescape(value) for name, value in found}


def opened(browser, row) -> dict[str, str]:
    return hidden(browser.get(address("snippet_edit", row.pk), headers=HTMX).content.decode())


def save(browser, row, sent):
    return browser.post(address("snippet_edit", row.pk), sent, headers=HTMX)


def test_an_edit_opened_before_an_import_is_not_saved_over_its_text(support, lamp, ann_browser):
    sent = opened(ann_browser, lamp) | TYPED
    replace_page_snippets(support, URL, [DEARER])
    response = save(ann_browser, lamp, sent)
    lamp.refresh_from_db()
    assert (response.status_code, lamp.completion, lamp.is_edited) == (200, DEARER.completion, False)
    page = response.content.decode()
    assert "This snippet was changed while you were editing: an import changed it." in page
    assert "The lamp costs 40 euros &amp; more.</textarea>" in page
    assert "<del>" in page and "45" in page and "Save mine" in page
    assert 'data-refused="true"' in page, "else it closes without asking, and what was typed is gone"


def test_to_save_again_is_an_edit_of_the_new_source(support, lamp, ann_browser):
    sent = opened(ann_browser, lamp) | TYPED
    replace_page_snippets(support, URL, [DEARER])
    again = hidden(save(ann_browser, lamp, sent).content.decode()) | TYPED
    assert save(ann_browser, lamp, again).status_code == 204
    lamp.refresh_from_db()
    assert (lamp.completion, lamp.is_edited, lamp.conflict) == (TYPED["completion"], True, "")
    assert (lamp.source_completion, lamp.versions.first().completion) == (DEARER.completion, DEARER.completion)
    assert replace_page_snippets(support, URL, [DEARER]).conflicts == 0
    assert replace_page_snippets(support, URL, [LAMP]).conflicts == 1
    assert index.check_model(support.pk) == []


@pytest.mark.parametrize(
    ("author", "told"), [("bob@acme.test", "bob@acme.test"), ("ann@acme.test", "you, in another window,")]
)
def test_who_was_quicker_is_told(lamp, ann_browser, author, told):
    sent = opened(ann_browser, lamp) | TYPED
    snippets.edit(lamp, "Lamp", "Sold out.", URL, author)
    assert f"while you were editing: {told} changed it." in save(ann_browser, lamp, sent).content.decode()
    lamp.refresh_from_db()
    assert lamp.completion == "Sold out."


def test_another_address_is_no_change_of_whoever_wrote_the_text(support, ann_browser):
    row = snippets.add(support, "Lamp", "40 euros.")
    snippets.edit(row, "Lamp", "45 euros.", "", "bob@acme.test")
    sent = opened(ann_browser, row) | TYPED | {"uri": ""}
    snippets.edit(row, "Lamp", "45 euros.", URL)
    assert "editing: another member changed it." in save(ann_browser, row, sent).content.decode()
    row.refresh_from_db()
    assert row.uri == URL


def test_the_same_edit_sent_twice_is_saved_once(lamp, ann_browser):
    sent = opened(ann_browser, lamp) | TYPED
    assert [save(ann_browser, lamp, sent).status_code for _ in range(2)] == [204, 204]
    assert lamp.versions.count() == 1


def test_a_mistake_in_the_form_does_not_forget_what_was_seen(support, lamp, ann_browser):
    sent = opened(ann_browser, lamp)
    replace_page_snippets(support, URL, [DEARER])
    refused = save(ann_browser, lamp, sent | {"prompt": "Lamp", "completion": " "}).content.decode()
    assert "while you were editing" in save(ann_browser, lamp, hidden(refused) | TYPED).content.decode()


def test_what_was_typed_for_a_deleted_snippet_is_offered_as_a_new_one(support, lamp, ann_browser):
    sent = opened(ann_browser, lamp) | TYPED
    replace_page_snippets(support, URL, [])
    page = save(ann_browser, lamp, sent).content.decode()
    assert "This snippet was deleted while you were editing." in page and "Add as new" in page
    assert f'hx-post="{address("snippet_add")}"' in page and f'value="{URL}"' in page
    assert not support.snippets.exists()


def test_a_snippet_that_never_was_is_not_offered(support, ann_browser):
    assert ann_browser.post(address("snippet_edit", 999), TYPED, headers=HTMX).status_code == 404


def test_an_earlier_text_is_not_restored_over_one_that_nobody_has_seen(support, lamp, ann_browser):
    snippets.edit(lamp, "Lamp", "Sold out.", URL)
    page = ann_browser.get(address("snippet_history", lamp.pk), headers=HTMX).content.decode()
    sent = {"version": lamp.versions.get().pk, "seen": re.search(r'"seen": "(\w+)"', unescape(page))[1]}
    snippets.edit(lamp, "Lamp", "Sold out until May.", URL)
    response = ann_browser.post(address("snippet_restore", lamp.pk), sent, headers=HTMX)
    lamp.refresh_from_db()
    assert (response.status_code, lamp.completion) == (200, "Sold out until May.")
    assert "nothing was restored" in response.content.decode()
