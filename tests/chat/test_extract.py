"""The answer without an LLM: which passages are quoted, and that they are quoted word for word."""

from dataclasses import replace

import pytest

from chat.context import Context, PackedHit
from chat.extract import MOST_QUOTES, NOTHING_FOUND, Quote, extract_answer
from chat.passages import Passage, passages_of, shortened
from models_app.retrieval import RetrievedSnippet

FILLER = "Our shop stands at the harbour, and the sea is never far away. " * 8
DELIVERY = f"""# Delivery

{FILLER}

## How long it takes

What is in stock leaves within three working days.

- Norway: nine days
- Iceland: twelve days

## What it costs

{FILLER}

| Weight | Price |
| --- | --- |
| up to 5 kg | 6 euros |
| up to 30 kg | 19 euros |
"""


def context(query: str, *texts: str, uri: str = "https://ex.test/delivery") -> Context:
    packed = [
        PackedHit(_hit(rank, f"Page {rank}", text, uri), is_used=True, tokens=9, block="")
        for rank, text in enumerate(texts, start=1)
    ]
    return Context(text="x", packed=tuple(packed), tokens=9, budget=99, mode="hybrid", query=query)


def _hit(rank: int, title: str, text: str, uri: str) -> RetrievedSnippet:
    scores = {"keyword_rank": rank, "bm25": 1.0, "semantic_rank": None, "cosine": None, "distance": None}
    return RetrievedSnippet(rank, rank, title, text, uri, token_count=9, fused_score=None, **scores)


def texts_of(context: Context) -> list[str]:
    return [quote.text for quote in extract_answer(context)]


def unquoted(part: str) -> str:
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in part.split("\n") if line.startswith(">"))


@pytest.mark.parametrize(
    ("question", "holds", "lacks"),
    [
        ("How many days to Norway?", "- Norway: nine days", "19 euros"),
        ("price of a parcel of 30 kg", "| up to 30 kg | 19 euros |", "Norway"),
        ("When does something in stock leave?", "What is in stock leaves within three working days.", "19 euros"),
    ],
)
def test_the_section_that_speaks_of_it_is_quoted_word_for_word_under_its_heading(question, holds, lacks):
    parts = texts_of(context(question, DELIVERY))
    assert holds in unquoted(parts[0]).split("\n")
    assert unquoted(parts[0]).startswith("## ")
    assert lacks not in parts[0]
    assert all(line in DELIVERY for line in unquoted(parts[0]).split("\n"))
    assert parts[0].endswith("\n\n— [Page 1](https://ex.test/delivery)")


def test_a_short_snippet_is_quoted_whole():
    text = "## Return\n\nWithin 30 days.\n\nWrite to returns@ex.test."
    assert unquoted(texts_of(context("my money again", text))[0]) == text


def test_of_a_short_snippet_the_one_passage_that_clearly_speaks_of_it_is_enough():
    text = "# Contact\n\n14 Harbour Lane.\n\n## Opening hours\n\n- Saturday: 10:00 to 15:00\n\n## Tram\n\nLine 4."
    part = texts_of(context("When are you open on Saturday?", text))[0]
    assert unquoted(part) == "## Opening hours\n\n- Saturday: 10:00 to 15:00"


def test_without_a_common_word_the_first_hits_answer_as_retrieval_ranked_them():
    parts = texts_of(context("zzz", "One.", "Two.", "Three.", "Four."))
    assert unquoted(parts[0]) == "One."
    assert len(parts) < 4


def test_a_better_passage_of_a_lower_rank_comes_first():
    parts = texts_of(context("blue lamp bulb", "Lamps are lovely.", "The blue lamp takes the bulb E14."))
    assert unquoted(parts[0]) == "The blue lamp takes the bulb E14."


def test_few_passages_are_quoted_and_none_twice():
    parts = texts_of(context("lamp", *["The lamp."] * 3, *[f"The lamp {number}." for number in range(9)]))
    assert 1 <= len(parts) <= MOST_QUOTES
    assert len({unquoted(part) for part in parts}) == len(parts)


def test_nothing_found_is_said_politely():
    nothing = Context(text="", packed=(), tokens=0, budget=99, mode="hybrid", query="q")
    assert extract_answer(nothing) == [Quote(NOTHING_FOUND)]


MENU = "- [Home](/)\n- [Prices](/prices)"


