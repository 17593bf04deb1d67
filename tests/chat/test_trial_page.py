"""The Test page: knobs tried and saved, why a snippet is not used, by mouse, by keyboard and by address."""

import html
import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from models_app import snippets
from models_app.explain import Cause
from models_app.models import MLModel
from tenants.store import activated
from tests.chat.causes import ASKED, FAR_QUESTION, QUESTION, teach_causes
from tests.conftest import make_person
from tests.live import live_url  # noqa: F401  a fixture
from tests.signed_in import beside_the_browser, signed_in_page
from tests.test_browser import browser, look  # noqa: F401  a fixture

HTMX = {"HX-Request": "true"}
HOSTILE = "<img src=x onerror=alert(1)>"


def address(name: str, *arguments) -> str:
    return reverse(f"chat:{name}", args=["acme", "support", *arguments])


def post(client, name: str, *arguments, **fields):
    return client.post(address(name, *arguments), {"question": QUESTION} | fields, headers=HTMX)


def text_of(response) -> str:
    """Return what a person reads of it, in one line."""
    assert response.status_code == 200
    without_marks = re.sub(r"</?mark>", "", response.content.decode())
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", without_marks)))


@pytest.fixture
def client(browse, ann):
    return browse(ann)


@pytest.mark.parametrize("cause", list(Cause))
def test_the_page_tells_exactly_the_cause(client, causes, cause):
    mode, question = ASKED[cause]
    page = post(client, "test_why_not", causes[cause].pk, question=question).content.decode()
    verdicts = re.findall(r'<h4>(\w+)</h4>\s*<span class="badge[^"]*">([^<]+)</span>', page)
    assert dict(verdicts)[mode.capitalize()] == cause.capitalize()
    assert len(verdicts) == 3


@pytest.mark.parametrize(
    "knobs",
    [{"threshold": value} for value in ("-1", "1.01", "nan", "inf", "1e999", "much", "", "0,3")]
    + [{"max_context_tokens": value} for value in ("0", "-5", "1.5", "9" * 40, "all", "")],
)
def test_a_bad_knob_is_refused_beside_its_field_and_nothing_is_asked_or_saved(client, causes, knobs):
    for name in ("test_results", "test_why_not"):
        arguments = [causes[Cause.BUDGET].pk] if name == "test_why_not" else []
        response = post(client, name, *arguments, **knobs)
        assert "One of the settings is refused." in text_of(response)
        assert "HX-Push-Url" not in response
    assert 'aria-invalid="true"' in post(client, "test_results", **knobs).content.decode()
    response = post(client, "test_save", **knobs)
    assert response.status_code == 204
    assert "Nothing was saved" in json.loads(response["HX-Trigger"])["toast"]["text"]
    model = MLModel.objects.get()
    assert (model.threshold, model.max_context_tokens) == (0.3, 200)


def test_a_knob_is_tried_without_being_saved_and_saved_when_it_is_better(client, causes):
    few = causes[Cause.TOO_FEW_WORDS]
    tried = {"question": FAR_QUESTION, "threshold": "0.05"}
    assert "Tried with Threshold 0.05 (the model has 0.3)" in text_of(post(client, "test_results", **tried))
    assert "In the context" in text_of(post(client, "test_why_not", few.pk, **tried))
    assert MLModel.objects.get().threshold == 0.3
    saved = post(client, "test_save", **tried)
    assert json.loads(saved["HX-Trigger"])["toast"]["text"] == "Saved to the model: Threshold 0.05."
    assert MLModel.objects.get().threshold == 0.05
    assert "Tried with" not in text_of(post(client, "test_results", **tried))


def test_saving_what_was_turned_undoes_nothing_of_another_person(client, causes):
    MLModel.objects.update(name="Renamed meanwhile", max_context_tokens=300)
    post(client, "test_save", threshold="0.2")
    model = MLModel.objects.get()
    assert (model.name, model.max_context_tokens, model.threshold) == ("Renamed meanwhile", 300, 0.2)


def test_knobs_as_the_model_has_them_save_nothing(client, causes):
    saved = post(client, "test_save", threshold="0.30", max_context_tokens="200")
    assert "has these settings already" in saved["HX-Trigger"]


def test_a_reader_tries_and_asks_why_and_saves_nothing(browse, ray, causes):
    reader = browse(ray)
    page = post(reader, "test_results", threshold="0.05").content.decode()
    assert "Only editors and owners save them." in page
    assert address("test_save") not in page
    assert post(reader, "test_why_not", causes[Cause.DEPTH].pk).status_code == 200
    assert post(reader, "test_save", threshold="0.05").status_code == 403
    assert MLModel.objects.get().threshold == 0.3


