import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.path_patterns import EXCLUDED, NOT_INCLUDED, PathPatterns, PatternError, parse_patterns


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/blog", ["/blog", "/blog/", "/blogroll", "/blog?page=2"], ["/", "/en/blog", "/Blog"]),
        ("/blog/$", ["/blog/"], ["/blog", "/blog/a", "/blog/?a=1"]),
        ("*.pdf$", ["/a.pdf", "/x/y.pdf"], ["/a.pdf?x", "/a.pdfx"]),
        ("*/print", ["/a/print", "/a/b/print/c"], ["/prin"]),
        ("/*/news/*/full$", ["/en/news/1/full", "/de/news/a/b/full"], ["/news/1/full", "/en/news/full"]),
        ("*?sort=", ["/a?sort=up"], ["/a?x=1&sort=up", "/a"]),
        ("/a*a$", ["/aa", "/a/a"], ["/a"]),
        ("/über", ["/%C3%BCber/uns"], ["/uber"]),
        ("/%c3%bcber", ["/%C3%BCber"], []),
        ("/a b", ["/a%20b"], ["/a"]),
        ("https://ex.test/docs/*", ["/docs/", "/docs/a"], ["/"]),
        ("https://ex.test", ["/", "/a"], []),
        ("/a.b", ["/a.b"], ["/axb"]),
    ],
)
def test_a_pattern_matches_as_in_robots_txt(pattern, matching, others):
    patterns = PathPatterns(include=pattern)
    assert [path for path in matching if patterns.refusal(path)] == []
    assert {path: patterns.refusal(path) for path in others} == dict.fromkeys(others, NOT_INCLUDED)


def test_without_patterns_everything_is_wanted_and_an_exclusion_wins():
    assert PathPatterns("", "").refusal("/any") is None
    patterns = PathPatterns(include="/docs/\n\n/faq", exclude="/docs/old/\n*?print")
    assert patterns.refusal("/docs/new") is None
    assert patterns.refusal("/faq") is None
    assert patterns.refusal("/docs/old/a") == EXCLUDED
    assert patterns.refusal("/faq?print=1") == EXCLUDED
    assert patterns.refusal("/blog") == NOT_INCLUDED


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/a\nblog", 2),
        ("\n\n.*", 3),
        ("/a#part", 1),
        ("/" + "a" * 2001, 1),
        ("\n".join(f"/{n}" for n in range(300)), 201),
    ],
)
def test_a_line_that_is_no_pattern_is_named(text, line):
    with pytest.raises(PatternError) as failure:
        parse_patterns(text)
    assert failure.value.line == line
    assert failure.value.message


PIECES = st.text(alphabet="ab/*", max_size=8)


@given(PIECES, st.booleans(), st.text(alphabet="ab/", max_size=12))
def test_matching_is_what_the_regular_expression_would_say(rest, is_end_fixed, path):
    pattern = f"/{rest}" + ("$" if is_end_fixed else "")
    expression = re.escape(f"/{rest}").replace(r"\*", ".*") + (r"\Z" if is_end_fixed else "")
    is_matched = PathPatterns(include=pattern).refusal(f"/{path}") is None
    assert is_matched == bool(re.match(expression, f"/{path}", re.S))


def test_many_stars_cost_no_more_than_a_few():
    assert PathPatterns(include="/" + "*a" * 900 + "b$").refusal("/" + "a" * 2000) == NOT_INCLUDED
