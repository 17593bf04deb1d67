"""Every visible word of the selection is in the Markdown, in order, exactly once: on real pages and on made ones."""

import gzip
import json
import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.markup.convert import landmark_markdown, plain_words, to_markdown
from crawler.markup.select import Content, select_content
from crawler.web.decode import decode_text

# What is said that is no text between tags, or is said again on purpose: the names of pictures, films and frames,
# a cell that reaches over several rows, entries counted in letters or in a cell; formulas, drawn and in TeX.
SAID_ELSEWHERE = re.compile(r"(?<=[\s\"'])(alt|title|rowspan)(?=\s*=)", re.IGNORECASE)
NAMED_FILM = re.compile(r"(<(?:video|audio|iframe)\b[^>]*\s)aria-label(?=\s*=)", re.IGNORECASE)
LETTERED_LIST = re.compile(r"(<ol\b[^>]*\s)type(?=\s*=)", re.IGNORECASE)
TABLE_ON_PAGE = re.compile(r"<table\b.*?</table>", re.IGNORECASE | re.DOTALL)
COUNTED_LIST = re.compile(r"<(/?)ol\b", re.IGNORECASE)
FORMULA = re.compile(r"<(/?)math\b", re.IGNORECASE)

NO_TEXT = {"head", "script", "style", "select", "textarea", "datalist", "noframes", "option", "optgroup", "iframe"}
TITLES = {"h1", "h2", "h3", "h4", "h5", "h6", "dt", "summary"}
ON_LINES_OF_THEIR_OWN = {
    *("address", "article", "aside", "blockquote", "body", "br", "button", "caption", "center", "dd", "details"),
    *("dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5"),
    *("h6", "header", "hr", "html", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table"),
    *("tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}


def with_text_alone(html: str) -> str:
    """Return the page with all its words between tags, each once."""
    html = SAID_ELSEWHERE.sub(r"data-\1", html)
    for pattern, replacement in ((NAMED_FILM, r"\1data-label"), (LETTERED_LIST, r"\1data-type")):
        html = pattern.sub(replacement, html)
    html = TABLE_ON_PAGE.sub(lambda table: COUNTED_LIST.sub(r"<\1ul", table[0]), html)
    return FORMULA.sub(r"<\1span", html)


def text_of(content: Content) -> str:
    """Return the text of the selection by its elements alone, with a blank where a new line begins."""
    moved = {tag.position for tag in content.landmarks}
    pieces: list[str] = []
    waiting = [(root, False, False) for root in reversed(content.roots)]
    while waiting:
        node, is_in_form, is_in_title = waiting.pop()
        if isinstance(node, str):
            pieces.append(node.replace("\xad", ""))
            continue
        unfolds = "aria-expanded" in node.attributes or "aria-controls" in node.attributes
        is_machinery = (is_in_form or "form" in node.attributes) and not is_in_title and not unfolds
        if node.name in NO_TEXT or node.position in moved or (node.name == "button" and is_machinery):
            pieces.append(" ")
            continue
        if node.name in ON_LINES_OF_THEIR_OWN:
            pieces.append(" ")
            waiting.append((" ", False, False))
        is_in_form |= node.name == "form"
        is_in_title |= node.name in TITLES or node.get("role") in ("heading", "tablist")
        waiting.extend((child, is_in_form, is_in_title) for child in reversed(node.contents))
    return "".join(pieces)


def letters_and_breaks(text: str) -> tuple[str, set[int]]:
    """Return the letters and digits in order, and after how many of them a word ends."""
    words = [re.sub(r"[\W_]", "", word) for word in text.split()]
    breaks, count = {0}, 0
    for word in words:
        count += len(word)
        breaks.add(count)
    return "".join(words), breaks


@pytest.mark.parametrize("name", ["wcxb", "trafilatura"])
def test_every_word_of_real_pages_is_there_in_order_and_once(shared, name):
    folder = shared / "data" / "extraction" / name
    with gzip.open(folder / "truth.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) > 100
    for row in rows:
        html = decode_text(gzip.decompress((folder / row["file"]).read_bytes()), "text/html")
        content = select_content(with_text_alone(html), row["url"] or "")
        wanted, wanted_breaks = letters_and_breaks(text_of(content))
        found, found_breaks = letters_and_breaks(plain_words(to_markdown(content)))
        place = next((i for i, pair in enumerate(zip(wanted, found, strict=False)) if pair[0] != pair[1]), len(wanted))
        assert found == wanted, f"{row['id']}: {wanted[place - 20 : place + 40]} reads {found[place - 20 : place + 40]}"
        assert wanted_breaks <= found_breaks, f"{row['id']}: words run together"


def _between(tag: str) -> st.SearchStrategy:
    return st.lists(st.deferred(lambda: BLOCK), min_size=1, max_size=2).map(
        lambda children: f"<{tag}>{''.join(children)}</{tag.split(maxsplit=1)[0]}>"
    )


def _sequence(tag: str, entries: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(entries, min_size=1, max_size=3).map(lambda parts: f"<{tag}>{''.join(parts)}</{tag}>")


INLINE = st.recursive(
    st.sampled_from(["w", "w w", "w\n w", "w<br>w", "مرحبا w", "w, w.", "3 * w", "# w", "w | w", "`w", "1. w"]),
    lambda inner: (
        st.builds(
            lambda tag, text: f"<{tag}>{text}</{tag.split()[0]}>",
            st.sampled_from(
                [
                    "b",
                    "i",
                    "a href=/x",
                    "code",
                    "abbr title=t",
                    "span dir=rtl",
                    "bdo dir=rtl",
                    "sub",
                    "small",
                    "q",
                    "kbd",
                    "s",
                ]
            ),
            inner,
        )
        | st.tuples(inner, inner).map(" ".join)
        | inner.map(lambda text: f"<ruby>{text}<rp>(</rp><rt>w</rt><rp>)</rp></ruby>")
    ),
    max_leaves=4,
)
CELL = st.one_of(
    *(
        INLINE.map(lambda text, opening=opening: f"<{opening}>{text}</{opening[:2]}>")
        for opening in ("td", "th", "td colspan=2", "td align=right", "th colspan=3")
    ),
    INLINE.map(lambda text: f"<td rowspan=2>{text.replace('w', 'v')}</td>"),
    _between("td"),
)
TABLE = st.builds(
    "<table{}>{}{}</table>".format,
    st.sampled_from(["", " role=presentation", " border=1"]),
    st.one_of(st.just(""), INLINE.map("<caption>{}</caption>".format)),
    st.lists(_sequence("tr", CELL), min_size=1, max_size=3).map("".join),
)
BLOCK = st.deferred(
    lambda: st.one_of(
        INLINE.map("<p>{}</p>".format),
        INLINE.map("<h3>{}</h3>".format),
        INLINE.map("<p dir=rtl lang=ar>{}</p>".format),
        st.just("<pre>w\n  w\n\n``` w</pre>"),
        st.just("<p>w <math><mi>w</mi><mo>=</mo><mi>w</mi></math> w</p>"),
        INLINE.map("<figure><img src=/x.png><figcaption>{}</figcaption></figure>".format),
        _between("blockquote"),
        _between("div"),
        _sequence("ul", _between("li")),
        _sequence("ol", _between("li")),
        _sequence("ol", _between("li value=7")),
        _sequence("dl", st.tuples(INLINE.map("<dt>{}</dt>".format), _between("dd")).map("".join)),
        st.tuples(INLINE, st.deferred(lambda: BLOCK)).map("<details><summary>{0[0]}</summary>{0[1]}</details>".format),
        TABLE,
    )
)


def numbered(html: str) -> str:
    """Return the page with each of its words told from the others: x7x, and y7y in cells that reach over rows."""
    counter = iter(range(100_000))
    return re.sub(
        r"\b[wv]\b(?![^<]*>)", lambda match: f"{'xy'[match[0] == 'v']}{next(counter)}{'xy'[match[0] == 'v']}", html
    )


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(BLOCK, min_size=1, max_size=4).map("".join))
def test_every_word_of_made_pages_is_there_in_order_and_once(html):
    html = numbered(html)
    markdown = to_markdown(select_content(f"<main>{html}</main>", "https://example.com/"))
    wanted = re.findall(r"x\d+x|y\d+y", re.sub(r"<[^>]*>", " ", html))
    found = re.findall(r"x\d+x|y\d+y", plain_words(markdown))
    assert list(dict.fromkeys(found)) == wanted
    assert {word for word, count in Counter(found).items() if count > 1 and word[0] == "x"} == set()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(
        st.one_of(
            BLOCK,
            *(
                BLOCK.map(lambda block, tag=tag: f"<{tag}>{block}</{tag.split()[0]}>")
                for tag in ("main", "nav", "footer", "aside", "article", "header", "div role=search", "dialog", "form")
            ),
            st.sampled_from(["<button>w</button>", "<label>w<input></label>", "<a href=/w>w</a>", "w", "<div>w</div>"]),
        ),
        min_size=1,
        max_size=7,
    ).map("".join)
)
def test_every_word_of_a_page_is_the_pages_or_the_sites(html):
    html = numbered(html)
    content = select_content(html, "https://example.com/")
    parts = [to_markdown(content), *landmark_markdown(content)]
    found = set(re.findall(r"x\d+x|y\d+y", " ".join(map(plain_words, parts))))
    wanted = set(re.findall(r"x\d+x|y\d+y", re.sub(r"<[^>]*>", " ", html)))
    assert found == wanted
