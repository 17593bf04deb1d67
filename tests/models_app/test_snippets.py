"""What the only writer of snippets promises: rows and index in step, edits kept, quotas held."""

from dataclasses import dataclass

import pytest

from models_app import index, snippets
from models_app.models import TrainingSnippet
from models_app.retrieval import retrieve

URL = "https://acme.test/prices"


@dataclass(frozen=True)
class Draft:
    prompt: str
    completion: str


LAMP = Draft("Lamp", "The lamp costs 40 euros.")
CHAIR = Draft("Chair", "The chair costs 90 euros.")
SHELF = Draft("Shelf", "The shelf costs 120 euros.")


def found(model, question: str) -> list[str]:
    return [hit.title for hit in retrieve(model, question, mode="keyword").hits]


def test_a_new_snippet_is_found_by_its_words_at_once(support):
    snippets.add(support, "Opening hours", "We open at nine.")
    assert found(support, "when do you open") == ["Opening hours"]


def test_an_edited_snippet_is_found_by_its_new_words_only(support):
    snippet = snippets.add(support, "Lamp", "It shines yellow.")
    snippets.edit(snippet, "Lamp", "It shines green.", uri="")
    assert found(support, "yellow") == []
    assert found(support, "green") == ["Lamp"]
    assert index.check_model(support.pk) == []


def test_a_deleted_snippet_is_not_found_any_more(support):
    lamp = snippets.add(support, "Lamp", "It shines.")
    assert snippets.delete(support, [lamp.pk]) == 1
    assert found(support, "lamp") == []
    assert index.check_model(support.pk) == []


def test_a_page_that_did_not_change_keeps_its_rows(support):
    snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    before = list(support.snippets.values("pk", "updated_at"))
    again = snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    assert (again.added, again.kept, again.removed) == (0, 2, 0)
    assert list(support.snippets.values("pk", "updated_at")) == before


def test_only_the_section_that_changed_is_replaced(support):
    snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    lamp = support.snippets.get(prompt="Lamp")
    replaced = snippets.replace_page_snippets(support, URL, [SHELF, LAMP])
    assert (replaced.added, replaced.kept, replaced.removed) == (1, 1, 1)
    assert [row.prompt for row in support.snippets.all()] == ["Shelf", "Lamp"]
    assert support.snippets.get(prompt="Lamp").pk == lamp.pk
    assert index.check_model(support.pk) == []


def test_the_same_text_twice_on_a_page_stays_twice(support):
    snippets.replace_page_snippets(support, URL, [LAMP, LAMP])
    again = snippets.replace_page_snippets(support, URL, [LAMP, LAMP, LAMP])
    assert (again.added, again.kept, again.removed) == (1, 2, 0)


def test_what_the_owner_edited_survives_also_when_its_section_is_gone(support):
    snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    snippets.edit(support.snippets.get(prompt="Lamp"), "Lamp", "Sold out.", uri=URL)
    unchanged = snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    assert (unchanged.added, unchanged.kept) == (0, 2)
    gone = snippets.replace_page_snippets(support, URL, [CHAIR])
    assert (gone.removed, gone.protected) == (0, 1)
    assert support.snippets.get(prompt="Lamp").completion == "Sold out."
    assert snippets.retire_pages(support, [URL]) == 1
    [row] = support.snippets.all()
    assert (row.prompt, row.conflict) == ("Lamp", TrainingSnippet.Conflict.GONE)


def test_a_page_that_moves_takes_its_rows_along_and_what_was_deleted_of_it_stays_away(support):
    new = URL + "/new"
    snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    lamp, chair = support.snippets.order_by("position")
    snippets.edit(lamp, "Lamp", "Sold out.", URL)
    snippets.delete(support, [chair.pk])
    by_hand = snippets.add(support, "By hand", "Written.", uri=URL)
    assert snippets.move_page(support, URL, new) == 1
    snippets.replace_page_snippets(support, new, [LAMP, CHAIR])
    assert [(row.pk, row.completion) for row in support.snippets.filter(uri=new)] == [(lamp.pk, "Sold out.")]
    assert support.snippets.get(uri=URL).pk == by_hand.pk
    assert index.check_model(support.pk) == []


