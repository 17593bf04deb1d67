"""The Test tab and History, as a browser asks for them."""

import pytest
from django.urls import reverse

from chat.models import Turn
from models_app import snippets
from models_app.models import MLModel
from tests.conftest import make_person
from tests.fakes.openai_server import OpenAIServer, streamed

HTMX = {"HX-Request": "true"}


def address(name, *arguments):
    return reverse(f"chat:{name}", args=["acme", "support", *arguments])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def shop(support) -> MLModel:
    """Acme's model, searching by keyword, with two snippets."""
    support.retrieval = "keyword"
    support.save()
    snippets.add(support, "When are you open?", "The shop is open from nine to five.", "https://acme.test/hours")
    snippets.add(support, "What does repair cost?", "A repair costs 40 €.", "https://acme.test/repair")
    return support


def log(model, question="When?", **fields):
    return Turn.objects.create(model=model, question=question, **{"answer": "At **nine**.", "outcome": "stop"} | fields)


def test_a_question_is_compared_under_all_three_retrievals(shop, ann_browser):
    page = ann_browser.post(address("test_results"), {"question": "costs of a repair"}, headers=HTMX).content.decode()
    for name in ("Semantic", "Keyword", "Hybrid"):
        assert f">{name}</h2>" in page
    assert "<mark>repair</mark>" in page
    assert "BM25" in page
    assert "of 2,000 tokens" in page
    assert "This model's" in page


def test_a_leg_that_is_away_is_named_in_its_column(shop, ann_browser):
    shop.retrieval = "hybrid"
    shop.save()
    page = ann_browser.post(address("test_results"), {"question": "repair"}, headers=HTMX).content.decode()
    assert page.count("press Vectorise") == 2


def test_a_keyword_model_is_not_asked_to_vectorise(shop, ann_browser):
    page = ann_browser.post(address("test_results"), {"question": "repair"}, headers=HTMX).content.decode()
    assert "press Vectorise" not in page
    assert "searches by keyword" in page


def test_what_the_budget_cut_is_shown(shop, ann_browser):
    shop.max_context_tokens = 100
    shop.save()
    for number in range(4):
        snippets.add(shop, f"Repair {number}", f"Repair number {number}. " + "More words on it. " * 12)
    page = ann_browser.post(address("test_results"), {"question": "repair"}, headers=HTMX).content.decode()
    assert "Over budget" in page
    assert "passed over by the budget" in page


def test_a_question_that_finds_nothing_has_words_for_it(shop, ann_browser):
    page = ann_browser.post(address("test_results"), {"question": "xylophone"}, headers=HTMX).content.decode()
    assert "No snippet shares a word with the question." in page


@pytest.mark.parametrize("name", ["test_results", "test_answer"])
def test_a_question_that_is_too_long_is_refused_with_both_numbers(shop, ann_browser, name):
    page = ann_browser.post(address(name), {"question": "long " * 4_000}, headers=HTMX).content.decode()
    assert "4,00" in page
    assert "at most 1,000" in page
    assert not Turn.objects.exists()


@pytest.mark.parametrize("question", ["", "   ", "\n"])
def test_an_empty_question_is_asked_for(shop, ann_browser, question):
    page = ann_browser.post(address("test_results"), {"question": question}, headers=HTMX).content.decode()
    assert "Type a question first." in page


@pytest.mark.parametrize(
    "question", ['"', "AND", "C++ ERR-1234 snake_case", "🦄", "价格是多少", "<script>alert(1)</script>"]
)
def test_any_text_is_a_legal_question(shop, ann_browser, question):
    response = ann_browser.post(address("test_results"), {"question": question}, headers=HTMX)
    assert response.status_code == 200
    assert "<script>" not in response.content.decode()


def test_the_answer_a_visitor_would_get_is_shown_and_logged(shop, ann_browser):
    page = ann_browser.post(
        address("test_answer"), {"question": "What does a repair cost?"}, headers=HTMX
    ).content.decode()
    turn = Turn.objects.get()
    assert "40 €" in page
    assert "Quoted passages" in page
    assert "https://acme.test/repair" in page
    assert (turn.channel, turn.outcome) == ("test", "stop")


