"""Pages become snippets of one subject each, none too large, and nothing of a page's text is lost on the way."""

import gzip
import json
import re
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.markup.convert import plain_words, to_markdown
from crawler.markup.select import select_content
from crawler.split import split_page
from crawler.split.checks import check_pieces
from crawler.split.headings import Piece, blocks_of, sentences_of
from crawler.split.splitter import Splitter
from crawler.web.decode import decode_text
from models_app.tokens import count_tokens

PAGE = """\
# Acme help

Welcome to Acme.

## Shipping

We ship on weekdays. An order costs 4 euros. It takes 3 days.

- Norway costs 9 euros
- Chile is not served

## Returns

Send it back within 30 days. Write to help@acme.example first.
"""


def tokens(draft):
    return count_tokens(f"{draft.prompt}\n\n{draft.completion}")


def letters(text):
    return re.sub(r"\s", "", text)


def texts(split):
    return [draft.completion for draft in split.drafts]


def titles(split):
    return [draft.prompt for draft in split.drafts]


def answering(*answers):
    """Return a splitter that gives these answers in turn (an exception is raised), and what it was asked."""
    waiting, asked = list(answers), []

    def ask(messages, schema, answer_tokens, seconds_left, usage):
        asked.append((messages, schema))
        answer = waiting.pop(0)
        if isinstance(answer, Exception):
            raise answer
        usage.calls += 1
        return answer

    return Splitter(ask), asked


def sections(*entries):
    return {"sections": [{"title": title, "parts": parts} for title, parts in entries]}


# --- One snippet, or none


def test_a_page_under_the_threshold_is_one_snippet_with_the_pages_title():
    split = split_page(f"\n{PAGE}\n", "Help", 1600)
    assert (split.method, titles(split), texts(split)) == ("one", ["Help"], [PAGE.strip()])


@pytest.mark.parametrize("markdown", ["", " \n\n "])
def test_an_empty_page_gives_no_snippet(markdown):
    assert split_page(markdown, "Help", 1600).drafts == ()


# --- By headings


def test_sections_carry_their_headings_in_the_title_without_repeating_the_pages():
    text = "It is so. " * 60
    markdown = f"# Acme help\n\n{text}\n\n## Shipping\n\n{text}\n\n### Abroad ¶\n\n{text}\n\n## Returns\n\n{text}"
    split = split_page(markdown, "Acme help", 500)
    assert split.method == "headings"
    assert list(dict.fromkeys(titles(split))) == [
        "Acme help",
        "Acme help > Shipping",
        "Acme help > Shipping > Abroad",
        "Acme help > Returns",
    ]


def test_small_sections_stand_together_and_their_headings_in_the_title():
    markdown = "\n\n".join(f"## Question {number}?\n\nAnswer {number}." for number in range(60))
    split = split_page(markdown, "FAQ", 400)
    assert len(split.drafts) < 20
    assert titles(split)[0].startswith("FAQ > Question 0? · Question 1?")


def test_more_tokens_a_question_make_fewer_snippets(shared):
    folder = shared / "data" / "extraction" / "wcxb" / "html"
    sizes = []
    for page in ("d2855", "d2861", "d2863", "d2857", "d0681"):
        html = decode_text(gzip.decompress((folder / f"{page}.html.gz").read_bytes()), "text/html")
        markdown = to_markdown(select_content(html, ""))
        sizes.append([len(split_page(markdown, page, threshold).drafts) for threshold in (800, 1600, 3200)])
    assert all(more > fewer > fewest for more, fewer, fewest in sizes), sizes


def test_a_heading_a_term_or_a_line_with_a_colon_goes_with_what_it_announces():
    text = "It is so and not otherwise. " * 12
    for announced in ("## Fees", "**Fees**", "The fees are:"):
        split = split_page(f"{text}\n\n{announced}\n\n{text}", "Page", 150)
        holder = next(text for text in texts(split) if announced in text)
        assert not holder.endswith(announced), announced


