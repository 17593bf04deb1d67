"""What a page's elements become in Markdown, and that none of its text is lost on the way."""

import re

import pytest
from bs4 import BeautifulSoup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from crawler.markup.convert import landmark_markdown, plain_words, to_markdown
from crawler.markup.select import select_content

COMMONMARK = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def convert(html, images=True):
    return to_markdown(select_content(html, "https://example.com/help/page"), images)


def table_cells(markdown):
    """Return the cells' texts of each row of the only table, as a reader of Markdown finds them."""
    rows = []
    for token in COMMONMARK.parse(markdown):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            rows[-1].append(token.content)
    return rows


# --- Real-world cases


def test_case_h02_blanks_move_out_of_the_markers(case):
    markdown = convert(case("H02")["input"]["html"])
    assert markdown in case("H02")["expected"]["equals_any"]
    assert plain_words(markdown) == "Fees are never refunded after day 14."


def test_case_h04_code_with_a_fence_in_it_gets_a_longer_fence(case):
    expected = case("H04")["expected"]
    markdown = convert(case("H04")["input"]["html"])
    blocks = COMMONMARK.parse(markdown)
    assert [block.content for block in blocks] == [expected["commonmark_blocks"][0]["content"]]
    assert re.search(expected["regex"], markdown)
    assert "\\`" not in markdown


@pytest.mark.parametrize("number", ["H05", "H12", "C01", "C09"])
def test_cases_with_one_right_text(case, number):
    assert convert(case(number)["input"]["html"]) == case(number)["expected"]["equals"]


def test_case_h08_spanning_cells_leave_the_others_in_their_columns(case):
    assert table_cells(convert(case("H08")["input"]["html"])) == [
        ["Region", "Carrier", "Days"],
        ["EU", "PostX", "2"],
        ["EU", "ShipY", "4"],
        ["Elsewhere", "", "9"],
    ]


def test_case_h09_numbers_are_those_the_reader_sees(case):
    lines = convert(case("H09")["input"]["html"]).split("\n")
    assert [line for line in lines if line] == case("H09")["expected"]["lines_in_order"]


def test_case_h10_a_row_right_in_a_cell_keeps_its_text(case):
    assert convert(case("H10")["input"]["html"]) == "Your code is 4417"


def test_case_h11_summaries_become_headings_at_their_depth(case):
    markdown = convert(case("H11")["input"]["html"])
    position = 0
    for pattern in case("H11")["expected"]["regex_in_order"]:
        found = re.compile(pattern).search(markdown, position)
        assert found, pattern
        position = found.end()
    assert "## Can I" in markdown
    assert "### And billing?" in markdown


def test_case_h13_code_is_not_escaped_and_names_do_not_turn_bold(case):
    expected = case("H13")["expected"]
    markdown = convert(case("H13")["input"]["html"])
    assert all(part in markdown for part in expected["contains"])
    assert not any(part in markdown for part in expected["not_contains"])
    assert plain_words(markdown) == expected["commonmark_text"]


# --- Headings and accordions


def test_a_summary_stands_one_level_below_its_section_and_what_follows_does_not():
    html = (
        "<h3>FAQ</h3><details><summary>One?</summary><h3>Note</h3>Yes</details>"
        "<details><summary>Two?</summary>No</details><h4>Next</h4>"
    )
    assert convert(html) == "### FAQ\n\n#### One?\n\n##### Note\n\nYes\n\n#### Two?\n\nNo\n\n#### Next"


def test_a_heading_inside_a_summary_does_not_become_a_second_one():
    assert convert("<h2>FAQ</h2><details><summary><h2>One?</h2></summary>Yes</details>") == "## FAQ\n\n### One?\n\nYes"


def test_headings_by_role_have_their_level():
    assert convert("<div role=heading aria-level=4>Deep</div><p role=heading>Plain</p>") == "#### Deep\n\n## Plain"


