"""The demo keeps its word: it runs to the end twice, and its paraphrases share no content word with their page."""

import json
import re
from urllib.parse import urlsplit

import pytest
from bs4 import BeautifulSoup
from django.core.management import call_command

from config.management.commands.demo import EMAIL, QUESTIONS, SAMPLE_SITE, wrong_of
from models_app.terms import index_terms, question_terms
from tenants.models import Tenant
from tenants.store import delete_store
from tests.conftest import needs_local_embedder


@pytest.fixture
def demo_tenant_is_removed(db):
    yield
    for tenant in Tenant.objects.filter(slug="demo"):
        delete_store(tenant)


@pytest.mark.parametrize("question", [q for q in QUESTIONS if q.kind == "paraphrase"], ids=lambda q: q.text)
def test_a_paraphrase_shares_no_content_word_with_its_page(question):
    page = BeautifulSoup((SAMPLE_SITE / question.page.lstrip("/")).read_text(), "lxml").body
    assert set(question_terms(question.text)) & set(index_terms(page.get_text(" "))) == set()


def test_there_are_two_facts_three_paraphrases_and_three_codes_or_names():
    kinds = [question.kind for question in QUESTIONS]
    assert (kinds.count("fact"), kinds.count("paraphrase")) == (2, 3)
    assert kinds.count("code") + kinds.count("name") == 3


def test_the_demo_has_all_eight_right_under_hybrid_and_can_run_twice(demo_tenant_is_removed, capsys):
    needs_local_embedder()
    call_command("demo", "--json")
    told = json.loads(capsys.readouterr().out)
    assert [asked["question"] for asked in told["questions"]] == [question.text for question in QUESTIONS]
    for asked, question in zip(told["questions"], QUESTIONS, strict=True):
        assert asked["is_top_hit_right"]["hybrid"] and asked["is_answer_right"]
        assert set(asked["is_top_hit_right"]) == {"semantic", "keyword", "hybrid"}
        assert question.holds in asked["answer"]
        assert any(urlsplit(source["url"]).path == question.page for source in asked["sources"])
    assert told["pages"]["done"] > len(QUESTIONS) and told["snippets"] > len(QUESTIONS)
    assert told["address"].endswith("/demo/") and told["login"]["email"] == EMAIL

    call_command("demo")
    printed = capsys.readouterr().out
    assert printed.count("Source: ") == len(QUESTIONS)
    assert f"{told['snippets']} snippets" in printed and "make serve" in printed
    assert re.search(rf"{EMAIL}\n\s+(\S+)", printed).group(1) != told["login"]["password"]
    assert Tenant.objects.filter(slug="demo").count() == 1


def test_a_wrong_top_hit_or_answer_is_named():
    right = {"question": "Why?", "is_top_hit_right": {"hybrid": True}, "is_answer_right": True}
    assert wrong_of(right) == []
    assert wrong_of(right | {"is_top_hit_right": {"hybrid": False}}) == ["Why?"]
    assert wrong_of(right | {"is_answer_right": False}) == ["Why? (the answer)"]
