"""Real workers that are killed at any moment: the import ends as if nothing had happened, whatever the broker."""

import json
import shutil
import signal
import socket
import subprocess
import time

import pytest

from tests.conftest import needs
from tests.crawler.split.test_llm_split import Splitter, large_page
from tests.fakes.openai_server import OpenAIServer, Reply, Request, refusal
from tests.fakes.website import Request as PageRequest
from tests.fakes.website import Website, page
from tests.worker import PATIENCE_SECONDS, Installation

LARGE_PAGES, SMALL_PAGES = 8, 16


class Provider(OpenAIServer):
    """Makes embeddings; as an LLM it refuses to answer."""

    def default_reply(self, request: Request) -> Reply:
        return super().default_reply(request) if request.path.endswith("/embeddings") else refusal(400)


class SlowProvider(Provider):
    """Takes a moment for each request, so that a worker can be killed in the middle."""

    def default_reply(self, request: Request) -> Reply:
        reply = super().default_reply(request)
        reply.waits_seconds = 0.2
        return reply


def slow(html: str):
    def answer(request: PageRequest) -> str:
        time.sleep(0.05)
        return html

    return answer


@pytest.fixture(scope="module")
def website():
    """A site of large pages, which an LLM is asked to split, small ones, a copy, a redirect's worth of links."""
    links = [f"/large/{number}" for number in range(LARGE_PAGES)] + [
        f"/small/{number}" for number in range(SMALL_PAGES)
    ]
    sections = "".join(f"<h2>Part {part}</h2><p>{f'word{part} ' * 300}</p>" for part in range(6))
    paths = {f"/small/{number}": slow(page(f"Small page {number}", *links)) for number in range(SMALL_PAGES)}
    for number in range(LARGE_PAGES):
        paths[f"/large/{number}"] = slow(f"<title>Large {number}</title><main><h1>{number}</h1>{sections}</main>")
    paths["/copy"] = slow(page("Small page 0", *links))
    with Website({"/": page("Home", *links, "/copy", "/missing")} | paths) as website:
        yield website


@pytest.fixture(scope="module")
def provider():
    with SlowProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def installation(tmp_path_factory, provider):
    """An installation with tenant acme whose LLM and embeddings come from the slow provider, or from another one."""

    def make(name: str, provider: OpenAIServer = provider, **environment: str) -> Installation:
        provided = {
            "SITEWISE_LLM_URL": provider.url,
            "SITEWISE_EMBEDDING_URL": provider.url,
            "SITEWISE_EMBEDDING_MODEL": "fake",
        }
        made = Installation(tmp_path_factory.mktemp(name), **provided, **environment)
        made.manage("create_tenant", "acme")
        return made

    return make


@pytest.fixture(scope="module")
def undisturbed(installation, website):
    """What an import of the site leaves behind that nobody disturbs, in one process and without a worker."""
    calm = installation("undisturbed")
    calm.manage("import_site", "acme/support", website.url("/"))
    return calm.result()


