"""Pages read and split by child processes: the same comes of it as without them, and none of them stays behind."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Count
from django.utils import timezone

from crawler.crawl import import_site, new_import
from crawler.models import Import, Page
from crawler.page_pool import ChildDied, PagePool
from models_app import index
from models_app.jobs import perform_taken
from models_app.models import MLModel, Retrieval
from tenants.models import Tenant
from tests.conftest import PROJECT
from tests.fakes.website import Website, page, redirect

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 60
OUTLIVED = """
import django, time
django.setup()
from crawler.page_pool import PagePool
pool = PagePool(size=2, pages_before_start=0)
pool.submit(int)
while len(pool.pids) < 2 or not pool.room: time.sleep(0.01)
pool.submit(time.sleep, 600)
print(*pool.pids, flush=True)
time.sleep(600)
"""


def wait_until(is_so) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Whether the process is there, and not merely waits for its parent to take note of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started_pool(size: int = 2) -> PagePool:
    """A pool whose children are there from the first page on."""
    pool = PagePool(size, pages_before_start=0)
    pool.submit(int)
    wait_until(lambda: pool.room and len(pool.pids) == size)
    return pool


@pytest.fixture(scope="module")
def website():
    """Several hundred pages: long ones and short ones, with twins, canonical addresses, redirects, gaps and queries."""
    paths = {"/": page("Start", *(f"/p{number}" for number in range(0, 300, 3)), "/list?page=1")}
    for number in range(300):
        text = f"Lamp {number} costs {number}.50 euros, see <code>lamp_{number}</code>. " * (number % 7 * 12 + 1)
        parts = "".join(f"<h2>Part {part}</h2><p>{text}</p>" for part in range(3))
        links = [f"/p{(number * 7 + 1) % 300}", f"/old{number % 20}", f"/gone{number % 9}", f"/list?page={number}"]
        paths[f"/p{number}"] = page(f"Lamp {number}</p>{parts}<p>", *links)
    for number in range(20):
        paths[f"/old{number}"] = redirect(f"/p{number * 11}")
        paths[f"/copy{number}"] = paths[f"/p{number}"]
        paths["/p1"] = page("The first", *(f"/copy{copy}" for copy in range(20)))
    paths |= {f"/list?page={number}": page("The same list") for number in range(300)}
    with Website(paths) as site:
        yield site


def imported(slug: str, website: Website, new_pool, watch=lambda job: None, **options) -> Import:
    model = MLModel.objects.create(name=slug, slug=slug, retrieval=Retrieval.KEYWORD)
    taken = Import.take(new_import(model, website.url("/"), **options).pk)
    perform_taken(taken, lambda job, lease: import_site(job, lease, watch, new_pool))
    return Import.objects.get(pk=taken.pk)


def all_that_came_of(job: Import) -> tuple:
    names = ("id", "job_id", "report")
    pages = [
        {name: value for name, value in row.items() if name not in names} for row in job.pages.order_by("id").values()
    ]
    reports = list(job.pages.order_by("id").values_list("report", flat=True))
    rows = job.model.snippets.order_by("id").values_list("uri", "prompt", "completion", "position", "token_count")
    return job.state, job.message, pages, reports, list(rows)


@pytest.mark.parametrize("options", [{}, {"max_pages": 150}, {"max_depth": 2}])
def test_pages_and_snippets_are_those_of_an_import_without_children(support, website, options):
    alone = imported("alone", website, lambda: PagePool(size=0), **options)
    together = imported("together", website, started_pool, **options)
    assert together.pages.filter(state=Page.State.DONE).count() > 100
    assert together.message.replace("together", "alone") == alone.message
    assert all_that_came_of(together) == all_that_came_of(alone)


def test_a_child_that_is_killed_loses_no_page(support, website):
    pool, steps = started_pool(), []

    def kill_some(job: Import) -> None:
        steps.append(job.phase)
        if len(steps) % 60 == 0:
            os.kill(pool.pids[0], signal.SIGKILL)

    alone = imported("alone", website, lambda: PagePool(size=0))
    disturbed = imported("disturbed", website, lambda: pool, kill_some)
    assert {Import.Phase.READING, Import.Phase.SPLITTING} <= set(steps)
    assert all_that_came_of(disturbed) == all_that_came_of(alone)


class Killed(BaseException):
    """Ends the work as a kill does: nothing is recorded."""


@pytest.mark.parametrize(("phase", "step"), [("reading", 5), ("reading", 20), ("splitting", 1), ("splitting", 12)])
def test_a_kill_between_pages_that_are_stored_together_leaves_whole_pages(support, website, phase, step):
    steps = []

    def die(job: Import) -> None:
        steps.append(job.phase)
        if steps.count(phase) == step:
            raise Killed

    alone = imported("alone", website, lambda: PagePool(size=0))
    with pytest.raises(Killed):
        imported("killed", website, started_pool, die)
    killed = Import.objects.latest("pk")
    made = dict(killed.model.snippets.order_by("uri").values_list("uri").annotate(count=Count("pk")))
    done = killed.pages.filter(state=Page.State.DONE, snippet_count__gt=0)
    assert killed.pages.filter(state__in=(Page.State.READ, Page.State.DONE)).count() > step
    assert {url: count for url, count in made.items() if url in dict(done.values_list("url", "pk"))} == dict(
        done.values_list("url", "snippet_count")
    )
    assert not killed.model.snippets.filter(uri__in=killed.pages.filter(state=Page.State.READ).values("url")).exists()
    Import.objects.filter(pk=killed.pk).update(leased_until=timezone.now() - timedelta(seconds=1))
    perform_taken(Import.take(killed.pk), lambda job, lease: import_site(job, lease, new_pool=started_pool))
    assert all_that_came_of(Import.objects.get(pk=killed.pk)) == all_that_came_of(alone)


def test_a_quota_that_ends_among_pages_stored_together_keeps_those_that_fit(support, website):
    Tenant.objects.update(snippet_quota=98)
    alone = imported("alone", website, lambda: PagePool(size=0))
    alone.model.snippets.all().delete()
    index.remove_model(alone.model_id)
    together = imported("together", website, started_pool)
    assert together.state == Import.State.FAILED
    assert "98 snippets" in together.message
    assert all_that_came_of(together)[:4] == all_that_came_of(alone)[:4]
    assert 90 < together.model.snippets.count() <= 98


@pytest.mark.parametrize(
    ("request_field", "state"), [("is_stop_requested", "stopped"), ("is_pause_requested", "paused")]
)
def test_no_child_outlives_an_import_that_ends_early(support, website, request_field, state):
    pool = started_pool()
    pids = pool.pids

    def end_it(job: Import) -> None:
        Import.objects.filter(pk=job.pk).update(**{request_field: True})

    job = imported("ended", website, lambda: pool, end_it)
    assert job.state == state
    assert not any(map(is_running, pids))
    assert job.pages.filter(state=Page.State.FOUND).exists()


def test_no_child_outlives_a_parent_that_is_killed():
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", OUTLIVED]
    with subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        pids = list(map(int, parent.stdout.readline().split()))
        assert len(pids) == 2
        assert all(map(is_running, pids))
        parent.kill()
    wait_until(lambda: not any(map(is_running, pids)))


def test_what_kills_two_children_is_told_and_the_next_page_is_read():
    with started_pool(size=1) as pool:
        with pytest.raises(ChildDied):
            pool.submit(os._exit, 1).result()
        assert pool.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 7, 0).result()


def test_a_child_takes_no_more_memory_than_it_may():
    with started_pool(size=1) as pool, pytest.raises(MemoryError):
        pool.submit(bytes, 4_000_000_000).result()


def test_few_pages_start_no_child():
    with PagePool(size=2, pages_before_start=5) as pool:
        assert [pool.submit(abs, -number).result() for number in range(5)] == list(range(5))
        assert not pool.pids
