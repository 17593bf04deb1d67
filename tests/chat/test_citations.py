"""Which snippets an answer is taken from, and where its sources lead."""

import pytest

from chat.citations import cite, cite_quoted
from chat.context import get_context
from models_app import snippets
from models_app.page_texts import ShownPage, keep_page_text

SHIPPING, RETURNS = "https://shop.test/shipping", "https://shop.test/returns"


@pytest.fixture
def model(support):
    support.retrieval = "keyword"
    support.save()
    snippets.add(
        support,
        "Shipping",
        "We ship to 12 countries. A parcel to Norway takes **four** working days.\n\n| to | costs |\n| - | - |\n"
        "| Norway | 9.90 EUR for each parcel |",
        uri=SHIPPING,
    )
    snippets.add(
        support,
        "Returns",
        "Send a parcel back within 30 days. The refund arrives on your card a week later.",
        uri=RETURNS,
    )
    snippets.add(support, "Parcel", "Parcel lockers are open at night. We love every parcel.")
    keep_page_text(
        support,
        SHIPPING,
        ShownPage.of(
            "Shipping\nWe ship to 12 countries. A parcel to Norway takes four working days.\nto\ncosts\nNorway\n"
            "9.90 EUR for each parcel"
        ),
    )
    keep_page_text(
        support,
        RETURNS,
        ShownPage.of("Returns\nSend a parcel back within 30 days. The refund arrives on your card later."),
    )
    return support


def cited(model, answer: str) -> list[tuple[str, str]]:
    context = get_context(model, "parcel")
    assert len([packed for packed in context.packed if packed.is_used]) == 3
    return [(source.title, source.url) for source in cite(model, answer, context)]


def test_what_the_answer_is_not_taken_from_is_no_source(model):
    answer = "A parcel to Norway will take you four working days."
    assert cited(model, answer) == [
        ("Shipping", f"{SHIPPING}#:~:text=A%20parcel%20to%20Norway%20takes%20four%20working%20days.")
    ]


def test_an_answer_from_two_pages_names_both(model):
    answer = "To Norway it takes four working days. You can send it back within 30 days."
    assert {title for title, _ in cited(model, answer)} == {"Shipping", "Returns"}


def test_a_sentence_that_its_page_no_longer_has_leads_to_the_page(model):
    answer = "The refund arrives on the card a week later."
    assert cited(model, answer) == [("Returns", RETURNS)]


def test_a_cell_of_a_table_is_led_to(model):
    assert cited(model, "That is 9.90 EUR for each parcel.") == [
        ("Shipping", f"{SHIPPING}#:~:text=9.90%20EUR%20for%20each%20parcel")
    ]


def test_a_snippet_that_comes_from_no_page_is_named(model):
    assert cited(model, "**Lockers** are open at night.") == [("Parcel", "")]


def test_an_answer_in_other_words_has_the_whole_context_as_its_source(model):
    assert {title for title, _ in cited(model, "Das Paket braucht vier Tage.")} == {"Shipping", "Returns", "Parcel"}


def test_an_answer_without_a_word_of_its_own_has_the_whole_context_as_its_source(model):
    assert len(cited(model, "Yes.")) == 3


def test_a_quoted_passage_is_led_to(model):
    context = get_context(model, "parcel")
    quoted = tuple(source for source in context.sources if source.title == "Returns")
    answer = f"> Send a parcel back within 30 days. The refund arrives on your card.\n\n— [Returns]({RETURNS})"
    assert [source.url for source in cite_quoted(model, answer, quoted, context)] == [
        f"{RETURNS}#:~:text=Send%20a%20parcel%20back%20within%2030%20days."
    ]


def test_a_quote_without_a_sentence_of_its_own_keeps_its_source(model):
    context = get_context(model, "parcel")
    assert cite_quoted(model, "> …", context.sources, context) == context.sources
