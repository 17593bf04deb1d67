"""The widget on a foreign page, in a real browser: what a visitor sees, can reach by keyboard, and is spared."""

import gzip
import re
import shutil
import subprocess
import time

import pytest
from playwright.sync_api import expect

from chat.models import Session, Turn
from chat.widget_script import SCRIPT, current_script
from tests.chat.widget.shop import Visitor, ask, field_of, look, open_chat, public_key
from tests.fakes.openai_server import Reply, delta, refusal, streamed
from tests.signed_in import beside_the_browser

ANSWER = (
    "Shipping is **free from 50 EUR**; below that it costs:\n\n",
    "| Where | Price |\n|---|---|\n| Inland | 4.90 EUR |\n| Abroad | 12 EUR |\n\n",
    "- Orders before *noon* leave the same day.\n- See the [terms](https://shop.test/terms).\n",
)
MOST_BYTES = 20_000
BROTLI = (
    "const z = require('zlib'), f = require('fs'); "
    "console.log(z.brotliCompressSync(f.readFileSync(process.argv[1])).length)"
)


def test_a_visitor_asks_and_reads_the_answer_with_its_sources(shop, visitor, llm):
    page = open_chat(visitor, shop)
    expect(page.get_by_text("Hello! I know everything")).to_be_visible()
    look(page, "open")
    llm.will(streamed(*ANSWER, pause_seconds=0.5))
    page.get_by_role("button", name="How much is shipping?").click()
    expect(page.get_by_text("Inland · 4.90 EUR")).to_be_visible()  # while it arrives, without the marks
    look(page, "streaming")
    expect(page.get_by_role("cell", name="4.90 EUR")).to_be_visible()
    expect(page.locator("sitewise-chat strong", has_text="free from 50 EUR")).to_be_visible()
    expect(page.locator("sitewise-chat .sources a").first).to_have_attribute("href", re.compile("^https://shop.test/"))
    expect(field_of(page)).to_be_focused()
    look(page, "answered")
    assert visitor.complaints == []


def test_before_the_first_message_nothing_is_stored_and_little_is_fetched(shop, visitor):
    visitor.page.goto(shop.origin)
    expect(visitor.page.locator("sitewise-chat button.launch")).to_be_visible()
    to_us = [request for request in visitor.requests if shop.server in request]
    assert to_us == [f"GET {shop.server}/widget/v1.js"]
    open_chat(visitor, shop)
    expect(visitor.page.get_by_text("Hello! I know everything")).to_be_visible()
    assert visitor.stored() == {}
    opened = [request for request in visitor.requests if shop.server in request][1:]
    assert opened[-1] == f"POST {shop.server}/widget/v1/config"
    ask(visitor.page, "How much is shipping?")
    assert list(visitor.stored()) == [f"sitewise support {shop.options['key'][:16]}"]
    assert re.fullmatch("w-[0-9a-f]{32}", visitor.stored().popitem()[1])
    whole, packed = len(current_script().text), len(current_script().compressed)
    print(
        f"\nwidget: {whole} bytes, {packed} gzip, {brotli_bytes()} brotli; 1 request on the page, 1 when it is opened"
    )
    assert packed < MOST_BYTES


