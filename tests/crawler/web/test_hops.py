import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.hops import looks_like_login, refresh_target

URL = "https://ex.test/docs/start"


@pytest.mark.parametrize(
    ("head", "target"),
    [
        ('<meta http-equiv="refresh" content="0; url=/en/">', "https://ex.test/en/"),
        ("<META HTTP-EQUIV=Refresh CONTENT='0;URL=\"next?a=1&amp;b=2#part\"'>", "https://ex.test/docs/next?a=1&b=2"),
        ('<meta content="1,url = https://new.test/" http-equiv="REFRESH">', "https://new.test/"),
        ('<meta http-equiv="refresh" content="0 /en/">', "https://ex.test/en/"),
        ('<base href="/other/"><meta http-equiv=refresh content="0;url=x">', "https://ex.test/other/x"),
        (
            '<!-- <meta http-equiv=refresh content="0;url=a"> --><meta http-equiv=refresh content=";url=b">',
            "https://ex.test/docs/b",
        ),
        ('<meta http-equiv="refresh" content="0">', None),
        ('<meta http-equiv="refresh" content="600; url=/en/">', None),
        ('<meta http-equiv="refresh" content="0; url=/docs/start#top">', None),
        ('<meta http-equiv="refresh" content="0; url=">', None),
        ('<meta http-equiv="refresh" content="0; url=http://[1/">', None),
        ('<noscript><meta http-equiv="refresh" content="0; url=/no-scripts"></noscript>', None),
        ('<script>\'<meta http-equiv="refresh" content="0; url=/x">\'</script>', None),
        ('<meta name="refresh" content="0; url=/en/">', None),
        ("<p>Please refresh the page</p>", None),
        ("", None),
    ],
)
def test_a_refresh_leads_where_a_browser_would_go(head, target):
    assert refresh_target(f"<!doctype html><title>Moved</title>{head}<p>Moved", URL) == target


def test_a_refresh_may_stand_in_a_header():
    assert refresh_target("<p>Moved", URL, "0; url=/en/") == "https://ex.test/en/"
    assert refresh_target("<p>Moved", URL, "30; url=/en/") is None


@given(st.text(st.sampled_from("<>!-/\"'= ;0urlmetabase refresh-content"), max_size=120))
def test_no_markup_at_all_fails(text):
    assert refresh_target(f"<meta http-equiv=refresh content='{text}", URL) is None or text


def test_hostile_markup_is_searched_in_time():
    for piece in ("<meta ", "<!--", "<noscript>", "<meta a='", '<base href="', "refresh"):
        assert refresh_target("refresh" + piece * 50_000, URL) is None


@pytest.mark.parametrize("url", ["https://ex.test/login", "https://ex.test/wp-login.php", "https://sso.ex.test/x"])
def test_a_login_is_known_by_its_address(url):
    assert looks_like_login(url)
    assert not looks_like_login("https://ex.test/login-help")
