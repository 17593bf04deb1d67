"""The dashboard's pages and dialogs about models, as a browser asks for them."""

import json

import pytest
from django.urls import reverse

from models_app import snippets
from models_app.models import MLModel
from tenants.models import ApiKey
from tenants.store import activated
from tests.conftest import make_person

HTMX = {"HX-Request": "true"}


def address(name, *arguments):
    return reverse(f"models_app:{name}", args=["acme", *arguments])


@pytest.fixture
def ann_browser(browse, ann):
    return browse(ann)


@pytest.fixture
def ray_browser(browse, ray):
    return browse(ray)


@pytest.fixture
def ed_browser(browse, acme):
    return browse(make_person("ed@acme.test", acme, "editor"))


def behaviour_fields(model, **changes):
    """Return what the Behaviour dialog's form sends when it is left as it is, with changes."""
    from models_app.behaviour import BehaviourForm
    from tenants.models import Role

    form = BehaviourForm(Role.OWNER, instance=model)
    fields = {field.html_name: field.value() for field in form}
    sent = {name: value for name, value in fields.items() if value not in (None, False)}
    return {**sent, **changes}


def events_of(response):
    return json.loads(response.headers["HX-Trigger"])


def test_an_empty_workspace_leads_to_a_new_model(acme_store, ann_browser):
    page = ann_browser.get(address("model_list"))
    assert page.status_code == 200
    assert address("model_new") in page.content.decode()


def test_a_reader_of_an_empty_workspace_is_told_who_can_begin(acme_store, ray_browser):
    page = ray_browser.get(address("model_list")).content.decode()
    assert address("model_new") not in page
    assert "editor or owner" in page


def test_each_model_shows_what_it_knows(support, ann_browser):
    snippets.add(support, "Hours", "Open from nine to five.")
    page = ann_browser.get(address("model_list")).content.decode()
    assert "Support" in page
    assert "1 without vector" in page


def test_a_new_model_has_the_defaults_and_leads_to_its_import(acme, acme_store, ann_browser):
    sent = {"name": "Über uns", "slug": "", "website": "example.com"}
    response = ann_browser.post(address("model_new"), sent, headers=HTMX)
    model = MLModel.objects.get(slug="uber-uns")
    assert response.headers["HX-Redirect"] == address("training_data", "uber-uns") + "?dialog=import"
    assert (model.retrieval, model.threshold, model.max_context_tokens) == ("semantic", 0.3, 2_000)
    page = ann_browser.get(response.headers["HX-Redirect"]).content.decode()
    assert 'hx-trigger="load"' in page


def test_a_slug_that_is_taken_is_refused_beside_its_field(support, ann_browser):
    response = ann_browser.post(address("model_new"), {"name": "Another", "slug": "support"}, headers=HTMX)
    page = response.content.decode()
    assert response.status_code == 200
    assert 'id="id_slug_error"' in page
    assert "There is a model “support” already." in page
    assert 'value="Another"' in page


def test_a_name_without_latin_letters_asks_for_a_slug(acme_store, ann_browser):
    page = ann_browser.post(address("model_new"), {"name": "问答", "slug": ""}, headers=HTMX).content.decode()
    assert "Choose a slug" in page
    assert not MLModel.objects.exists()


def test_a_dialog_opened_as_a_page_leads_to_the_page_it_belongs_to(support, ann_browser):
    response = ann_browser.get(address("behaviour", "support"))
    assert response.status_code == 302
    assert response.url == address("training_data", "support") + "?dialog=behaviour"


@pytest.mark.parametrize("name", ["training_data", "behaviour", "vectorise", "model_status", "model_delete"])
def test_an_unknown_model_is_not_found(acme_store, ann_browser, name):
    assert ann_browser.get(address(name, "nothing"), headers=HTMX).status_code == 404


def test_every_knob_has_its_meaning_beside_it(support, ann_browser):
    page = ann_browser.get(address("behaviour", "support"), headers=HTMX).content.decode()
    for field in behaviour_fields(support):
        assert f'name="{field}"' in page
    assert page.count("_helptext") >= 2 * len(behaviour_fields(support))


