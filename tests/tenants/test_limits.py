"""Limits: so many requests a minute and month, counted once for all processes, whatever the clock does."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, connections
from hypothesis import given
from hypothesis import strategies as st

from tenants.limits import MONTH, Limit, LimitReached, LimitsUnavailable, admit, used_this_month
from tenants.models import RequestCount
from tests.conftest import PROJECT

NOON = datetime(2026, 12, 7, 12, 0, 20, tzinfo=UTC)
THREE = Limit("key:1", "This key", 3)
MONTHLY = Limit("key:1", "This key", 5, MONTH)


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def let_in(limits, moments) -> int:
    """Return how many of the requests at these moments were let in."""
    count = 0
    for moment in moments:
        try:
            admit(limits, moment)
            count += 1
        except LimitReached:
            pass
    return count


def test_the_request_over_the_limit_is_refused_with_the_time_to_wait(db):
    standings = [admit([THREE], NOON) for _ in range(3)]
    assert [(each.most, each.remaining) for each in standings] == [(3, 2), (3, 1), (3, 0)]
    with pytest.raises(
        LimitReached, match=r"^This key may make 3 requests a minute\. Try again in \d+ s\.$"
    ) as refused:
        admit([THREE], NOON)
    wait = refused.value.standing.retry_seconds
    with pytest.raises(LimitReached):
        admit([THREE], after(wait - 1))
    assert admit([THREE], after(wait + 0.001)).remaining == 0


@pytest.mark.django_db
@given(st.lists(st.floats(0, 300), max_size=60))
def test_no_minute_has_much_more_than_the_limit(moments):
    """The minute before counts by its share: exact for steady traffic, at most double for the worst burst."""
    RequestCount.objects.all().delete()
    limit, taken = Limit("key:9", "This key", 5), []
    for moment in sorted(moments):
        if let_in([limit], [after(moment)]):
            taken.append(moment)
    assert all(sum(start <= each < start + 60 for each in taken) <= 10 for start in taken)


def test_steady_traffic_at_the_limit_is_let_in(db):
    assert let_in([Limit("key:1", "This key", 30)], [after(2.1 * number) for number in range(200)]) == 200


def test_refused_requests_do_not_count(db):
    let_in([THREE], [NOON] * 100)
    assert let_in([THREE], [after(125)] * 100) == 3


def test_one_limit_that_is_reached_leaves_the_others_uncounted(db):
    wide = Limit("model:1", "This chatbot", 100)
    let_in([wide, THREE], [NOON] * 10)
    assert RequestCount.objects.get(subject="model:1").count == 3


def test_subjects_do_not_count_for_each_other(db):
    other = Limit("key:2", "This key", 3)
    assert let_in([THREE], [NOON] * 5) == let_in([other], [NOON] * 5) == 3


def test_a_months_cap_holds_until_the_month_ends(db):
    assert let_in([MONTHLY], [after(3600 * number) for number in range(10)]) == 5
    with pytest.raises(LimitReached, match="They are used up until the month ends"):
        admit([MONTHLY], NOON + timedelta(days=24))
    assert used_this_month("key:1", NOON) == 5
    january = datetime(2027, 1, 1, tzinfo=UTC)
    admit([MONTHLY], january)
    assert used_this_month("key:1", january) == 1


@pytest.mark.parametrize("jump", [timedelta(days=4000), timedelta(days=-4000), timedelta(hours=1), timedelta(hours=-1)])
def test_a_clock_that_jumps_locks_nobody_out(db, jump):
    assert let_in([THREE], [NOON] * 4) == 3
    assert let_in([THREE], [NOON + jump] * 4) == 3
    assert let_in([THREE], [NOON + timedelta(minutes=3)] * 4) == 3


def test_counts_of_other_minutes_are_not_kept(db):
    for moment in (after(-7_200), after(7_200), NOON):
        admit([THREE, MONTHLY], moment)
    assert [row.starts_at for row in RequestCount.objects.filter(period="minute")] == [NOON.replace(second=0)]
    assert used_this_month("key:1", NOON) == 3


def test_counts_that_cannot_be_written_let_nobody_in(db):
    with connection.cursor() as cursor:  # the test's transaction, which is rolled back, brings the table back
        cursor.execute("ALTER TABLE tenants_requestcount RENAME TO gone")
    with pytest.raises(LimitsUnavailable):
        admit([THREE], NOON)


def test_threads_that_come_at_once_share_one_count(transactional_db):
    limit = Limit("key:1", "This key", 50)

    def ask(_) -> int:
        try:
            return let_in([limit], [NOON] * 10)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 50


ASK = """
import sys, django
django.setup()
from datetime import datetime, UTC
from django.conf import settings
from tenants.limits import *
count = 0
for _ in range(40):
    try:
        admit([Limit("key:1", "This key", 50)], datetime(2026, 12, 7, 12, 0, 20, tzinfo=UTC))
        count += 1
    except LimitReached:
        pass
print(count)
"""


def test_processes_share_one_count(tmp_path):
    environment = os.environ | {"SITEWISE_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings"}
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "-v", "0"], cwd=PROJECT, env=environment, check=True, timeout=120
    )
    asking = [
        subprocess.Popen([sys.executable, "-c", ASK], cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert sum(int(each.communicate(timeout=120)[0]) for each in asking) == 50