def test_sentences_are_not_cut_within_code_links_or_emphasis():
    for whole in (
        "[Read more. It helps](https://a.test/x?a=1.0)",
        "`a. b`",
        "**One. Two**",
        "![A. B](i.png)",
        "*a. b*",
    ):
        assert sentences_of(f"First. See {whole} now. Last one.") == ["First. ", f"See {whole} now. ", "Last one."]
    assert sentences_of('He said "no." Then (he left.) Then 中文。再见') == [
        'He said "no." ',
        "Then (he left.) ",
        "Then 中文。",
        "再见",
    ]


def test_blocks_hold_all_text_of_the_markdown():
    markdown = "# A\n\n[ref]: https://a.test\ntext\n\n- a\n\n  b\n***\n```\nc"
    assert [(block.kind, block.text) for block in blocks_of(markdown)] == [
        ("heading", "# A"),
        ("text", "[ref]: https://a.test"),
        ("text", "text"),
        ("list", "- a\n\n  b"),
        ("text", "***"),
        ("code", "```\nc"),
    ]


def test_case_t05_hashes_in_code_are_no_headings(case):
    blocks = blocks_of(case("T05")["input"]["markdown"])
    headings = [block.text.lstrip("# ") for block in blocks if block.kind == "heading"]
    assert headings == case("T05")["expected"]["headings"]
    assert [block.kind for block in blocks].count("code") == 3


def test_case_t06_what_has_no_place_to_cut_is_cut_all_the_same(case):
    markdown = "Intro line.\n\n" + "Qm9v" * 7500 + "\n\nMiddle line.\n\n" + "word " * 3000 + "last-word"
    limit = case("T06")["input"]["max_tokens"]
    split = split_page(markdown, "Page", limit)
    assert max(map(tokens, split.drafts)) <= limit
    assert letters("".join(texts(split))) == letters(markdown)


def test_case_t08_a_table_is_cut_between_rows_and_repeats_its_head(case):
    markdown = case("T08")["input"]["markdown"]
    split = split_page(markdown, "Page", 36)
    tables = [text[text.index("| City") :] for text in texts(split) if "| City" in text]
    assert len(tables) > 1
    assert all(table.startswith("| City | Fee |\n| --- | --- |\n| ") for table in tables)
    rows = [line for table in tables for line in table.split("\n")[2:]]
    assert rows == ["| Oslo | 4 |", "| Rome | 5 |", "| Lima | 6 |", "| Bonn | 7 |"]
    assert "".join(texts(split)).count("All in EUR.") == 1
    assert all("Rates" in draft.prompt for draft in split.drafts)


@pytest.mark.parametrize("end", ["\n```", ""])
def test_code_is_cut_at_line_ends_between_fences_of_its_own(end):
    lines = [f"line {number} of the code" for number in range(200)]
    split = split_page("```sh\n" + "\n".join(lines) + end, "Page", 300)
    assert all(text.startswith("```sh\n") and text.endswith("\n```") for text in texts(split))
    assert [line for text in texts(split) for line in text.split("\n")[1:-1]] == lines


def test_case_t12_the_title_counts(case):
    path, limit = case("T12")["input"]["heading_path"], case("T12")["input"]["max_tokens"]
    markdown = "\n\n".join(f"{'#' * level} {heading}" for level, heading in enumerate(path, 1)) + "\n\n" + "item " * 600
    split = split_page(markdown, "The handbook of Acme, edition of 2026", limit)
    assert max(map(tokens, split.drafts)) <= limit
    assert " ".join(texts(split)).split().count("item") == 600


@pytest.mark.parametrize("title", ["Very long title " * 40, "很长的标题" * 60])
def test_a_title_leaves_room_for_the_text(title):
    split = split_page("word " * 500, title, 60)
    assert max(map(tokens, split.drafts)) <= 60
    assert len(split.drafts) < 40


