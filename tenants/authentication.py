"""API key -> tenant, for the public API: which key was sent, and what it may open."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied

from tenants.models import ApiKey, Tenant
from tenants.origins import is_allowed_origin
from tenants.store import Store, store_of

USE_NOTED_EVERY = timedelta(minutes=5)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """Who calls the public API: the holder of a key, which is all it may do."""

    key: ApiKey

    @property
    def tenant(self) -> Tenant:
        return self.key.tenant

    @property
    def is_public(self) -> bool:
        """Whether the key stands in pages, where everybody can read it."""
        return self.key.kind == ApiKey.Kind.PUBLIC

    @property
    def store(self) -> Store:
        return store_of(self.key.tenant)

    def may_use(self, model_slug: str) -> bool:
        """Return whether the key is limited to models that include this one."""
        return model_slug in self.key.model_slugs


def authenticate(authorization: str, origin: str | None) -> Caller:
    """Return the caller of an API request; raises AuthenticationFailed (401) or PermissionDenied (403)."""
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise AuthenticationFailed("No API key was sent: set the header 'Authorization: Bearer <key>'.")
    key = ApiKey.find(text.strip())
    if key is None or key.tenant.is_suspended:
        raise AuthenticationFailed("The API key is not known, or has been revoked.")
    # The dashboard's own pages show what visitors will see, before the customer's page is there.
    if key.kind == ApiKey.Kind.PUBLIC and not is_allowed_origin(origin, [*key.allowed_origins, settings.SITEWISE_URL]):
        raise PermissionDenied("This public key may not be used from here: its list of origins does not hold this one.")
    _note_use(key)
    return Caller(key)


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or key.last_used_at < now - USE_NOTED_EVERY:
        try:
            ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
        except DatabaseError as error:  # a full disk: whoever asks is answered all the same
            logger.error("The use of an API key is not noted: %s", error)