def test_an_editor_saves(browse, acme, causes):
    post(browse(make_person("ed@acme.test", acme, "editor")), "test_save", max_context_tokens="500")
    assert MLModel.objects.get().max_context_tokens == 500


def test_a_member_of_another_tenant_finds_no_page(browse, gil, causes):
    other = browse(gil)
    pk = causes[Cause.DEPTH].pk
    answers = [post(other, name, *rest) for name, *rest in (["test_results"], ["test_why_not", pk], ["test_save"])]
    answers += [other.get(address(name)) for name in ("test", "test_snippets")]
    assert {answer.status_code for answer in answers} == {404}


def test_a_snippet_of_another_model_is_not_explained(client, causes):
    strange = snippets.add(MLModel.objects.create(slug="other", name="Other"), "Secret", "Of another model.")
    assert post(client, "test_why_not", strange.pk).status_code == 404
    assert post(client, "test_why_not", 999_999).status_code == 404
    page = client.get(address("test"), {"question": QUESTION, "snippet": strange.pk})
    assert "Secret" not in page.content.decode()


@pytest.mark.parametrize("number", ["x", "-1", "²", "9" * 30, "1;2"])
def test_an_address_with_no_snippets_number_opens_the_page(client, causes, number):
    assert client.get(address("test"), {"question": QUESTION, "snippet": number}).status_code == 200


def test_too_long_and_empty_questions_are_refused_in_words(client, causes):
    pk = causes[Cause.DEPTH].pk
    for name, *rest in (["test_results"], ["test_why_not", pk]):
        assert "at most 1,000" in text_of(post(client, name, *rest, question="long " * 4_000))
        assert "Type a question first." in text_of(post(client, name, *rest, question=" \n"))


def test_what_people_typed_runs_nothing(client, causes):
    hostile = snippets.add(MLModel.objects.get(), f"Pump {HOSTILE}", f"A repair. {HOSTILE}")
    pages = [
        client.get(address("test"), {"question": HOSTILE, "earlier": HOSTILE, "threshold": HOSTILE}),
        post(client, "test_results", question=f"pump {HOSTILE}", earlier=HOSTILE),
        post(client, "test_results", threshold=HOSTILE),
        post(client, "test_why_not", hostile.pk, question=f"it {HOSTILE}", earlier=HOSTILE),
        client.get(address("test_snippets"), {"q": HOSTILE}),
        client.get(address("test_snippets"), {"q": "nothing " + HOSTILE}),
    ]
    for page in pages:
        assert page.status_code == 200
        assert "<img src=x" not in page.content.decode()


def test_the_address_holds_what_is_shown_and_leads_back_to_it(client, causes):
    pk = causes[Cause.DEPTH].pk
    response = post(client, "test_why_not", pk, threshold="0.05", max_context_tokens="200", earlier="And before?")
    pushed = response["HX-Push-Url"]
    assert "max_context_tokens" not in pushed  # it is the model's own
    page = client.get(pushed).content.decode()
    assert f">{html.escape(QUESTION)}</textarea>" in page
    assert 'value="0.05"' in page
    assert 'value="And before?"' in page
    assert address("test_why_not", pk) in page
    again = client.post(
        address("test_why_not", pk),
        {"question": QUESTION, "threshold": "0.05", "earlier": "And before?"},
        headers=HTMX | {"HX-Current-URL": f"http://testserver{pushed}"},
    )
    assert "HX-Push-Url" not in again


def test_a_question_too_long_for_an_address_leaves_the_address_alone(client, causes):
    assert "HX-Push-Url" not in post(client, "test_results", question="pump " * 400)


def test_choices_hold_the_words_in_their_title_first(client, causes):
    shown = text_of(client.get(address("test_snippets"), {"q": "voucher"}))
    assert "Vouchers" in shown
    assert "No snippet of this model holds “xylophone”" in text_of(
        client.get(address("test_snippets"), {"q": "xylophone"})
    )
    assert text_of(client.get(address("test_snippets"), {"q": "  "})).strip() == ""


def test_each_part_of_the_bar_of_tokens_has_a_name_and_leads_to_its_hit(client, causes):
    page = post(client, "test_results").content.decode()
    links = re.findall(r'<a href="#(hit-\w+-\d+)" aria-label="Rank (\d+), ([^"]+): ([\d,]+) tokens">', page)
    assert len(links) >= 3
    assert all(f'id="{target}"' in page for target, *_ in links)


