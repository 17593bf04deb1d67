"""A change of the embedding model as its owner sees it, in a real browser: the offer, the price, the progress."""

import time
from contextlib import suppress

import pytest
from playwright.sync_api import Browser, expect

from models_app import vectors
from models_app.models import MLModel, Vectorising
from models_app.tasks import make_vectors
from tenants.store import activated
from tests.fakes.embedding_server import EmbeddingServer
from tests.live import live_url  # noqa: F401  a fixture
from tests.models_app.test_switching import Killed, choose, dies_after, teach
from tests.signed_in import beside_the_browser, signed_in_page
from tests.test_browser import browser, look  # noqa: F401  a fixture

COUNT = 100


@pytest.fixture
def server():
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def page(live_url, browser: Browser, browse, ann):  # noqa: F811
    """A page in which Ann is logged in."""
    with signed_in_page(browser, live_url, beside_the_browser(browse, ann)) as page:
        yield page


def test_the_owner_is_offered_the_new_vectors_with_what_they_take(page, live_url, acme, server):  # noqa: F811
    beside_the_browser(make_model, acme, server.url)
    page.goto(f"{live_url}/acme/models/support/?dialog=behaviour")
    page.get_by_label("Embedding model").fill("second")
    look(page, "behaviour-embedding-model")
    page.get_by_role("button", name="Save behaviour").click()
    dialog = page.locator("dialog[open]")
    expect(dialog.get_by_text("0 of 100 vectors")).to_be_visible()
    expect(dialog.get_by_text("the vectors of first at")).to_be_visible()
    expect(dialog.get_by_text("cost, about")).to_be_visible()
    look(page, "vectorise-offered")
    dialog.get_by_role("button", name="Later").click()
    expect(page.get_by_text("100 vectors to make anew, the old ones answer")).to_be_visible()
    look(page, "vectorise-later")
    page.get_by_role("button", name="Vectorise").click()
    dialog.get_by_role("button", name="Make 100 vectors").click()
    expect(dialog.get_by_text("Waiting for a worker")).to_be_visible()
    beside_the_browser(work_on_it, acme, batches=2)
    expect(dialog.get_by_text("64 of 100 vectors")).to_be_visible()
    expect(dialog.get_by_text("time left, about")).to_be_visible()
    look(page, "vectorise-running")
    beside_the_browser(lose_the_worker, acme)
    expect(dialog.get_by_text("Interrupted: the next worker goes on")).to_be_visible()
    dialog.get_by_role("button", name="Stop").click()
    expect(dialog.locator(".notice").get_by_text("Stopped.")).to_be_visible()
    dialog.get_by_role("button", name="Make 36 vectors").click()
    beside_the_browser(work_on_it, acme)
    done = dialog.get_by_role("paragraph").filter(has_text="All 100 snippets have their vector of second at")
    expect(done).to_be_visible()
    look(page, "vectorise-done")


def make_model(tenant, url: str) -> None:
    """Make a model that answers in the space of "first"."""
    with activated(tenant):
        model = MLModel.objects.create(slug="support", name="Support")
        choose(model, "first", provider_base_url=url, provider_key="sk-own", embedding_price="0.13")
        teach(model, COUNT)
        vectors.vectorise_missing(model)


def work_on_it(tenant, batches: int | None = None) -> None:
    """Do the vectorising that waits, or so many batches of it, as a worker does that is then held up."""
    with activated(tenant):
        job = started()
        with job.leased() as lease, suppress(Killed):
            if batches:
                lease.check = dies_after(batches)
            job.finish(job.State.DONE, make_vectors(job, lease))


def started() -> Vectorising:
    """Return the job that was just started, once the page's request has arrived."""
    for _ in range(200):
        if job := Vectorising.take(Vectorising.objects.latest("pk").pk):
            return job
        time.sleep(0.1)
    raise AssertionError("no job was started within 20 seconds")


def lose_the_worker(tenant) -> None:
    with activated(tenant):
        Vectorising.objects.update(leased_until=None)
