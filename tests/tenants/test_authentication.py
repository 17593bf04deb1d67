"""API keys: who calls, from where, and what the key opens."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied

from tenants.authentication import authenticate
from tenants.models import ApiKey


@pytest.fixture
def secret(acme):
    """A secret key of acme for the model support, and its text."""
    return ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])


@pytest.fixture
def public(acme):
    """A public key of acme for https://shop.test, and its text."""
    listed = {"model_slugs": ["support"], "allowed_origins": ["https://shop.test"]}
    return ApiKey.mint(tenant=acme, name="Widget", kind="public", **listed)


def test_a_key_says_whose_it_is_and_what_it_opens(acme, secret):
    caller = authenticate(f"Bearer {secret[1]}", origin=None)
    assert caller.tenant == acme
    assert caller.store.tenant_id == acme.pk
    assert caller.may_use("support")
    assert not caller.may_use("sales")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer  ", "Basic dTpw", "Token x", "Bearer sws_x", "Bearer _", "Bearer é"]
)
def test_what_is_no_key_is_refused(header, secret):
    with pytest.raises(AuthenticationFailed):
        authenticate(header, None)


def test_a_key_with_one_letter_changed_is_refused(secret):
    text = secret[1]
    for changed in (text[:-1] + ("A" if text[-1] != "A" else "B"), text + "A", text[:-1], text.upper()):
        with pytest.raises(AuthenticationFailed):
            authenticate(f"Bearer {changed}", None)


def test_a_revoked_key_and_an_unknown_one_are_told_the_same(secret):
    key, text = secret
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())
    with pytest.raises(AuthenticationFailed) as revoked:
        authenticate(f"Bearer {text}", None)
    with pytest.raises(AuthenticationFailed) as unknown:
        authenticate("Bearer sws_0123456789ab_nothing", None)
    assert str(revoked.value) == str(unknown.value)


def test_a_suspended_tenants_keys_do_not_work(acme, secret):
    acme.is_suspended = True
    acme.save()
    with pytest.raises(AuthenticationFailed):
        authenticate(f"Bearer {secret[1]}", None)


def test_a_deleted_tenants_keys_do_not_work(acme, secret):
    acme.delete()
    with pytest.raises(AuthenticationFailed):
        authenticate(f"Bearer {secret[1]}", None)


def test_a_public_key_works_from_its_origins_only(public):
    assert authenticate(f"Bearer {public[1]}", "https://shop.test").key == public[0]
    for origin in (None, "", "null", "https://evil.test", "https://shop.test.evil.test"):
        with pytest.raises(PermissionDenied):
            authenticate(f"Bearer {public[1]}", origin)


def test_a_public_key_without_origins_works_nowhere(acme):
    _, text = ApiKey.mint(tenant=acme, name="Widget", kind="public", model_slugs=["support"])
    with pytest.raises(PermissionDenied):
        authenticate(f"Bearer {text}", "https://shop.test")


def test_use_is_noted_but_not_with_every_request(secret):
    key, text = secret
    authenticate(f"Bearer {text}", None)
    first = ApiKey.objects.get(pk=key.pk).last_used_at
    assert first is not None
    authenticate(f"Bearer {text}", None)
    assert ApiKey.objects.get(pk=key.pk).last_used_at == first
    ApiKey.objects.filter(pk=key.pk).update(last_used_at=first - timedelta(hours=1))
    authenticate(f"Bearer {text}", None)
    assert ApiKey.objects.get(pk=key.pk).last_used_at >= first
