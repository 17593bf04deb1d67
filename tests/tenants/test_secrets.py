"""Secrets: provider keys are unreadable at rest, and losing the installation's key loses only those."""

import pytest
from django.db import connections

from models_app.models import MLModel
from tenants import secrets
from tenants.models import ApiKey

OTHER_KEY = "another installation's secret key, long enough"


def test_a_provider_key_is_encrypted_at_rest(support, acme_store):
    support.provider_key = "sk-provider-4711"
    support.save()
    connections[acme_store.alias].cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    assert b"sk-provider" not in acme_store.path.read_bytes()
    assert MLModel.objects.get().provider_key == "sk-provider-4711"


def test_the_same_secret_is_never_stored_the_same_way_twice():
    assert secrets.encrypt("sk-1") != secrets.encrypt("sk-1")


def test_no_secret_stays_none():
    assert secrets.encrypt("") == secrets.decrypt("") == ""


def test_a_lost_installation_key_asks_for_the_provider_key_again(support, settings):
    support.provider_key = "sk-provider-4711"
    settings.SECRET_KEY = OTHER_KEY
    with pytest.raises(secrets.SecretLost, match="enter it again"):
        _ = support.provider_key
    support.provider_key = "sk-new"
    assert support.provider_key == "sk-new"


def test_api_keys_work_on_when_the_installation_key_changes(acme, settings):
    key, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=["support"])
    settings.SECRET_KEY = OTHER_KEY
    assert ApiKey.find(text) == key


def test_a_tampered_token_is_not_opened():
    token = secrets.encrypt("sk-1")
    with pytest.raises(secrets.SecretLost):
        secrets.decrypt(token[:-8] + "AAAAAAA=")
    with pytest.raises(secrets.SecretLost):
        secrets.decrypt("not a token")


@pytest.mark.parametrize(("kind", "start"), [("secret", "sws_"), ("public", "swp_")])
def test_a_key_says_of_which_kind_it_is(kind, start):
    minted = secrets.mint_api_key(kind)
    assert minted.text.startswith(f"{minted.prefix}_") and minted.prefix.startswith(start)
    assert secrets.prefix_of(minted.text) == minted.prefix
    assert len(minted.text) - len(minted.prefix) > 40  # 32 random bytes
    assert secrets.is_same_key(minted.text, minted.salt, minted.digest)
    assert not secrets.is_same_key(minted.text + "x", minted.salt, minted.digest)


def test_a_keys_text_is_stored_nowhere(acme):
    key, text = ApiKey.mint(tenant=acme, name="Server", kind="secret", model_slugs=[])
    row = ApiKey.objects.filter(pk=key.pk).values().get()
    assert text.removeprefix(f"{key.prefix}_") not in repr(row)
