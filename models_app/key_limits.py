"""Keeps what API keys are limited to in step with the models: a key names its models by slug.

Without this a key would open whatever model is given a deleted one's slug.
"""

from tenants.models import ApiKey, Tenant


def rename_in_keys(tenant: Tenant, old_slug: str, new_slug: str) -> None:
    """Let the tenant's keys go on opening a model whose slug has changed."""
    for key in _keys_of(tenant, old_slug):
        key.model_slugs = [new_slug if slug == old_slug else slug for slug in key.model_slugs]
        key.save(update_fields=["model_slugs"])


def drop_from_keys(tenant: Tenant, slug: str) -> None:
    """Take a model that is about to be deleted from the tenant's keys."""
    for key in _keys_of(tenant, slug):
        key.model_slugs = [kept for kept in key.model_slugs if kept != slug]
        key.save(update_fields=["model_slugs"])


def _keys_of(tenant: Tenant, slug: str) -> list[ApiKey]:
    return [key for key in tenant.api_keys.all() if slug in key.model_slugs]
