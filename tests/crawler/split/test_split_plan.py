"""A page that changed is split as the LLM sorted it before, a small page keeps its title: neither is paid for twice."""

import pytest

from crawler.split import split_page
from crawler.split.splitter import Splitter

TITLES = ("How do I pay?", "What does delivery cost?", "How do I return an order?", "Who is Ann Smith?")
FILLING = "It is so and not otherwise. " * 8
ANSWERS = (
    f"You pay by card or invoice. {FILLING}",
    f"Delivery costs 4 euros. {FILLING}",
    f"Send it back within 30 days. {FILLING}",
    f"The shop belongs to Ann Smith. {FILLING}",
)
SMALL = "## Hours\n\nThe shop opens at 9.\n\n- Monday\n- Friday\n"


def faq(*answers: str, headings: tuple = ("Payment", "Delivery", "Returns", "Owner")) -> str:
    return "\n\n".join(f"## {heading}\n\n{answer}" for heading, answer in zip(headings, answers, strict=True))


class Sorter:
    """An LLM that makes a section of each heading, with these titles, and counts how often it is asked."""

    def __init__(self, *titles: str):
        self.titles, self.calls = titles, 0

    @property
    def splitter(self) -> Splitter:
        return Splitter(self._ask)

    def _ask(self, messages, schema, answer_tokens, seconds_left, usage):
        self.calls += 1
        if "title" in schema["properties"]:
            return {"title": self.titles[min(self.calls, len(self.titles)) - 1]}
        starts = []
        lines = messages[1]["content"].split("\n[")
        for number, line in enumerate(lines, 1):
            if "] ## " in line or not starts:
                starts.append([])
            starts[-1].append(number)
        return {
            "sections": [{"title": title, "parts": parts} for title, parts in zip(self.titles, starts, strict=False)]
        }


@pytest.fixture
def before():
    sorter = Sorter(*TITLES)
    split = split_page(faq(*ANSWERS), "FAQ", 150, sorter.splitter)
    assert (split.method, sorter.calls, len(split.plan)) == ("llm", 1, 4)
    return split


def again(markdown: str, plan, *titles: str, threshold: int = 150):
    sorter = Sorter(*titles)
    return split_page(markdown, "FAQ", threshold, sorter.splitter, plan), sorter.calls


def texts(split) -> dict[str, str]:
    return {draft.prompt: draft.completion for draft in split.drafts}


def test_one_changed_answer_changes_its_own_snippet_and_asks_nobody(before):
    changed = ANSWERS[1].replace("4 euros", "5 euros")
    split, calls = again(faq(ANSWERS[0], changed, *ANSWERS[2:]), before.plan)
    assert (split.method, calls) == ("llm", 0)
    old, new = texts(before), texts(split)
    assert list(new) == list(old)
    assert [title for title in new if new[title] != old[title]] == [TITLES[1]]
    assert "5 euros" in new[TITLES[1]]
    assert split.usage == {"calls": 0, "input_tokens": 0, "output_tokens": 0}
    assert "not asked" in split.report


def test_sections_that_change_places_keep_their_titles(before):
    split, calls = again(
        faq(ANSWERS[2], ANSWERS[0], ANSWERS[1], ANSWERS[3], headings=("Returns", "Payment", "Delivery", "Owner")),
        before.plan,
    )
    assert calls == 0
    assert texts(split) == texts(before)
    assert list(texts(split)) == [TITLES[2], TITLES[0], TITLES[1], TITLES[3]]


def test_a_title_whose_facts_are_no_longer_said_is_replaced(before):
    split, calls = again(faq(*ANSWERS[:3], ANSWERS[3].replace("Ann Smith", "Bob Jones")), before.plan)
    assert calls == 0
    assert list(texts(split)) == [*TITLES[:3], "FAQ > Owner"]


def test_a_new_entry_is_a_section_under_its_own_heading(before):
    markdown = faq(
        *ANSWERS[:2], "We open at 9.", *ANSWERS[2:], headings=("Payment", "Delivery", "Hours", "Returns", "Owner")
    )
    split, calls = again(markdown, before.plan)
    assert calls == 0
    assert texts(split).pop("FAQ > Hours") == "## Hours\n\nWe open at 9."
    assert {title: text for title, text in texts(split).items() if title in TITLES} == texts(before)


