"""Terms: what a reader would call the same word meets in the index, and what is another thing does not."""

import threading
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models_app import terms
from models_app.stop_words import LANGUAGES
from models_app.terms import ENDING_MARK, EXACT_MARK, MAX_QUESTION_TERMS, TERM_SYMBOLS, index_terms, question_terms


def meet(question: str, text: str) -> bool:
    """Whether the question and the text share a term."""
    return not set(question_terms(question)).isdisjoint(index_terms(text))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("refund", "Refunds are paid in a week"),
        ("paying", "what you PAID and what you pay"),
        ("write json", "write_json_atomic"),
        ("clone depth", "Set CIRRUS_CLONE_DEPTH to 1"),
        ("clone depth", "cloneDepth: 1"),
        ("http request", "an XMLHttpRequest object"),
        ("CIRRUS_CLONE_DEPTH", "cirrus-clone-depth"),
        ("err1234", "Code ERR-1234"),
        ("ERR 1234", "Code ERR-1234"),
        ("iphone 15", "the iPhone15 case"),
        ("iphone15", "a case for the iPhone 15"),
        ("login", "your login"),
        ("how do I log in", "the login page"),
        ("email", "by e-mail"),
        ("E-Mails", "by e-mail"),
        ("usa", "shipped to the U.S.A."),
        ("ann@acme.test", "write to ann@acme.test."),
        ("acme", "write to ann@acme.test"),
        ("O'Brien", "OBrien"),
        ("customers", "the customer’s rights"),
        ("R&D", "our R&D team"),
        ("école", "l'école"),
        ("Asp.Net", "ASP.NET"),
        ("nodejs", "Node.js 20"),
        ("gitignore", "the .gitignore file"),
    ],
)
def test_forms_of_one_word_meet(question, text):
    assert meet(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("C++", "C# and C"),
        ("C#", "C++ and C"),
        ("C", "C++ and C#"),
        ("F#", "the letter F"),
        ("Java", "JavaScript"),
        ("git", "GitHub"),
        ("2.10.3", "2103"),
        ("2.1", "2.10"),
        ("1-2", "12"),
        ("19.99", "1999"),
        ("が", "か"),
        ("й", "и"),
        ("猫", "東京都の天気"),
        ("किताब", "कताब"),
    ],
)
def test_other_things_do_not_meet(question, text):
    assert not meet(question, text)


@pytest.mark.parametrize(
    "spellings",
    [
        ["1000", "1,000", "1.000", "1'000", "1\u00a0000", "1\u202f000", "１,０００", "١٠٠٠"],
        ["2500.75", "2,500.75", "2.500,75", "2'500.75"],
        ["100000", "1,00,000", "100,000"],
        ["19.99", "19,99", "$19.99", "19.99€"],
        ["25", "25.00", "25,00", "(25)"],
        ["2.10.3", "v2.10.3", "(2.10.3)"],
        ["creme", "Crème", "CRE\u0300ME", "ｃｒｅｍｅ"],
        ["strasse", "Straße", "STRASSE"],
        ["viet", "Việt", "VIỆT"],
        ["duong", "Đường"],
        ["smorrebrod", "Smørrebrød"],
        ["istanbul", "İSTANBUL", "ıstanbul"],
        ["sitewise", "Sitewise™", "SITEWISE®"],
        ["zusammenarbeit", "Zusammen\u00adarbeit", "Zusammen\u200barbeit"],
        ["ёлка", "елка"],
        ["σοφος", "ΣΟΦΟΣ", "σοφός"],
        ["한국어", unicodedata.normalize("NFD", "한국어")],
        ["ガイド", "ｶﾞｲﾄﾞ"],
        ["כתב", "כָּתַב"],
        ["كتاب", "كِتَاب", "كتـاب"],
    ],
)
def test_spellings_of_one_thing_share_all_their_terms(spellings):
    first = set(index_terms(spellings[0]))
    assert first
    for spelling in spellings[1:]:
        assert first <= set(index_terms(spelling)), spelling


def test_an_exact_spelling_has_a_term_of_its_own():
    assert set(index_terms("refund")) < set(index_terms("refund refunds"))
    assert f"{EXACT_MARK}refunds" not in index_terms("refund")


def test_an_identifier_keeps_its_whole_beside_its_parts():
    found = index_terms("write_json_atomic")
    assert f"{EXACT_MARK}writejsonatomic" in found
    assert {f"{EXACT_MARK}{part}" for part in ("write", "json", "atomic")} <= set(found)


def test_vowel_signs_do_not_cut_hindi_words():
    assert [term for term in index_terms("हिन्दी भाषा") if term.startswith(EXACT_MARK)] == ["=हिन्दी", "=भाषा"]


def test_scripts_without_blanks_give_pairs_and_single_characters():
    assert index_terms("退款需要") == ["退款", "款需", "需要", "退", "款", "需", "要"]
    assert question_terms("退款需要") == ["退款", "款需", "需要"]
    assert question_terms("猫") == ["猫"]
    assert meet("ราคา", "ราคาสินค้า")
    assert question_terms("iPhone15ケース")[:2] == ["iphone15", "iphon"]