def test_a_reader_compares_and_does_not_spend(shop, browse, ray):
    browser = browse(ray)
    assert address("test_answer") not in browser.get(address("test")).content.decode()
    assert browser.post(address("test_results"), {"question": "repair"}, headers=HTMX).status_code == 200
    assert browser.post(address("test_answer"), {"question": "repair"}, headers=HTMX).status_code == 403
    assert not Turn.objects.exists()


def test_a_used_up_month_is_told_in_place_of_the_answer(shop, ann_browser):
    shop.monthly_request_cap = 1
    shop.save()
    for _ in range(2):
        page = ann_browser.post(address("test_answer"), {"question": "repair"}, headers=HTMX).content.decode()
    assert "1 questions it may answer in a month" in page


def test_an_llm_that_is_away_is_told_above_what_answers_instead(shop, ann_browser):
    shop.provider_base_url, shop.llm = "http://127.0.0.1:9/v1", "small"
    shop.save()
    page = ann_browser.post(address("test_answer"), {"question": "repair"}, headers=HTMX).content.decode()
    assert "small: The LLM cannot be reached. The best passages were quoted instead." in page
    assert (Turn.objects.get().outcome, Turn.objects.get().answered_by) == ("stop", "extract")


def test_facts_that_stand_in_no_source_are_shown_with_a_test_answer(shop, ann_browser):
    with OpenAIServer() as llm:
        shop.provider_base_url, shop.llm, shop.provider_key = llm.url, "small", "k"
        shop.save()
        llm.will(streamed("It costs 987 €."))
        page = ann_browser.post(address("test_answer"), {"question": "repair"}, headers=HTMX).content.decode()
    assert "Found in none of the sources: <mark>987 €</mark> (price)." in page


def test_facts_that_stand_in_no_source_are_shown_and_found_in_history(support, ann_browser):
    flags = [{"kind": "price", "text": "45 <€>"}, {"kind": "date", "text": "7 May"}]
    flagged = log(support, "flagged", guard_flags=flags)
    log(support, "all-well", llm="big", searched_for="all-well\nWhen?")
    page = ann_browser.get(address("turn_table"), {"show": "flagged"}, headers=HTMX).content.decode()
    assert "flagged</a>" in page
    assert "2 facts in no source" in page
    assert "all-well" not in page
    page = ann_browser.get(address("turn", flagged.pk)).content.decode()
    assert "<mark>45 &lt;€&gt;</mark> (price), <mark>7 May</mark> (date)" in page


def test_a_turn_names_its_llm_and_what_it_was_searched_with(support, ann_browser):
    turn = log(support, "and then?", llm="big", answered_by="llm", searched_for="and then?\nWhen do you open?")
    page = ann_browser.get(address("turn", turn.pk)).content.decode()
    assert "LLM big" in page
    assert "and then?<br>When do you open?" in page


def test_an_answer_that_broke_off_is_among_those_that_failed(support, ann_browser):
    log(support, "cut-off", outcome="cut", error="big: timeout: The LLM did not answer in time.")
    page = ann_browser.get(address("turn_table"), {"show": "failed"}, headers=HTMX).content.decode()
    assert "cut-off" in page
    assert "Broken off by the LLM" in page


def test_an_empty_history_says_how_to_ask(support, ann_browser):
    page = ann_browser.get(address("history")).content.decode()
    assert "Nobody has asked yet" in page
    assert address("test") in page


def test_an_empty_history_says_when_logging_is_off(support, ann_browser):
    support.logs_questions = False
    support.save()
    assert "Logging is switched off" in ann_browser.get(address("history")).content.decode()