def test_saving_an_untouched_dialog_changes_nothing(support, ann_browser):
    before = MLModel.objects.filter(pk=support.pk).values().get()
    response = ann_browser.post(address("behaviour", "support"), behaviour_fields(support), headers=HTMX)
    assert response.status_code == 204
    assert MLModel.objects.filter(pk=support.pk).values().get() == before


def test_a_changed_knob_is_saved_and_others_are_told(support, ann_browser):
    sent = behaviour_fields(support, threshold="0.45", retrieval="hybrid", logs_questions="")
    response = ann_browser.post(address("behaviour", "support"), sent, headers=HTMX)
    support.refresh_from_db()
    assert (support.threshold, support.retrieval, support.logs_questions) == (0.45, "hybrid", False)
    assert "behaviour-changed" in events_of(response)


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("threshold", "7"),
        ("threshold", "much"),
        ("max_context_tokens", "3"),
        ("max_tokens", "-1"),
        ("session_timeout_seconds", "0"),
        ("temperature", "9"),
        ("retrieval", "magic"),
        ("slug", "not a slug"),
        ("name", ""),
        ("name", "Sup\u202eport"),
        ("name", "Support\nBcc: x"),
        ("website", "javascript:alert(1)"),
        ("website", "data:text/html,x"),
        ("website", "mailto:bo@acme.test"),
        ("website", "ftp://example.com"),
        ("website", "my website"),
        ("website", "http://10.0.0.8/"),
        ("input_price", "-2"),
        ("context_window", "12"),
        ("provider_base_url", "ftp://example.com"),
        ("provider_base_url", "http://10.0.0.8/v1"),
        ("provider_base_url", "http://user:secret@example.com/v1"),
        ("llm", "gpt-4o"),
        ("splitter_llm", "multilingual-e5-small"),
        ("embedding_model", "text-embedding-3-large"),
        ("provider_key", "two words"),
        ("provider_key", "ключ"),
    ],
)
def test_a_bad_value_is_refused_beside_its_field_and_nothing_is_lost(support, ann_browser, field, bad):
    sent = behaviour_fields(support, greeting="Typed with care") | {field: bad}
    response = ann_browser.post(address("behaviour", "support"), sent, headers=HTMX)
    page = response.content.decode()
    assert response.status_code == 200
    assert f'id="id_{field}_error"' in page or f'id="id_{field}_0"' in page
    assert "errorlist" in page
    assert 'value="Typed with care"' in page
    support.refresh_from_db()
    assert support.greeting == ""


def test_the_provider_key_is_stored_encrypted_and_never_shown(support, ann_browser):
    sent = behaviour_fields(support, provider_base_url="https://llm.example/v1", provider_key="sk-very-secret")
    assert ann_browser.post(address("behaviour", "support"), sent, headers=HTMX).status_code == 204
    support.refresh_from_db()
    page = ann_browser.get(address("behaviour", "support"), headers=HTMX).content.decode()
    assert support.provider_key == "sk-very-secret"
    assert "sk-very-secret" not in support.provider_key_encrypted
    assert "sk-very-secret" not in page
    assert "A key is set" in page


@pytest.mark.parametrize(
    "website", ["example.com", "example.com/help", "HTTP://Example.com:8080/", "", "bücher.example"]
)
def test_a_website_is_kept_as_it_is_typed(support, ann_browser, website):
    support.website = "old.example"
    support.save()
    sent = behaviour_fields(support, website=f" {website}")
    assert ann_browser.post(address("behaviour", "support"), sent, headers=HTMX).status_code == 204
    support.refresh_from_db()
    assert support.website == website


@pytest.mark.parametrize("bad", [{"website": "javascript:alert(1)"}, {"name": "Sup\u202eport"}])
def test_a_new_model_is_checked_in_the_same_way(acme_store, ann_browser, bad):
    sent = {"name": "Support", "slug": "support", "website": ""} | bad
    page = ann_browser.post(address("model_new"), sent, headers=HTMX).content.decode()
    assert f'id="id_{next(iter(bad))}_error"' in page
    assert not MLModel.objects.exists()