@pytest.fixture
def page(live_url, browser: Browser, browse, ann):  # noqa: F811
    """A page in which Ann is logged in."""
    with signed_in_page(browser, live_url, beside_the_browser(browse, ann)) as page:
        yield page


@pytest.fixture
def collection(acme, far_server, page):
    """The ids of the snippets that each cause keeps out, in Acme's model "support"."""
    return beside_the_browser(make_collection, acme, far_server)


def test_a_question_is_asked_explained_tuned_and_saved_by_keyboard_alone(page: Page, live_url, acme, collection):  # noqa: F811
    page.goto(live_url + address("test"))
    look(page, "trial-empty")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(FAR_QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Hybrid")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("w")
    expect(page.locator("#why-not-words")).to_be_focused()
    page.keyboard.type("pump 1")
    expect(page.locator("#why-not-choices button")).to_have_count(8)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".choice").nth(1)).to_be_focused()
    look(page, "trial-choices")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#why-not-words")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("vouch")
    expect(page.locator("#why-not-choices button")).to_have_count(1)
    page.keyboard.press("Enter")
    why = page.locator("#why-not-answer")
    expect(why.locator("#why-title")).to_be_focused()
    expect(why.locator(".verdict", has_text="Hybrid")).to_contain_text("Too few words")

    page.keyboard.press("t")
    expect(page.locator("#knob_threshold")).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.type("0.05")
    page.keyboard.press("Enter")
    expect(why.locator(".verdict", has_text="Hybrid")).to_contain_text("In the context")
    expect(page.get_by_text("Tried with Threshold 0.05")).to_be_visible()
    look(page, "trial-knobs")
    assert beside_the_browser(threshold_of, acme) == 0.3
    page.get_by_role("button", name="Save these to the model").press("Enter")
    expect(page.get_by_text("Saved to the model: Threshold 0.05.").first).to_be_visible()
    expect(page.get_by_text("Tried with")).to_have_count(0)
    assert beside_the_browser(threshold_of, acme) == 0.05

    page.reload()
    expect(page.locator("#question")).to_have_value(FAR_QUESTION)
    expect(why.locator("#why-title")).to_have_text("Vouchers")
    expect(page.get_by_role("heading", name="Hybrid").first).to_be_visible()


def test_each_cause_is_seen_and_a_refusal_too(page: Page, live_url, collection):  # noqa: F811
    for cause, (mode, question) in ASKED.items():
        page.goto(f"{live_url}{reverse('chat:test', args=['acme', 'support'], query={'question': question})}")
        expect(page.get_by_role("heading", name="Hybrid")).to_be_visible()
        page.goto(page.url + f"&snippet={collection[cause]}")
        verdict = page.locator(".verdict", has=page.get_by_role("heading", name=mode.capitalize()))
        expect(verdict.locator(".badge")).to_have_text(cause.capitalize())
        expect(page.locator("#test-results").get_by_role("heading", name="Hybrid")).to_be_visible()
        look(page, f"trial-why-{cause.value.replace(' ', '-')}")
    page.locator("#knob_threshold").evaluate("field => field.closest('details').open = true")
    page.locator("#knob_threshold").fill("7")
    page.get_by_role("button", name="Compare retrievals").click()
    expect(page.get_by_text("One of the settings is refused.").first).to_be_visible()
    look(page, "trial-refused")


def test_the_parts_of_a_bar_take_the_focus_and_say_their_name(page: Page, live_url, collection):  # noqa: F811
    page.goto(f"{live_url}{reverse('chat:test', args=['acme', 'support'], query={'question': QUESTION})}")
    bar = page.get_by_role("group", name=re.compile("context of hybrid"))
    part = bar.get_by_role("link").first
    part.focus()
    expect(page.locator(".column--own [data-bar-name]")).to_have_text(re.compile("^Rank 1, "))
    look(page, "trial-bar")
    page.keyboard.press("Enter")
    expect(page.locator(".column--own .hit").first).to_be_in_viewport()


def make_collection(tenant, server) -> dict[Cause, int]:
    with activated(tenant):
        made = teach_causes(MLModel.objects.create(slug="support", name="Support"), server)
        return {cause: snippet.pk for cause, snippet in made.items()}


def threshold_of(tenant) -> float:
    with activated(tenant):
        return MLModel.objects.get().threshold
