"""Why a snippet is not found: each cause by itself, with the numbers that an owner reads."""

import random
from copy import copy

import pytest

from models_app import index, snippets
from models_app.explain import Cause, explain, ordinal
from models_app.models import Retrieval, TrainingSnippet
from models_app.retrieval import LIMIT, retrieve
from models_app.terms import question_terms
from tests.fakes.near_server import NearServer, answer_by, place

QUESTION = "What does a repair of the pump cost?"


@pytest.fixture
def server():
    with NearServer() as running:
        yield running


@pytest.fixture
def model(support, server):
    """Acme's model, whose vectors are placed by the test."""
    answer_by(support, server)
    return support


def add(model, title: str, text: str, cosine: float | list[float] | None = None) -> TrainingSnippet:
    added = snippets.add(model, title, text)
    if cosine is not None:
        place(model, {added.pk: cosine})
    return added


def cause(explanation, mode: str) -> str | None:
    return explanation.findings[mode].cut and explanation.findings[mode].cut.cause


def words(explanation, mode: str) -> str:
    return explanation.findings[mode].cut.words


def test_what_is_found_has_its_ranks_and_scores_and_no_cause(model):
    add(model, "Opening hours", "Open from nine to five.", 0.4)
    right = add(model, "Pump repair", "A repair costs 40 euros.", 0.8)
    explanation = explain(model, QUESTION, right)
    hit = retrieve(model, QUESTION, mode="hybrid").hits[0]
    assert hit.id == right.pk
    assert [explanation.findings[mode].rank for mode in ("semantic", "keyword", "hybrid")] == [1, 1, 1]
    assert not any(finding.cut for finding in explanation.findings.values())
    assert explanation.findings["hybrid"].fused_score == hit.fused_score
    assert (explanation.keyword.rank, explanation.keyword.bm25) == (hit.keyword_rank, hit.bm25)
    assert (explanation.semantic.rank, explanation.semantic.cosine) == (hit.semantic_rank, hit.cosine)
    assert explanation.semantic.relevance == pytest.approx(1 - hit.distance)
    assert (explanation.keyword.found_count, explanation.semantic.compared_count) == (1, 2)


def test_too_far_in_meaning_is_cut_by_the_threshold(model):
    add(model, "Prices", "All of them.", 0.9)
    right = add(model, "Fees", "Forty euros.", 0.1)
    explanation = explain(model, QUESTION, right)
    assert cause(explanation, "semantic") == cause(explanation, "hybrid") == Cause.THRESHOLD
    relevance = explanation.semantic.relevance
    assert words(explanation, "semantic") == f"Its relevance is {relevance:.2f}, the threshold 0.30."
    assert relevance < 0.3
    assert cause(explanation, "keyword") == Cause.NO_SHARED_TERM
    assert (explanation.semantic.rank, explanation.findings["semantic"].rank) == (2, None)


def test_numbers_that_look_alike_are_told_with_more_digits(model):
    right = add(model, "Fees", "Forty euros.", 0.5)
    model.threshold = round(explain(model, QUESTION, right).semantic.relevance + 0.001, 5)
    told = words(explain(model, QUESTION, right), "semantic")
    assert told == f"Its relevance is {model.threshold - 0.001:.3f}, the threshold {model.threshold:.3f}."


def test_few_words_beside_the_best_hit_are_cut_by_the_relative_cutoff(model):
    add(model, "Repair of the pump: cost", "The repair of a pump, and what it costs. Pump repair cost.", 0.9)
    right = add(model, "Fees", "The cost. " + "Many other words on something else. " * 30, -0.5)
    for number in range(6):
        add(model, f"Other {number}", "What anything may cost.", 0.1)
    explanation = explain(model, QUESTION, right)
    assert cause(explanation, "hybrid") == Cause.RELATIVE_CUTOFF
    assert explanation.findings["hybrid"].semantic_cut.cause == Cause.THRESHOLD
    score, best = explanation.keyword.bm25, explanation.keyword.best
    expected = f"Its words score {score:.2f}, the best hit’s {best:.2f}: under 0.3 of it."
    assert words(explanation, "hybrid") == expected
    assert cause(explanation, "keyword") is None
    assert explanation.findings["keyword"].rank == explanation.keyword.rank


def test_few_words_by_themselves_are_cut_where_nothing_is_near_in_meaning(model):
    right = add(model, "Fees", "The cost of everything.", -0.5)
    add(model, "Prices", "All of them.", -0.6)
    explanation = explain(model, "What does a xylophone cost in winter?", right)
    assert cause(explanation, "hybrid") == Cause.TOO_FEW_WORDS
    assert cause(explanation, "keyword") is None
    assert 0 < explanation.keyword.matched_share < 0.6
    shown = f"{100 * explanation.keyword.matched_share:.0f} % of their weight, 60 % are needed"
    assert shown in words(explanation, "hybrid")
    add(model, "Winter", "Cold.", 0.9)
    assert cause(explain(model, "What does a xylophone cost in winter?", right), "hybrid") is None


