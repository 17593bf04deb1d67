"""Searching: both legs and their fusion against what they should be when computed in plain Python."""

import dataclasses
import random
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models_app import index
from models_app.index import Calibration, IndexHit, SnippetText
from models_app.index.statement import SEARCH
from models_app.models import MLModel, TrainingSnippet
from tenants.store import activated, connection
from tests.models_app.index.teaching import bm25, found, fused, near, put, question, random_text, teach, unit


def test_operators_and_symbols_are_plain_text(support, case):
    f03 = case("F03")
    teach(support, {int(key): text for key, text in f03["input"]["docs"].items()})
    for text in f03["input"]["queries"]:
        assert found(support, text) in ([], [1])
    for text, top in f03["expected"]["top"].items():
        assert found(support, text)[0] == int(top)
    for text in f03["expected"]["empty_for"]:
        assert found(support, text) == []


def test_a_colon_is_no_column_filter(support, case):
    f04 = case("F04")
    teach(support, {int(key): (doc["title"], doc["body"]) for key, doc in f04["input"]["docs"].items()})
    for text, matches in zip(f04["input"]["queries"], f04["expected"]["matches"], strict=True):
        assert found(support, text) == [int(match) for match in matches], text


def test_a_whole_identifier_ranks_before_its_parts(support, case):
    f05 = case("F05")
    teach(support, {int(key): text for key, text in f05["input"]["docs"].items()})
    for text, order in zip(f05["input"]["queries"], f05["expected"]["order"], strict=True):
        assert found(support, text) == [int(key) for key in order]


def test_names_with_symbols_are_names(support, case):
    f06 = case("F06")
    teach(support, {int(key): text for key, text in f06["input"]["docs"].items()})
    assert [found(support, text)[0] for text in f06["input"]["queries"]] == [int(top) for top in f06["expected"]["top"]]


def test_scripts_without_blanks_are_found_by_words_of_any_length(support, case):
    f07 = case("F07")
    teach(support, {int(key): text for key, text in f07["input"]["docs"].items()})
    for text, matches in zip(f07["input"]["queries"], f07["expected"]["matches"], strict=True):
        assert found(support, text) == [int(match) for match in matches], text


def test_accents_width_and_decomposition_do_not_matter(support, case):
    f09 = case("F09")
    docs = {
        int(key): unicodedata.normalize("NFD", text[5:-2]) if text.startswith("NFD(") else text
        for key, text in f09["input"]["docs"].items()
    }
    teach(support, docs)
    for text, matches in zip(f09["input"]["queries"], f09["expected"]["matches"], strict=True):
        assert found(support, text) == [int(match) for match in matches], text


def test_what_shares_only_stop_words_is_not_found(support, case):
    f11 = case("F11")
    teach(support, {int(key): text for key, text in f11["input"]["docs"].items()})
    first, second = f11["input"]["queries"]
    assert found(support, first)[0] == 1
    assert found(support, second) == []


def test_old_words_are_gone_at_once(support):
    [before] = teach(support, {1: "alpha beta"})
    after = SnippetText(1, "", "gamma")
    index.remove_snippets(support.pk, [before])
    TrainingSnippet.objects.update(completion="gamma")
    index.add_snippets(support.pk, [after])
    assert (found(support, "alpha"), found(support, "gamma")) == ([], [1])
    index.remove_snippets(support.pk, [after])
    TrainingSnippet.objects.all().delete()
    assert (found(support, "alpha"), found(support, "gamma")) == ([], [])
    assert index.check_model(support.pk) == []


def test_a_title_word_weighs_more_than_a_word_of_the_text(support):
    teach(support, {1: ("Prices", "All about refunds here"), 2: ("Refunds", "All about prices here")})
    assert found(support, "prices") == [1, 2]
    assert found(support, "refunds") == [2, 1]


def test_bm25_is_what_lucene_would_count(support, sales):
    random_ = random.Random(4)
    texts = {key: (random_text(random_, 4), random_text(random_, 40)) for key in range(1, 80)}
    teach(support, texts)
    teach(sales, {key: random_text(random_, 40) for key in range(100, 150)})  # must not move a score
    for _ in range(20):
        asked = question(support, random_text(random_, 6), limit=100)
        expected = bm25(texts, asked.terms)
        hits = index.search(asked)
        assert {hit.id: hit.bm25 for hit in hits} == pytest.approx(expected, abs=1e-9)
        assert [hit.id for hit in hits] == sorted(expected, key=lambda key: (-round(expected[key], 10), key))


def test_common_words_beyond_the_budget_are_left_out(support):
    teach(support, dict.fromkeys(range(1, 30), "common words everywhere") | {30: "common rare", 31: "common seldom"})
    assert len(found(support, "rare seldom common")) == 31
    assert found(support, "rare seldom common", postings_budget=10) == [30, 31]
    # Two terms are read whatever they cost: here the root and the exact spelling of the word.
    assert index.search(question(support, "common", postings_budget=10)) == index.search(question(support, "common"))


