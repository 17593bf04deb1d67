"""Links that lead to the very sentence, where the page says it once."""

from models_app.page_texts import ShownPage, drop_page_text, keep_page_text, shown_pages

URI = "https://shop.test/help"
PAGE = ShownPage.of(
    "Home\nShipping\nWe ship to 12 countries.\nReturns\nSend it back within 30 days.\nSend it back, please.\n"
    "Warranty\nThe warranty of all our frames, forks and handlebars lasts five years from the day on which they were "
    "bought.\nAsk us.\nContact\nAsk us.\n日本語のページです。返品は30日以内。",
    ((1, "shipping"), (3, "returns"), (9, "contact us")),
)


def address_of(sentence: str, *near: str) -> str:
    return PAGE.address(URI, sentence, near)


def test_a_sentence_that_stands_once_is_led_to():
    assert address_of("We ship to 12 countries.") == f"{URI}#:~:text=We%20ship%20to%2012%20countries."


def test_blanks_and_case_make_no_other_sentence():
    assert "#:~:text=" in address_of("we ship  to\n12 Countries.")


def test_of_a_long_sentence_the_link_names_its_begin_and_its_end():
    sentence = next(line for line in PAGE.text.split("\n") if line.startswith("The warranty"))
    start, _, end = address_of(sentence).partition(":~:text=")[2].partition(",")
    assert sentence.startswith(start.replace("%20", " ").replace("%2C", ","))
    assert sentence.endswith(end.replace("%20", " "))


def test_a_sentence_that_stands_twice_leads_to_the_heading_above_what_stands_beside_it():
    assert address_of("Ask us.", "Contact") == f"{URI}#contact%20us"


def test_a_sentence_that_the_page_does_not_have_leads_to_the_page():
    assert address_of("We ship to the moon.") == URI


def test_a_part_of_a_word_is_no_place():
    assert ShownPage.of("Cardholders pay less.").address(URI, "older") == URI


def test_the_marks_of_the_directive_are_escaped():
    page = ShownPage.of("Mon-Fri, 9 & 17, 50% off")
    assert page.address(URI, "Mon-Fri, 9 & 17, 50% off").endswith(
        ":~:text=Mon%2DFri%2C%209%20%26%2017%2C%2050%25%20off"
    )


def test_a_sentence_without_blanks_is_led_to():
    assert address_of("返品は30日以内。").endswith("%E5%86%85%E3%80%82")


def test_an_address_keeps_no_anchor_of_its_own_beside_the_sentence():
    assert PAGE.address(f"{URI}#top", "We ship to 12 countries.").startswith(f"{URI}#:~:text=")


def test_page_texts_are_replaced_and_forgotten(support):
    keep_page_text(support, URI, PAGE)
    keep_page_text(support, f"{URI}/2", PAGE)
    keep_page_text(support, URI, ShownPage.of("Now this."))
    assert shown_pages(support, [URI])[URI].text == "Now this."
    drop_page_text(support, URI)
    assert set(shown_pages(support, [URI, f"{URI}/2"])) == {f"{URI}/2"}
