"""Training data as a browser asks for it: search, read, write, edit, delete, vectorise."""

import json
import re
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse
from django.utils import timezone

from models_app import snippets
from models_app.models import MLModel, TrainingSnippet, Vectorising
from tenants.store import activated, active_store

HTMX = {"HX-Request": "true"}


def address(name, *arguments):
    return reverse(f"models_app:{name}", args=["acme", "support", *arguments])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def hours(support):
    return snippets.add(
        support, "When are you open?", "From **nine** to five.", "https://acme.test/hours", source="crawl"
    )


@pytest.fixture
def prices(support):
    return snippets.add(support, "What does repair cost?", "A repair costs 40 €.")


def events_of(response):
    return json.loads(response.headers["HX-Trigger"])


def listed(response):
    page = response.content.decode()
    return {snippet.pk for snippet in TrainingSnippet.objects.all() if f'id="read-{snippet.pk}"' in page}


def test_a_model_that_knows_nothing_leads_to_the_import(support, ann_browser):
    page = ann_browser.get(address("training_data")).content.decode()
    assert "Import your site" in page


@pytest.mark.parametrize("words", ["repair", "repairing", "REPAIR", "rep", "40 €", "  repair  "])
def test_search_finds_words_and_beginnings_of_words(hours, prices, ann_browser, words):
    response = ann_browser.get(address("snippet_table"), {"q": words}, headers=HTMX)
    assert listed(response) == {prices.pk}


@pytest.mark.parametrize("words", ["%", "_", '"', "AND OR NOT", "*", "'; DROP TABLE", "🦄", "x" * 5_000, "\\"])
def test_any_text_may_be_searched(hours, prices, ann_browser, words):
    response = ann_browser.get(address("snippet_table"), {"q": words}, headers=HTMX)
    assert response.status_code == 200
    assert listed(response) <= {hours.pk, prices.pk}


def test_filters_narrow_the_list(hours, prices, ann_browser):
    snippets.edit(hours, "When?", "From ten.", hours.uri)
    shown = {
        chosen: listed(ann_browser.get(address("snippet_table"), {"show": chosen}, headers=HTMX))
        for chosen in ("", "crawl", "manual", "upload", "edited", "conflict", "no-vector", "nonsense")
    }
    both = {hours.pk, prices.pk}
    assert shown == {
        "": both,
        "crawl": {hours.pk},
        "manual": {prices.pk},
        "upload": set(),
        "edited": {hours.pk},
        "conflict": set(),
        "no-vector": both,
        "nonsense": both,
    }


def test_a_conflict_is_shown_and_filtered_by(hours, prices, ann_browser):
    TrainingSnippet.objects.filter(pk=hours.pk).update(is_edited=True, conflict="gone")
    response = ann_browser.get(address("snippet_table"), {"show": "conflict"}, headers=HTMX)
    assert listed(response) == {hours.pk}
    assert address("snippet_conflict", hours.pk) in response.content.decode()
    page = ann_browser.get(address("training_data")).content.decode()
    assert f'{address("training_data")}?show=conflict">1 conflict to decide' in page


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("https://acme.test/hours", 1),
        ("https://acme.test/hours/", 1),
        ("acme.test/HOURS", 2),
        ("elsewhere", 0),
        ("%", 0),
        (" ", 3),
    ],
)
def test_one_page_is_shown_or_all_whose_address_holds_what_was_typed(hours, prices, ann_browser, support, uri, found):
    snippets.add(support, "And on Sunday?", "Closed.", "https://acme.test/hours/")
    assert len(listed(ann_browser.get(address("snippet_table"), {"uri": uri}, headers=HTMX))) == found


def test_pages_are_offered_with_their_snippets_counted(hours, prices, support, ann_browser):
    snippets.add(support, "And on Sunday?", "Closed.", hours.uri)
    page = ann_browser.get(address("snippet_pages"), {"uri": "HOUR"}, headers=HTMX).content.decode()
    assert '<option value="https://acme.test/hours">2 snippets</option>' in page
    assert "<option" not in ann_browser.get(address("snippet_pages"), {"uri": "elsewhere"}).content.decode()