def test_a_heading_holds_one_line_and_gives_up_its_blocks():
    assert convert("<h2>Our<br>prices <ul><li>a</li></ul></h2>") == "## Our prices\n\n- a"


def test_a_heading_that_was_never_closed_does_not_swallow_the_page():
    words = "word " * 100
    assert convert(f"<h2><div>Title</div><div>{words}</div></h2>") == f"## Title\n\n{words.strip()}"


def test_the_sign_by_which_a_heading_links_to_itself_is_no_link():
    assert convert("<h2>Prices<a class=headerlink href='#prices'>¶</a></h2>") == "## Prices ¶"


def test_closing_hashes_of_a_heading_are_its_text():
    assert plain_words(convert("<h2>Learn C #</h2><h2># of seats</h2>")) == "Learn C # # of seats"


@pytest.mark.parametrize(
    "html",
    [
        "<h3><button>Is it free?</button></h3>",
        "<form><h3><button>Is it free?</button></h3></form>",
        "<dl><dt><button>Is it free?</button></dt></dl>",
        "<details><summary><button>Is it free?</button></summary></details>",
        "<form><div role=tablist><button>Is it free?</button></div></form>",
        "<form><button aria-expanded=false>Is it free?</button></form>",
        "<form><button aria-controls=a1>Is it free?</button></form>",
        "<button>Is it free?</button>",
    ],
)
def test_a_button_that_titles_or_unfolds_something_is_text(html):
    assert "Is it free?" in convert(html)


def test_a_forms_own_machinery_is_left_out_and_nothing_runs_together():
    html = (
        "<form><label>Your name<input value=secret></label> Country<select><option>Chile<option>Norway</select>"
        "Notes<textarea>old</textarea><datalist><option>x</datalist><button>Send</button><input type=submit></form>"
        "<button form=f>Reset</button>end"
    )
    assert convert(html) == "Your name Country Notes\n\nend"


# --- Lists


def test_lists_nest_by_the_width_of_their_markers():
    html = "<ol start=9><li>a<li>b<ul><li>c<p>d</p></ul></ol>"
    assert convert(html) == "9. a\n10. b\n    - c\n\n      d"


def test_numbering_follows_start_value_and_reversed():
    assert convert("<ol start=5><li>x<li value=9>y<li>z</ol>") == "5. x\n9. y\n10. z"
    assert convert("<ol reversed><li>x<li>y</ol>") == "2. x\n1. y"


def test_numbering_that_markdown_lacks_becomes_text():
    assert convert("<ol type=a><li>x<li>y</ol>") == "- a. x\n- b. y"
    assert convert("<ol type=I start=4><li>x</ol><ol start=-1><li>y</ol>") == "- IV. x\n\n* -1. y"


def test_two_lists_in_a_row_stay_two():
    assert convert("<ol><li>a</ol><ol><li>b</ol>") == "1. a\n\n1) b"


def test_a_list_right_in_a_list_belongs_to_the_item_before():
    assert convert("<ul>intro<li>a</li><ul><li>b</li></ul><li>c</li></ul>") == "intro\n\n- a\n  - b\n- c"


def test_stray_items_are_items():
    assert convert("<li>a</li><li>b</li>") == "- a\n- b"


def test_boxes_to_tick_are_kept_in_task_lists():
    assert (
        convert("<ul><li><input type=checkbox checked>Paid<li><input type=checkbox>Sent</ul>")
        == "- [x] Paid\n- [ ] Sent"
    )


def test_code_and_tables_lie_inside_their_items():
    html = "<ul><li>Run<pre>make\n  test</pre><li><table><tr><th>a<th>b<tr><td>1<td>2</table></ul>"
    assert [token.type for token in COMMONMARK.parse(convert(html)) if token.type in ("fence", "table_open")] == [
        "fence",
        "table_open",
    ]