def of_the_site(context: Context) -> Context:
    """The context, its last hit being one of what the site says around its pages."""
    *packed, last = context.packed
    return replace(context, packed=(*packed, replace(last, hit=replace(last.hit, source="site"))))


def test_the_sites_menu_is_not_quoted_for_a_question_that_shares_no_word_with_it():
    assert extract_answer(of_the_site(context("Who won the football cup?", MENU))) == [Quote(NOTHING_FOUND)]
    [part] = texts_of(of_the_site(context("football cup", "We sell lamps.", MENU)))
    assert unquoted(part) == "We sell lamps."


def test_the_sites_footer_is_quoted_for_what_it_says():
    [part] = texts_of(of_the_site(context("Where is Mill Lane?", "Mill Lane 7, Tuesdays closed.")))
    assert unquoted(part) == "Mill Lane 7, Tuesdays closed."


PRICE = "The blue widget costs nine euros. The blue widget is the widget that most people buy."
RETURNS = "## Can I return what I bought?\n\nYes, within 31 days."


def follow_up(question: str, earlier: str, *texts: str) -> Context:
    return replace(context(f"{question}\n{earlier}", *texts), question=question)


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_follow_up_is_answered_by_its_own_words(place):
    texts = [f"{PRICE} In colour {number}." for number in range(3)]
    texts.insert(place, RETURNS)
    asked = follow_up("can I return it", "how much is the blue widget", *texts)
    assert unquoted(texts_of(asked)[0]) == RETURNS


def test_of_passages_with_a_follow_ups_words_the_one_on_its_topic_comes_first():
    texts = ("The red lamp: 30 days.", "The red widget: 31 days.")
    first, *_ = texts_of(follow_up("is it red", "how much is the blue widget", *reversed(texts)))
    assert unquoted(first) == "The red widget: 31 days."


def test_a_follow_up_whose_words_stand_nowhere_is_answered_by_what_it_is_about():
    texts = ("Lamps are lovely.", PRICE)
    first, *_ = texts_of(follow_up("zzz qqq", "how much is the blue widget", *texts))
    assert unquoted(first) == PRICE


def test_titles_and_addresses_cannot_break_the_link():
    odd = context("lamp", "A lamp.", uri="https://ex.test/a (b)")
    hit = odd.packed[0].hit
    object.__setattr__(hit, "title", "Lamps [new] *2*")
    assert texts_of(odd)[0].endswith("— [Lamps \\[new\\] \\*2\\*](<https://ex.test/a (b)>)")


def test_a_snippet_without_an_address_is_named_without_a_link():
    assert texts_of(context("lamp", "A lamp.", uri=""))[0].endswith("\n\n— Page 1")


def test_passages_keep_lists_tables_and_code_whole():
    code = "```\n# no heading\n\nrun it\n```"
    passages = passages_of(f"# One\n\n{code}\n\n## Two\n\n- a\n\n- b\n\n  more of b\n\nEnd.")
    assert passages == [Passage("# One", code), Passage("## Two", "- a\n\n- b\n\n  more of b\n\nEnd.")]


def test_a_long_table_keeps_its_head_and_the_rows_that_matter():
    rows = [f"| lamp {number} | {number} euros |" for number in range(200)]
    table = "\n".join(["| Lamp | Price |", "| --- | --- |", *rows])
    short = shortened(table, 300, worth=lambda row: "lamp 150 " in row)
    assert short.split("\n")[:3] == ["| Lamp | Price |", "| --- | --- |", "| lamp 150 | 150 euros |"]
    assert len(short) <= 400


def test_a_long_paragraph_is_cut_to_the_sentences_that_matter():
    text = " ".join(f"Sentence {number} is about lamps." for number in range(100))
    short = shortened(text, 200, worth=lambda sentence: "Sentence 50 " in sentence)
    assert short.startswith("… Sentence 50 is about lamps. Sentence 51")
    assert short.removeprefix("… ").removesuffix(" …") in text
    assert len(short) <= 210


def test_an_endless_word_is_not_quoted_to_its_end():
    assert len(texts_of(context("lamp", "x" * 50_000))[0]) < 2_000


def test_a_snippet_of_headings_alone_and_a_question_without_words_are_no_trouble():
    assert unquoted(texts_of(context("😀", "# Lamps"))[0]) == "# Lamps"