def brotli_bytes() -> str:
    node = shutil.which("node")
    command = [node or "true", "-e", BROTLI, str(SCRIPT)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() or "?"


def test_the_script_is_small_as_any_server_would_send_it():
    assert len(gzip.compress(SCRIPT.read_bytes(), 6)) < MOST_BYTES


def test_it_is_worked_by_keyboard_alone_and_closes_with_escape(shop, visitor):
    page = visitor.page
    page.goto(shop.origin)
    launch = page.get_by_role("button", name="Open chat")
    launch.press("Enter")
    expect(page.get_by_role("dialog", name="How can we help?")).to_be_visible()
    expect(field_of(page)).to_be_focused()
    field_of(page).fill("How much")
    field_of(page).press("Shift+Enter")
    expect(field_of(page)).to_have_value("How much\n")
    field_of(page).fill("How much is shipping?")
    field_of(page).press("Enter")
    expect(page.locator("sitewise-chat .tools")).to_be_visible()
    expect(page.locator("sitewise-chat [role=status]")).to_contain_text("Answer: All is well.")
    expect(field_of(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(launch).to_be_focused()


def test_the_conversation_is_found_again_on_the_next_page_and_can_be_begun_anew(shop, visitor, llm):
    page = open_chat(visitor, shop)
    llm.will(streamed("Within **two days**."))
    ask(page, "How long does shipping take?")
    page.goto(f"{shop.origin}/another-page")
    page.locator("sitewise-chat button.launch").click()
    expect(page.get_by_text("How long does shipping take?")).to_be_visible()
    expect(page.locator("sitewise-chat strong", has_text="two days")).to_be_visible()
    look(page, "next-page")
    page.get_by_role("button", name="New conversation").click()
    expect(page.get_by_role("button", name="How much is shipping?")).to_be_visible()
    assert visitor.stored() == {}


def test_two_tabs_of_one_session_both_get_their_answers(shop, visitor, llm, stored):
    page = open_chat(visitor, shop)
    ask(page, "How much is shipping?")
    with visitor.context.expect_page() as opened:
        page.evaluate("window.open(location.href)")
    other = opened.value
    other.locator("sitewise-chat button.launch").click()
    expect(other.get_by_text("How much is shipping?")).to_be_visible()
    llm.will(streamed("One ", "answer.", pause_seconds=0.4), streamed("Another ", "answer.", pause_seconds=0.4))
    for tab, question in ((page, "Is shipping insured?"), (other, "Is shipping fast?")):
        field_of(tab).fill(question)
        field_of(tab).press("Enter")
    for tab in (page, other):
        expect(tab.locator("sitewise-chat .turn .turn .tools")).to_have_count(2 if tab is page else 1)
    asked = stored(lambda: {question for question, _ in Session.objects.get().memory})
    assert asked == {"How much is shipping?", "Is shipping insured?", "Is shipping fast?"}


def test_an_answer_can_be_stopped_and_what_came_stays(shop, visitor, llm):
    page = open_chat(visitor, shop)
    llm.will(streamed("The first part.", " The rest.", pause_seconds=1, hangs=True))
    field_of(page).fill("How much is shipping?")
    field_of(page).press("Enter")
    expect(page.get_by_text("The first part.")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.").last).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    look(page, "stopped")


def test_a_visitor_who_leaves_in_mid_answer_is_logged_as_gone(shop, visitor, llm, stored):
    page = open_chat(visitor, shop)
    llm.will(Reply(chunks=[delta(content="The first part.")], hangs=True))
    field_of(page).fill("How much is shipping?")
    field_of(page).press("Enter")
    expect(page.get_by_text("The first part.")).to_be_visible()
    page.goto("about:blank")
    assert stored(outcome_once_closed) == "disconnected"


def outcome_once_closed() -> str:
    for _ in range(200):
        turn = Turn.objects.get()
        if turn.answer:
            return turn.outcome
        time.sleep(0.05)
    return "never closed"


def test_an_llm_that_is_away_leaves_the_best_passages_to_read(shop, visitor, llm):
    page = open_chat(visitor, shop)
    llm.will(refusal(401, "bad key"))
    ask(page, "How much is shipping?")
    expect(page.locator("sitewise-chat .words").get_by_text("Shipping is free from 50 EUR.")).to_be_visible()
    look(page, "llm-away")


def test_a_question_that_did_not_get_through_is_asked_again(shop, visitor):
    page = open_chat(visitor, shop)
    page.route("**/v1/chat/completions", lambda route: route.abort())
    field_of(page).fill("How much is shipping?")
    field_of(page).press("Enter")
    retry = page.get_by_role("button", name="Try again")
    expect(retry).to_be_visible()
    look(page, "failed")
    page.unroute("**/v1/chat/completions")
    retry.click()
    expect(page.get_by_text("All is well.", exact=True)).to_be_visible()
    expect(retry).to_have_count(0)


def test_a_page_of_another_origin_is_refused_quietly_and_its_owner_is_told_why(shop, visitor, acme):
    shop.options["key"] = beside_the_browser(public_key, acme, "https://elsewhere.test")
    visitor.page.goto(shop.origin)
    visitor.page.get_by_role("button", name="Open chat").click()
    expect(visitor.page.get_by_text("Chat is not available here.").first).to_be_visible()
    expect(field_of(visitor.page)).to_be_hidden()
    look(visitor.page, "refused-origin")
    said = [complaint for complaint in visitor.complaints if complaint.startswith("Sitewise:")]
    assert len(said) == 1 and shop.origin in said[0] and "list of origins" in said[0]


def test_a_server_out_of_reach_is_said_and_tried_again(shop, visitor):
    page = visitor.page
    page.goto(shop.origin)
    page.route("**/widget/v1/config", lambda route: route.abort())
    page.get_by_role("button", name="Open chat").click()
    expect(page.get_by_text("The chat cannot be reached.").first).to_be_visible()
    look(page, "out-of-reach")
    page.unroute("**/widget/v1/config")
    page.locator("sitewise-chat .quiet button").click()
    expect(page.get_by_text("Hello! I know everything")).to_be_visible()


@pytest.mark.parametrize("script_source", ["hash", "host"])
def test_it_works_under_the_strictest_policy_and_with_its_integrity(shop, visitor, script_source):
    script = current_script()
    shop.script, shop.integrity = script.path, script.integrity
    source = f"'{script.integrity}'" if script_source == "hash" else shop.server
    shop.policy = (
        f"default-src 'none'; script-src {source}; style-src 'none'; connect-src {shop.server}; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    page = open_chat(visitor, shop)
    ask(page, "How much is shipping?")
    panel = page.get_by_role("dialog")
    assert panel.evaluate("panel => getComputedStyle(panel).borderTopLeftRadius") == "16px"
    look(page, f"strict-policy-{script_source}")
    assert visitor.complaints == []


def test_a_script_that_was_tampered_with_does_not_run(shop, visitor):
    shop.integrity = current_script().integrity.replace("sha384-", "sha384-AA")[:71]
    visitor.page.goto(shop.origin)
    expect(visitor.page.get_by_text("Bikes for every day")).to_be_visible()
    assert visitor.page.locator("sitewise-chat").count() == 0


def test_a_question_costs_the_visitors_device_a_moment_where_the_owner_asks_for_it(shop, visitor, model, stored):
    model.wants_proof_of_work = True
    stored(model.save)
    page = open_chat(visitor, shop)
    ask(page, "How much is shipping – für große Räder?")
    expect(page.get_by_text("All is well.", exact=True)).to_be_visible()


def test_what_a_phone_shows(shop, browser):
    phone = Visitor(
        browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    page = open_chat(phone, shop)
    box = page.get_by_role("dialog").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 844)
    look(page, "phone-open")
    ask(page, "How much is shipping?")
    look(page, "phone-answered")
    page.get_by_role("button", name="Close").click()
    look(page, "phone-closed")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    phone.close()