def test_the_same_content_in_two_models_and_tenants_has_its_own_statistics(support, sales, globex):
    teach(support, {1: "refund policy", 2: "parcel policy", 3: "prices"})
    alone = index.search(question(support, "refund policy"))
    teach(sales, dict.fromkeys(range(11, 60), "refund refund policy"))
    assert index.search(question(support, "refund policy")) == alone
    with activated(globex):
        twin = MLModel.objects.create(pk=support.pk, slug="support", name="Support")
        teach(twin, {1: "refund policy", 2: "parcel policy", 3: "prices"})
        assert index.search(question(twin, "refund policy")) == alone
        index.remove_model(twin.pk)
    assert index.search(question(support, "refund policy")) == alone
    assert {hit.id for hit in index.search(question(sales, "refund policy", limit=100))} == set(range(11, 60))


def test_what_both_legs_find_comes_before_the_best_of_one(support, case):
    v05 = case("V05")
    words = {int(name[1:]): 6 - place for place, name in enumerate(v05["input"]["text"])}
    cosines = dict(zip((int(name[1:]) for name in v05["input"]["vector"]), (0.9, 0.89, 0.7), strict=True))
    others = range(20, 30)
    teach(support, {key: "word " * words.get(key, 0) + "other" for key in [*words, *cosines, *others]})
    put(support, {key: near(cosine) for key, cosine in (cosines | dict.fromkeys(others, 0.2)).items()})
    hits = index.search(question(support, "word", mode="hybrid", vector=unit(1, 0), min_relevance=0.5))
    assert [f"d{hit.id}" for hit in hits] == v05["expected"]["order"]


def test_a_snippet_of_both_legs_comes_once(support, case):
    v07 = case("V07")
    teach(support, {7: "word word", 9: "word", 12: "other"})
    put(support, {7: near(0.9), 12: near(0.8)})
    hits = index.search(question(support, "word", mode="hybrid", vector=unit(1, 0)))
    assert sorted(hit.id for hit in hits) == v07["expected"]["ids"]
    assert hits[0] == IndexHit(7, pytest.approx(2), 1, hits[0].bm25, 1, pytest.approx(0.9), pytest.approx(0.9))


def test_fusion_adds_up_the_shares_of_both_legs(support):
    random_ = random.Random(7)
    teach(support, {key: random_text(random_, 30) for key in range(1, 60)})
    put(support, {key: near(random_.uniform(0.1, 0.9)) for key in range(1, 50)})
    for pool in (5, 20, 100):
        asked = {"text": random_text(random_, 6), "vector": unit(1, 0), "pool": pool, "limit": 100}
        keyword = index.search(question(support, asked["text"], limit=pool))
        semantic = index.search(question(support, mode="semantic", vector=unit(1, 0), limit=pool))
        expected = fused(
            {hit.id: hit.bm25 for hit in keyword},
            {hit.id: hit.cosine for hit in semantic},
        )
        hits = index.search(question(support, mode="hybrid", **asked))
        assert {hit.id: hit.fused_score for hit in hits} == pytest.approx(expected)
        assert [hit.id for hit in hits] == sorted(expected, key=lambda key: (-expected[key], key))
        assert min(expected.values()) > 0


def test_a_leg_that_finds_nothing_leaves_the_order_to_the_other(support):
    random_ = random.Random(8)
    teach(support, {key: "refund " * random_.randint(1, 9) + random_text(random_, 30) for key in range(1, 60)})
    put(support, {key: near(random_.uniform(0.1, 0.9)) for key in range(1, 60)})
    by_words = found(support, "refund", limit=10)
    by_meaning = found(support, mode="semantic", vector=unit(1, 0), limit=10)
    assert found(support, "refund", mode="hybrid", vector=None, limit=10) == by_words
    assert found(support, "refund", mode="hybrid", vector=unit(1, 0), min_relevance=0.95, limit=10) == by_words
    assert found(support, "zebra", mode="hybrid", vector=unit(1, 0), limit=10) == by_meaning


def test_a_cutoff_moves_no_score_of_what_it_keeps(support):
    teach(support, {key: "refund " * key + "parcel " * 5 for key in range(1, 10)})
    put(support, {key: near(0.9 - key / 20) for key in range(1, 10)})
    asked = {"text": "refund", "mode": "hybrid", "vector": unit(1, 0)}
    every = {hit.id: hit for hit in index.search(question(support, **asked))}
    kept = index.search(question(support, **asked, min_relevance=0.6, keyword_share=0.5))
    in_both_legs = [hit for hit in kept if hit.bm25 and hit.cosine]
    assert 0 < len(in_both_legs) < len(every)
    assert in_both_legs == [every[hit.id] for hit in in_both_legs]