def test_definitions_follow_their_term():
    assert convert("<dl><dt>Weight<dd>2 kg<dt>Size<dd><p>40 cm<p>wide</dl>") == (
        "**Weight**\n\n2 kg\n\n**Size**\n\n40 cm\n\nwide"
    )


# --- Tables


def test_a_title_row_stands_above_its_table():
    html = "<table><caption>Rates</caption><tr><th colspan=2>2026<tr><th>City<th>Fee<tr><td>Oslo<td>4</table>"
    assert convert(html) == "Rates\n\n2026\n\n| City | Fee |\n| --- | --- |\n| Oslo | 4 |"


def test_a_table_without_headers_keeps_its_columns():
    assert convert("<table><tr><td>Mon<td>9-17<tr><td>Sun<td>closed</table>") == (
        "|  |  |\n| --- | --- |\n| Mon | 9-17 |\n| Sun | closed |"
    )


@pytest.mark.parametrize(
    "html",
    [
        "<table role=presentation><tr><th>One</th><th>Two</th></tr></table>",
        "<table><tr><td>One</td></tr><tr><td>Two</td></tr></table>",
        "<table><tr><td>One</td><td>Two</td></tr></table>",
        "<table><tr><td><table><tr><td>One</td></tr></table></td></tr><tr><td>Two</td></tr></table>",
    ],
)
def test_a_table_that_only_places_things_becomes_blocks(html):
    assert convert(html) == "One\n\nTwo"


def test_old_layout_tables_flatten_to_headings_lists_and_prose():
    prose = "The lamp needs nine watts at full power. " * 9
    html = f"<table><tr><td><h2>Menu</h2><ul><li>Home</ul><td>{prose}<tr><td>a<td>b</table>"
    assert convert(html) == f"## Menu\n\n- Home\n\n{prose.strip()}\n\na\n\nb"


def test_a_cell_holds_its_blocks_in_one_line():
    html = "<table><tr><th>a|b<th>c<tr><td><p>x</p><p>y</p><td>1<br>2<ul><li>p<li>q</ul><pre>if x:\n  y|z</pre></table>"
    assert convert(html) == "| a\\|b | c |\n| --- | --- |\n| x y | 1 2 p; q `if x:` `y\\|z` |"
    assert table_cells(convert(html))[1][1] == "1 2 p; q `if x:` `y|z`"


def test_alignment_and_missing_cells_and_empty_columns():
    html = "<table><tr><th align=right>a<th><th style='text-align: center'>b<tr><td>1</table>"
    assert convert(html) == "| a | b |\n| ---: | :---: |\n| 1 |  |"


def test_spans_reach_down_and_across_together():
    html = "<table><tr><th>a<th>b<th>c<tr><td rowspan=2 colspan=2>x<td>1<tr><td>2<tr><td>p<td>q<td rowspan=0>r</table>"
    assert table_cells(convert(html)) == [["a", "b", "c"], ["x", "", "1"], ["x", "", "2"], ["p", "q", "r"]]


def test_the_caption_of_a_table_in_a_list_stands_once():
    table = "<table><caption>Fees</caption><tr><th>A<th>B<tr><td>1<td>2</table>"
    assert convert(f"<ul><li>{table}</ul>").count("Fees") == 1


def test_text_between_rows_is_kept():
    assert convert("<table>stray<tr><th>a<th>b</tr><form>odd</form><tr><td>1<td>2</table>").startswith(
        "stray\n\nodd\n\n| a"
    )


# --- Code


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ("<pre><code class='hljs language-python'>x</code></pre>", "python"),
        ("<div class='highlight-c++ notranslate'><div class=highlight><pre>x</pre></div></div>", "c++"),
        ("<div class='highlight highlight-source-js'><pre>x</pre></div>", "js"),
        ("<pre class='brush: php; toolbar: false'>x</pre>", "php"),
        ("<div class=highlight-default><pre>x</pre></div>", ""),
        ("<pre>x</pre>", ""),
    ],
)
def test_the_language_of_code_is_read_from_its_highlighter(html, language):
    assert convert(html) == f"```{language}\nx\n```"


