"""The Import dialog, its progress and its reports, as a browser asks for them."""

import json
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from crawler.models import Import, Page
from models_app import snippets
from models_app.models import MLModel
from tests.models_app.test_views import behaviour_fields

HTMX = {"HX-Request": "true"}


def address(name, *arguments):
    return reverse(f"crawler:{name}", args=["acme", "support", *arguments])


def fields(**changes):
    """Return what the Import dialog's form sends, with changes."""
    return {"address": "example.com", "max_pages": "50", "delay_seconds": "0.5"} | changes


def begin(model, **changes):
    return Import.objects.create(model=model, address="example.com", max_pages=50, **changes)


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


def events_of(response):
    return json.loads(response.headers["HX-Trigger"])


def test_the_dialog_begins_with_the_models_own_settings(support, ann_browser):
    support.website, support.import_images, support.insert_source_url = "acme.test/help", False, True
    support.save()
    page = ann_browser.get(address("import_dialog"), headers=HTMX).content.decode()
    assert 'value="acme.test/help"' in page
    assert page.count(" checked") == 1


def test_an_import_is_started_with_what_was_chosen(support, ann_browser):
    sent = fields(address=" example.com/help ", max_pages="7", import_images="on")
    response = ann_browser.post(address("import_dialog"), sent, headers=HTMX)
    job = Import.objects.get()
    assert (job.address, job.max_pages, job.delay_seconds) == ("example.com/help", 7, 0.5)
    assert (job.import_images, job.insert_source_url) == (True, False)
    assert "Waiting for a worker" in response.content.decode()
    assert "job-changed" in events_of(response)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("address", ""),
        ("address", "ftp://example.com"),
        ("address", "http://10.0.0.1/"),
        ("address", "http://169.254.169.254/latest/meta-data"),
        ("address", "http://user:secret@example.com/"),
        ("address", "javascript:alert(1)"),
        ("address", "two words"),
        ("address", "x" * 3_000),
        ("max_pages", "0"),
        ("max_pages", "99999999"),
        ("max_pages", "many"),
        ("delay_seconds", "-1"),
        ("delay_seconds", "nan"),
        ("delay_seconds", "600"),
    ],
)
def test_a_bad_value_is_refused_beside_its_field(support, ann_browser, field, bad):
    page = ann_browser.post(address("import_dialog"), fields(**{field: bad}), headers=HTMX).content.decode()
    assert f'id="id_{field}_error"' in page
    assert not Import.objects.exists()


def test_a_second_import_is_refused_and_shows_the_running_one(support, ann_browser):
    job = begin(support)
    page = ann_browser.post(address("import_dialog"), fields(), headers=HTMX).content.decode()
    assert "Nothing new was started" in page
    assert address("import_report", job.pk) in page
    assert Import.objects.count() == 1


def test_the_dialog_of_a_running_import_is_its_progress(support, ann_browser):
    job = begin(
        support, state="running", leased_until=timezone.now() + timedelta(minutes=1), done_count=3, total_count=9
    )
    job.pages.create(url="https://example.com/", state=Page.State.READ)
    page = ann_browser.get(address("import_dialog"), headers=HTMX).content.decode()
    assert "Reading pages" in page
    assert 'max="9" value="3"' in page
    assert "every 2s" in page


def test_an_interrupted_import_is_named_so(support, ann_browser):
    begin(support, state="running", leased_until=timezone.now() - timedelta(minutes=1))
    page = ann_browser.get(address("import_dialog"), headers=HTMX).content.decode()
    assert "Interrupted" in page


def test_an_import_nobody_works_on_is_stopped_at_once(support, ann_browser):
    job = begin(support)
    page = ann_browser.post(address("import_stop", job.pk), headers=HTMX).content.decode()
    job.refresh_from_db()
    assert job.state == "stopped"
    assert "What was imported until then stays." in page