def test_the_names_of_an_own_provider_and_the_local_model_are_taken(support, ann_browser):
    names = {"llm": "gpt-4o", "splitter_llm": "gpt-4o-mini", "embedding_model": "text-embedding-3-large"}
    for sent in (
        {"embedding_model": "multilingual-e5-small"},
        {"provider_base_url": "https://llm.example/v1", **names},
    ):
        changed = behaviour_fields(support, **sent)
        assert ann_browser.post(address("behaviour", "support"), changed, headers=HTMX).status_code == 204
        support.refresh_from_db()
        assert {name: getattr(support, name) for name in sent} == sent


def test_an_empty_key_field_keeps_the_key_and_forgetting_it_is_a_choice(support, ann_browser):
    support.provider_key = "sk-1"
    support.save()
    ann_browser.post(address("behaviour", "support"), behaviour_fields(support), headers=HTMX)
    support.refresh_from_db()
    assert support.provider_key == "sk-1"
    sent = behaviour_fields(support, forgets_provider_key="on")
    ann_browser.post(address("behaviour", "support"), sent, headers=HTMX)
    support.refresh_from_db()
    assert support.provider_key == ""


def test_a_stored_key_does_not_follow_the_address_to_another_host(support, ann_browser):
    support.provider_base_url, support.provider_key = "https://llm.example/v1", "sk-1"
    support.save()
    sent = behaviour_fields(support, provider_base_url="https://elsewhere.example/v1")
    page = ann_browser.post(address("behaviour", "support"), sent, headers=HTMX).content.decode()
    assert "belongs to the provider" in page
    support.refresh_from_db()
    assert support.provider_base_url == "https://llm.example/v1"


def test_a_lost_key_is_asked_for_again_and_nothing_else_breaks(support, ann_browser):
    MLModel.objects.filter(pk=support.pk).update(provider_key_encrypted="made-with-another-secret")
    page = ann_browser.get(address("behaviour", "support"), headers=HTMX).content.decode()
    assert "can no longer be read" in page
    sent = behaviour_fields(support, provider_key="sk-new")
    assert ann_browser.post(address("behaviour", "support"), sent, headers=HTMX).status_code == 204
    support.refresh_from_db()
    assert support.provider_key == "sk-new"


def test_an_editor_turns_all_knobs_but_the_providers(support, ed_browser):
    sent = behaviour_fields(support, greeting="Hi", provider_base_url="https://llm.example/v1", provider_key="sk-1")
    assert ed_browser.post(address("behaviour", "support"), sent, headers=HTMX).status_code == 204
    support.refresh_from_db()
    assert (support.greeting, support.provider_base_url, support.provider_key) == ("Hi", "", "")


def test_a_reader_sees_the_behaviour_and_may_not_change_it(support, ray_browser):
    page = ray_browser.get(address("behaviour", "support"), headers=HTMX).content.decode()
    assert 'name="threshold"' in page
    assert "Save behaviour" not in page
    response = ray_browser.post(address("behaviour", "support"), behaviour_fields(support), headers=HTMX)
    assert response.status_code == 403
    assert "only editors and owners" in events_of(response)["toast"]["text"]


def test_two_people_who_save_different_knobs_undo_nothing(support, ann_browser, ed_browser):
    anns, eds = behaviour_fields(support, greeting="From Ann"), behaviour_fields(support, max_tokens="777")
    from models_app.behaviour import BehaviourForm
    from tenants.models import Role

    eds_form = BehaviourForm(Role.EDITOR, eds, instance=MLModel.objects.get(pk=support.pk))
    assert eds_form.is_valid()
    ann_browser.post(address("behaviour", "support"), anns, headers=HTMX)
    eds_form.save()
    support.refresh_from_db()
    assert (support.greeting, support.max_tokens) == ("From Ann", 777)