def test_lines_of_code_in_elements_of_their_own_stay_lines():
    assert convert("<pre><button>Copy</button><div>a</div><div>b<span> c</span></div>d</pre>") == "```\na\nb c\nd\n```"


@pytest.mark.parametrize(("text", "markdown"), [("a`b", "``a`b``"), ("`a", "`` `a ``"), ("``", "``` `` ```")])
def test_backticks_in_a_code_span(text, markdown):
    assert convert(f"<p><code>{text}</code></p>") == markdown


def test_keys_and_output_are_code():
    assert convert("<p>Press <kbd>Ctrl</kbd>, see <samp>ok</samp></p>") == "Press `Ctrl`, see `ok`"


# --- Links and images


def test_links_are_absolute_with_their_title():
    html = "<p><a href='../a b?x=(1'>a</a><a href='//b.test' title='Say \"b\"'>b</a> <a href=mailto:x@y.z>m</a></p>"
    assert convert(html) == (
        '[a](https://example.com/a%20b?x=%281) [b](https://b.test "Say \\"b\\"") [m](mailto:x@y.z)'
    )


@pytest.mark.parametrize("href", ["javascript:go()", "#", "", "data:text/html,x", "http://["])
def test_what_leads_nowhere_is_text(href):
    assert convert(f"<p><a href='{href}'>More</a></p>") == "More"


def test_a_card_is_linked_once_by_its_heading():
    html = "<a href=/lamp><img src=i.png alt=x><h3>Lamp</h3><p>Nine <b>watts</b></p></a>"
    assert convert(html) == (
        "![x](https://example.com/help/i.png)\n\n### [Lamp](https://example.com/lamp)\n\nNine **watts**"
    )
    assert convert("<a href=/x><div>One</div><div>Two</div></a>") == "[One](https://example.com/x)\n\nTwo"


def test_images_are_absolute_wherever_a_script_finds_them():
    assert convert("<img src='data:x' data-src=/a.png alt='A [1]'>") == "![A \\[1\\]](https://example.com/a.png)"
    assert convert("<img src=/blank.gif data-original=/b.png>") == "![](https://example.com/b.png)"
    assert convert("<img srcset='/s.png 1x, /l.png 2x' alt=S title=T>") == '![S](https://example.com/s.png "T")'
    assert convert("<p>x<img src=/count.gif width=1 height=1></p>") == "x"


def test_without_images_one_that_is_all_of_a_link_or_heading_leaves_its_words():
    html = (
        "<h1><img src=l alt=Acme></h1><a href=/><img src=h alt=Home></a><p>Lamp<img src=p alt=gone></p>"
        "<a href=/b><img src=b alt=B>Bulb</a>"
    )
    assert convert(html, images=False) == (
        "# Acme\n\n[Home](https://example.com/)\n\nLamp\n\n[Bulb](https://example.com/b)"
    )


def test_a_caption_is_text_under_its_figure():
    assert convert("<figure><img src=/a.png alt=A><figcaption>The lamp</figcaption></figure>") == (
        "![A](https://example.com/a.png)\n\nThe lamp"
    )


def test_films_sounds_and_frames_leave_their_names_and_addresses():
    html = (
        "<video title=Tour><source src=/t.mp4></video><audio src=/s.mp3>our song</audio>"
        "<iframe src=/f title=Map></iframe><iframe src=/g></iframe>"
    )
    assert convert(html) == (
        "[Tour](https://example.com/t.mp4) [our song](https://example.com/s.mp3) [Map](https://example.com/f)"
    )