def test_the_list_is_sorted_as_asked(support, ann_browser):
    made = [snippets.add(support, title, title * 20, uri) for title, uri in (("b ", "y"), ("a b c ", "x"), ("c", "z"))]
    shown = {}
    for sort in ("", "newest", "largest", "nonsense"):
        page = ann_browser.get(address("snippet_table"), {"sort": sort}, headers=HTMX).content.decode()
        shown[sort] = sorted(range(3), key=lambda place: page.index(f'id="read-{made[place].pk}"'))
    assert shown == {"": [1, 0, 2], "newest": [2, 1, 0], "largest": [1, 0, 2], "nonsense": [1, 0, 2]}


def test_an_address_that_would_run_is_no_link(support, ann_browser):
    snippets.add(support, "Trap", "Text.", "javascript:alert(1)")
    assert 'href="javascript' not in ann_browser.get(address("training_data")).content.decode()


def test_a_long_list_takes_as_few_queries_as_a_short_one(support, ann_browser, django_assert_max_num_queries):
    snippets.add_many(support, [TrainingSnippet(prompt=f"Title {n}", completion="Text.") for n in range(60)])
    with django_assert_max_num_queries(8, using=active_store().alias):
        ann_browser.get(address("snippet_table"), {"page": "2"}, headers=HTMX)


def delete_many(browser, **sent):
    """Ask for the dialog, and confirm it; returns what both say."""
    asked = browser.get(address("snippets_delete"), sent, headers=HTMX).content.decode()
    ids = re.search(r'name="ids" value="([^"]*)"', asked)[1]
    return asked, browser.post(address("snippets_delete"), {"ids": ids}, headers=HTMX)


def test_what_is_ticked_is_deleted_after_a_dialog_that_names_the_number(hours, prices, support, ann_browser):
    left = snippets.add(support, "Parking?", "Behind the house.")
    snippets.edit(hours, "When?", "From ten.", hours.uri)
    asked, deleted = delete_many(ann_browser, ids=[hours.pk, prices.pk])
    assert "Delete 2 snippets?" in asked
    assert "1 of them was edited by hand" in asked
    assert deleted.status_code == 204
    assert "2 snippets deleted" in events_of(deleted)["toast"]["text"]
    assert "snippets-changed" in events_of(deleted)
    assert list(TrainingSnippet.objects.values_list("pk", flat=True)) == [left.pk]


def test_the_dialogs_say_that_what_came_from_a_page_or_file_stays_away(support, ann_browser):
    page = snippets.add(support, "Hours", "At nine.", "https://acme.test/", "crawl")
    file = snippets.add(support, "Prices", "9 euros.", "prices.pdf", "upload")
    own = snippets.add(support, "Parking", "Behind the house.")
    asked = {
        row: ann_browser.get(address("snippet_delete", row.pk), headers=HTMX).content.decode()
        for row in (page, file, own)
    }
    assert "until its page says something else there" in asked[page]
    assert "until its file says something else there" in asked[file]
    assert "something else" not in asked[own]
    many = ann_browser.get(address("snippets_delete"), {"all": "1"}, headers=HTMX).content.decode()
    assert "2 come from pages and files: each stays away until its page says something else there" in many


def test_all_that_match_are_deleted_and_nothing_else(support, ann_browser):
    for number in range(60):
        snippets.add(support, f"Title {number}", "Text." if number % 2 else "Other.", f"https://acme.test/{number}")
    sent = {"all": "1", "q": "Other", "uri": "acme.test/1"}
    assert "Delete 5 snippets?" in delete_many(ann_browser, **sent)[0]
    assert support.snippets.count() == 55
    assert not support.snippets.filter(completion="Other.", uri__contains="test/1").exists()


def test_what_came_after_the_dialog_stays(hours, support, ann_browser):
    asked = ann_browser.get(address("snippets_delete"), {"all": "1"}, headers=HTMX).content.decode()
    later = snippets.add(support, "New", "Just written.")
    ids = re.search(r'name="ids" value="([^"]*)"', asked)[1]
    ann_browser.post(address("snippets_delete"), {"ids": ids}, headers=HTMX)
    assert list(TrainingSnippet.objects.values_list("pk", flat=True)) == [later.pk]