def test_another_embedding_model_offers_to_make_its_vectors(support, ann_browser):
    snippets.add(support, "Hours", "Open from nine to five.")
    provider = {"provider_base_url": "https://llm.example/v1", "provider_key": "sk-1"}
    sent = behaviour_fields(support, embedding_model="text-embedding-3-small", **provider)
    saved = events_of(ann_browser.post(address("behaviour", "support"), sent, headers=HTMX))
    assert "vectors-wanted" in saved
    support.refresh_from_db()
    sent = behaviour_fields(support, embedding_price="0.02")
    assert "vectors-wanted" not in events_of(ann_browser.post(address("behaviour", "support"), sent, headers=HTMX))
    offered = ann_browser.get(address("vectorise", "support"), headers=HTMX).content.decode()
    assert "Make 1 vector" in offered
    assert "cost, about" in offered


def test_another_embedding_model_under_another_name_offers_them_after_the_redirect(support, ann_browser):
    snippets.add(support, "Hours", "Open from nine to five.")
    provider = {"provider_base_url": "https://llm.example/v1", "provider_key": "sk-1"}
    sent = behaviour_fields(support, slug="help", embedding_model="text-embedding-3-small", **provider)
    response = ann_browser.post(address("behaviour", "support"), sent, headers=HTMX)
    assert response.headers["HX-Redirect"] == address("training_data", "help") + "?dialog=vectorise"


def test_a_key_goes_with_its_providers_address(support, ann_browser):
    support.provider_base_url, support.provider_key = "https://llm.example/v1", "sk-1"
    support.save()
    sent = behaviour_fields(support, provider_base_url="")
    assert ann_browser.post(address("behaviour", "support"), sent, headers=HTMX).status_code == 204
    support.refresh_from_db()
    assert (support.provider_base_url, support.provider_key) == ("", "")


def test_a_renamed_model_keeps_its_api_keys(acme, support, ann_browser):
    key, _ = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support", "other"])
    sent = behaviour_fields(support, slug="help")
    response = ann_browser.post(address("behaviour", "support"), sent, headers=HTMX)
    key.refresh_from_db()
    assert response.headers["HX-Redirect"] == address("training_data", "help")
    assert key.model_slugs == ["help", "other"]


def test_a_model_is_deleted_only_when_its_slug_is_typed(acme, support, ann_browser):
    key, _ = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])
    snippets.add(support, "Hours", "Open from nine to five.")
    refused = ann_browser.post(address("model_delete", "support"), {"typed_slug": "suport"}, headers=HTMX)
    assert "Nothing was deleted" in refused.content.decode()
    assert MLModel.objects.count() == 1
    response = ann_browser.post(address("model_delete", "support"), {"typed_slug": "support"}, headers=HTMX)
    assert response.headers["HX-Redirect"] == address("model_list")
    assert not MLModel.objects.exists()
    key.refresh_from_db()
    assert key.model_slugs == []


@pytest.mark.parametrize("name", ["model_new", "model_delete"])
def test_a_reader_is_told_why_nothing_opens(support, ray_browser, name):
    where = address(name) if name == "model_new" else address(name, "support")
    page = ray_browser.get(where)
    assert page.status_code == 403
    assert "only editors and owners" in page.content.decode()


def test_the_status_tells_the_page_when_work_has_ended(support, ann_browser):
    quiet = ann_browser.get(address("model_status", "support"), headers=HTMX)
    ended = ann_browser.get(address("model_status", "support") + "?busy=1", headers=HTMX)
    assert "HX-Trigger" not in quiet.headers
    assert {"snippets-changed", "vectors-changed"} <= events_of(ended).keys()


def test_a_running_vectorising_makes_the_status_poll(support, ann_browser):
    support.vectorisings.create()
    page = ann_browser.get(address("model_status", "support"), headers=HTMX).content.decode()
    assert "every 3s" in page
    assert "Making vectors" in page


def test_another_tenants_model_is_not_found(globex, support, browse, gil):
    with activated(globex):
        assert browse(gil).get(address("training_data", "support")).status_code == 404


def test_pages_keep_the_strict_content_security_policy(support, ann_browser):
    for name in ("model_list", "training_data"):
        response = ann_browser.get(address(name) if name == "model_list" else address(name, "support"))
        page = response.content.decode()
        assert "unsafe" not in response.headers["Content-Security-Policy"]
        assert " style=" not in page
        assert " onclick" not in page
        assert "<script>" not in page
