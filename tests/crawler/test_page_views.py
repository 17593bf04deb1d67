"""An import's pages as people see them: filtered, and each with its report and its outlined text."""

import zlib

import pytest
from django.urls import reverse

from crawler.models import Import
from models_app import snippets
from models_app.models import TrainingSnippet

HTMX = {"HX-Request": "true"}
URL = "https://example.com/prices"
HTML = """<html lang="en"><title>Prices</title><nav>Home</nav>
<main><h1>Prices</h1><p>A service costs 129 EUR.</p><script>alert(1)</script><img src="https://tracker.test/p.gif"></main>"""
LOSS = {
    "page": {"words": 530, "facts": 52, "cells": 24},
    "selected": {"words": 412, "facts": 46, "cells": 24},
    "moved": {"words": 114, "facts": 4, "cells": 0},
    "snippets": {"words": 428, "facts": 44, "cells": 24},
    "lost_words": 4,
    "lost_facts": ["129 EUR"],
    "lost_fact_count": 2,
    "lost_cells": 0,
}


def address(name, *arguments):
    return reverse(f"crawler:{name}", args=["acme", "support", *arguments])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def job(support):
    return Import.objects.create(model=support, address="example.com", max_pages=50, state="done")


def report_of(browser, page) -> str:
    return browser.get(address("page_report", page.pk)).content.decode()


def test_the_loss_meter_shows_each_step_and_names_what_was_lost(job, ann_browser):
    html = report_of(ann_browser, job.pages.create(url=URL, state="done", report={"loss": LOSS}))
    for words in ("Visible on the page", "530", "412", "114", "428", "2 facts lost", "129 EUR", "The first 1 of 2."):
        assert words in html
    assert '<svg class="bar__drawn" viewBox="0 0 530 1"' in html
    assert '<rect width="412" height="1"/>' in html


def test_a_page_that_lost_nothing_says_so(job, ann_browser):
    loss = LOSS | {"lost_words": 0, "lost_facts": [], "lost_fact_count": 0}
    html = report_of(ann_browser, job.pages.create(url=URL, state="done", report={"loss": loss}))
    assert "No fact lost" in html
    assert "Lost facts" not in html


def test_what_a_report_does_not_hold_is_not_shown(job, ann_browser):
    html = report_of(ann_browser, job.pages.create(url=URL, state="skipped", reason="disallowed by robots"))
    assert "disallowed by robots" in html
    for heading in ("What survived", "How it was split", "What was selected", "The text"):
        assert heading not in html


def test_the_splits_verification_and_the_llms_calls_are_told(job, ann_browser):
    report = {
        "split": "llm",
        "checks": {"facts": 46, "missing": 2, "invented": 0, "sentences": 38, "uncovered": 1},
        "llm": {"calls": 2, "input_tokens": 3_120, "output_tokens": 640},
    }
    html = report_of(ann_browser, job.pages.create(url=URL, state="done", report=report))
    for words in ("facts checked", "46", "sentences checked", "2 LLM calls", "3,120 tokens in"):
        assert words in html


def test_a_page_shows_its_snippets_with_the_way_to_training_data(job, support, ann_browser):
    page = job.pages.create(url=URL, final_url=URL, state="done")
    made = snippets.add(support, "What does a service cost?", "129 EUR.", URL, source="crawl")
    TrainingSnippet.objects.filter(pk=made.pk).update(is_edited=True, conflict="changed")
    html = report_of(ann_browser, page)
    assert f"?q={URL.replace(':', '%3A').replace('/', '%2F')}" in html
    assert reverse("models_app:snippet", args=["acme", "support", made.pk]) in html
    assert "Its page says something else now" in html


def test_a_page_tells_what_earlier_imports_found_there(job, support, ann_browser):
    job.pages.create(url=URL, state="done", change="new")
    later = Import.objects.create(model=support, address="example.com", max_pages=50, state="done")
    html = report_of(ann_browser, later.pages.create(url=URL, state="done", change="changed"))
    assert "New" in html and "Changed" in html


def test_the_stored_page_is_framed_without_anything_that_runs_or_loads(job, ann_browser):
    page = job.pages.create(url=URL, state="done", source=zlib.compress(HTML.encode()))
    frame = address("page_outline", page.pk)
    assert f'<iframe class="stored-page" src="{frame}" sandbox' in report_of(ann_browser, page)
    response = ann_browser.get(frame)
    html = response.content.decode()
    assert "A service costs 129 EUR." in html
    assert "alert(1)" not in html and "tracker.test" not in html
    assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
    policy = {each.strip() for each in response.headers["Content-Security-Policy"].split(";")}
    assert {"sandbox", "default-src 'none'", "frame-ancestors 'self'"} <= policy
    assert not any(each.startswith("script-src") for each in policy)


def test_no_other_page_of_the_dashboard_may_be_framed(job, ann_browser):
    response = ann_browser.get(address("page_report", job.pages.create(url=URL, state="done").pk))
    assert response.headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


def test_a_page_that_was_not_stored_has_no_outline(job, ann_browser):
    page = job.pages.create(url=URL, state="failed", reason="timeout")
    assert ann_browser.get(address("page_outline", page.pk)).status_code == 404
    assert "<iframe" not in report_of(ann_browser, page)


@pytest.fixture
def varied(job):
    """An import with pages of several states, changes and reasons."""
    job.pages.create(url="https://example.com/new", state="done", change="new", word_count=400)
    job.pages.create(url="https://example.com/few", state="done", change="same", word_count=12)
    job.pages.create(url="https://example.com/slow", state="failed", reason="timeout")
    job.pages.create(url="https://example.com/lost", state="failed", reason="status 404")
    return job


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, {"new", "few", "slow", "lost"}),
        ({"change": "new"}, {"new"}),
        ({"reason": "timeout"}, {"slow"}),
        ({"finding": "nearly-empty"}, {"few"}),
        ({"state": "failed", "reason": "status 404"}, {"lost"}),
        ({"state": "failed", "q": "slo"}, {"slow"}),
        ({"change": "nonsense", "finding": "nonsense"}, {"new", "few", "slow", "lost"}),
    ],
)
def test_pages_are_filtered_by_state_change_finding_and_reason(varied, ann_browser, query, shown):
    response = ann_browser.get(address("page_table", varied.pk), query, headers=HTMX)
    assert {page.url.removeprefix("https://example.com/") for page in response.context["page_obj"]} == shown


def test_a_chosen_filter_is_marked_and_pressed_again_taken_off(varied, ann_browser):
    response = ann_browser.get(address("page_table", varied.pk), {"state": "failed", "q": "o", "page": "1"})
    [chosen] = response.context["chosen"]
    assert (chosen.value, chosen.count, chosen.query) == ("failed", 2, "?q=o")
    html = response.content.decode()
    assert 'id="chip-state-failed" aria-current="true"' in html
    assert '<input type="hidden" name="state" value="failed">' in html


def test_the_report_shows_where_the_text_is_and_what_wants_a_look(varied, ann_browser):
    html = ann_browser.get(address("import_report", varied.pk)).content.decode()
    for words in ("Where the text is", "412 words", "1 nearly empty page", "Try these 2 pages again"):
        assert words in html


def test_an_import_without_text_has_no_overview_of_it(job, ann_browser):
    html = ann_browser.get(address("import_report", job.pk)).content.decode()
    assert "Where the text is" not in html
    assert "No pages yet" in html
