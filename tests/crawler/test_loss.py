"""The loss meter counts what a page shows, and tells what of it a step let fall: by itself, not by the converter."""

import gzip
import json

import pytest

from crawler.loss import cells_of, facts_of, loss_at_reading, loss_at_splitting
from crawler.markup.convert import landmark_markdown, to_markdown
from crawler.markup.select import select_content
from crawler.shown_text import ShownText
from crawler.web.decode import decode_text

PAGE = """\
<title>Fees</title><body><nav><a href="/a">Home</a><a href="/b">Plans</a></nav>
<main><h1>Fees of Acme</h1><p>We at <b>Acme</b> Ltd charge <i>1\xa0200</i> € from 3&nbsp;May 2026. Call +49 30 1234567
or write to ann@acme.example; see <a href="https://acme.example/fees?x=1">our list</a> and run
<code>acme --pay</code>.</p>
<form><button>Send</button><select><option>Norway</option></select></form>
<table><tr><th>City</th><th>Fee</th></tr><tr><td>Oslo</td><td>4.50</td></tr></table>
<pre>x = 1\n  * 2 | 3</pre><p>10<sup>6</sup> of them on the 1<sup>st</sup>, co\xadoperation.</p>
<script>var lost = 99;</script></main>
<footer>© 2026 Acme</footer></body>"""


def read(html: str):
    content = select_content(html, "https://acme.example/")
    return ShownText(content), to_markdown(content), landmark_markdown(content)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("It costs $4.50 or 1 200 EUR.", {"$4.50", "1 200 EUR"}),
        ("It costs 4,50 € now, 20 % less", {"4,50 €", "20 %"}),
        ("It starts on 3 May 2026 and ends on 2026-06-01", {"3 May 2026", "2026-06-01"}),
        ("Call +49 (30) 123 45-67", {"+49 (30) 123 45-67"}),
        ("Write to ann.b@acme.example.", {"ann.b@acme.example"}),
        ("See https://acme.example/a?b=1, or [this](https://x.test/y)", {"https://acme.example/a?b=1", "https://x.test/y"}),
        ("Run `acme pay` at 10:30 on a t3 with v1.2.3", {"acme pay", "10:30", "t3", "v1.2.3"}),
        ("The shop of Ann Smith is near the Baltic Sea. Open daily.", {"Ann Smith", "Baltic Sea"}),
        ("1. one\n2. two\n\n- [x] **Acme** `1. x`", {"1. x", "1"}),
        ("\\*7\\* of 10\\.5", {"7", "10.5"}),
        ("価格は500円です", {"価格は500円です"}),
        ("", set()),
    ],
)  # fmt: skip
def test_facts_are_what_an_answer_must_not_get_wrong(text, facts):
    assert set(facts_of(text)) == facts


def test_cells_are_those_of_tables_outside_of_code():
    markdown = "| City | Fee |\n| --- | ---: |\n| Oslo |  |\n| a \\| b | 4 |\n\n```\n| no | cell |\n```"
    assert cells_of(markdown) == {"City": 1, "Fee": 1, "Oslo": 1, "a b": 1, "4": 1}


def test_a_page_that_is_read_whole_has_lost_nothing():
    loss = loss_at_reading(*read(PAGE))
    assert (loss["lost_words"], loss["lost_facts"], loss["lost_cells"]) == (0, [], 0)
    assert loss["page"]["cells"] == loss["selected"]["cells"] == 4
    assert loss["moved"]["words"] == 4
    assert loss["page"]["words"] == loss["selected"]["words"] + loss["moved"]["words"]


def test_what_a_converter_drops_shows():
    shown, markdown, landmarks = read(PAGE)
    loss = loss_at_reading(shown, markdown.replace("4.50", "").replace("ann@", ""), landmarks)
    assert (loss["lost_words"], loss["lost_cells"]) == (3, 1)
    assert sorted(loss["lost_facts"]) == ["4.50", "ann@acme.example"]
    assert loss_at_reading(shown, markdown, ())["lost_facts"] == ["2026", "Plans", "Acme"]


def test_a_number_that_changed_is_lost_though_its_digits_stand():
    shown, markdown, landmarks = read("<main><p>It costs 5 euros in all of our many shops, 15 of them.</p></main>")
    assert loss_at_reading(shown, markdown.replace(" 5 ", " 51 "), landmarks)["lost_facts"] == ["5 euros"]


def test_splitting_adds_its_own_loss_and_what_moved_to_the_site():
    shown, markdown, landmarks = read(PAGE)
    reading = loss_at_reading(shown, markdown, landmarks)
    whole = loss_at_splitting(reading, markdown, markdown, [markdown])
    assert whole["lost_words"] == whole["lost_fact_count"] == 0
    assert whole["snippets"]["words"] == reading["selected"]["words"]
    short = loss_at_splitting(reading, markdown, markdown, [markdown.replace("| Oslo | 4.50 |", "")])
    assert (short["lost_facts"], short["lost_cells"]) == (["4.50"], 2)
    moved = loss_at_splitting(reading, f"{markdown}\n\nCookies are fine", markdown, [markdown])
    assert moved["moved"]["words"] == reading["moved"]["words"] + 3


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "1 " * 100_000,
        "](" * 100_000,
        "![" * 100_000,
        "`" * 99_999,
        "```x\n" * 9999,
        "| a " * 99_999,
        "*" * 99_999,
        "> " * 9999,
    ],
)
def test_text_of_any_kind_is_counted_in_bounded_time(text):
    assert facts_of(text) is not None


def test_pages_that_are_converted_whole_lose_nothing(shared):
    folder = shared / "data" / "extraction" / "wcxb"
    with gzip.open(folder / "truth.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file][::60]
    clean = 0
    for row in rows:
        html = decode_text(gzip.decompress((folder / row["file"]).read_bytes()), "text/html")
        shown, markdown, landmarks = read(html)
        loss = loss_at_reading(shown, markdown, landmarks)
        clean += loss["lost_words"] == 0
        assert loss["page"]["words"] <= sum(loss[step]["words"] for step in ("selected", "moved")) + loss["lost_words"]
    assert clean >= len(rows) / 3, (clean, len(rows))  # on the others the author's main part leaves out some text