def test_history_is_filtered_and_searched(support, ann_browser):
    log(support, "found-nothing", is_unanswered=True)
    log(support, "went-wrong", outcome="error", error="The LLM did not answer.")
    log(support, "half-blind", degraded="The embedding service is away.")
    log(support, "all-well", is_reviewed=True)

    def shown(**query):
        page = ann_browser.get(address("turn_table"), query, headers=HTMX).content.decode()
        return {
            turn.question
            for turn in Turn.objects.all()
            if turn.question in page.replace("<mark>", "").replace("</mark>", "")
        }

    assert shown(show="unanswered") == {"found-nothing"}
    assert shown(show="failed") == {"went-wrong"}
    assert shown(show="degraded") == {"half-blind"}
    assert shown(show="unreviewed") == {"found-nothing", "went-wrong", "half-blind"}
    assert shown(q="all-w") == {"all-well"}
    assert len(shown(show="nonsense")) == 4


def test_the_newest_question_stands_first(support, ann_browser):
    log(support, "the-older-one")
    log(support, "the-newer-one")
    page = ann_browser.get(address("history")).content.decode()
    assert page.index("the-newer-one") < page.index("the-older-one")


def test_a_turn_shows_what_the_answer_stands_on(support, ann_browser):
    hit = {"rank": 1, "id": 7, "title": "Hours", "uri": "https://acme.test/hours", "text": "From nine.", "tokens": 5}
    legs = {"keyword_rank": 2, "bm25": 3.5, "semantic_rank": 1, "distance": 0.25, "fused_score": 0.032}
    turn = log(support, hits=[hit | legs], seconds=1.5, context_tokens=412, degraded="The embedding service is away.")
    page = ann_browser.get(address("turn", turn.pk)).content.decode()
    for words in ("<strong>nine</strong>", "Hours", "#1, distance 0.250", "#2, BM25 3.50", "412", "1.5 s", "is away"):
        assert words in page


def test_an_answer_of_an_llm_runs_nothing_and_loads_nothing(support, ann_browser):
    hostile = "<script>alert(1)</script> ![x](https://tracker.test/p.png) [y](javascript:alert(1))"
    turn = log(support, question="<img src=x onerror=alert(1)>", answer=hostile)
    for name in ("turn", "conversation"):
        page = ann_browser.get(address(name, turn.pk)).content.decode()
        assert "<script>alert" not in page
        assert 'src="https://tracker' not in page
        assert "<img src=x" not in page
        assert 'href="javascript' not in page


def test_a_conversation_holds_its_session_and_nothing_else(support, ann_browser):
    first = log(support, "the-first", session_key="s/1 ?")
    log(support, "the-second", session_key="s/1 ?")
    log(support, "of-another", session_key="s2")
    log(MLModel.objects.create(slug="other", name="Other"), "of-another-model", session_key="s/1 ?")
    page = ann_browser.get(address("conversation", first.pk)).content.decode()
    assert page.index("the-first") < page.index("the-second")
    assert "of-another" not in page


def test_turns_without_a_session_stand_alone(support, ann_browser):
    first = log(support, "the-first")
    log(support, "the-second")
    page = ann_browser.get(address("conversation", first.pk)).content.decode()
    assert "the-second" not in page


def test_an_editor_reviews_a_turn_and_takes_it_back(support, browse, acme):
    browser = browse(make_person("ed@acme.test", acme, "editor"))
    turn = log(support)
    browser.post(address("turn_review", turn.pk), {"is_reviewed": "yes"}, headers=HTMX)
    turn.refresh_from_db()
    assert (turn.is_reviewed, turn.reviewer) == (True, "ed@acme.test")
    browser.post(address("turn_review", turn.pk), {"is_reviewed": "no"}, headers=HTMX)
    turn.refresh_from_db()
    assert (turn.is_reviewed, turn.reviewer) == (False, "")


def test_a_reader_reviews_nothing(support, browse, ray):
    turn = log(support)
    assert browse(ray).post(address("turn_review", turn.pk), {"is_reviewed": "yes"}, headers=HTMX).status_code == 403
    turn.refresh_from_db()
    assert not turn.is_reviewed


def test_a_turn_is_not_reached_through_another_model(support, ann_browser):
    MLModel.objects.create(slug="other", name="Other")
    turn = log(support)
    assert ann_browser.get(reverse("chat:turn", args=["acme", "other", turn.pk])).status_code == 404