@pytest.mark.parametrize("ids", ["", "x", "-", "999999", "3-", "9-1", "1" * 5_000, "²", "1,,;drop"])
def test_with_nothing_ticked_nothing_is_deleted(support, ann_browser, ids):
    TrainingSnippet.objects.create(pk=77, model=support, prompt="x", completion="y")
    asked = ann_browser.get(address("snippets_delete"), {"ids": ids}, headers=HTMX)
    assert asked.status_code == 204
    assert "Nothing is ticked" in events_of(asked)["toast"]["text"]
    ann_browser.post(address("snippets_delete"), {"ids": ids}, headers=HTMX)
    assert TrainingSnippet.objects.count() == 1


def test_a_large_deletion_goes_on_step_by_step(support, ann_browser):
    snippets.add_many(support, [TrainingSnippet(prompt=f"Title {n}", completion="Text.") for n in range(2_005)])
    page = delete_many(ann_browser, all="1")[1].content.decode()
    assert "2,000 of 2,005" in page and 'hx-trigger="load"' in page
    sent = dict(re.findall(r'name="(ids|total)" value="([^"]*)"', page))
    ended = ann_browser.post(address("snippets_delete"), sent, headers=HTMX)
    assert ended.status_code == 204
    assert "2,005 snippets deleted" in events_of(ended)["toast"]["text"]
    assert not TrainingSnippet.objects.exists()


def test_snippets_of_another_model_are_not_deleted(hours, ann_browser):
    other = MLModel.objects.create(slug="other", name="Other")
    theirs = snippets.add(other, "Theirs", "Text.")
    ann_browser.post(address("snippets_delete"), {"ids": f"0-{theirs.pk + 10}"}, headers=HTMX)
    assert list(TrainingSnippet.objects.values_list("pk", flat=True)) == [theirs.pk]


def downloaded(response) -> list[bytes]:
    """Return the parts of a stream as the server takes them, one after the other."""

    async def parts():
        return [part async for part in response]

    return async_to_sync(parts)()


def test_an_export_holds_what_is_shown_under_the_models_name(hours, prices, ann_browser):
    for sent, found in (({}, 2), ({"q": "repair"}, 1), ({"show": "crawl", "as": "jsonl"}, 1), ({"q": "zebra"}, 0)):
        response = ann_browser.get(address("snippets_export"), sent)
        assert len(b"".join(downloaded(response)).splitlines()) == found
        assert re.fullmatch(
            r'attachment; filename="support-\d{4}-\d\d-\d\d\.jsonl"', response.headers["Content-Disposition"]
        )
    table = b"".join(downloaded(ann_browser.get(address("snippets_export"), {"as": "csv", "sort": "newest"})))
    assert [line.split(b",")[0] for line in table.splitlines()[1:]] == [
        b"What does repair cost?",
        b"When are you open?",
    ]
    assert ann_browser.get(address("snippets_export"), {"as": "xlsx"}).status_code == 404


def test_an_export_is_streamed_after_the_request_has_left_its_store(acme, ann_browser):
    with activated(acme):
        model = MLModel.objects.create(slug="support", name="Support")
        snippets.add_many(model, [TrainingSnippet(prompt=f"{n}", completion="Text.") for n in range(1_100)])
    parts = downloaded(ann_browser.get(address("snippets_export")))
    assert [len(part.splitlines()) for part in parts] == [500, 500, 100]


def test_a_reader_exports_but_ticks_nothing(hours, browse, ray):
    reader = browse(ray)
    page = reader.get(address("training_data")).content.decode()
    assert address("snippets_export") in page
    assert 'type="checkbox"' not in page
    assert len(downloaded(reader.get(address("snippets_export")))) == 1
    assert reader.post(address("snippets_delete"), {"ids": str(hours.pk)}, headers=HTMX).status_code == 403
    assert TrainingSnippet.objects.exists()


def test_the_address_bar_follows_the_search(hours, ann_browser):
    response = ann_browser.get(address("snippet_table"), {"q": "nine", "show": ""}, headers=HTMX)
    assert response.headers["HX-Replace-Url"] == address("training_data") + "?q=nine"