# --- Text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<b>bold</b> <i>it</i> <del>old</del><ins>new</ins>", "**bold** *it* ~~old~~new"),
        ("<b><b>twice</b></b>", "**twice**"),
        ("<b>one</b><strong>two</strong>", "**onetwo**"),
        ("<i>all <b>part</b></i>", "*all **part***"),
        ("<b><div>a</div><div>b</div></b>", "**a**\n\n**b**"),
        ("<b>Note:</b>text", "Note:text"),
        ("<b> </b>x<i></i>", "x"),
        ("un<i>bel</i>ievable", "un*bel*ievable"),
        ("He said <q>no</q>", 'He said "no"'),
        ("10<sup>6</sup> m<sup>2</sup> 1<sup>st</sup> H<sub>2</sub>O", "10^6 m^2 1st H2O"),
        ("<ruby>漢<rt>kan</rt></ruby><ruby>字<rp>(</rp><rt>ji</rt><rp>)</rp></ruby>", "漢(kan)字(ji)"),
        ("<math alttext='x^2'><mi>x</mi></math>, <script type='math/tex'>y</script>", "x^2, y"),
        ("<math><mi>a</mi><annotation encoding='application/x-tex'>\\frac ab</annotation></math>", "\\frac ab"),
        ("Daten&shy;schutz&nbsp;now", "Datenschutz now"),
        ("a<br>b<br><br>c", "a  \nb\n\nc"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("<svg><text>Up</text><text>Down</text></svg>", "Up Down"),
        ("<blockquote>a<blockquote>b</blockquote></blockquote>", "> a\n>\n> > b"),
        ("<abbr title=x>WHO</abbr> <mark>m</mark> <small>s</small>", "WHO m s"),
    ],
)
def test_inline_elements(html, markdown):
    assert convert(html) == markdown


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "1. no list",
        "2) no list",
        "- no list",
        "+ no list",
        "* no list",
        "> no quote",
        "---",
        "===",
        "***",
        "___",
        "| - |",
        "~~~",
        "```",
        "__init__ and snake_case_name and _x_",
        "2*3*4 and 2 * 3",
        "[a](b) and ![c](d) and [e][f]",
        "[ref]: https://example.com",
        "<script> and <b> and <!-- x --> and < 5",
        "&amp; and &copy; and AT&T",
        "C:\\Users\\x and \\* and \\",
        "~~gone~~ and ~5",
        "a | b",
        "`tick` and ``",
        "https://example.com/a_b_c?x=1&y=2",
        "中文**字**。",
    ],
)
@pytest.mark.parametrize(
    "place", ["<p>{}</p>", "<p>x<br>{}</p>", "<h2>{}</h2>", "<ul><li>{}</li></ul>", "<p>{}<b>b</b></p>"]
)
def test_text_that_looks_like_markdown_reads_as_the_page_did(text, place):
    html = place.format(text.replace("&", "&amp;").replace("<", "&lt;"))
    expected = " ".join(BeautifulSoup(html.replace("<br>", " "), "lxml").get_text().split())
    assert plain_words(convert(html)) == expected


def test_harmless_signs_are_not_escaped():
    text = "snake_case, 2 * 3, a | b, AT&T, C:\\Users, x < 5, [1], (2), -5 and +49 at https://example.com/a_b"
    assert convert(f"<p>{text.replace('&', '&amp;').replace('<', '&lt;')}</p>") == text


def test_plain_words_are_what_a_reader_sees():
    markdown = (
        '## A *b*\n\n1. [c](https://x.test "t") ![img](i)\n\n| d | e |\n| --- | --- |\n| `f` | ~~g~~ |\n\n'
        "```sh\nh\n```\n\ni  \nj <k>"
    )
    assert plain_words(markdown) == "A b c d e f g h i j <k>"


def test_landmarks_are_converted_each_on_its_own():
    content = select_content(
        "<nav><a href=/a>A</a></nav><main>x</main><footer></footer><footer>© Acme</footer>", "https://e.test"
    )
    assert landmark_markdown(content) == ("[A](https://e.test/a)", "© Acme")


