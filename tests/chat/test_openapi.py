"""The OpenAPI document: it names every route, schemathesis finds the application as it says, and people can read it."""

import json
import os
import shutil
import subprocess

import pytest
import requests

from chat.api_urls import urlpatterns
from models_app import snippets
from tenants.models import ApiKey
from tests.conftest import PROJECT, needs
from tests.live import live_url  # noqa: F401
from tests.test_browser import PATIENCE_MS, SCREENSHOTS, browser, is_problem  # noqa: F401

SCHEMATHESIS = shutil.which("schemathesis", path=f"{PROJECT}/var/schemathesis/bin:{os.environ['PATH']}")
# Not asked: whether all that fits the schema is accepted, as it cannot say which models a key opens, nor that the
# last message is the question.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "ignored_auth",
)
NOT_DESCRIBED = {"openapi", "reference", "unknown_address"}


@pytest.fixture
def key(live_url, acme, support) -> str:  # noqa: F811
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])[1]


@pytest.fixture
def document(live_url):  # noqa: F811
    return requests.get(f"{live_url}/v1/openapi.json", timeout=60).json()


def test_every_route_of_the_api_is_described(document):
    described = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert len(described) == len([route for route in urlpatterns if route.name not in NOT_DESCRIBED])
    assert set(document["paths"]) >= {"/v1/chat/completions", "/v1/models", "/v1/chat-messages", "/v1/parameters"}


def test_streams_errors_and_limits_are_declared(document):
    chat = document["paths"]["/v1/chat/completions"]["post"]
    assert set(chat["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert set(chat["responses"]) >= {"400", "401", "403", "404", "413", "429", "502", "503", "504"}
    assert {"Retry-After", "x-ratelimit-remaining-requests"} <= set(chat["responses"]["429"]["headers"])
    assert chat["security"] == [{"ApiKey": []}]
    assert list(chat["requestBody"]["content"]) == ["application/json"]


def test_the_document_needs_no_key_and_names_no_tenant(document, live_url):  # noqa: F811
    assert requests.get(f"{live_url}/v1/openapi.json", timeout=30).headers["Access-Control-Allow-Origin"] == "*"
    assert "acme" not in json.dumps(document)
    assert requests.post(f"{live_url}/v1/openapi.json", timeout=30).status_code in (403, 405)


def test_schemathesis_finds_the_application_as_it_is_described(live_url, key, tmp_path):  # noqa: F811
    needs(SCHEMATHESIS is not None, "schemathesis (requirements-schemathesis.txt)")
    done = subprocess.run(
        [
            *(SCHEMATHESIS, "run", f"{live_url}/v1/openapi.json", "--url", live_url),
            *("--header", f"Authorization: Bearer {key}", "--checks", ",".join(CHECKS)),
            *("--max-examples", "40", "--seed", "5", "--no-color", "--phases", "examples,coverage,fuzzing"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


def test_people_read_it_in_a_browser_without_anything_from_elsewhere(live_url, browser):  # noqa: F811
    asked, said = [], []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text) if is_problem(message) else None)
    page.goto(f"{live_url}/v1/reference")
    page.get_by_text("Answer the last message, whole or as a stream of events").click()
    page.get_by_text("The LLM took too long.").wait_for()
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "api-reference.png")
    page.close()
    assert asked and all(address.startswith((live_url, "data:")) for address in asked)
    assert not said
