"""The operator's pages: numbers of every tenant, suspending, quotas, deletion with the store, and no secret shown."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from chat.models import QuestionCount
from models_app.models import MLModel, TrainingSnippet
from tenants import invitations
from tenants.models import ApiKey, Membership, Role, Tenant
from tenants.store import activated, delete_store, store_of

TENANTS = "/staff/tenants/tenant/"
NO_INLINES = {
    f"{prefix}-{name}": 0
    for prefix in ("memberships", "invitations", "api_keys")
    for name in ("TOTAL_FORMS", "INITIAL_FORMS")
}


@pytest.fixture
def operator(browse, django_user_model):
    """A client logged in as the operator."""
    return browse(django_user_model.objects.create_superuser("op", "op@sitewise.test", "op-op-pass"))


def row_of(page: str, slug: str) -> str:
    """Return the words of the tenant's row in the list."""
    row = next(row for row in page.split("<tr>") if f">{slug}<" in row)
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


def test_the_list_shows_what_each_tenant_holds_and_used(operator, acme, globex):
    with activated(acme):
        model = MLModel.objects.create(slug="support", name="Support")
        TrainingSnippet.objects.bulk_create(
            TrainingSnippet(model=model, prompt=str(number), completion="x") for number in range(3)
        )
        month = timezone.now().date().replace(day=1)
        QuestionCount.objects.create(model=model, month=month, count=7)
        QuestionCount.objects.create(model=None, month=month, count=2)  # asked of a model that was deleted since
        QuestionCount.objects.create(model=model, month="2020-01-01", count=500)

    page = operator.get(TENANTS).content.decode()

    assert "3 of 50,000" in row_of(page, "acme") and "9 of 100,000" in row_of(page, "acme")
    assert "0 of 50,000" in row_of(page, "globex")
    assert re.search(r"\d+(\.\d)?\s(KB|MB)", row_of(page, "acme"))


def test_a_store_that_is_not_ready_does_not_break_the_list(operator, acme, globex):
    delete_store(acme)
    page = operator.get(TENANTS)
    assert page.status_code == 200
    assert "not ready" in row_of(page.content.decode(), "acme")
    assert "0 of 50,000" in row_of(page.content.decode(), "globex")
    assert operator.get(f"{TENANTS}{acme.pk}/change/").status_code == 200


def test_the_operator_suspends_and_lets_in_again(operator, acme):
    for action, is_suspended in (("suspend", True), ("let_in_again", False)):
        operator.post(TENANTS, {"action": action, "_selected_action": [acme.pk]})
        acme.refresh_from_db()
        assert acme.is_suspended is is_suspended


def changed_form(client, tenant, **fields):
    """Return the tenant's form as the page fills it, with some fields changed."""
    form = client.get(f"{TENANTS}{tenant.pk}/change/").context["adminform"].form
    filled = {name: form[name].value() for name in form.fields if not isinstance(form[name].value(), bool)}
    return filled | NO_INLINES | fields


def test_quotas_are_edited(operator, acme):
    wanted = changed_form(operator, acme, snippet_quota=10, question_quota=20)
    assert operator.post(f"{TENANTS}{acme.pk}/change/", wanted).status_code == 302
    acme.refresh_from_db()
    assert (acme.snippet_quota, acme.question_quota) == (10, 20)


def test_a_renamed_tenant_keeps_what_it_owns(operator, acme):
    with activated(acme):
        MLModel.objects.create(slug="support", name="Support")
    operator.post(f"{TENANTS}{acme.pk}/change/", changed_form(operator, acme, slug="acme-two"))
    acme.refresh_from_db()
    assert acme.slug == "acme-two"
    with activated(acme):
        assert MLModel.objects.get().slug == "support"


def test_a_tenant_made_here_has_a_store(operator):
    fields = {"name": "Bakery", "slug": "bakery", "snippet_quota": 10, "question_quota": 10}
    assert operator.post(f"{TENANTS}add/", fields | NO_INLINES).status_code == 302
    tenant = Tenant.objects.get(slug="bakery")
    with activated(tenant):
        assert not MLModel.objects.exists()
    delete_store(tenant)


def test_a_slug_of_ours_is_refused_here_too(operator):
    fields = {"name": "Staff", "slug": "staff", "snippet_quota": 10, "question_quota": 10}
    page = operator.post(f"{TENANTS}add/", fields | NO_INLINES)
    assert "is reserved" in page.content.decode()
    assert not Tenant.objects.exists()


def test_deleting_a_tenant_removes_its_store(operator, acme, globex):
    operator.post(f"{TENANTS}{acme.pk}/delete/", {"post": "yes"})
    assert not store_of(acme).path.exists()
    operator.post(TENANTS, {"action": "delete_selected", "_selected_action": [globex.pk], "post": "yes"})
    assert not store_of(globex).path.exists()
    assert not Tenant.objects.exists()


def test_keys_and_invitations_are_shown_without_what_opens_them(operator, acme):
    key, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])
    invitation = invitations.invite(acme, "bo@acme.test", Role.EDITOR)
    page = operator.get(f"{TENANTS}{acme.pk}/change/").content.decode()
    assert key.prefix in page and "bo@acme.test" in page
    for secret in (text, key.digest, key.salt, invitation.token):
        assert secret not in page


def test_the_operator_makes_somebody_an_owner(operator, acme, gil):
    wanted = changed_form(operator, acme) | {
        "memberships-TOTAL_FORMS": 1,
        "memberships-0-user": gil.pk,
        "memberships-0-role": "owner",
        "memberships-0-tenant": acme.pk,
    }
    assert operator.post(f"{TENANTS}{acme.pk}/change/", wanted).status_code == 302
    assert Membership.objects.get(tenant=acme, user=gil).role == Role.OWNER


def test_the_operator_logs_in_where_everybody_does(django_user_model):
    """There the guessing of passwords is limited."""
    assert Client().get("/staff/")["Location"].startswith("/staff/login/")
    response = Client().get("/staff/login/?next=/staff/", follow=True)
    assert response.redirect_chain[-1][0].startswith("/accounts/login/")