def test_a_long_list_has_pages(support, ann_browser):
    for number in range(30):
        snippets.add(support, f"Title {number}", "Text.")
    first = ann_browser.get(address("snippet_table"), headers=HTMX)
    second = ann_browser.get(address("snippet_table"), {"page": "2"}, headers=HTMX)
    beyond = ann_browser.get(address("snippet_table"), {"page": "99"}, headers=HTMX)
    assert (len(listed(first)), len(listed(second))) == (25, 5)
    assert not listed(first) & listed(second)
    assert listed(beyond) == listed(second)


def test_a_snippet_is_read_as_markdown(hours, ann_browser):
    page = ann_browser.get(address("snippet", hours.pk), headers=HTMX).content.decode()
    assert "<strong>nine</strong>" in page
    assert "https://acme.test/hours" in page


def test_a_written_snippet_is_found_at_once(support, ann_browser):
    sent = {"prompt": "Do you\n sell   film?", "completion": "Yes,\r\nin rolls.", "uri": ""}
    response = ann_browser.post(address("snippet_add"), sent, headers=HTMX)
    snippet = TrainingSnippet.objects.get()
    assert response.status_code == 204
    assert "snippets-changed" in events_of(response)
    assert (snippet.prompt, snippet.completion, snippet.source) == ("Do you sell film?", "Yes,\nin rolls.", "manual")


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("prompt", ""),
        ("prompt", "x" * 1_001),
        ("completion", " \n "),
        ("uri", "javascript:alert(1)"),
        ("uri", "/hours"),
    ],
)
def test_a_bad_snippet_is_refused_beside_its_field(support, ann_browser, field, bad):
    sent = {"prompt": "A title", "completion": "Some text", "uri": ""} | {field: bad}
    page = ann_browser.post(address("snippet_add"), sent, headers=HTMX).content.decode()
    assert f'id="id_{field}_error"' in page
    assert not TrainingSnippet.objects.exists()


def test_a_full_workspace_says_so_and_keeps_what_was_typed(acme, hours, ann_browser):
    acme.snippet_quota = 1
    acme.save()
    sent = {"prompt": "One more", "completion": "Some text", "uri": ""}
    page = ann_browser.post(address("snippet_add"), sent, headers=HTMX).content.decode()
    assert "holds its 1 snippets" in page
    assert "One more" in page


def test_an_edit_marks_the_snippet_and_drops_its_vector(hours, ann_browser):
    TrainingSnippet.objects.filter(pk=hours.pk).update(embedded_in="multilingual-e5-small")
    sent = {"prompt": hours.prompt, "completion": "From ten.", "uri": hours.uri}
    assert ann_browser.post(address("snippet_edit", hours.pk), sent, headers=HTMX).status_code == 204
    hours.refresh_from_db()
    assert (hours.completion, hours.is_edited, hours.embedded_in) == ("From ten.", True, "")


def test_saving_an_unchanged_snippet_edits_nothing(support, ann_browser):
    text = "    indented code\nsecond line\n"
    snippet = snippets.add(support, "Title", text, "https://acme.test/", source="crawl")
    sent = {"prompt": "Title", "completion": text.replace("\n", "\r\n"), "uri": "https://acme.test/"}
    assert ann_browser.post(address("snippet_edit", snippet.pk), sent, headers=HTMX).status_code == 204
    snippet.refresh_from_db()
    assert (snippet.completion, snippet.is_edited) == (text, False)


@pytest.mark.parametrize(("source", "uri"), [("crawl", "https://acme.test/a"), ("upload", "prices.csv")])
def test_an_edit_leaves_a_snippet_with_what_it_comes_from(support, ann_browser, source, uri):
    """Else the next import would not find it, and bring its text a second time."""
    snippet = snippets.add(support, "Title", "Text.", uri, source=source)
    sent = {"prompt": "Title", "completion": "Another text.", "uri": "https://acme.test/elsewhere"}
    assert ann_browser.post(address("snippet_edit", snippet.pk), sent, headers=HTMX).status_code == 204
    snippet.refresh_from_db()
    assert (snippet.completion, snippet.uri, snippet.is_edited) == ("Another text.", uri, True)


