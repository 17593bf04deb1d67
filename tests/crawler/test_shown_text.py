"""What a page shows, in lines, and under which anchors: links to its sentences are checked against it."""

from crawler.markup.select import select_content
from crawler.shown_text import ShownText


def shown(html: str):
    return ShownText(select_content(html, "https://acme.test/")).page()


def anchors_of(html: str) -> list[tuple[str, str]]:
    page = shown(html)
    lines = page.text.split("\n")
    return [(lines[line], anchor) for line, anchor in page.anchors]


def test_each_block_is_a_line_whatever_of_the_page_is_selected():
    page = shown(
        "<nav><a href=/>Home</a></nav><main><h1>Fees</h1><p>It  costs\n<b>4.50</b> EUR.</p>"
        "<table><tr><td>Oslo</td><td>9</td></tr></table></main><script>x</script>"
    )
    assert page.text.split("\n") == ["Home", "Fees", "It costs 4.50 EUR.", "Oslo", "9"]


def test_a_heading_has_its_own_anchor_or_one_that_stands_at_its_text():
    html = (
        '<main id="top"><p>First.</p><h2 id="fees">Fees</h2><p id="p">Much.</p><section id="returns"><h2>Returns</h2>'
        '<p>None.</p></section><h2><a name="contact"></a>Contact</h2><p>Ask.</p><h2>Nothing</h2><dl><dt id="term">Term'
        "</dt><dd>Means.</dd></dl></main>"
    )
    assert anchors_of(html) == [("Fees", "fees"), ("Returns", "returns"), ("Contact", "contact"), ("Term", "term")]


def test_lines_without_words_move_no_anchor():
    assert anchors_of("<main><p> </p><div><div></div></div><br><h2 id=a>One</h2><p></p><h3 id=b>Two</h3></main>") == [
        ("One", "a"),
        ("Two", "b"),
    ]


def test_soft_hyphens_are_not_shown():
    assert shown("<main><p>co\xadoperation <a href=/x>here</a>.</p></main>").text == "cooperation here."