def test_a_link_gives_its_text_and_not_its_address():
    found = index_terms('See [the prices](https://ex.test/a_(b).png "Title") and ![a chart](/img/chart-7.png)')
    assert {"=prices", "=chart"} <= set(found)
    assert not {"=https", "=test", "=png", "=title", "7"} & set(found)
    assert "=https" in index_terms("Write to https://ex.test/a")  # an address that a reader sees is text


def test_markdown_escapes_do_not_cut_words():
    assert index_terms(r"write\_json\_atomic 2\.10\.3") == index_terms("write_json_atomic 2.10.3")


def test_emoji_and_punctuation_give_no_terms():
    for text in [
        '"',
        "'",
        "*",
        "^",
        "(",
        "?",
        "—",
        "   ",
        "",
        "\\",
        "😀",
        "❤️",
        "👩‍👩‍👧",
        "\u0301",
        "...",
        "@",
        "#",
        "++",
    ]:
        assert question_terms(text) == [], text


def test_stop_words_are_left_out_of_questions_only():
    assert "=the" in index_terms("the refund")
    assert question_terms("What is the refund?") == question_terms("refund")


def test_a_question_of_nothing_but_stop_words_keeps_them():
    assert {"and", "or", "not"} <= set(question_terms("AND OR NOT"))
    assert question_terms("NOT") == ["not", "=not"]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("Wie war das mit dem Umbau?", {"umbau"}),
        ("the cost of war", {"cost", "war"}),
        ("MIT license", {"mit", "license"}),
        ("Comment puis-je annuler ma commande ?", {"annuler", "commande"}),
        ("post a comment", {"post", "comment"}),
        ("¿Cuánto cuesta el envío a Canarias?", {"cuesta", "envio", "canarias"}),
        ("Quanto costa la spedizione?", {"costa", "spedizione"}),
        ("Quais são os prazos de entrega?", {"prazos", "entrega"}),
        ("Hoeveel kost de verzending?", {"kost", "verzending"}),
        ("Qu'est-ce que l'assurance ?", {"lassurance", "assurance"}),
        ("Сколько стоит доставка?", {"стоит", "доставка"}),
        ("कितना समय लगता है", {"समय", "लगता"}),
    ],
)
def test_the_stop_words_are_those_of_the_questions_language(question, kept):
    exact = [term for term in question_terms(question) if term.startswith(EXACT_MARK)]
    assert {term[1:] for term in exact if not term.startswith(ENDING_MARK)} == kept


def test_stop_words_are_written_as_the_chunks_of_a_question_are():
    for name, language in LANGUAGES.items():
        for word in language.sure | language.shared:
            assert terms._plain_word(word) == word, (name, word)


def test_a_long_question_keeps_a_root_of_as_many_words_as_there_is_room_for():
    words = [f"{first}{second}{first}ible" for first in "bcdfghjklm" for second in "aeiouy"]
    found = question_terms(" ".join(words) + " " + " ".join(word[::-1] for word in words))
    assert len(found) == MAX_QUESTION_TERMS
    assert not any(term.startswith(EXACT_MARK) for term in found)


def test_the_same_text_gives_the_same_terms_in_all_threads():
    words = [
        f"{first}{second}ations" for first in "bcdfgklmprst" for second in ("ider", "oper", "unic", "esper", "ander")
    ]
    expected = {word: terms._root(word) for word in words}
    wrong = []

    def stem_all():
        wrong.extend(word for _ in range(20) for word in words if terms._root(word) != expected[word])

    threads = [threading.Thread(target=stem_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def is_safe(term: str) -> bool:
    return (
        bool(term)
        and len(term) <= 65
        and all(unicodedata.category(character)[0] in "LMN" or character in TERM_SYMBOLS for character in term)
    )


TRICKY_TEXT = st.text(alphabet="aBc09.,'’-_+#&@ ()[]\\=éßह退١İıﬁ½™\u00a0\u200d", max_size=40)


@settings(max_examples=300)
@given(st.text() | TRICKY_TEXT)
@example("A0,0 .A_ _A+ 0,0A0 0'0,0 1,000.5,5")
def test_any_text_gives_terms_that_the_tokenizer_of_the_index_leaves_alone(text):
    found = index_terms(text)
    assert all(map(is_safe, found))
    assert found == index_terms(text)
    asked = question_terms(text)
    assert len(asked) == len(set(asked)) <= MAX_QUESTION_TERMS


@settings(max_examples=300)
@given(TRICKY_TEXT)
def test_a_text_meets_itself(text):
    assert meet(text, text) == bool(index_terms(text))


@pytest.mark.parametrize(
    "piece", ["](", "](a", '](a "', "a.", "a_", "+", "1,", "\\(", "aB", "退", "'", "a+b", "é", "a"]
)
def test_a_megabyte_of_anything_gives_terms(piece):
    text = piece * (1_000_000 // len(piece))
    assert all(map(is_safe, index_terms(text)))
    assert len(question_terms(text)) <= MAX_QUESTION_TERMS
