"""The widget's small forms: the questionnaire, thumbs and their reason, the e-mail; and what is copied."""

from playwright.sync_api import expect

from chat.models import Lead, Session, Turn
from tests.chat.widget.shop import ask, field_of, look, open_chat
from tests.chat.widget.test_conversation import ANSWER
from tests.chat.widget.test_looks import teach
from tests.fakes.openai_server import streamed

QUESTIONNAIRE = "What is your name?\nWhich bike do you ride?\n- City bike\n- Cargo bike"


def test_what_a_visitor_answers_before_the_chat_goes_to_the_llm_with_each_question(shop, visitor, llm, model, stored):
    teach(stored, model, questionnaire=QUESTIONNAIRE)
    page = visitor.page
    page.goto(shop.origin)
    page.locator("sitewise-chat button.launch").click()
    page.get_by_label("What is your name?").fill("Kim")
    page.get_by_label("Cargo bike").check()
    expect(field_of(page)).to_be_hidden()
    page.get_by_role("button", name="Start").click()
    expect(field_of(page)).to_be_focused()
    assert visitor.stored() == {}  # no message was sent yet
    for question in ("How much is shipping?", "How long does shipping take?"):
        ask(page, question)
    expect(page.locator("sitewise-chat .tools")).to_have_count(2)
    for request in llm.requests:
        told = "\n".join(message["content"] for message in request.body["messages"])
        assert "What is your name?\nKim" in told and "Which bike do you ride?\nCargo bike" in told
    page.reload()
    page.locator("sitewise-chat button.launch").click()
    expect(page.get_by_text("How much is shipping?")).to_be_visible()
    expect(page.get_by_label("What is your name?")).to_have_count(0)  # it is asked once a conversation


def test_a_questionnaire_can_be_skipped(shop, visitor, model, stored):
    teach(stored, model, questionnaire=QUESTIONNAIRE)
    visitor.page.goto(shop.origin)
    visitor.page.locator("sitewise-chat button.launch").click()
    visitor.page.get_by_role("button", name="Skip").click()
    expect(visitor.page.get_by_role("button", name="How much is shipping?")).to_be_visible()
    assert stored(Session.objects.count) == 0


def test_a_thumb_down_asks_why_and_both_stand_on_the_turn(shop, visitor, stored):
    page = open_chat(visitor, shop)
    ask(page, "How much is shipping?")
    page.get_by_role("button", name="Helpful", exact=True).click()
    expect(page.get_by_role("button", name="Helpful", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Not helpful").click()
    expect(page.get_by_role("button", name="Helpful", exact=True)).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Out of date").click()
    page.get_by_label("Something else").fill("It was 5 EUR last week")
    page.locator("sitewise-chat .why button.solid").click()
    expect(page.locator("sitewise-chat .note", has_text="Thank you.")).to_be_visible()
    turn = stored(Turn.objects.get)
    assert (turn.rating, turn.rating_reason) == (-1, "Out of date; It was 5 EUR last week")
    assert turn.channel == "widget"


def test_no_thumb_is_asked_for_where_nothing_is_logged(shop, visitor, model, stored):
    teach(stored, model, logs_questions=False)
    page = open_chat(visitor, shop)
    ask(page, "How much is shipping?")
    assert page.get_by_role("button", name="Helpful", exact=True).count() == 0


def test_a_question_without_an_answer_is_left_with_an_e_mail(shop, visitor, model, stored):
    teach(stored, model, takes_emails=True)
    page = open_chat(visitor, shop)
    ask(page, "Xylophone?")
    email = page.get_by_label("Your e-mail")
    email.fill("kim")
    page.locator("sitewise-chat .email button").click()
    expect(page.get_by_role("alert")).to_have_text("Please enter a valid e-mail.")
    expect(email).to_be_focused()
    look(page, "e-mail")
    email.fill("kim@visitor.test")
    email.press("Enter")
    expect(page.locator("sitewise-chat .note", has_text="Thank you.")).to_be_visible()
    lead = stored(lambda: Lead.objects.select_related("turn").get())
    assert (lead.email, lead.turn.question) == ("kim@visitor.test", "Xylophone?")


def test_an_answer_is_copied_as_it_reads(shop, visitor, llm):
    page = open_chat(visitor, shop)
    llm.will(streamed(*ANSWER))
    ask(page, "How much is shipping?")
    page.get_by_role("button", name="Copy the answer").click()
    expect(page.locator("sitewise-chat [role=status]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("Shipping is free from 50 EUR; below that it costs:")
    assert "**" not in copied and "Inland\t4.90 EUR" in copied
