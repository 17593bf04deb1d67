"""Markdown from other people's pages, made safe to show."""

import pytest

from models_app.markdown import plain_text, render_markdown
from models_app.templatetags.dashboard import duration, excerpt, mark_found


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[press](javascript:alert(1))",
        "[press](JaVaScRiPt:alert(1))",
        "[press](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](javascript:alert(1))",
        '[x](https://a.test "\\" onmouseover=alert(1) ")',
        '![" onerror="alert(1)](https://a.test/x.png)',
        "<form action=https://evil.test><input name=password></form>",
    ],
)
def test_nothing_in_markdown_runs_or_sends(hostile):
    html = render_markdown(hostile)
    tags = html.replace("&lt;", "").split("<")[1:]
    assert all(tag.startswith(("p>", "/p", "a ", "/a", "span", "/span")) for tag in tags), html
    assert 'href="javascript' not in html.lower()
    assert 'href="data' not in html.lower()
    assert "<img" not in html
    assert "<script" not in html


def test_an_image_is_named_and_not_loaded():
    html = render_markdown("![A red parcel](https://tracker.test/p.png)")
    assert "Image: A red parcel" in html
    assert "src=" not in html


def test_headings_stay_below_those_of_the_page():
    assert render_markdown("# One\n\n##### Five") == "<h3>One</h3>\n<h6>Five</h6>\n"


def test_tables_lists_and_code_are_kept():
    html = render_markdown("| a | b |\n|---|---|\n| 1 | `x<y` |\n\n- one\n\n~~gone~~")
    assert "<td>1</td>" in html
    assert "<code>x&lt;y</code>" in html
    assert "<li>one</li>" in html
    assert "<s>gone</s>" in html


def test_links_tell_their_target_nothing_and_lend_it_no_weight():
    assert 'rel="noopener noreferrer nofollow"' in render_markdown("[x](https://a.test)")


@pytest.mark.parametrize("text", [">" * 20_000, "[" * 20_000, "*a " * 20_000, "<" * 20_000, "- " * 5_000])
def test_deeply_nested_text_is_rendered_all_the_same(text):
    assert isinstance(render_markdown(text), str)


def test_plain_text_has_the_words_without_the_marks():
    text = "# Title\n\nSome **bold** [link](https://a.test)\nnext `code`\n\n```\nblock\n```"
    assert plain_text(text) == "Title Some bold link next code block"


def test_found_words_are_marked_and_the_rest_is_escaped():
    marked = mark_found("Repairs of a <b>P-200</b> cost 40 €", "what does a repair cost?")
    assert "<mark>Repairs</mark>" in marked
    assert "<mark>cost</mark>" in marked
    assert "&lt;b&gt;" in marked
    assert "<b>" not in marked


def test_a_beginning_of_a_word_is_marked_as_typed():
    assert mark_found("Delivery takes long", "deliv") == "<mark>Deliv</mark>ery takes long"


def test_an_excerpt_shows_where_the_words_are():
    text = "Opening words. " * 60 + "The repair costs 40 euros. " + "Closing words. " * 60
    shown = excerpt(text, "what does a repair cost")
    assert "repair costs 40" in shown
    assert len(shown) < 260
    assert excerpt(text, "").startswith("Opening words.")
    assert excerpt("Short.", "anything") == "Short."


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (2.44, "2.4 s"), (41, "41 s"), (75, "1 min 15 s"), (7_380, "2 h 3 min")]
)
def test_durations_are_said_as_people_say_them(seconds, words):
    assert duration(seconds) == words