VOCABULARY = ["pump", "repair", "cost", "price", "hose", "valve", "winter", "garden", "delivery", "voucher"]


@pytest.mark.parametrize("seed", range(10))
def test_ranks_and_scores_are_those_of_the_search_and_what_is_not_found_has_one_cause(model, seed):
    chance = random.Random(seed)
    question, model.threshold = " ".join(chance.sample(VOCABULARY, 4)), chance.choice([0.0, 0.1, 0.3, 0.5, 1.0])
    highest = chance.choice([-0.2, 0.9])  # whether anything is near
    for _ in range(chance.choice([8, 70])):
        text = " ".join(chance.choices(VOCABULARY, k=chance.randint(1, 9)))
        add(model, chance.choice(VOCABULARY), text, chance.choice([None, round(chance.uniform(-0.9, highest), 2)]))
    retrieved = {mode: {hit.id: hit for hit in retrieve(model, question, mode).hits} for mode in Retrieval.values}
    for snippet in chance.sample(list(model.snippets.all()), 8):
        explanation = explain(model, question, snippet)
        for mode, finding in explanation.findings.items():
            hit = retrieved[mode].get(snippet.pk)
            assert bool(hit) != bool(finding.cut)
            if hit:
                check_agrees(explanation, finding, hit)
            elif finding.passing_threshold:
                check_passes(model, question, snippet, finding)


def check_agrees(explanation, finding, hit) -> None:
    """Assert that the explanation tells a hit's own numbers."""
    keyword, semantic = explanation.keyword, explanation.semantic
    assert (finding.rank, finding.fused_score) == (hit.rank, hit.fused_score)
    assert bool(hit.keyword_rank) != bool(finding.keyword_cut) or finding.mode == "semantic"
    assert bool(hit.semantic_rank) != bool(finding.semantic_cut) or finding.mode == "keyword"
    if hit.keyword_rank:
        assert keyword.bm25 == hit.bm25
        assert sum(word.points for word in keyword.matched) == pytest.approx(hit.bm25, abs=1e-6)
        assert finding.mode == "hybrid" or keyword.rank == hit.keyword_rank
    if hit.semantic_rank:
        assert (semantic.rank, semantic.cosine) == (hit.semantic_rank, hit.cosine)
        assert semantic.relevance == pytest.approx(1 - hit.distance)


def check_passes(model, question, snippet, finding) -> None:
    """Assert that a snippet is found at the threshold that is named for it, and not a hundredth above."""
    at, above = copy(model), copy(model)
    at.threshold, above.threshold = finding.passing_threshold, round(finding.passing_threshold + 0.01, 2)
    assert explain(at, question, snippet).findings[finding.mode].cut is None
    assert explain(above, question, snippet).findings[finding.mode].cut


def test_what_ranks_behind_all_that_are_taken_is_cut_by_depth(model):
    for number in range(LIMIT + 12):
        add(model, f"Pump {number}", "The repair of a pump, and its cost.", 0.9)
    right = add(model, "Fees", "What a repair of the pump costs, in many more words than the others say it in.", 0.5)
    explanation = explain(model, QUESTION, right)
    for mode in ("semantic", "keyword", "hybrid"):
        assert cause(explanation, mode) == Cause.DEPTH
        assert words(explanation, mode) == f"It ranks 63rd; {LIMIT} are taken."
    assert (explanation.keyword.rank, explanation.semantic.rank) == (63, 63)
    assert explanation.findings["hybrid"].rank == 63


def test_without_a_vector_meaning_cannot_find_it(model):
    add(model, "Prices", "All of them.", 0.9)
    right = add(model, "Fees", "Forty euros.")
    explanation = explain(model, QUESTION, right)
    assert cause(explanation, "semantic") == cause(explanation, "hybrid") == Cause.NO_VECTOR
    assert words(explanation, "semantic") == "It has no vector yet: press Vectorise."
    assert explanation.semantic.vector_count == 0


def test_a_model_without_any_vector_lets_the_words_answer_and_says_so(model):
    found = add(model, "Pump repair", "A repair costs 40 euros.")
    missed = add(model, "Fees", "Forty euros.")
    explanation = explain(model, QUESTION, found)
    assert explanation.findings["semantic"].rank == 1
    assert cause(explanation, "semantic") is None
    assert "press Vectorise" in explanation.findings["semantic"].semantic_cut.words
    assert cause(explain(model, QUESTION, missed), "semantic") == Cause.NO_VECTOR


