"""How the widget looks and reads: axe-core in every state, light and dark, right to left, in any colour."""

import pytest
from playwright.sync_api import Page, expect

from chat.widget_words import languages, words_in
from tests.axe import violations
from tests.chat.widget.shop import Shop, Visitor, ask, field_of, look, open_chat
from tests.chat.widget.test_conversation import ANSWER
from tests.fakes.openai_server import streamed

WIDGET = "sitewise-chat"


@pytest.fixture(params=["light", "dark"])
def viewer(browser, request):
    """A visitor whose device is set to light or to dark."""
    viewing = Visitor(browser, color_scheme=request.param, reduced_motion="reduce")
    viewing.scheme = request.param
    yield viewing
    viewing.close()


def check(viewer: Visitor, name: str) -> None:
    """Look at a state, and have axe-core look at it."""
    look(viewer.page, f"{name}-{viewer.scheme}")
    assert violations(viewer.page, WIDGET) == [], name


def teach(stored, model, **settings) -> None:
    def save():
        for name, value in settings.items():
            setattr(model, name, value)
        model.save()

    stored(save)


def test_every_state_is_accessible(shop, viewer, llm, model, stored):
    teach(stored, model, takes_emails=True, questionnaire="What is your name?\nWhich bike?\n- City bike\n- Cargo bike")
    viewer.page.goto(shop.origin)
    expect(viewer.page.locator("sitewise-chat button.launch")).to_be_visible()
    check(viewer, "closed")
    viewer.page.locator("sitewise-chat button.launch").click()
    expect(viewer.page.get_by_label("What is your name?")).to_be_visible()
    viewer.page.get_by_text("Cargo bike").click()
    check(viewer, "questionnaire")
    viewer.page.get_by_role("button", name="Start").click()
    expect(viewer.page.get_by_role("button", name="When are you open?")).to_be_visible()
    check(viewer, "starters")
    llm.will(streamed(*ANSWER))
    ask(viewer.page, "How much is shipping?")
    check(viewer, "answer")
    viewer.page.get_by_role("button", name="Not helpful").click()
    viewer.page.get_by_role("button", name="Incomplete").click()
    expect(viewer.page.get_by_label("Your e-mail")).to_be_visible()
    viewer.page.locator("sitewise-chat .log").evaluate("log => { log.scrollTop = log.scrollHeight }")
    check(viewer, "rated-down")
    viewer.page.route("**/v1/chat/completions", lambda route: route.abort())
    field_of(viewer.page).fill("Is shipping insured?")
    field_of(viewer.page).press("Enter")
    expect(viewer.page.get_by_role("button", name="Try again")).to_be_visible()
    check(viewer, "failed")
    assert [said for said in viewer.complaints if "widget" in said] == []


@pytest.mark.parametrize("language", ["ar", "he"])
def test_a_language_from_right_to_left_turns_it_around(shop, viewer, language, llm, model, stored):
    teach(stored, model, greeting="أهلًا بك! اسألني عن الدراجات.", conversation_starters="كم تكلفة الشحن؟")
    shop.language = language
    viewer.page.goto(shop.origin)
    launch = viewer.page.locator("sitewise-chat button.launch")
    assert launch.bounding_box()["x"] < 100  # at the end of a line, which is on the left
    launch.click()
    expect(viewer.page.get_by_role("heading", name=words_in(language)["title"])).to_be_visible()
    llm.will(streamed("الشحن **مجاني** فوق 50 EUR.\n\n- داخل البلد\n- خارج البلد"))
    ask(viewer.page, "كم تكلفة الشحن؟")
    assert field_of(viewer.page).evaluate("field => getComputedStyle(field).direction") == "rtl"
    check(viewer, f"{language}-right-to-left")


@pytest.mark.parametrize(
    "colour", ["#ffe94d", "#f2f2f2", "#111111", "#ff3b30", "#0a84ff", "#7f7f7f", "red; } * { color: red"]
)
def test_any_colour_can_be_read(shop, viewer, colour):
    shop.options |= {"color": colour, "position": "left", "theme": viewer.scheme}
    open_chat(viewer, shop)
    ask(viewer.page, "How much is shipping?")
    assert viewer.page.get_by_role("dialog").bounding_box()["x"] < 100
    check(viewer, f"colour-{colour[1:7]}")


def test_it_stands_in_the_page_where_its_tag_stands(shop, viewer):
    shop.options["mode"] = "inline"
    viewer.page.goto(shop.origin)
    expect(viewer.page.get_by_role("button", name="How much is shipping?")).to_be_visible()
    assert viewer.page.evaluate("document.activeElement === document.body")  # it takes no focus from the page
    ask(viewer.page, "How much is shipping?")
    check(viewer, "inline")


def test_a_search_box_answers_below_itself(shop, viewer, llm):
    shop.options |= {"mode": "search", "placeholder": "Search or ask"}
    viewer.page.goto(shop.origin)
    field = field_of(viewer.page)
    expect(field).to_have_attribute("placeholder", "Search or ask")
    assert not [request for request in viewer.requests if "config" in request]
    check(viewer, "search-empty")
    llm.will(streamed(*ANSWER), streamed("Two days."))
    ask(viewer.page, "How much is shipping?")
    check(viewer, "search-answered")
    ask(viewer.page, "How long does it take?")
    expect(viewer.page.get_by_text("Two days.", exact=True)).to_be_visible()
    assert viewer.page.locator("sitewise-chat .asked").count() == 1


def test_on_a_phone_it_fills_the_screen_and_leaves_nothing_behind_to_reach(shop, browser):
    phone = Visitor(
        browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, color_scheme="dark",
        reduced_motion="reduce",
    )  # fmt: skip
    phone.scheme = "dark"
    page = open_chat(phone, shop)
    expect(page.get_by_role("heading", name="How can we help?")).to_be_focused()  # no keyboard over the greeting
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") in ("SITEWISE-CHAT", "BODY")
    ask(page, "How much is shipping?")
    check(phone, "phone")
    phone.close()


@pytest.mark.parametrize("language", languages())
def test_each_language_is_spoken_on_a_page_of_it(shop, visitor, language):
    shop.language = f"{language}-XX"
    visitor.page.goto(shop.origin)
    visitor.page.locator("sitewise-chat button.launch").click()
    expect(visitor.page.get_by_role("heading", name=words_in(language)["title"])).to_be_visible()


def test_a_page_that_brings_the_tag_twice_gets_one_button(shop: Shop, visitor: Visitor):
    page: Page = visitor.page
    page.goto(shop.origin)
    expect(page.locator(WIDGET)).to_have_count(1)
    page.evaluate("""() => {
        const first = document.querySelector("script[data-key]"), again = document.createElement("script");
        for (const { name, value } of first.attributes) again.setAttribute(name, value);
        return new Promise((loaded) => { again.onload = loaded; document.body.append(again); });
    }""")
    expect(page.locator(WIDGET)).to_have_count(1)
