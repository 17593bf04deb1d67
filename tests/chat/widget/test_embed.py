"""The Embed tab, the editor of questionnaires, and what History shows of visitors: as a member sees them."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Browser, expect

from chat.models import Lead, Session, Turn
from chat.widget_script import current_script
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated
from tests.axe import violations
from tests.chat.widget.shop import public_key
from tests.conftest import make_person
from tests.signed_in import beside_the_browser, signed_in_page
from tests.test_browser import look

HTMX = {"HX-Request": "true"}
SESSION = f"w-{'0a' * 16}"


def address(name, *arguments):
    return reverse(f"chat:{name}", args=["acme", "support", *arguments])


@pytest.fixture
def client(support, browse, ann):
    return browse(ann)


@pytest.fixture
def turn(support) -> Turn:
    Session.objects.create(
        model=support,
        key=SESSION,
        questionnaire_answers=[["Which bike do you ride?", "<b>Cargo</b>"]],
        last_used_at=timezone.now() - timedelta(days=2),
    )
    asked = Turn.objects.create(
        model=support, question="Do you repair it?", answer="I do not know.", outcome="stop", session_key=SESSION,
        rating=-1, rating_reason="Incomplete", is_unanswered=True,
    )  # fmt: skip
    Lead.objects.create(model=support, email="kim@visitor.test", turn=asked, session_key=SESSION)
    return asked


def test_the_tag_holds_key_model_choices_and_hash(client, acme):
    key = public_key(acme, "https://shop.test")
    page = client.get(address("embed")).content.decode()
    assert f'integrity="{current_script().integrity}"' in page
    assert current_script().path in page
    assert f'data-key="{key}"' in page
    chosen = {"mode": "search", "color": "#112233", "title": 'Say "hi"', "position": "left"}
    code = client.get(address("embed_code"), chosen, headers=HTMX).content.decode()
    assert 'data-mode="search"' in code and 'data-color="#112233"' in code
    assert "integrity=" not in code and "/widget/v1.js" in code
    assert "data-position" not in code  # a search box stands where its tag stands
    assert "Say &amp;quot;hi&amp;quot;" in code  # escaped for the tag, and once more for this page


def test_a_choice_that_is_none_leaves_the_tag_as_it_is(client, acme):
    public_key(acme, "https://shop.test")
    hostile = {"color": '"><script>alert(1)</script>', "mode": "x", "language": "xx"}
    page = client.get(address("embed"), hostile).content.decode()
    assert "alert(1)</script>" not in page
    assert "data-mode=" not in page.split("embed-tag")[2].split("</code>")[0]


def test_without_a_key_the_owner_makes_one_for_the_models_site(client, acme, support):
    support.website = "https://shop.test/help"
    support.save()
    assert "needs a public key" in client.get(address("embed")).content.decode()
    dialog = client.get(address("embed_key"), headers=HTMX).content.decode()
    assert ">https://shop.test</textarea>" in dialog
    refused = client.post(address("embed_key"), {"origins": ""}, headers=HTMX)
    assert refused.status_code == 200 and "write at least one" in refused.content.decode()
    made = client.post(address("embed_key"), {"origins": "https://shop.test"}, headers=HTMX)
    assert made.status_code == 204 and "embed-changed" in made["HX-Trigger"]
    key = ApiKey.objects.get()
    assert (key.kind, key.model_slugs, key.allowed_origins) == ("public", ["support"], ["https://shop.test"])
    assert key.visitor_requests_a_minute == 30
    assert key.public_text in client.get(address("embed")).content.decode()


@pytest.mark.parametrize("role", ["editor", "reader"])
def test_only_an_owner_makes_keys(support, acme, browse, role):
    client = browse(make_person("eve@acme.test", acme, role))
    assert "An owner of this workspace can make one here." in client.get(address("embed")).content.decode()
    assert client.post(address("embed_key"), {"origins": "https://shop.test"}, headers=HTMX).status_code == 403
    assert not ApiKey.objects.exists()


def test_a_secret_keys_text_is_kept_nowhere(acme, support):
    key, text = ApiKey.mint(tenant=acme, name="server", kind="secret", model_slugs=["support"])
    assert key.public_text == ""
    assert text not in str(ApiKey.objects.values().get())


@pytest.mark.parametrize(("kind", "says"), [("public", "Embed tab shows it again"), ("secret", "shown this once")])
def test_a_new_keys_dialog_says_whether_it_is_shown_again(client, support, kind, says):
    fields = {"name": "k", "kind": kind, "model_slugs": ["support"], "visitor_requests_a_minute": "30"}
    fields |= {"origins": "https://shop.test"} if kind == "public" else {}
    page = client.post(reverse("keys:key_new", args=["acme"]), fields, headers=HTMX).content.decode()
    assert says in page


def test_only_the_dashboard_itself_may_frame_the_preview(client, acme):
    public_key(acme, "https://shop.test")
    response = client.get(address("embed_preview"))
    assert response["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in response["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in client.get(address("embed"))["Content-Security-Policy"]


def test_what_a_visitor_answered_stands_with_the_conversation_until_it_is_erased(client, turn, browse, ray):
    page = client.get(address("conversation", turn.pk)).content.decode()
    assert "Which bike do you ride?" in page and "&lt;b&gt;Cargo&lt;/b&gt;" in page
    assert "kim@visitor.test" in page
    assert "Thumb down: Incomplete" in page
    assert browse(ray).post(address("answers_erase", turn.pk), headers=HTMX).status_code == 403
    erased = client.post(address("answers_erase", turn.pk), headers=HTMX).content.decode()
    assert "were erased" in erased and "Cargo" not in erased
    assert Session.objects.get().questionnaire_answers == []


def test_an_e_mail_that_was_left_is_listed_with_its_question_until_it_is_erased(client, turn, browse, ray):
    lead = Lead.objects.get()
    assert "E-mails that visitors left (1)" in client.get(address("history")).content.decode()
    page = client.get(address("lead_list")).content.decode()
    assert "kim@visitor.test" in page and "Do you repair it?" in page
    assert browse(ray).post(address("lead_erase", lead.pk), headers=HTMX).status_code == 403
    assert "No e-mails yet" in client.post(address("lead_erase", lead.pk), headers=HTMX).content.decode()
    assert not Lead.objects.exists()


def test_history_shows_what_visitors_thought(client, turn):
    assert "Do you repair it?" in client.get(address("history"), {"show": "down"}).content.decode()
    assert "Do you repair it?" not in client.get(address("history"), {"show": "up"}).content.decode()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- City\n- Cargo", "Line 1 is a choice, but no question stands above it."),
        ("Which?\n- City", "offers one choice only"),
        ("Which?\n- City\n- City", "the same choice twice"),
        ("\n".join(f"Question {number}?" for number in range(11)), "at most 10 are asked"),
        ("x" * 201, "at most 200 fit"),
        ("Which?\n" + "\n".join(f"- {number}" for number in range(13)), "more than 12 choices"),
    ],
)
def test_a_questionnaire_that_would_not_ask_what_is_meant_is_refused(client, support, text, complaint):
    address = reverse("models_app:behaviour", args=["acme", "support"])
    fields = {name: getattr(support, name) or "" for name in ("name", "slug", "retrieval", "threshold")}
    page = client.post(address, fields | {"questionnaire": text}, headers=HTMX).content.decode()
    assert complaint in page.replace("&#x27;", "'")
    assert MLModel.objects.get().questionnaire == ""


def test_the_editor_shows_what_will_be_asked(client):
    address = reverse("models_app:questionnaire", args=["acme", "support"])
    shown = client.post(address, {"questionnaire": "Your name?\nWhich bike?\n- City\n* <i>Cargo</i>"}).content.decode()
    assert shown.count("asks__question") == 2
    assert "The visitor writes" in shown and "<li>City</li>" in shown and "&lt;i&gt;Cargo&lt;/i&gt;" in shown


@pytest.fixture
def page(live_url, browser: Browser, browse, ann, support, settings):
    settings.SITEWISE_URL = live_url
    with signed_in_page(browser, live_url, beside_the_browser(browse, ann)) as opened:
        yield opened


def test_the_owner_gets_from_no_key_to_the_tag_and_tries_the_widget(page, live_url, acme):
    page.goto(f"{live_url}{address('embed')}")
    look(page, "embed-no-key")
    page.get_by_role("button", name="Make a public key").click()
    page.get_by_label("Your sites").fill("https://shop.test")
    look(page, "embed-key")
    page.get_by_role("button", name="Make key").click()
    tag = page.locator("#embed-tag")
    expect(tag).to_contain_text("data-key=")
    assert violations(page) == []
    page.get_by_label("Colour").fill("#7a2e8f")
    expect(tag).to_contain_text('data-color="#7a2e8f"')
    page.get_by_label("Above the chat").or_(page.get_by_label("Title")).fill("Ask Acme")
    expect(tag).to_contain_text('data-title="Ask Acme"')
    preview = page.frame_locator("iframe.embed__frame")
    preview.get_by_role("button", name="Ask Acme").press("Enter")
    expect(preview.get_by_role("heading", name="Ask Acme")).to_be_visible()
    expect(preview.locator("textarea")).to_be_visible()
    expect(page).to_have_url(re.compile("color=%237a2e8f"))
    look(page, "embed")


def test_the_questionnaire_is_seen_while_it_is_written(page, live_url):
    page.goto(f"{live_url}{reverse('models_app:training_data', args=['acme', 'support'])}?dialog=behaviour")
    page.get_by_label("Questionnaire").fill("What is your name?\nWhich bike do you ride?\n- City bike\n- Cargo bike")
    expect(page.locator(".asks").get_by_text("Cargo bike")).to_be_visible()
    page.locator(".asks").scroll_into_view_if_needed()
    look(page, "questionnaire")
    assert violations(page, "dialog") == []
    page.get_by_role("button", name="Save behaviour").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_pages_about_visitors_look_as_they_should(page, live_url, acme, turn, support):
    support.takes_emails = True
    beside_the_browser(save, acme, support)
    for name, arguments in (("history", ()), ("conversation", (turn.pk,)), ("lead_list", ())):
        page.goto(f"{live_url}{address(name, *arguments)}")
        assert violations(page) == []
        look(page, f"visitors-{name}")


def save(tenant, model):
    with activated(tenant):
        model.save()