def test_tokens_are_counted_while_typing(support, ann_browser):
    sent = {"prompt": "Title", "completion": "word " * 3_000}
    page = ann_browser.post(address("snippet_tokens"), sent, headers=HTMX).content.decode()
    assert "of 2,000 tokens" in page
    assert "Larger than the whole budget" in page


def test_deleting_asks_first(hours, ann_browser):
    asked = ann_browser.get(address("snippet_delete", hours.pk), headers=HTMX)
    assert "When are you open?" in asked.content.decode()
    assert TrainingSnippet.objects.exists()
    assert ann_browser.post(address("snippet_delete", hours.pk), headers=HTMX).status_code == 204
    assert not TrainingSnippet.objects.exists()


def test_a_snippet_is_not_reached_through_another_model(hours, ann_browser):
    MLModel.objects.create(slug="other", name="Other")
    elsewhere = reverse("models_app:snippet", args=["acme", "other", hours.pk])
    assert ann_browser.get(elsewhere, headers=HTMX).status_code == 404


@pytest.mark.parametrize("name", ["snippet_edit", "snippet_delete"])
def test_a_reader_changes_nothing(hours, browse, ray, name):
    response = browse(ray).post(address(name, hours.pk), {"prompt": "x", "completion": "y"}, headers=HTMX)
    hours.refresh_from_db()
    assert response.status_code == 403
    assert hours.prompt == "When are you open?"


def test_a_reader_sees_no_buttons_that_change(hours, browse, ray):
    page = browse(ray).get(address("training_data")).content.decode()
    for name in ("snippet_edit", "snippet_delete"):
        assert address(name, hours.pk) not in page
    assert address("snippet", hours.pk) in page
    assert address("snippet_add") not in page
    assert address("vectorise") not in page


def test_vectorise_says_what_is_missing(hours, prices, ann_browser):
    page = ann_browser.get(address("vectorise"), headers=HTMX).content.decode()
    assert "Make 2 vectors" in page
    assert "0 of 2 vectors" in page


def test_a_keyword_model_has_nothing_to_vectorise(support, hours, ann_browser):
    support.retrieval = "keyword"
    support.save()
    page = ann_browser.get(address("vectorise"), headers=HTMX).content.decode()
    assert "nothing to vectorise" in page
    assert "Make 1 vector" not in page


def test_vectorising_starts_once_and_shows_its_progress(hours, ann_browser):
    for _ in range(2):
        page = ann_browser.post(address("vectorise"), headers=HTMX).content.decode()
        assert "Waiting for a worker" in page
        assert "every 2s" in page
    assert Vectorising.objects.count() == 1
    assert ann_browser.get(address("vectorise_progress"), headers=HTMX).status_code == 200


def test_vectorising_that_no_worker_takes_says_what_to_check(support, hours, ann_browser):
    ann_browser.post(address("vectorise"), headers=HTMX)
    Vectorising.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    page = ann_browser.get(address("vectorise_progress"), headers=HTMX).content.decode()
    assert "No worker has taken this up yet." in page


def test_vectorising_can_be_stopped(hours, ann_browser):
    ann_browser.post(address("vectorise"), headers=HTMX)
    page = ann_browser.post(address("vectorise_stop"), headers=HTMX).content.decode()
    assert Vectorising.objects.get().state == "stopped"
    assert "Make 1 vector" in page
    ended = ann_browser.get(address("vectorise_progress"), headers=HTMX)
    assert ended.status_code == 286
    assert "vectors-changed" in events_of(ended)


def test_a_failed_vectorising_says_why(support, hours, ann_browser):
    support.vectorisings.create(state="failed", message="The embedding service did not answer.")
    page = ann_browser.get(address("vectorise"), headers=HTMX).content.decode()
    assert "The embedding service did not answer." in page
    assert "Make 1 vector" in page


def test_a_reader_may_not_start_vectorising(hours, browse, ray):
    assert browse(ray).post(address("vectorise"), headers=HTMX).status_code == 403
    assert not Vectorising.objects.exists()
