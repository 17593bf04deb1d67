"""Hostile words set through everything that the widget and the dashboard show: none of it runs in a real browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from chat.models import Lead, Session, Turn
from models_app import snippets
from tests.chat.widget.shop import field_of, look
from tests.fakes.openai_server import streamed
from tests.signed_in import beside_the_browser, signed_in_page

MARKUP = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>"
    "<iframe srcdoc='<script>alert(4)</script>'>"
    "<details open ontoggle=alert(5)><a href='javascript:alert(6)'>a</a>\"'><b onmouseover=alert(7)>"
)
LINKS = (
    "[one](javascript:alert(8)) [two](data:text/html,<script>alert(9)</script>) <javascript:alert(10)> "
    "[x]: javascript:alert(11)"
)
HOSTILE = f"{MARKUP} {LINKS}"
FENCE = "```\n</script><script>alert(12)</script>\n```"


@pytest.fixture
def hostile(shop, model, acme, stored, llm):
    """The shop's page, whose model, tenant, snippets, visitors and LLM all speak in scripts."""

    def write():
        model.name = MARKUP[:100]
        model.system_instruction = model.conversation_starters = HOSTILE
        model.greeting = HOSTILE[:500]
        model.questionnaire = f"{MARKUP[:190]}\n{MARKUP[:100]}\n- {MARKUP[:150]}\n- two"
        model.takes_emails = True
        model.save()
        for uri in ("javascript:alert(13)", 'https://shop.test/"><script>alert(14)</script>', "data:text/html,x"):
            snippets.add(model, f"Shipping {HOSTILE}", f"Shipping {HOSTILE}\n\n{FENCE}", uri=uri)

    stored(write)
    acme.name = MARKUP[:100]
    beside_the_browser(acme.save)
    llm.will(streamed(f"{HOSTILE}\n\n{FENCE}\n\n| {MARKUP} |\n|---|\n| {LINKS} |\n"))
    return shop


def test_nothing_hostile_runs_in_the_widget(hostile, visitor, stored):
    page = visitor.page
    page.goto(hostile.origin)
    page.locator("sitewise-chat button.launch").click()
    expect(page.locator("sitewise-chat form.card")).to_be_visible()
    page.locator("sitewise-chat form.card input:not([type=radio])").fill(HOSTILE[:400])
    page.locator("sitewise-chat form.card input[type=radio]").first.check()
    look(page, "hostile-questionnaire")
    page.get_by_role("button", name="Start").click()
    expect(field_of(page)).to_be_visible()
    field_of(page).fill(f"Shipping? {HOSTILE}")
    field_of(page).press("Enter")
    expect(page.locator("sitewise-chat .tools")).to_be_visible()
    for link in page.locator("sitewise-chat a").all():
        assert link.get_attribute("href").startswith(("http://", "https://", "mailto:", "tel:"))
    assert page.locator("sitewise-chat").locator("script, img, iframe, details, [onload], [onerror]").count() == 0
    look(page, "hostile-answer")
    page.reload()  # the conversation comes back from the server
    page.locator("sitewise-chat button.launch").click()
    expect(page.locator("sitewise-chat .asked")).to_be_visible()
    page.wait_for_timeout(300)
    page.evaluate("alert('what runs is noticed')")
    assert visitor.alerts == ["what runs is noticed"]
    assert visitor.complaints == []
    assert stored(lambda: Session.objects.get().questionnaire_answers)[0][1] == HOSTILE[:400].strip()


def test_nothing_hostile_runs_in_the_dashboard(hostile, model, stored, live_url, browser, browse, ann, settings):
    settings.SITEWISE_URL = live_url

    def write():
        key = f"w-{'0' * 32}"
        pairs = [[MARKUP, HOSTILE]]
        Session.objects.create(model=model, key=key, questionnaire_answers=pairs, last_used_at="2026-01-01T00:00Z")
        texts = {"question": HOSTILE, "answer": f"{HOSTILE}\n\n{FENCE}", "rating_reason": MARKUP, "error": MARKUP}
        hits = [{"rank": 1, "id": 1, "title": MARKUP, "uri": "javascript:alert(15)", "text": HOSTILE, "tokens": 3}]
        turn = Turn.objects.create(model=model, session_key=key, rating=-1, hits=hits, outcome="stop", **texts)
        Lead.objects.create(model=model, email='"<script>alert(16)</script>"@shop.test', turn=turn, session_key=key)
        return turn.pk

    pk = stored(write)
    pages = [("chat:history", ()), ("chat:turn", (pk,)), ("chat:conversation", (pk,)), ("chat:lead_list", ())]
    pages += [("chat:test", ()), ("chat:embed", ()), ("models_app:training_data", ())]
    with signed_in_page(browser, live_url, beside_the_browser(browse, ann)) as page:
        alerts = []
        page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
        for name, arguments in pages:
            page.goto(f"{live_url}{reverse(name, args=['acme', 'support', *arguments])}")
            expect(page.locator("h1")).to_be_visible()
            assert (
                page.locator("main").locator("script, img, iframe:not(.embed__frame), [onerror], [onload]").count() == 0
            )
        page.goto(f"{live_url}{reverse('models_app:training_data', args=['acme', 'support'])}?dialog=behaviour")
        expect(page.locator("dialog .asks__question").first).to_be_visible()
        page.wait_for_timeout(300)
        assert alerts == []