def test_polling_ends_with_the_import_and_tells_the_page(support, ann_browser):
    job = begin(support)
    assert ann_browser.get(address("import_progress", job.pk), headers=HTMX).status_code == 200
    Import.objects.filter(pk=job.pk).update(state="done")
    ended = ann_browser.get(address("import_progress", job.pk), headers=HTMX)
    assert ended.status_code == 286
    assert "import-ended" in events_of(ended)
    assert "every 2s" not in ended.content.decode()


def test_an_import_that_no_worker_takes_says_what_to_check(support, ann_browser):
    job = begin(support)
    assert "No worker has taken" not in ann_browser.get(address("import_job", job.pk), headers=HTMX).content.decode()
    Import.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    for name in ("import_job", "import_progress", "import_report"):
        page = ann_browser.get(address(name, job.pk), headers=HTMX).content.decode()
        assert "No worker has taken this up yet." in page
        assert "manage.py serve" in page


def test_a_page_tells_what_happened_in_words_for_people(support, ann_browser):
    told = "https://example.com/a redirects to https://ex.test/, which is outside the imported part of the site"
    page = begin(support, state="done").pages.create(
        url="https://example.com/a", state="skipped", reason="out of scope", report={"message": told}
    )
    html = ann_browser.get(address("page_report", page.pk), headers=HTMX).content.decode()
    assert told in html
    assert "out of scope" not in html


def test_a_failed_import_says_why_where_the_person_looks(support, ann_browser):
    job = begin(support, state="failed", message="The robots.txt of example.com forbids everything.")
    for name in ("import_job", "import_report"):
        page = ann_browser.get(address(name, job.pk), headers=HTMX).content.decode()
        assert "The robots.txt of example.com forbids everything." in page
        assert "What the model knew before still answers." in page


def test_the_end_lists_the_pages_that_gave_nothing(support, ann_browser):
    job = begin(support, state="done", message="1 page imported.", notes=["A sitemap was odd."])
    job.pages.create(url="https://example.com/", state="done", snippet_count=1)
    report = {"message": "The page is a PDF."}
    job.pages.create(url="https://example.com/a.pdf", state="skipped", reason="not html: pdf", report=report)
    job.pages.create(url="https://example.com/slow", state="failed", reason="timeout")
    page = ann_browser.get(address("import_job", job.pk), headers=HTMX).content.decode()
    for words in (
        "1 page imported.",
        "A sitemap was odd.",
        "The page is a PDF.",
        "https://example.com/slow",
        "Did not answer in time",
    ):
        assert words in page


def test_all_pages_are_listed_filtered_and_searched(support, ann_browser):
    job = begin(support, state="done")
    job.pages.create(url="https://example.com/good", state="done")
    job.pages.create(url="https://example.com/lost", state="failed", reason="status 503")

    def shown(**query):
        page = ann_browser.get(address("page_table", job.pk), query, headers=HTMX).content.decode()
        return {url for url in ("good", "lost") if f"example.com/{url}" in page}

    assert shown() == {"good", "lost"}
    assert shown(state="failed") == {"lost"}
    assert shown(q="goo") == {"good"}
    assert shown(state="nonsense") == {"good", "lost"}


def test_a_page_tells_how_its_text_was_taken_and_split(support, ann_browser):
    job = begin(support, state="done")
    report = {
        "selected_by": "article",
        "warnings": ["The selection was widened."],
        "split": "headings",
        "split_report": "No LLM is set.",
    }
    page = job.pages.create(
        url="https://example.com/a", final_url="https://example.com/a", state="done", markdown="# Hours", report=report
    )
    snippets.add(support, "When are you open?", "From nine.", "https://example.com/a", source="crawl")
    html = ann_browser.get(address("page_report", page.pk), headers=HTMX).content.decode()
    for words in ("&lt;article&gt;", "The selection was widened.", "at its headings", "No LLM is set.", "From nine."):
        assert words in html


def test_a_page_of_another_site_runs_nothing_here(support, ann_browser):
    job = begin(support, state="done")
    page = job.pages.create(
        url="https://example.com/a",
        title="<script>alert(1)</script>",
        markdown="<script>alert(2)</script>",
        state="done",
    )
    for where in (address("page_report", page.pk), address("import_report", job.pk)):
        assert "<script>alert" not in ann_browser.get(where, headers=HTMX).content.decode()