@pytest.fixture
def redis_url(tmp_path):
    """A Redis server of the test's own."""
    server = shutil.which("redis-server")
    needs(server is not None, "redis-server (Debian's package of that name)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(tmp_path)]
    redis = subprocess.Popen([server, *options], stdout=subprocess.DEVNULL)
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_listening(port):
        assert time.monotonic() < end and redis.poll() is None
        time.sleep(0.05)
    yield f"redis://127.0.0.1:{port}/0"
    redis.terminate()
    redis.wait()


def is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def assert_same(disturbed: Installation, undisturbed: dict[str, list]) -> None:
    result = disturbed.result()
    assert result["pages"] == undisturbed["pages"]
    assert result["snippets"] == undisturbed["snippets"]
    addresses = [url for url, *_ in result["pages"]]
    assert len(addresses) == len(set(addresses)) == LARGE_PAGES + SMALL_PAGES + 3
    assert all(space.startswith("fake at ") for *_, space in result["snippets"])
    assert disturbed.index_problems() == []


def test_a_killed_workers_import_ends_as_an_undisturbed_one(installation, website, undisturbed):
    disturbed = installation("disturbed")
    disturbed.start_import(website.url("/"))
    disturbed.kill_worker_when("reading", 3)
    disturbed.kill_worker_when("reading", 15)
    disturbed.kill_worker_when("splitting", 0)
    disturbed.kill_worker_when("embedding", 1)
    assert disturbed.finish()["state"] == "done"
    assert_same(disturbed, undisturbed)


def test_imports_of_each_kind_end_as_undisturbed_ones_though_workers_are_killed_in_each_phase(installation, website):
    addresses = [website.url(f"/{kind}/{number}") for kind in ("large", "small") for number in range(4)]
    with Provider() as provider:
        calm, disturbed = json.loads(installation("kinds", provider).run("-m", "tests.dying_worker", *addresses))
    assert disturbed == calm
    for held in calm:
        assert held["problems"] == []
        assert {state for _, _, state, *_ in held["pages"]} == {"done"}
        assert all(space.startswith("fake at ") for *_, space in held["snippets"])
    pages, stored, files = (len(held["snippets"]) for held in calm)
    assert pages < stored < files - 600


def test_a_worker_killed_while_the_llm_thinks_leaves_the_page_to_the_next(installation):
    with Splitter() as llm, Website({"/": large_page()}) as website:
        llm.will(Reply(hangs=True))
        disturbed = installation("thinking", llm)
        disturbed.start_import(website.url("/"), retrieval="keyword")
        with disturbed.worker() as worker:
            disturbed.wait_until(lambda job: llm.requests)
            worker.kill()
            worker.wait()
        assert llm.requests[0].was_closed.wait(PATIENCE_SECONDS)
        assert disturbed.job()["phase"] == "splitting"
        assert disturbed.finish()["state"] == "done"
    assert len(llm.requests) == 2
    assert disturbed.rows("SELECT json_extract(report, '$.split') FROM crawler_page") == [("llm",)]


def test_a_worker_that_is_asked_to_end_hands_its_import_back(installation, website, undisturbed):
    disturbed = installation("disturbed", SITEWISE_LEASE_SECONDS="600")
    disturbed.start_import(website.url("/"))
    disturbed.kill_worker_when("reading", 3, how=signal.SIGTERM)
    handed_back = disturbed.job()
    assert (handed_back["state"], handed_back["lease"]) == ("queued", "")
    assert disturbed.finish()["state"] == "done"
    assert_same(disturbed, undisturbed)


def test_a_worker_rebuilds_outdated_indexes_when_it_starts(installation):
    older = installation("older")
    older.python(
        "from models_app import snippets",
        "from models_app.index.connection import write",
        "from models_app.models import MLModel",
        "snippets.add(MLModel.objects.create(slug='support', name='Support'), 'Hours', 'From nine to five.')",
        "write(\"UPDATE ret_model SET terms_version = 'older'\")",
    )
    end = time.monotonic() + PATIENCE_SECONDS
    with older.worker():
        while older.rows("SELECT terms_version FROM ret_model") == [("older",)]:
            assert time.monotonic() < end
            time.sleep(0.05)
    assert older.index_problems() == []


def test_an_import_is_started_also_while_the_broker_is_away(installation, website):
    without_broker = installation("away", CELERY_BROKER_URL="redis://127.0.0.1:1/0")
    without_broker.start_import(website.url("/"))
    assert without_broker.job()["state"] == "queued"


def test_the_journey_on_redis(installation, website, undisturbed, redis_url):
    disturbed = installation("disturbed", CELERY_BROKER_URL=redis_url)
    with disturbed.worker():
        disturbed.start_import(website.url("/"))
        disturbed.wait_until(lambda job: job["phase"] == "splitting")
    disturbed.kill_worker_when("embedding", 1)
    assert disturbed.finish()["state"] == "done"
    assert_same(disturbed, undisturbed)
    assert not (disturbed.folder / "broker").exists()
