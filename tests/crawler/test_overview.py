"""What an import says of itself as a whole: the time left, the money, the reasons, and the pages that want a look."""

from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qsl

import pytest
from django.utils import timezone

from crawler.models import Import
from crawler.overview import TimeLeft, Trouble, money_of, nearly_empty_of, shells_of, site_overview, troubles_of


@pytest.fixture
def job(support):
    return Import.objects.create(
        model=support, address="example.com", max_pages=500, state="running", done_count=10, total_count=110
    )


def look_again(job, first, seconds, done_count, **changes):
    """Return the time left as it is told some seconds after the first look."""
    job.done_count = done_count
    for name, value in changes.items():
        setattr(job, name, value)
    return TimeLeft.of(job, dict(parse_qsl(first.query)), timezone.now() + timedelta(seconds=seconds))


def test_the_time_left_is_unknown_until_a_pace_was_seen(job):
    first = TimeLeft.of(job, {}, timezone.now())
    assert first.words == ""
    assert look_again(job, first, seconds=2, done_count=14).words == ""
    assert look_again(job, first, seconds=30, done_count=11).words == ""


def test_the_time_left_follows_the_pace_since_the_look_began(job):
    first = TimeLeft.of(job, {}, timezone.now())
    later = look_again(job, first, seconds=20, done_count=30)
    assert later.words == "1 min"  # 80 pages at one a second
    assert later.query == first.query
    assert look_again(job, first, seconds=20, done_count=90).words == "5 s"
    assert look_again(job, first, seconds=1_000, done_count=20).words == "2 h"


@pytest.mark.parametrize("changes", [{"phase": "splitting"}, {"state": "paused"}, {"state": "queued"}])
def test_another_phase_or_a_pause_begins_a_new_pace(job, changes):
    first = TimeLeft.of(job, {}, timezone.now())
    later = look_again(job, first, seconds=60, done_count=40, **changes)
    assert later.words == ""
    assert later.query != first.query


@pytest.mark.parametrize("shown", [{"since": "nonsense", "done": "1"}, {"since": "1", "done": ""}, {"done": "5"}])
def test_nonsense_in_the_address_does_no_harm(job, shown):
    assert TimeLeft.of(job, {"state": "running", "phase": "reading", **shown}, timezone.now()).words == ""


def test_what_was_spent_and_saved_is_money_where_prices_are_set(job):
    job.usage = {"input_tokens": 2_000_000, "output_tokens": 500_000, "saved_input_tokens": 1_000_000}
    assert money_of(job) is None
    job.model.input_price, job.model.output_price = Decimal("2.5"), Decimal(10)
    assert (money_of(job).spent, money_of(job).saved) == (Decimal(10), Decimal("2.5"))


def test_reasons_are_counted_and_named_with_examples_once_it_has_ended(job):
    for number in range(4):
        job.pages.create(url=f"https://example.com/slow-{number}", state="failed", reason="timeout")
    job.pages.create(url="https://example.com/a.pdf", state="skipped", reason="not html: pdf")
    [running] = troubles_of(job)[1]
    assert (running.label, running.count, running.examples) == ("did not answer in time", 4, ())
    job.state = "done"
    skipped, failed = troubles_of(job)
    assert [page["url"][-6:] for page in failed[0].examples] == ["slow-0", "slow-1", "slow-2"]
    assert skipped[0].label == "no web page but pdf"
    assert Trouble("status 418", 1).label == "status 418"


def test_the_site_overview_tells_which_pages_carry_the_text(job):
    for number in range(12):
        job.pages.create(url=f"https://example.com/{number}", state="done", word_count=100 * (number + 1))
    job.pages.create(url="https://example.com/copy", state="same", word_count=500)
    site = site_overview(job)
    assert [page["word_count"] for page in site.largest][:2] == [1_200, 1_100]
    assert (site.page_count, site.word_count, site.other_count, site.other_words) == (12, 7_800, 2, 300)
    assert [page.url for page in site.same] == ["https://example.com/copy"]


def test_empty_shells_are_found_and_those_that_were_drawn_are_none(job):
    job.pages.create(url="https://example.com/shell", state="done", report={"needs_scripts": True})
    job.pages.create(url="https://example.com/failed", state="failed", reason="needs scripts")
    job.pages.create(url="https://example.com/drawn", state="done", report={"needs_scripts": True, "rendered": True})
    job.pages.create(url="https://example.com/plain", state="done", report={"needs_scripts": False})
    assert {page.url[20:] for page in shells_of(job.pages.all())} == {"shell", "failed"}


def test_nearly_empty_pages_are_those_of_a_few_words(job):
    for words in (0, 1, 29, 30):
        job.pages.create(url=f"https://example.com/{words}", state="done", word_count=words)
    assert [page.word_count for page in nearly_empty_of(job.pages.all())] == [1, 29]