def test_the_imports_tab_begins_with_an_empty_state(support, ann_browser):
    page = ann_browser.get(address("import_list")).content.decode()
    assert "Nothing has been imported yet" in page
    job = begin(support, state="done")
    assert address("import_report", job.pk) in ann_browser.get(address("import_list")).content.decode()


def test_a_reader_sees_imports_and_starts_or_stops_none(support, browse, ray):
    job, browser = begin(support), browse(ray)
    assert browser.get(address("import_report", job.pk)).status_code == 200
    assert browser.get(address("import_dialog"), headers=HTMX).status_code == 403
    assert browser.post(address("import_dialog"), fields(), headers=HTMX).status_code == 403
    assert browser.post(address("import_stop", job.pk), headers=HTMX).status_code == 403
    job.refresh_from_db()
    assert job.is_open


def test_an_import_is_not_reached_through_another_model(support, ann_browser):
    MLModel.objects.create(slug="other", name="Other")
    job = begin(support)
    assert ann_browser.get(reverse("crawler:import_report", args=["acme", "other", job.pk])).status_code == 404


def test_single_pages_are_started_with_each_address_once(support, ann_browser):
    sent = {"addresses": "example.com/a\n\n  https://example.com/b \nexample.com/a\n", "delay_seconds": "0"}
    ann_browser.post(address("pages_dialog"), sent, headers=HTMX)
    job = Import.objects.get()
    assert job.kind == "pages"
    assert job.addresses == ["example.com/a", "https://example.com/b"]


def test_each_line_that_is_no_address_is_named(support, ann_browser):
    lines = ["example.com", "two words", "ftp://example.com", "http://10.0.0.1/", "x" * 2_001]
    sent = {"addresses": "\n".join(lines), "delay_seconds": "0"}
    page = ann_browser.post(address("pages_dialog"), sent, headers=HTMX).content.decode()
    assert all(f"Line {number}:" in page for number in (2, 3, 4, 5))
    assert "Line 1:" not in page
    assert not Import.objects.exists()


def test_a_dialog_begins_with_what_the_last_import_of_its_kind_was_told(support, ann_browser):
    begin(support, state="done", include_paths="/help/", max_depth=3)
    begin(support, state="done", kind="pages", addresses=["example.com/a", "example.com/b"])
    site = ann_browser.get(address("import_dialog"), headers=HTMX).content.decode()
    assert "/help/</textarea>" in site and 'name="max_depth" value="3"' in site
    pages = ann_browser.get(address("pages_dialog"), headers=HTMX).content.decode()
    assert "example.com/a\nexample.com/b</textarea>" in pages


def test_a_bad_pattern_is_refused_with_its_line_and_the_fields_are_shown(support, ann_browser):
    page = ann_browser.post(address("import_dialog"), fields(exclude_paths="/a/\nblog"), headers=HTMX).content.decode()
    assert "Line 2:" in page
    assert '<details class="more" open>' in page
    assert not Import.objects.exists()


def test_paths_depth_and_documents_reach_the_import(support, ann_browser):
    sent = fields(include_paths="/help/", exclude_paths="/help/old/", max_depth="2", imports_documents="on")
    ann_browser.post(address("import_dialog"), sent, headers=HTMX)
    job = Import.objects.get()
    assert (job.include_paths, job.exclude_paths, job.max_depth) == ("/help/", "/help/old/", 2)
    assert job.imports_documents


def test_scripts_cannot_be_run_where_no_browser_is_installed(support, ann_browser, settings, monkeypatch):
    settings.SITEWISE_CHROMIUM = ""
    monkeypatch.setenv("PATH", "")
    page = ann_browser.get(address("import_dialog"), headers=HTMX).content.decode()
    assert "the operator has not installed a browser" in page
    ann_browser.post(address("import_dialog"), fields(renders_scripts="on"), headers=HTMX)
    assert not Import.objects.get().renders_scripts


