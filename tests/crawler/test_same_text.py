"""What a page says is the same at each of its addresses, and differs where a link leads elsewhere."""

import pytest

from crawler.same_text import same_text


@pytest.mark.parametrize(
    ("link", "url", "other_link", "other_url"),
    [
        (
            "https://ex.test/dup?a=1#top",
            "https://ex.test/dup?a=1",
            "https://ex.test/dup?b=2#top",
            "https://ex.test/dup?b=2",
        ),
        ("https://ex.test/dup", "https://ex.test/dup?a=1", "https://ex.test/dup", "https://ex.test/dup/"),
        ("https://ex.test/x", "https://ex.test/dup", "http://www.ex.test/x", "http://www.ex.test/dup"),
        ("https://ex.test/x?ref=1&q=3", "https://ex.test/dup?ref=1", "https://ex.test/x?q=3", "https://ex.test/dup"),
        ("https://ex.test/", "https://ex.test/", "https://ex.test/", "https://ex.test/index.html"),
        ("https://ex.test/a/sub/", "https://ex.test/a/", "https://ex.test/a/sub/sub/", "https://ex.test/a/sub/"),
        (
            "https://social.test/share?u=https%3A%2F%2Fex.test%2Fa",
            "https://ex.test/a",
            "https://social.test/share?u=https://ex.test/b/",
            "https://ex.test/b",
        ),
        ("https://ex.test/login?next=/a", "https://ex.test/a", "https://ex.test/login?next=%2Fb", "https://ex.test/b"),
    ],
    ids=["anchor", "own address", "www", "parameter taken along", "start file", "endless", "share", "way back"],
)
def test_the_own_address_in_links_is_put_aside(link, url, other_link, other_url):
    assert same_text(f"See [it]({link}).", url) == same_text(f"See  [it]({other_link}).", other_url)


def test_a_link_to_the_address_that_pages_call_canonical_is_one_to_themselves():
    link, canonical = "[it](https://ex.test/a)", "https://ex.test/a"
    assert same_text(link, "https://ex.test/print/a", canonical) == same_text(link, canonical, canonical)


@pytest.mark.parametrize(
    ("link", "other_link"),
    [
        ("mailto:one@ex.test", "mailto:two@ex.test"),
        ("tel:1", "tel:2"),
        ("https://ex.test/one.pdf", "https://ex.test/two.pdf"),
        ("https://ex.test/one", "https://ex.test/two"),
        ("https://ex.test/index.php?id=7", "https://ex.test/index.php?id=8"),
        ("https://other.test/a", "https://ex.test/a"),
        ("http://[bad", "http://[worse"),
    ],
)
def test_another_target_is_another_text(link, other_link):
    url = "https://ex.test/index.php?id=1"
    assert same_text(f"[it]({link})", url) != same_text(f"[it]({other_link})", url)


def test_files_that_lie_below_two_pages_are_two():
    texts = {same_text(f"[it](https://ex.test/{bike}/manual.pdf)", f"https://ex.test/{bike}/") for bike in "ab"}
    assert len(texts) == 2


def test_images_are_no_text():
    url = "https://ex.test/"
    assert same_text("A bike ![red](https://ex.test/1.png)", url) == same_text("A bike", url)
