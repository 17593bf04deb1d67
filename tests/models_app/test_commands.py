"""The commands search and vectorise: one JSON document or lines for a person, and one clear line when it goes wrong."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from models_app import snippets
from tests.fakes.openai_server import OpenAIServer, refusal


def run(command: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def provider(settings):
    with OpenAIServer() as server:
        settings.SITEWISE_EMBEDDING_URL, settings.SITEWISE_EMBEDDING_MODEL = server.url, "fake"
        yield server


def test_search_tells_the_hits_of_a_retrieval(support):
    snippets.add(support, "Returns", "Send it back within 30 days.", "https://shop.test/returns")
    snippets.add(support, "Hours", "Open from nine to five.")
    report = json.loads(run("search", "acme/support", "how many days?", "--retrieval", "keyword", "--json"))
    assert (report["question"], report["retrieval"], report["degraded"]) == ("how many days?", "keyword", "")
    assert [(hit["rank"], hit["title"]) for hit in report["hits"]] == [(1, "Returns")]
    printed = run("search", "acme/support", "how many days?", "--retrieval", "keyword")
    assert "1  Returns  (words 1 · meaning -)" in printed and "https://shop.test/returns" in printed


def test_search_says_what_was_away_and_that_nothing_was_found(support):
    snippets.add(support, "Hours", "Open from nine to five.")
    assert "no vectors yet" in run("search", "acme/support", "hours")
    assert run("search", "acme/support", "zebra", "--retrieval", "keyword").strip() == "Nothing was found."


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_question_whose_bytes_are_no_utf8_is_searched_and_can_be_printed(support, options):
    snippets.add(support, "Hours", "Open from nine to five.")
    printed = run("search", "acme/support", "hours \udcff", "--retrieval", "keyword", *options)
    assert "Hours" in printed.encode().decode()


def test_vectorise_makes_what_is_missing(support, provider):
    snippets.add(support, "Hours", "Open from nine to five.")
    report = json.loads(run("vectorise", "acme/support", "--json"))
    assert (report["made"], report["vectors"], report["snippets"]) == (1, 1, 1)
    assert "0 vectors made" in run("vectorise", "acme/support")


def test_vectorise_says_why_there_are_no_embeddings(support, provider):
    snippets.add(support, "Hours", "Open from nine to five.")
    provider.replies = [refusal(401)]
    with pytest.raises(CommandError, match="refused the key"):
        run("vectorise", "acme/support")


@pytest.mark.parametrize("limit", ["0", "-5", "9" * 30, "few"])
def test_a_limit_of_hits_that_is_none_is_refused(support, limit):
    with pytest.raises(CommandError, match="--limit: it must be a whole number from 1"):
        run("search", "acme/support", "hours", f"--limit={limit}")


@pytest.mark.parametrize("command", [("search", "{}", "hours"), ("vectorise", "{}"), ("rebuild_index", "{}")])
@pytest.mark.parametrize("target", ["acme/", "/support", "acme/support/", "/"])
def test_a_target_that_names_no_model_is_told_how_to_write_it(support, command, target):
    with pytest.raises(CommandError, match="Write TENANT/MODEL, such as acme/support"):
        run(*(part.format(target) for part in command))


@pytest.mark.parametrize("command", [("search", "acme", "hours"), ("vectorise", "acme")])
def test_a_tenant_alone_is_told_to_name_a_model_too(support, command):
    with pytest.raises(CommandError, match="Write TENANT/MODEL, such as acme/support"):
        run(*command)


@pytest.mark.parametrize("command", [("search", "{}", "hours"), ("vectorise", "{}")])
@pytest.mark.parametrize(("target", "known"), [("acme/sales", "support"), ("nobody/support", "acme")])
def test_a_target_that_is_not_there_is_told_with_those_that_are(support, command, target, known):
    with pytest.raises(CommandError, match=f": {known}\\)"):
        run(*(part.format(target) for part in command))