def test_an_import_is_paused_and_resumed(support, ann_browser):
    job = begin(support)
    page = ann_browser.post(address("import_pause", job.pk), headers=HTMX).content.decode()
    assert "Resume" in page and "Close, it stays paused" in page
    job.refresh_from_db()
    assert job.state == "paused"
    page = ann_browser.post(address("import_resume", job.pk), headers=HTMX).content.decode()
    assert "Pause" in page and "Waiting for a worker" in page


def test_who_looks_is_told_when_the_import_pauses_or_goes_on(support, ann_browser):
    job = begin(support, state="paused")
    progress = address("import_progress", job.pk)
    assert "import-turned" in events_of(ann_browser.get(progress, {"state": "running"}, headers=HTMX))
    assert "HX-Trigger" not in ann_browser.get(progress, {"state": "paused"}, headers=HTMX).headers
    Import.objects.filter(pk=job.pk).update(state="queued")
    assert "import-turned" in events_of(ann_browser.get(progress, {"state": "paused"}, headers=HTMX))


def test_failed_pages_are_tried_again(support, ann_browser):
    job = begin(support, state="done", delay_seconds=2)
    job.pages.create(url="https://example.com/slow", state="failed", reason="timeout")
    job.pages.create(url="https://example.com/good", state="done")
    ann_browser.post(address("import_retry", job.pk), headers=HTMX)
    again = Import.objects.first()
    assert (again.kind, again.addresses, again.delay_seconds) == ("pages", ["https://example.com/slow"], 2)


def test_nothing_to_try_again_says_so(support, ann_browser):
    job = begin(support, state="done")
    response = ann_browser.post(address("import_retry", job.pk), headers=HTMX)
    assert response.status_code == 204
    assert events_of(response)["toast"]["level"] == "bad"
    assert Import.objects.count() == 1


def test_stored_pages_are_split_anew(support, ann_browser):
    response = ann_browser.post(address("split_again"), headers=HTMX)
    assert "Import its website first" in events_of(response)["toast"]["text"]
    job = begin(support, state="done")
    job.pages.create(url="https://example.com/a", final_url="https://example.com/a", state="done", markdown="Hours")
    page = ann_browser.post(address("split_again"), headers=HTMX).content.decode()
    assert Import.objects.first().kind == "stored"
    assert "The stored pages, split anew" in page


def test_another_max_context_tokens_asks_for_a_new_split(support, ann_browser):
    behaviour = reverse("models_app:behaviour", args=["acme", "support"])
    sent = behaviour_fields(support, max_context_tokens="900")
    assert "split-changed" not in events_of(ann_browser.post(behaviour, sent, headers=HTMX))
    snippets.add(support, "Hours", "From nine.", "https://example.com/a", source="crawl")
    assert "split-changed" not in events_of(ann_browser.post(behaviour, sent, headers=HTMX))
    sent["max_context_tokens"] = "1000"
    assert "split-changed" in events_of(ann_browser.post(behaviour, sent, headers=HTMX))


def test_the_end_tells_what_changed_and_what_it_spent_and_saved(support, ann_browser):
    support.input_price, support.output_price = 2, 10
    support.save()
    job = begin(
        support,
        state="done",
        changes={
            "pages": {"checked": 137, "new": 4, "changed": 12, "same": 112, "gone": 2},
            "snippets": {"added": 9, "changed": 14, "kept": 1_420, "removed": 3, "conflicts": 2},
        },
        usage={"calls": 14, "input_tokens": 48_210, "output_tokens": 9_120, "saved_calls": 96},
    )
    page = ann_browser.get(address("import_job", job.pk), headers=HTMX).content.decode()
    for words in ("137", "1,420", "2 snippets", "14 LLM calls", "48,210 tokens in", "0.1876", "96 calls"):
        assert words in page


def test_an_import_without_figures_shows_none(support, ann_browser):
    page = ann_browser.get(address("import_job", begin(support, state="done").pk), headers=HTMX).content.decode()
    for heading in ("What changed", "What it spent", "Pages that gave nothing"):
        assert heading not in page
