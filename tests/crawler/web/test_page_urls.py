import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.page_urls import has_repeating_path, normalise_url

BASE = "https://ex.test/docs/page?old=1#part"

path_text = st.text(st.sampled_from("ab/.%41 é;?&=+~-_[]|\\:@"), max_size=25)


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("next", "https://ex.test/docs/next"),
        ("../up/./x/../y", "https://ex.test/up/y"),
        ("/%2e%2e/a/%2E/b", "https://ex.test/a/b"),
        ("../../../../out", "https://ex.test/out"),
        ("//other.test", "https://other.test/"),
        ("?p=2", "https://ex.test/docs/page?p=2"),
        ("", "https://ex.test/docs/page?old=1"),
        ("#top", "https://ex.test/docs/page?old=1"),
        ("HTTPS://EX.TEST:443/A#b", "https://ex.test/A"),
        ("http://ex.test:80/a", "http://ex.test/a"),
        ("http://ex.test:8080/a", "http://ex.test:8080/a"),
        ("https://ex.test./a", "https://ex.test/a"),
        ("https://www.ex.test/a", "https://www.ex.test/a"),
        ("https://Bücher.test/Straße?q=ä", "https://xn--bcher-kva.test/Stra%C3%9Fe?q=%C3%A4"),
        ("/a%7eb%c3%a9%2Fc", "https://ex.test/a~b%C3%A9%2Fc"),
        ("/a b%zz", "https://ex.test/a%20b%25zz"),
        ("  /a\n/b\t ", "https://ex.test/a/b"),
        ("\\a\\b?c=\\", "https://ex.test/a/b?c=%5C"),
        ("/a?utm_source=x&b=1&UTM_Medium=y&gclid=3&fbclid=4", "https://ex.test/a?b=1"),
        ("/a?utm_campaign=x", "https://ex.test/a"),
        ("/a?b=2&a=1&b=", "https://ex.test/a?b=2&a=1&b="),
        ("/a;jsessionid=0A1B2C?x=1", "https://ex.test/a?x=1"),
        ("/a?PHPSESSID=abc&x=1", "https://ex.test/a?x=1"),
        ("/a?sid=4f9c0d2b7a6e1f3d5c8b9a0e&x=1", "https://ex.test/a?x=1"),
        ("/a?x=1&session_id=6f1ed002-ab44-4c1f-9a3b-000000000001", "https://ex.test/a?x=1"),
        ("/a?CFID=123&CFTOKEN=456&osCsid=1&x=1", "https://ex.test/a?x=1"),
        ("/a;sid=77/b;PHPSESSID=1?x=1", "https://ex.test/a/b?x=1"),
        ("/shop/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "https://ex.test/shop/a.aspx"),
        ("/(A(1a2b3c4d)S(lit3py55t21z5v55vlm25s55))/a.aspx", "https://ex.test/a.aspx"),
        ("/trains?sid=12", "https://ex.test/trains?sid=12"),
        ("/talks?session=keynote", "https://ex.test/talks?session=keynote"),
        ("/talks?session=internationalisation", "https://ex.test/talks?session=internationalisation"),
        ("/wiki/(S(b)/x", "https://ex.test/wiki/(S(b)/x"),
        ("/a;v=1?id=utm_source", "https://ex.test/a;v=1?id=utm_source"),
        ("http://[2606:4700::1111]:8080/a", "http://[2606:4700::1111]:8080/a"),
        ("https://my_shop.ex.test/", "https://my_shop.ex.test/"),
    ],
)
def test_a_link_becomes_the_one_address_of_its_page(link, address):
    assert normalise_url(link, BASE) == address


@pytest.mark.parametrize(
    "link",
    [
        "mailto:a@ex.test",
        "javascript:void(0)",
        "tel:+491234",
        "data:text/html,x",
        "ftp://ex.test/",
        "http://",
        "http://[1/",
        "http://ex.test:99999/",
        "http://user@ex.test/",
        "http://a b.test/",
        "http://%61.test/",
        "https://exa<mple.test/",
    ],
)
def test_what_is_no_web_address_is_none(link):
    assert normalise_url(link, BASE) is None


def test_a_trailing_slash_is_neither_added_nor_removed(case):
    paths = case("W03")["input"]["server"]
    addresses = {normalise_url(path, case("W03")["input"]["start"]) for path in paths}
    assert addresses == {f"https://ex.test{path}" for path in paths}
    assert set(case("W03")["expected"]["stored_urls"]) <= addresses


@given(path_text)
def test_normalising_twice_changes_nothing_more(path):
    once = normalise_url(f"https://ex.test/{path}")
    assert once is None or normalise_url(once) == once


@given(path_text)
def test_an_address_is_plain_ascii_without_fragment_or_dot_segments(path):
    address = normalise_url(path, BASE)
    if address:
        assert address.isascii()
        assert "#" not in address
        assert " " not in address
        assert not {".", ".."} & set(address.partition("?")[0].split("/"))


@given(st.lists(st.sampled_from(["a", "b2", "c-d", "%C3%A9"]), max_size=6), st.booleans())
def test_an_address_that_is_already_normal_stays_as_it_is(segments, has_slash):
    url = "https://ex.test/" + "/".join(segments) + ("/" if has_slash and segments else "")
    assert normalise_url(url, BASE) == url


def test_the_path_of_the_case_that_grows_by_itself_is_recognised(case):
    expected = case("W05")["expected"]
    for path in expected["never_requested"]:
        assert has_repeating_path(f"https://ex.test{path}")
    for path in expected["requested_paths_max"]:
        assert not has_repeating_path(f"https://ex.test{path}")


@given(
    st.lists(st.sampled_from("abcdef"), min_size=2, max_size=5), st.text("xyz", max_size=3), st.text("xyz", max_size=3)
)
def test_any_run_of_segments_twice_in_a_row_is_recognised(run, before, after):
    path = "/".join([*before, *run, *run, *after])
    assert has_repeating_path(f"https://ex.test/{path}/")


@given(st.lists(st.integers(0, 10_000), unique=True, max_size=30))
def test_a_path_of_different_segments_never_repeats(segments):
    assert not has_repeating_path("https://ex.test/" + "/".join(map(str, segments)))


@pytest.mark.parametrize("path", ["/", "", "/2024/11/11/news", "/blog/blog/", "/a/b/c/a/b", "/a?x=/b/c/b/c"])
def test_honest_paths_do_not_count_as_repeating(path):
    assert not has_repeating_path(f"https://ex.test{path}")


def test_one_segment_three_times_in_a_row_repeats():
    assert has_repeating_path("https://ex.test/info/info/info/")


def test_a_hostile_address_of_a_hundred_thousand_characters_is_read_like_any_other():
    url = "https://ex.test/" + "a/b%zz/../" * 10_000
    assert normalise_url(url) is not None
    assert has_repeating_path(url)
    assert not has_repeating_path("https://ex.test/" + "/".join(map(str, range(20_000))))
