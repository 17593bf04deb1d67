"""Windows: every word in order, none larger than the model reads, each with the title."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models_app.local_embedder import LocalEmbedder
from models_app.model_files import embedder_files
from models_app.models import TrainingSnippet
from models_app.snippets import embedded_text
from models_app.windows import windows_of
from tests.conftest import needs_local_embedder

MOST = 60  # characters, where the limit is a plain one
SIGNS = [
    "a",
    "word",
    "Straße",
    "\n\n",
    "\n",
    " ",
    " \n \n",
    "\r\n",
    "\t",
    ". ",
    "? ",
    "。",
    "退款",
    "e\u0301",
    "👩‍👩",
    "x" * 70,
]
texts = st.lists(st.sampled_from(SIGNS) | st.text(max_size=3), max_size=60).map("".join)


@pytest.fixture(scope="module")
def embedder():
    needs_local_embedder()
    return LocalEmbedder(embedder_files())


def snippet(text: str, title: str = "") -> TrainingSnippet:
    return TrainingSnippet(prompt=title, completion=text)


def fits(text: str) -> bool:
    return len(text) <= MOST


def squeezed(text: str) -> str:
    return "".join(text.split())


def words_without_titles(windows: list[str], title: str) -> str:
    """Return what the windows hold, blanks left out, the title only once."""
    head = f"{title}\n\n"
    first, *others = windows
    return squeezed(first + "".join(window.removeprefix(head) for window in others))


@settings(max_examples=300, deadline=None)
@given(text=texts, title=texts)
def test_windows_hold_every_word_in_order_and_keep_the_limit(text, title):
    windows = windows_of(snippet(text, title), fits)
    assert all(fits(window) for window in windows)
    has_title_everywhere = len(title) <= MOST / 2 - 2
    assert words_without_titles(windows, title if has_title_everywhere else "") == squeezed(title + text)
    if has_title_everywhere:
        assert all(window.startswith(f"{title}\n\n") for window in windows)


@given(text=texts, title=texts)
def test_a_short_snippet_is_one_window_as_it_is(text, title):
    short = snippet(text, title)
    assert windows_of(short, lambda text: True) == [embedded_text(short)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("One. Two\nthree four.\n\n", "Five six. Seven.\nEight nine ten ... eleven, twelve."),
        ("One two. Three four five\n", "six seven. Eight nine ten, eleven twelve."),
        ("One two three four five six, seven. ", "Eight nine ten eleven twelve!"),
        ("退款需要多长时间？" * 4, "请提供订单号。" * 5),
        ("one two three four five six seven ", "eight nine ten eleven twelve ab"),
    ],
    ids=["paragraph", "line", "sentence", "sentence without blanks", "word"],
)
def test_text_is_cut_at_the_best_end_near_the_middle(first, second):
    windows = windows_of(snippet(first + second), fits)
    assert [window.strip() for window in windows] == [first.strip(), second]


def test_one_giant_word_is_cut_hard():
    windows = windows_of(snippet("x" * 1_000, "Key"), fits)
    assert {window.count("x") for window in windows} <= {31, 32}
    assert words_without_titles(windows, "Key") == "Key" + "x" * 1_000


def test_a_title_longer_than_a_window_is_cut_like_text():
    title = "a very long title " * 10
    windows = windows_of(snippet("And a text.", title), fits)
    assert squeezed("".join(windows)) == squeezed(title) + "Andatext."
    assert all(fits(window) for window in windows)


def test_a_snippet_of_blanks_still_has_a_window():
    assert windows_of(snippet(" " * 1_000, "Title"), fits) == ["Title\n\n"]
    assert len(windows_of(snippet(" \n" * 1_000), fits)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The router keeps its settings; press the button for ten seconds to reset them.\n\n" * 60,
        "| ERR-1234 | C++ | 3.14 |\n" * 150,
        "退款需要多长时间？请提供订单号。" * 150,
        "วิธีรีเซ็ตรหัสผ่านของบัญชีผู้ใช้" * 80,
        "ﷺ" * 400,
        "f3Zq/9+" * 700,
    ],
    ids=["English", "table", "Chinese", "Thai", "ligatures", "base64"],
)
@pytest.mark.parametrize("title", ["Router", "退款" * 500], ids=["short", "long"])
def test_windows_are_as_the_local_model_counts(embedder, text, title):
    windows = windows_of(snippet(text, title), embedder.fits_window)
    assert len(windows) > 1
    assert max(map(embedder.count_tokens, windows)) <= embedder.window_tokens
    assert words_without_titles(windows, title if title == "Router" else "") == squeezed(title + text)


def test_the_host_of_a_link_is_not_embedded():
    text = "See [prices](https://example.com/prices) and [us](http://a.test)."
    windows = windows_of(snippet(text, "Title"), lambda _: True)
    assert windows == ["Title\n\nSee [prices](/prices) and [us]()."]
