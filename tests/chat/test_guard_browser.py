"""What the guard and the LLMs that were away look like to the owner, in a real browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from chat.models import Turn
from models_app.models import MLModel
from tenants.store import activated
from tests.axe import violations
from tests.live import live_url  # noqa: F401  a fixture
from tests.signed_in import beside_the_browser, signed_in_page
from tests.test_browser import browser, look  # noqa: F401  a fixture

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def turn(acme_store):
    model = MLModel.objects.create(slug="support", name="Support")
    return Turn.objects.create(
        model=model,
        question="and how much is that?",
        searched_for=f"and how much is that?\nDo you have the blue lamp? {HOSTILE}",
        answer="It costs **45 €**, until 7 May.\n\n*Not found in the sources: 7 May, 45 €. Please check.*",
        answered_by="llm",
        llm="second",
        outcome="stop",
        degraded="first: The LLM takes no more requests: its budget is used up.",
        guard_flags=[{"kind": "date", "text": "7 May"}, {"kind": "price", "text": f"45 € {HOSTILE}"}],
    )


@pytest.fixture
def page(browser: Browser, browse, ann, live_url, turn):  # noqa: F811
    with signed_in_page(browser, live_url, browse(ann)) as opened:
        yield opened


def test_a_flagged_answer_is_found_and_tells_which_facts_and_which_llm(page: Page, live_url, turn):  # noqa: F811
    page.goto(live_url + reverse("chat:history", args=["acme", "support"]))
    page.get_by_label("Show").select_option(label="Flagged by the guard")
    expect(page.get_by_text("2 facts in no source")).to_be_visible()
    look(page, "history-flagged")
    page.get_by_role("link", name="and how much is that?").click()
    expect(page.get_by_text("Found in none of the sources:")).to_be_visible()
    expect(page.locator("mark").first).to_have_text("7 May")
    expect(page.get_by_text("LLM second", exact=True)).to_be_visible()
    assert violations(page, "main") == []
    look(page, "turn-flagged")
    assert page.locator("img[src='x']").count() == 0


def test_the_settings_of_answers_are_told_with_their_meaning_and_saved(page: Page, live_url, acme):  # noqa: F811
    page.goto(live_url + reverse("models_app:training_data", args=["acme", "support"]))
    page.get_by_role("link", name="Behaviour").or_(page.get_by_role("button", name="Behaviour")).first.click()
    dialog = page.locator("dialog[open]")
    for title in ("Answers", "Conversation"):
        section = dialog.locator("details", has=page.get_by_text(title, exact=True)).first
        if section.count() and section.get_attribute("open") is None:
            section.locator("summary").first.click()
    dialog.get_by_label("Name them below the answer, too").check()
    dialog.get_by_label("Reword follow-ups").check()
    dialog.get_by_label("Sum up long conversations").check()
    expect(dialog.get_by_text("A total that the LLM computed is flagged, too.")).to_be_visible()
    look(page, "behaviour-guard")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)

    def saved() -> tuple:
        with activated(acme):
            model = MLModel.objects.get()
            return model.guard, model.rewrites_follow_ups, model.compresses_history

    assert beside_the_browser(saved) == ("mark", True, True)