_MARKDOWN = st.lists(
    st.one_of(
        st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), st.sampled_from(["w w", "w"])),
        st.integers(1, 60).map(lambda count: "w w w w. " * count),
        st.integers(1, 30).map(lambda count: "- w w w\n" * count),
        st.integers(1, 40).map(lambda count: "| w | w |\n| --- | --- |\n" + "| w | w w |\n" * count),
        st.integers(1, 40).map(lambda count: "```\n" + "w w\n" * count + "```"),
        st.integers(1, 400).map(lambda count: "w" * count),
        st.sampled_from(["> w\n> w", "---", "**w**", "w:", "w中文。w", "[w. w](https://a.test/w)"]),
    ),
    max_size=12,
).map("\n\n".join)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(_MARKDOWN, st.sampled_from([40, 120, 400]))
def test_every_word_is_there_in_order_and_no_snippet_is_too_large(markdown, threshold):
    for number in range(markdown.count("w")):
        markdown = markdown.replace("w", f"x{number}x", 1)
    split = split_page(markdown, "Page", threshold)
    assert all(tokens(draft) <= threshold for draft in split.drafts)
    found = iter(letters("".join(texts(split))))
    assert all(letter in found for letter in letters(markdown))
    assert len(letters("".join(texts(split)))) <= len(letters(markdown)) or "| " in markdown or "```" in markdown