def test_a_page_moves_to_no_address_that_has_snippets_already(support):
    snippets.replace_page_snippets(support, URL, [LAMP])
    snippets.replace_page_snippets(support, URL + "/new", [CHAIR])
    assert snippets.move_page(support, URL, URL + "/new") == 0
    assert support.snippets.get(uri=URL).prompt == "Lamp"


def test_another_pages_and_hand_written_snippets_are_left_alone(support):
    snippets.add(support, "By hand", "Written.", uri=URL)
    snippets.replace_page_snippets(support, URL + "/other", [SHELF])
    snippets.replace_page_snippets(support, URL, [LAMP])
    snippets.replace_page_snippets(support, URL, [])
    assert sorted(row.prompt for row in support.snippets.all()) == ["By hand", "Shelf"]


def test_over_the_quota_nothing_changes_and_the_message_names_it(support, acme):
    acme.snippet_quota = 2
    acme.save()
    snippets.replace_page_snippets(support, URL, [LAMP])
    with pytest.raises(snippets.SnippetQuotaReached, match="2 snippets"):
        snippets.replace_page_snippets(support, URL, [SHELF, CHAIR, Draft("Bed", "A bed.")])
    assert [row.prompt for row in support.snippets.all()] == ["Lamp"]
    replaced = snippets.replace_page_snippets(support, URL, [SHELF, CHAIR])
    assert (replaced.added, replaced.removed) == (2, 1)


def test_many_are_added_up_to_the_quota_and_found_at_once(support, acme):
    drafts = (Draft(f"Lamp {number}", f"Costs {number} euros.") for number in range(snippets.BATCH + 1))
    assert snippets.add_many(support, drafts, "upload", "prices.csv") == snippets.BATCH + 1
    last = support.snippets.get(position=snippets.BATCH)
    assert (last.prompt, last.uri, last.source) == (f"Lamp {snippets.BATCH}", "prices.csv", "upload")
    assert found(support, f"lamp {snippets.BATCH}")[0] == last.prompt
    acme.snippet_quota = snippets.BATCH + 2
    acme.save()
    with pytest.raises(snippets.SnippetQuotaReached):
        snippets.add_many(support, [LAMP, CHAIR])
    assert index.check_model(support.pk) == []


def test_rows_from_elsewhere_keep_their_own_fields_and_their_edit(support):
    fields = {"uri": URL, "source": "crawl", "position": 3, "is_edited": True, "source_prompt": "Lamp"}
    row = TrainingSnippet(prompt="Lamp", completion="Sold out.", source_completion=LAMP.completion, **fields)
    snippets.add_many(support, [row])
    stored = support.snippets.get()
    assert {name: getattr(stored, name) for name in fields} == fields
    assert stored.token_count > 0
    assert snippets.replace_page_snippets(support, URL, [LAMP]) == snippets.Replaced(kept=1)


def test_what_is_prepared_is_stored_as_what_is_not(support):
    prepared = snippets.prepare_sections(support, URL, [LAMP, CHAIR])
    assert snippets.replace_page_snippets(support, URL, prepared).added == 2
    assert snippets.replace_page_snippets(support, URL, [LAMP, CHAIR]).kept == 2
    assert index.check_model(support.pk) == []


def test_deleting_a_model_empties_its_index(support):
    snippets.replace_page_snippets(support, URL, [LAMP, CHAIR])
    pk = support.pk
    snippets.delete_model(support)
    assert TrainingSnippet.objects.count() == 0
    assert index.check_model(pk) == []


def test_a_title_longer_than_the_column_is_cut_and_still_deletes_cleanly(support):
    snippet = snippets.add(support, "word " * 500, "text")
    assert len(snippet.prompt) <= snippets.TITLE_LENGTH
    snippets.delete(support, [snippet.pk])
    assert index.check_model(support.pk) == []


def test_tokens_count_title_and_text(support):
    assert snippets.add(support, "Lamp", "It shines.").token_count >= 4
