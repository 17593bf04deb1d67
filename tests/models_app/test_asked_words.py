"""What an explanation says of each word of a question: where the snippet has it, and in which form."""

import pytest

from models_app.asked_words import AskedWord, asked_words
from models_app.index.explain import TermShare, term_shares
from tests.models_app.index.teaching import question, teach


@pytest.fixture
def told(support):
    """Return the function that tells of each word of a question in snippet 1, by its spelling."""

    def tell(text: str) -> dict[str, AskedWord]:
        shares = term_shares(question(support, text), 1)
        return {word.word: word for word in asked_words(text, shares)}

    return tell


def test_a_word_that_only_ends_a_compound_is_told_as_such(support, told):
    teach(support, {1: ("Versichertenkarte", "Die Versichertenkarte kommt mit der Post."), 2: "Eine Karte der Stadt."})
    word = told("Wo ist meine Karte?")["Karte"]
    assert word.is_only_ending
    assert not word.is_as_spelled
    assert (word.in_title, word.in_text) == (1, 1)
    assert word.points > 0


def test_a_word_counts_beside_the_compounds_it_ends(support, told):
    teach(support, {1: "Die Karte, auch Versichertenkarte oder Gesundheitskarte.", 2: "Post"})
    word = told("Karte")["Karte"]
    assert (word.is_as_spelled, word.is_only_ending, word.in_text) == (True, False, 3)


def test_a_word_of_another_form_is_no_ending(support, told):
    teach(support, {1: "Parcels are returned.", 2: "Prices"})
    word = told("returning parcels")["returning"]
    assert (word.is_as_spelled, word.is_only_ending, word.in_text) == (False, False, 1)


def test_what_the_snippet_lacks_is_neither(support, told):
    teach(support, {1: "Post", 2: "Karte"})
    word = told("Karte")["Karte"]
    assert not (word.is_as_spelled or word.is_only_ending or word.is_in_snippet)


def test_names_and_numbers_have_one_spelling(support, told):
    teach(support, {1: "Written in C++ 20", 2: "other"})
    assert all(word.is_as_spelled for word in told("C++ 20").values())


def test_the_points_of_the_words_add_up_to_all_points(support, told):
    teach(support, {1: "Die Versichertenkarte: log in to ship_date, 退款 政策", 2: "Karte"})
    text = "Karte login ship_date 退款 log in"
    shares = term_shares(question(support, text), 1)
    assert sum(word.points for word in told(text).values()) == pytest.approx(sum(share.points for share in shares))


def test_an_ending_without_its_word_is_told_with_dots():
    [word] = asked_words("", [TermShare("=-kart", 3, 1.0, 0, 2, 0.5)])
    assert (word.word, word.is_only_ending, word.in_text) == ("…kart", True, 2)