def test_a_service_that_is_away_leaves_the_question_without_a_vector(model, server):
    right = add(model, "Fees", "Forty euros.", 0.9)
    model.provider_base_url = "http://127.0.0.1:9/v1"
    server.__exit__()
    explanation = explain(model, QUESTION, right)
    assert cause(explanation, "semantic") == Cause.NO_VECTOR
    assert "no embeddings for now" in words(explanation, "semantic")
    assert (explanation.semantic.cosine, explanation.semantic.vector_count) == (None, 1)


def test_no_word_in_common_is_no_shared_term(model):
    add(model, "Pump repair", "A repair costs 40 euros.", 0.9)
    right = add(model, "Fees", "Forty euros.", 0.9)
    explanation = explain(model, QUESTION, right)
    assert cause(explanation, "keyword") == Cause.NO_SHARED_TERM
    assert words(explanation, "keyword") == "It shares no word with the question."
    assert [word.word for word in explanation.keyword.lacking] == ["repair", "pump", "cost"]
    assert cause(explanation, "hybrid") is None
    assert explanation.findings["hybrid"].keyword_cut.cause == Cause.NO_SHARED_TERM


@pytest.mark.parametrize("question", ["", "  ", "?!", "🦄"])
def test_a_question_without_a_word_is_explained_too(model, question):
    right = add(model, "Fees", "Forty euros.", 0.9)
    explanation = explain(model, question, right)
    assert words(explanation, "keyword") == "The question has no word to search for."


def test_matched_words_add_up_to_the_score_and_the_others_are_named(model):
    add(model, "Pumps", "A pump, and another pump.", 0.5)
    right = add(model, "Repairs", "We repair your C++ pump. ERR-1234 is repaired at once.", 0.5)
    question = "Which repairs does the pump need, is it ERR-1234 or a C++ xylophone?"
    keyword = explain(model, question, right).keyword
    assert {word.word for word in keyword.matched} == {"repairs", "pump", "ERR-1234", "C++"}
    assert sum(word.points for word in keyword.matched) == pytest.approx(keyword.bm25, abs=1e-6)
    assert [word.word for word in keyword.lacking][-1] == "xylophone"
    repairs = next(word for word in keyword.matched if word.word == "repairs")
    assert (repairs.in_title, repairs.in_text, repairs.snippets, repairs.is_as_spelled) == (1, 2, 1, True)


def test_words_of_a_script_without_blanks_are_named_in_pairs(model):
    right = add(model, "", "我们的价格是四十欧元", 0.5)
    keyword = explain(model, "价格是多少", right).keyword
    assert "价格" in {word.word for word in keyword.matched}
    assert sum(word.points for word in keyword.matched) == pytest.approx(keyword.bm25, abs=1e-6)


def test_a_snippet_of_several_windows_stands_where_its_nearest_is(model):
    add(model, "Prices", "All of them.", [0.7, 0.6])
    right = add(model, "Fees", "Forty euros.", [0.2, 0.65, 0.4])
    semantic = explain(model, QUESTION, right).semantic
    assert (semantic.rank, semantic.compared_count, semantic.vector_count) == (2, 2, 3)
    assert semantic.cosine == pytest.approx(0.65, abs=1e-5)


def test_a_question_of_very_many_words_says_that_not_all_were_searched(model):
    right = add(model, "Fees", "Forty euros.", 0.5)
    explanation = explain(model, " ".join(f"word{number}x" for number in range(200)), right)
    assert "first 64" in explanation.keyword.note


def test_an_explanation_writes_nothing(model):
    right = add(model, "Fees", "Forty euros.", 0.5)
    before = list(TrainingSnippet.objects.values())
    explain(model, QUESTION, right)
    assert list(TrainingSnippet.objects.values()) == before


def test_another_threshold_is_tried_without_being_saved(model):
    right = add(model, "Fees", "Forty euros.", 0.1)
    model.threshold = 0.05
    assert cause(explain(model, QUESTION, right), "semantic") is None
    model.refresh_from_db()
    assert model.threshold == 0.3


def test_the_shares_of_terms_that_are_too_common_for_a_long_question_are_none(model):
    right = add(model, "Fees", "The cost of alpha beta gamma.", 0.5)
    add(model, "Other", "The cost of delta gamma.", 0.5)
    asked = index.IndexQuestion(
        model_id=model.pk,
        mode="keyword",
        terms=tuple(question_terms("alpha beta gamma cost")),
        vector=None,
        space="",
        limit=50,
        postings_budget=4,
    )
    shares = {share.term: share for share in index.explain.term_shares(asked, right.pk)}
    assert shares["=alpha"].points > 0
    assert (shares["gamma"].weight, shares["gamma"].points, shares["gamma"].in_text) == (None, 0, 1)
    score = index.search(asked)[0].bm25
    assert sum(share.points for share in shares.values()) == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize(("number", "told"), [(1, "1st"), (2, "2nd"), (11, "11th"), (63, "63rd"), (1112, "1,112th")])
def test_ranks_are_told_as_people_say_them(number, told):
    assert ordinal(number) == told