def test_the_snippet_of_an_identifier_comes_before_those_that_are_only_alike(support):
    others = {key: f"Error ERR-{key}: the session has expired" for key in range(2000, 2040)}
    teach(support, others | {1234: "Error ERR-1234: the disk is full", 1: "Welcome"})
    put(support, {key: near(0.9 - (key - 2000) / 1000) for key in others} | {1234: near(0.85), 1: near(0.8)})
    asked = "I get ERR-1234 when the session has expired"
    assert found(support, asked, mode="hybrid", vector=unit(1, 0), limit=1) == [1234]


def test_cosines_that_hardly_differ_leave_the_order_to_the_words(support):
    teach(support, {1: "parcel and more", 2: "parcel parcel"})
    put(support, {1: near(0.801), 2: near(0.8)})
    assert found(support, "parcel", mode="hybrid", vector=unit(1, 0)) == [2, 1]


def test_equal_scores_come_by_id_every_time(support, case):
    v10 = case("V10")
    teach(support, dict.fromkeys([14, 11, 13, 15, 12], "same"))
    put(support, {key: unit(1, 2) for key in (12, 15, 11, 14, 13)})
    for mode in ("semantic", "keyword", "hybrid"):
        for _ in range(v10["input"]["repeat"]):
            assert found(support, "same", mode=mode, vector=unit(1, 0), limit=3) == v10["expected"]["ids"]


def test_hybrid_drops_weak_keyword_hits_and_keyword_retrieval_keeps_them(support):
    teach(support, {1: "refund refund refund", 2: "about a refund among very many other words " * 5, 3: "parcel"})
    assert found(support, "refund", mode="hybrid", keyword_share=0.9) == [1]
    assert found(support, "refund", mode="keyword", keyword_share=0.9) == [1, 2]


def test_hybrid_without_a_vector_answers_from_words(support):
    teach(support, {1: "refund", 2: "parcel"})
    put(support, {2: unit(1, 0)})
    [hit] = index.search(question(support, "refund", mode="hybrid", vector=None))
    assert (hit.id, hit.semantic_rank, hit.fused_score) == (1, None, pytest.approx(1))


def test_what_is_no_row_of_the_model_is_never_a_hit(support, sales):
    teach(support, {1: "refund", 2: "refund", 3: "refund"})
    put(support, {1: unit(1, 0), 2: unit(1, 0), 3: unit(1, 0)})
    TrainingSnippet.objects.filter(pk=1).delete()
    TrainingSnippet.objects.filter(pk=3).update(model=sales)
    for mode in ("semantic", "keyword", "hybrid"):
        assert found(support, "refund", mode=mode, vector=unit(1, 0)) == [2]
        assert found(sales, "refund", mode=mode, vector=unit(1, 0)) == []


def test_a_connection_opened_anew_can_search_too(support):
    teach(support, {1: "refund"})
    put(support, {1: unit(1, 0)})
    for _ in range(2):
        assert found(support, mode="semantic", vector=unit(1, 0)) == [1]
        connection().close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
def test_no_question_raises(support, text):
    if not support.snippets.exists():
        teach(support, {1: "Use AND, OR, NOT and NEAR as operators"})
    assert found(support, text) in ([], [1])


@pytest.mark.parametrize(
    "piece", ["a b c ", "\0", '" OR 1=1 --', "\ud800", "退款", "NEAR(", "x" * 500 + " ", "%s %(x)s "]
)
def test_a_megabyte_question_is_answered(support, piece):
    teach(support, {1: "alpha"})
    text = piece * (1_000_000 // len(piece))
    assert found(support, text) == []
    assert found(support, "alpha " + text) == [1]


def test_the_statement_names_the_table_of_the_snippets():
    assert f"JOIN {TrainingSnippet._meta.db_table} AS" in SEARCH


def test_words_count_less_beside_the_meaning_when_the_best_has_few_of_the_questions(support):
    teach(support, {1: "refund", 2: "parcel", 3: "order"})
    put(support, {1: near(0.2), 2: near(0.9), 3: near(0.1)})

    def share(text: str) -> float:
        hits = index.search(question(support, text, mode="hybrid", vector=unit(1, 0), min_relevance=0.5))
        return next(hit.fused_score for hit in hits if hit.id == 1)

    assert share("refund") == pytest.approx(1)
    assert 0.4 < share("refund stolen yesterday evening outside town") < 0.6


def test_a_threshold_that_keeps_a_snippet_keeps_what_is_nearer(support):
    teach(support, {1: "everything", 2: "refund", 3: "parcel"})
    put(support, {1: near(0.9), 2: unit(0.8, -0.6), 3: unit(-1, 0)})
    usual = Calibration(0.5, 0.3, 3, np.stack([unit(1, 1) * np.float32(0.9)]), (0.5,))  # nearly all are near to 1
    asked = question(support, mode="semantic", vector=unit(1, 0), calibration=usual, min_relevance=0.5)
    first, second = index.search(asked)
    assert (first.id, second.id, first.relevance) == (1, 2, second.relevance)
    alone = index.search(dataclasses.replace(asked, limit=1))
    assert alone == [], "by itself it is worth too little"