def test_no_letter_of_real_pages_is_lost(shared):
    folder = shared / "data" / "extraction" / "wcxb"
    with gzip.open(folder / "truth.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file][::40]
    for row in rows:
        html = decode_text(gzip.decompress((folder / row["file"]).read_bytes()), "text/html")
        markdown = to_markdown(select_content(html, row["url"] or ""))
        split = split_page(markdown, row["title"] or "", 400)
        found = iter(re.sub(r"[\W_]", "", "".join(map(plain_words, texts(split)))))
        assert all(letter in found for letter in re.sub(r"[\W_]", "", plain_words(markdown))), row["id"]
        assert all(tokens(draft) <= 400 for draft in split.drafts)


def test_every_split_is_checked_against_the_page():
    split = split_page(PAGE, "Help", 60)
    assert split.checks == {"facts": 8, "missing": 0, "invented": 0, "sentences": 11, "uncovered": 0}
    assert split_page(PAGE, "Help", 1600).checks == split.checks


def test_what_a_section_lost_or_made_up_shows_in_the_checks():
    pieces = [Piece("Is it 7 euros?", PAGE.replace("30 days", "31 days").replace("An order costs 4 euros.", ""))]
    checks = check_pieces(PAGE, "Help", pieces)
    assert (checks.missing, checks.invented, checks.uncovered) == (2, 2, 2)


# --- By subject


def test_the_llm_sorts_numbered_parts_and_the_text_stays_the_pages():
    splitter, asked = answering(
        sections(
            ("How do I reach Acme?", [1, 2, 11]),
            ("What does delivery cost?", [3, 4, 5, 6, 7, 8]),
            ("How do I return an order?", [9, 10]),
        )
    )
    long = PAGE.replace("on weekdays.", "on weekdays" + " and on other days" * 25 + ".").replace(
        "30 days.", "30 days" + " or a bit more" * 25 + "."
    )
    split = split_page(long, "Help", 200, splitter)
    messages, schema = asked[0]
    shown = messages[1]["content"]
    assert "[7] - Norway costs 9 euros" in shown
    assert schema["properties"]["sections"]["maxItems"] <= 60
    assert split.method == "llm"
    assert titles(split) == ["How do I reach Acme?", "What does delivery cost?", "How do I return an order?"]
    assert letters("".join(sorted(letters("".join(texts(split)))))) == "".join(sorted(letters(long)))


PLANS = "\n\n".join(
    f"{name} costs {price} euros. {'It is for teams. ' * 20}" for name, price in (("Solo", 3), ("Duo", 7))
)


def test_a_part_left_out_is_asked_for_once_and_told_which():
    splitter, asked = answering(
        sections(("Plans?", [1])), sections(("What is Solo?", [*range(1, 22)]), ("What is Duo?", [*range(22, 43)]))
    )
    split = split_page(PLANS, "Plans", 120, splitter)
    assert (split.method, set(titles(split))) == ("llm", {"What is Solo?", "What is Duo?"})
    assert "2, 3, 4" in asked[1][0][-1]["content"]
    assert "asked twice" in split.report
    assert letters("".join(texts(split))) == letters(PLANS)


@pytest.mark.parametrize(
    "answer",
    [
        sections(("What is Solo?", [*range(1, 16)]), ("What is Duo?", [*range(22, 30)])),
        sections(("What is Solo?", [1, 1, *range(2, 20), 0, 99, "2", True]), ("What is Duo?", [22, 1, 23])),
        {"sections": [{"title": "What is Solo?", "parts": [*range(3, 30)]}, "junk", {"title": 7, "parts": [2]}, {}]},
    ],
)
def test_a_part_left_out_twice_is_added_beside_the_part_before_it(answer):
    splitter, asked = answering(answer, answer)
    split = split_page(PLANS, "Plans", 150, splitter)
    assert len(asked) == 2
    assert split.method == "llm"
    assert "left out" in split.report
    assert sorted(letters("".join(texts(split)))) == sorted(letters(PLANS))


@pytest.mark.parametrize(
    "answer",
    [{}, {"sections": []}, {"sections": "x"}, [], None, "text", TimeoutError("too slow"), sections(("Plans?", [1, 2]))],
)
def test_without_a_usable_answer_the_headings_split_the_page_and_the_report_says_so(answer):
    splitter, _ = answering(answer, answer)
    split = split_page(PLANS, "Plans", 120, splitter)
    assert split.method == "headings"
    assert split.drafts == split_page(PLANS, "Plans", 120).drafts
    assert "LLM" in split.report
    assert split.has_llm_failed


def test_what_asking_again_does_not_mend_is_mended_here():
    half_right = sections(("What is Solo?", [*range(1, 22)]), ("Is Duo 8 euros?", [*range(23, 43)]))
    splitter, _ = answering(half_right, TimeoutError("too slow"))
    split = split_page(PLANS, "Plans", 120, splitter)
    assert split.method == "llm"
    assert set(titles(split)) == {"What is Solo?", "Plans"}
    assert all(said in split.report for said in ("too slow", "left out 1 parts", "were replaced: 1"))
    assert letters("".join(texts(split))) == letters(PLANS)


def test_a_page_has_one_deadline_over_all_that_is_asked_about_it():
    left = []

    def ask(messages, schema, answer_tokens, seconds_left, usage):
        left.append(seconds_left)
        time.sleep(0.06)
        return sections(("Plans?", [1]))

    split = split_page(PLANS, "Plans", 120, Splitter(ask, page_seconds=0.05))
    assert len(left) == 1
    assert left[0] <= 0.05
    assert (split.method, split.has_llm_failed) == ("headings", True)


def test_what_the_llm_is_asked_for_has_room_for_its_numbers_and_titles_but_not_for_the_page():
    rooms = []

    def ask(messages, schema, answer_tokens, seconds_left, usage):
        rooms.append(answer_tokens)
        count = schema["properties"]["sections"]["items"]["properties"]["parts"]["items"]["maximum"]
        title = "Which of the plans that are offered is the right one for a shop of more than one person?"
        answer = sections(*((title, [number]) for number in range(1, min(count, 60) + 1)))
        assert count_tokens(json.dumps(answer, indent=1)) < answer_tokens
        return sections((title, [*range(1, count + 1)]))

    split_page("\n\n".join([PLANS] * 20), "Plans", 120, Splitter(ask, window_tokens=100_000))
    split_page("\n\n".join(["word " * 399] * 20), "Words", 120, Splitter(ask, window_tokens=100_000))
    assert rooms[1] < 20 * 60


def test_a_title_may_not_say_a_number_that_its_section_does_not():
    parts = [*range(1, 22)], [*range(22, 43)]
    lying = sections(("Is Solo 3 euros?", parts[0]), ("Is Duo 5 euros or ann@acme.example?", parts[1]))
    splitter, asked = answering(lying, lying)
    assert list(dict.fromkeys(titles(split_page(PLANS, "Plans", 120, splitter)))) == ["Is Solo 3 euros?", "Plans"]
    assert "“Is Duo 5 euros or ann@acme.example?” says ann@acme.example, 5 euros" in asked[1][0][-1]["content"]


def test_a_page_larger_than_the_window_goes_to_the_llm_in_parts():
    shown = []

    def ask(messages, schema, answer_tokens, seconds_left, usage):
        count = schema["properties"]["sections"]["items"]["properties"]["parts"]["items"]["maximum"]
        shown.append(count_tokens(messages[1]["content"]))
        return sections(("Which plans are there?", [*range(1, count + 1)]))

    split = split_page(PLANS * 5, "Plans", 300, Splitter(ask, window_tokens=500))
    assert len(shown) > 1
    assert max(shown) < 400
    assert letters("".join(texts(split))) == letters(PLANS * 5)
    assert max(map(tokens, split.drafts)) <= 300


@pytest.mark.parametrize("number", [0, 1])
def test_case_t10_a_broken_or_incomplete_answer_loses_nothing(case, number):
    markdown = case("T10")["input"]["page_markdown"]
    broken, incomplete = ValueError("the answer was cut off"), sections(("A", [1, 2]), ("C", [5, 6]))
    reply = (broken, incomplete)[number]
    splitter, _ = answering(reply, reply)
    split = split_page(markdown, "Prices", 12, splitter)
    assert all(fact in "\n".join(texts(split)) for fact in case("T10")["expected"]["snippets_together_contain"])
    assert letters("".join(texts(split))) == letters(markdown)
    assert split.report


_ANSWER_PARTS = st.lists(
    st.one_of(st.integers(-2, 60), st.booleans(), st.text(max_size=3), st.none(), st.floats(), st.just([1])),
    max_size=50,
)
_ANSWERS = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.builds(
        lambda entries: {"sections": entries},
        st.lists(
            st.one_of(
                st.fixed_dictionaries(
                    {"parts": _ANSWER_PARTS},
                    optional={"title": st.sampled_from(["What is Solo?", "Is it 99 euros?", "", None, 7, "t" * 999])},
                ),
                st.integers(),
                st.fixed_dictionaries({"parts": st.permutations(range(1, 43)).map(list)}),
            ),
            max_size=5,
        ),
    ),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(_ANSWERS, _ANSWERS)
def test_whatever_an_llm_answers_every_letter_is_there_once_and_nothing_is_made_up(first, second):
    splitter, _ = answering(first, second)
    split = split_page(PLANS, "Plans", 120, splitter)
    assert sorted(letters("".join(texts(split)))) == sorted(letters(PLANS))
    assert (split.checks["missing"], split.checks["invented"], split.checks["uncovered"]) == (0, 0, 0)
    assert all(tokens(draft) <= 120 for draft in split.drafts)
    again = split_page(PLANS, "Plans", 120, splitter, split.plan)
    assert sorted(letters("".join(texts(again)))) == sorted(letters(PLANS))


def test_a_list_within_an_entry_is_cut_between_its_lines():
    markdown = "- All of them\n" + "\n".join(f"  - Entry {number} of Ann Smith. It is so." for number in range(200))
    split = split_page(markdown, "List", 120)
    assert split.checks["missing"] == 0
    assert all(line.endswith("It is so.") for text in texts(split) for line in text.split("\n")[1:])
    assert all(tokens(draft) <= 120 for draft in split.drafts)
