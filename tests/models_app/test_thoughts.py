"""What a reasoning LLM thinks stays out of its answer, however the text is cut into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models_app.thoughts import ThoughtFilter, without_thoughts

ANSWERS = {
    "<think>secret plan</think>\n\nWe open at 9.": "We open at 9.",
    "  \n<thinking>\nsecret\n</thinking>We open at 9.": "We open at 9.",
    "Hello.\n<think>secret</think>\nWe open at 9.": "Hello.\n\nWe open at 9.",
    "Write `<think>` before the thoughts.": "Write `<think>` before the thoughts.",
    "`<think>` opens them.": "`<think>` opens them.",
    "Put <think> in front.": "Put <think> in front.",
    "```xml\n<think>\n</think>\n```\nSo.": "```xml\n<think>\n</think>\n```\nSo.",
    "<think>secret that never ends": "",
    "<table>\n<tr>": "<table>\n<tr>",
    "a <b\n<th": "a <b\n<th",
    "": "",
}


def shown(text: str, cuts: list[int], llm_name: str = "") -> str:
    seen = ThoughtFilter(llm_name)
    borders = [0, *sorted({min(cut, len(text)) for cut in cuts}), len(text)]
    pieces = [text[start:end] for start, end in pairwise(borders)]
    return "".join(map(seen.add, pieces)) + seen.finish()


@pytest.mark.parametrize(("text", "answer"), ANSWERS.items())
@given(cuts=st.lists(st.integers(0, 60)))
def test_thoughts_are_dropped_wherever_the_pieces_are_cut(text, answer, cuts):
    assert shown(text, cuts) == answer


@given(cuts=st.lists(st.integers(0, 60)))
def test_an_llm_known_for_it_may_leave_out_the_opening_tag(cuts):
    assert shown("secret plan</think>\n\nWe open at 9.", cuts, "deepseek-r1:8b") == "We open at 9."
    assert shown("We open at 9, <b>daily</b>.", cuts, "deepseek-r1:8b") == "We open at 9, <b>daily</b>."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("secret plan</think>\n\nWe open at 9.", "We open at 9."),
        ("secret\nplan\n</think>\nWe open at 9.", "We open at 9."),
        ("End with `</think>`.", "End with `</think>`."),
        ("```\n</think>\n```", "```\n</think>\n```"),
    ],
)
def test_a_whole_answer_loses_thoughts_that_were_never_opened(text, answer):
    assert without_thoughts(text) == answer


def test_what_needs_no_judging_is_shown_at_once():
    seen = ThoughtFilter()
    assert [seen.add(piece) for piece in ("<b>We", " open\n", "<", "p> at", " 9")] == [
        "<b>We",
        " open\n",
        "",
        "<p> at",
        " 9",
    ]