def test_an_entry_that_took_anothers_place_does_not_take_its_title(before):
    markdown = faq(*ANSWERS[:3], "We open at 9.", headings=("Payment", "Delivery", "Returns", "Hours"))
    split, calls = again(markdown, before.plan)
    assert calls == 0
    assert list(texts(split)) == [*TITLES[:3], "FAQ > Hours"]


def test_what_is_gone_is_gone(before):
    split, calls = again(faq(*ANSWERS[:3], headings=("Payment", "Delivery", "Returns")), before.plan)
    assert (list(texts(split)), calls) == (list(TITLES[:3]), 0)


def test_a_page_that_is_mostly_new_is_shown_to_the_llm_again(before):
    other = tuple(answer.replace("It is so", "Now it is so") for answer in ANSWERS)
    split, calls = again(faq(*other), before.plan, *TITLES)
    assert (split.method, calls, list(texts(split))) == ("llm", 1, list(TITLES))


def test_a_plan_survives_storage_and_another_split(before):
    import json

    stored = json.loads(json.dumps(before.plan))
    first, _ = again(faq(ANSWERS[0], ANSWERS[1] + " More.", *ANSWERS[2:]), stored)
    second, calls = again(faq(*ANSWERS), first.plan)
    assert (texts(second), calls) == (texts(before), 0)


@pytest.mark.parametrize("count", [1, 3])
def test_thousands_of_parts_are_compared_in_bounded_time(count):
    plan = [{"title": "A", "parts": [[n, f"{n % 7}"] for n in range(3000)]}, {"title": "B", "parts": [[3000, "x"]]}]
    split, _ = again("\n\n".join(f"Part {n * count} is here." for n in range(3000)), plan, "Parts?", threshold=400)
    assert split.checks["uncovered"] == 0


# --- Small pages: a title only


def test_a_small_page_gets_a_question_for_its_title_once():
    sorter = Sorter("When does the shop open?")
    split = split_page(SMALL, "Hours of Acme", 1600, sorter.splitter)
    assert (split.method, list(texts(split)), sorter.calls) == ("one", ["When does the shop open?"], 1)
    changed, calls = again(SMALL.replace("at 9", "at 10"), split.plan)
    assert (list(texts(changed)), calls) == (["When does the shop open?"], 0)


def test_a_title_that_says_what_the_page_does_not_is_asked_for_once_more():
    sorter = Sorter("Does Globex open at 8?", "Does it open at 9?")
    split = split_page(SMALL, "Hours", 1600, sorter.splitter)
    assert (list(texts(split)), sorter.calls) == (["Does it open at 9?"], 2)
    kept, calls = again(SMALL.replace("at 9", "at 10"), split.plan, "When does it open?")
    assert (list(texts(kept)), calls) == (["When does it open?"], 1)


def test_where_no_title_is_true_the_pages_own_stays_and_nobody_is_asked_again():
    sorter = Sorter("Is it 4711 euros?", "Or 4712?")
    split = split_page(SMALL, "Hours", 1600, sorter.splitter)
    assert (list(texts(split)), sorter.calls, split.has_llm_failed) == (["Hours"], 2, False)
    kept, calls = again(SMALL, split.plan)
    assert (list(texts(kept)), calls) == (["FAQ"], 0)


def test_a_small_page_whose_llm_is_away_keeps_its_title_and_says_so():
    def away(messages, schema, answer_tokens, seconds_left, usage):
        raise TimeoutError("the LLM is away")

    split = split_page(SMALL, "Hours", 1600, Splitter(away))
    assert (list(texts(split)), split.has_llm_failed, split.plan) == (["Hours"], True, [])
    assert "the LLM is away" in split.report


def test_a_title_too_long_for_the_threshold_gives_way_to_the_pages_own():
    sorter = Sorter("When does the shop open on the many days of the week on which it does open at all?")
    assert list(texts(split_page(SMALL, "Hours", 27, sorter.splitter))) == ["Hours"]


def test_a_small_page_that_grew_is_sorted_anew():
    small = split_page(SMALL, "FAQ", 1600, Sorter("When does the shop open?").splitter)
    split, calls = again(faq(*ANSWERS), small.plan, *TITLES)
    assert (list(texts(split)), calls) == (list(TITLES), 1)
