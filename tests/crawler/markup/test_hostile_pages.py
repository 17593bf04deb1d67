"""Huge and hostile pages end, with their text: nothing is walked once more for each element around or beside it.

No time is measured: what was quadratic here took minutes, which the test run itself would not wait for.
"""

import pytest

from crawler.markup.convert import landmark_markdown, plain_words, to_markdown
from crawler.markup.outline import outlined
from crawler.markup.select import select_content

DEEP, MANY = 10_000, 50_000
PAGES = {
    "attributes": "<main><div " + " ".join(f"a{number}=x" for number in range(100_000)) + ">text</div></main>",
    "divs": "<main>" + "<div>" * DEEP + "text",
    "links": "<main>" + "<b><a href=x>" * DEEP + "text",
    "menus": "<nav>" * DEEP + "text",
    "buttons": "<main>text " + "<div role=button>" * DEEP,
    "labels": "<main>text " + "<label>" * DEEP + "<input>",
    "link lists": "<body>" + "<div><a href=x>y</a><a href=z>y</a>" * DEEP + "text",
    "mains and menus": "<main>text</main><nav>menu</nav>" * MANY,
    "articles": "<article>text<button>b</button></article>loose" * MANY,
    "password fields": "<div>" * 5_000 + "<input type=password>" * MANY + "text",
    "titles": "<svg>" * 5_000 + "<title></title>" * MANY + "text",
    "ruby": "<main><ruby>text" + "<rt>y" * MANY,
    "spans": "<main><table>" + "<tr><td rowspan=65000>ab<td>text" * 1_000,
    "rows": "<main><table>" + "<tr><td>1<td>text" * 100_000,
    "six megabytes": "<main>" + "<p>text of <b>the</b> <a href=/x>page</a></p>" * 140_000,
}


@pytest.mark.parametrize("html", PAGES.values(), ids=PAGES)
def test_a_huge_or_hostile_page_ends_with_its_text(html):
    content = select_content(html, "https://example.com/")
    markdown = to_markdown(content)
    assert "text" in markdown + " ".join(landmark_markdown(content))
    assert len(markdown) < 20 * len(html)


@pytest.mark.parametrize("name", ["divs", "mains and menus", "rows"])
def test_it_can_be_outlined(name):
    assert "text" in outlined(PAGES[name], "https://example.com/")


def test_what_stands_in_many_rows_is_repeated_in_so_many_columns_only():
    rows = "".join(f"<tr><td rowspan=500>cell{number}</td>" for number in range(400))
    words = plain_words(to_markdown(select_content(f"<main><table border=1>{rows}</table></main>", "https://x.test/")))
    assert set(words.split()) == {f"cell{number}" for number in range(400)}