# --- Nothing is lost


@pytest.mark.parametrize("name", ["div", "b", "a", "li", "blockquote", "table", "details", "h2", "pre"])
def test_ten_thousand_levels_lose_no_text(name):
    html = f"<main>{f'<{name} href=x>' * 10_000}deep text{f'</{name}>' * 10_000}<p>after</p></main>"
    assert plain_words(convert(html)) == "deep text after"


_WORDS = st.sampled_from(["foo", "bar.", "Note:", "(x)", "“q”", "1", "中", "é", " ", "\n"])
_SIGNS = st.text("ab1 *_`~<>[]()!#&;:+-.|\\=\"'", min_size=1, max_size=6)
_INLINE_TAGS = st.sampled_from(
    ["b", "i", "em", "strong", "s", "code", "span", "a href=x", "a href='y(z' title='t'", "u"]
)
_BLOCK_TAGS = st.sampled_from(
    (
        *("div", "p", "span", "b", "a", "code", "section", "h1", "h3", "blockquote", "pre", "figure", "label", "font"),
        *("ul", "ol", "li", "dl", "dt", "dd", "details", "summary", "center", "hr", "br"),
        *("table", "tr", "td", "th", "thead", "caption"),
    )
)


def _escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _element(tag, children):
    return f"<{tag}>{''.join(children)}</{tag.split()[0]}>"


_INLINE = st.recursive(
    st.one_of(_WORDS, _SIGNS).map(_escaped),
    lambda children: st.builds(_element, _INLINE_TAGS, st.lists(children, max_size=3)),
    max_leaves=8,
)
_BLOCK = st.recursive(
    st.sampled_from(["w", " ", "w w", "\n"]),
    lambda children: st.builds(_element, _BLOCK_TAGS, st.lists(children, max_size=4)),
    max_leaves=25,
)
_FUZZED = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@_FUZZED
@given(st.lists(_INLINE, min_size=1, max_size=4).map("".join), st.sampled_from(["p", "h2", "li", "td"]))
def test_any_paragraph_reads_as_the_page_did(inner, place):
    html = (
        f"<table><tr><th>A<th>B<tr><td>{inner}</td><td>end</table>" if place == "td" else f"<{place}>{inner}</{place}>"
    )
    expected = BeautifulSoup(html, "lxml").get_text()
    assert "".join(plain_words(convert(html)).split()) == "".join(expected.split())


@_FUZZED
@given(st.lists(_BLOCK, max_size=5).map("".join))
def test_every_word_is_there_once_and_in_order_whatever_the_nesting(html):
    for number in range(html.count("w")):
        html = html.replace("w", f"x{number}x", 1)
    expected = re.findall(r"x\d+x", BeautifulSoup(html, "lxml").get_text())
    found = re.findall(r"x\d+x", plain_words(convert(f"<main>{html}</main>")))
    if "<t" in html or "<caption" in html:  # text outside of cells moves in front of its table
        found, expected = sorted(found), sorted(expected)
    assert found == expected


def test_plain_words_are_what_a_reader_sees_whatever_the_marks():
    line = "# A *b*\n\n[c][x] ![no](u) \\* &amp; ~~d~~\ne"
    markdown = f"{line}\n\n| f | `g` |\n| - | - |\n| h | |\n\n```\ni  j\n```\n\n[x]: http://e.t"
    assert plain_words(markdown) == "A b c * & d e f g h i j"


@given(st.lists(st.sampled_from(["a", "B ", "9. ", "\\", "\\.", "#", " ", "\t", "!", "-", "*b*", "é", "(", "\xa0"])))
def test_the_words_of_a_plain_heading_are_those_of_one_that_is_read(parts):
    heading = f"## {''.join(parts)}"
    assert plain_words(heading) == plain_words(f"{heading}\n")  # which is no longer a heading alone
