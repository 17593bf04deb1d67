"""manage.py ask: one question, one answer with its sources."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from models_app import snippets


@pytest.fixture
def model(support):
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "Opening hours", "We open at 9.", uri="https://ex.test/hours")
    return support


def ask(target: str, question: str, *options: str) -> str:
    out = StringIO()
    call_command("ask", target, question, *options, stdout=out)
    return out.getvalue()


def test_the_answer_is_one_json_document(model):
    report = json.loads(ask("acme/support", "When do you open?", "--json"))
    assert report["answer"] == "> We open at 9.\n\n— [Opening hours](https://ex.test/hours)"
    assert (report["answered_by"], report["unanswered"], report["degraded"]) == ("extract", False, "")
    assert report["sources"] == [{"rank": 1, "title": "Opening hours", "url": "https://ex.test/hours"}]
    assert 0 < report["context_tokens"] < 2_000


def test_a_person_reads_the_answer_and_its_sources(model):
    text = ask("acme/support", "When do you open?")
    assert text.startswith("> We open at 9.")
    assert "1. Opening hours  https://ex.test/hours" in text


@pytest.mark.parametrize(
    ("target", "question", "complaint"),
    [
        ("acme/nothing", "When?", "support"),
        ("nobody/support", "When?", "acme"),
        ("acme/support", "  ", "empty"),
        ("acme/support", "word " * 4_000, "at most 1,000"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(model, target, question, complaint):
    with pytest.raises(CommandError, match=complaint):
        ask(target, question)


def test_an_llm_that_is_away_is_one_clear_line_below_what_answers_instead(model):
    model.llm, model.provider_base_url = "small", "http://127.0.0.1:9/v1"
    model.save()
    text = ask("acme/support", "When do you open?")
    assert text.startswith("> We open at 9.")
    assert "Note: small: The LLM cannot be reached. The best passages were quoted instead.\n" in text


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_question_whose_bytes_are_no_utf8_is_asked_and_can_be_printed(model, options):
    assert "We open at 9." in ask("acme/support", "open\udcff hours", *options).encode().decode()


def test_a_target_whose_bytes_are_no_utf8_is_one_clear_line(model):
    for target in ("acme/\udcff", "\udcff/support"):
        with pytest.raises(CommandError, match=r"has|is no tenant") as refusal:
            ask(target, "When?")
        assert str(refusal.value).encode()
