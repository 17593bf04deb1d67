"""The site's name is taken off the titles only where most pages carry it."""

import pytest

from crawler.titles import bare_site_name, find_site_name, without_site_name


@pytest.mark.parametrize("separator", [" | ", " - ", " – ", " — ", " · ", " :: "])
def test_the_end_that_most_titles_share_is_the_sites_name(separator):
    titles = [f"{page}{separator}Acme Ltd." for page in ("Prices", "Contact", "Re-opening - soon")] + ["Acme"]
    name = find_site_name(titles)
    assert bare_site_name(name) == "Acme Ltd."
    assert [without_site_name(title, name) for title in titles] == ["Prices", "Contact", "Re-opening - soon", "Acme"]


@pytest.mark.parametrize(
    "titles",
    [
        [],
        ["Prices | Acme", "Contact | Acme"],
        ["Prices | Acme", "Contact | Acme", "Terms", "News", "Jobs"],
        ["Red - small", "Red - large", "Blue - medium"],
        ["e-mail", "e-mail", "e-mail"],
    ],
    ids=["none", "two pages", "fewer than half", "all different", "a hyphen inside a word"],
)
def test_without_such_an_end_titles_stay_as_they_are(titles):
    assert find_site_name(titles) == ""
    assert [without_site_name(title, "") for title in titles] == titles


def test_a_title_that_is_nothing_but_the_name_stays():
    assert without_site_name(" | Acme", " | Acme") == " | Acme"
