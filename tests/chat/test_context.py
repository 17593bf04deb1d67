"""What of the hits goes into the context, and what a follow-up is searched with."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.context import SEPARATOR, get_context
from models_app import snippets
from models_app.tokens import count_tokens


@pytest.fixture
def model(support):
    support.retrieval = "keyword"
    support.save()
    return support


def used(context) -> list[str]:
    return [packed.hit.title for packed in context.packed if packed.is_used]


def test_hits_stand_in_rank_order_with_their_titles(model):
    snippets.add(model, "Lamp shades", "Every lamp shade is made of paper.", uri="https://ex.test/shades")
    snippets.add(model, "Lamps", "A lamp, a lamp, a lamp.", uri="https://ex.test/lamps")
    context = get_context(model, "lamp")
    assert context.text == (
        f"# Lamps\n\nA lamp, a lamp, a lamp.{SEPARATOR}# Lamp shades\n\nEvery lamp shade is made of paper."
    )
    assert [(source.rank, source.title, source.url) for source in context.sources] == [
        (1, "Lamps", "https://ex.test/lamps"),
        (2, "Lamp shades", "https://ex.test/shades"),
    ]
    assert context.tokens == count_tokens(context.text) <= context.budget == 2_000
    assert (context.mode, context.degraded, context.query) == ("keyword", "", "lamp")


def test_a_hit_that_does_not_fit_is_passed_over_and_the_next_may_fit(model):
    model.max_context_tokens = 100
    snippets.add(model, "Lamp", "lamp lamp lamp.")
    snippets.add(model, "Too long", "lamp " * 12 + "word " * 90)
    snippets.add(model, "Third", "lamp " + "word " * 30)
    context = get_context(model, "lamp")
    assert [packed.hit.title for packed in context.packed] == ["Lamp", "Too long", "Third"]
    assert [packed.is_used for packed in context.packed] == [True, False, True]
    assert [source.rank for source in context.sources] == [1, 3]
    assert context.tokens <= 100


def test_a_first_hit_that_does_not_fit_is_cut_at_a_sentence_end(model):
    model.max_context_tokens = 100
    sentences = [f"Lamp number {number} costs {number}.50 euros!" for number in range(40)]
    snippets.add(model, "Prices of lamps", " ".join(sentences))
    context = get_context(model, "lamp")
    assert context.packed[0].is_cut
    assert context.text.endswith(".50 euros!")
    assert 80 < context.tokens <= 100


def test_a_text_without_sentences_is_cut_between_words(model):
    model.max_context_tokens = 100
    snippets.add(model, "Lamps", "lamp bulb " * 300)
    context = get_context(model, "lamp")
    assert context.text.endswith(("lamp", "bulb"))
    assert context.tokens <= 100


def test_a_text_that_opens_with_its_title_keeps_it_once(model):
    snippets.add(model, "Lamps", "## Lamps\n\nThey shine.")
    assert get_context(model, "lamps").text == "## Lamps\n\nThey shine."


def test_nothing_found_is_an_empty_context(model):
    snippets.add(model, "Lamps", "They shine.")
    context = get_context(model, "giraffe")
    assert (context.text, context.packed, context.sources, context.tokens) == ("", (), (), 0)


def test_a_source_that_several_hits_share_is_named_once(model):
    for number in (1, 2):
        snippets.add(model, "Lamps", f"Lamp {number}.", uri="https://ex.test/lamps")
    context = get_context(model, "lamp")
    assert (len(used(context)), len(context.sources), context.sources[0].rank) == (2, 1, 1)


TEXTS = st.text(alphabet="lamp .!?\n#-中文é😀*|", max_size=400)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), budget=st.integers(1, 150))
def test_the_context_is_never_over_its_budget(model, texts, budget):
    snippets.delete(model, list(model.snippets.values_list("id", flat=True)))
    for title, text in texts:
        snippets.add(model, f"{title[:200]} lamp", f"{text} lamp")
    model.max_context_tokens = budget
    context = get_context(model, "lamp")
    assert count_tokens(context.text) == context.tokens <= budget
    assert sum(packed.is_cut for packed in context.packed) <= 1


@pytest.fixture
def shop(model):
    snippets.add(model, "Blue lamp", "The blue lamp costs 40 euros.")
    snippets.add(model, "Delivery to Norway", "Parcels to Norway take nine days.")
    return model


def test_a_follow_up_is_searched_with_what_it_is_about(shop):
    earlier = ["Do you have the blue lamp in stock?"]
    assert used(get_context(shop, "and how much is that?")) == []
    assert used(get_context(shop, "and how much is that?", earlier)) == ["Blue lamp"]
    earlier.append("how much is it")
    assert used(get_context(shop, "can I pay it by card?", earlier)) == ["Blue lamp"]


@pytest.mark.parametrize(
    ("earlier", "question"),
    [
        ("Habt ihr blue lamp auf Lager?", "Und was kostet das?"),
        ("Avez-vous blue lamp en stock ?", "Et c'est combien ?"),
        ("¿Tienen blue lamp?", "¿Y cuánto es?"),
        ("有 blue lamp 吗？", "多少钱？"),
    ],
)
def test_a_follow_up_needs_no_english_word_to_be_known_as_one(shop, earlier, question):
    assert used(get_context(shop, question, [earlier])) == ["Blue lamp"]


def test_a_question_with_a_subject_of_its_own_finds_that_first(shop):
    earlier = ["Do you have the blue lamp in stock?"]
    context = get_context(shop, "How many days do parcels to Norway take?", earlier)
    assert used(context) == ["Delivery to Norway", "Blue lamp"]
    assert [packed.hit.rank for packed in context.packed] == [1, 2]
    assert context.question == "How many days do parcels to Norway take?"
    assert context.query == "How many days do parcels to Norway take?\nDo you have the blue lamp in stock?"


def test_only_the_latest_questions_back_to_the_subject_are_looked_at(shop):
    earlier = ["How many days do parcels to Norway take?", "Do you have the blue lamp in stock?", "how much is it"]
    context = get_context(shop, "and that?", earlier)
    assert context.query == "and that?\nhow much is it\nDo you have the blue lamp in stock?"
    assert used(context) == ["Blue lamp"]


def test_a_question_that_finds_nothing_by_itself_is_searched_with_the_earlier_ones(shop):
    context = get_context(shop, "Which guarantee comes with every purchase?", ["Do you have the blue lamp in stock?"])
    assert used(context) == ["Blue lamp"]


def test_a_question_that_was_rewritten_is_searched_as_it_was_rewritten(shop):
    context = get_context(shop, "and that?", ["When do you open?"], rewritten="What does the blue lamp cost?")
    assert (used(context), context.query) == (["Blue lamp"], "What does the blue lamp cost?")
    assert context.question == "and that?"
