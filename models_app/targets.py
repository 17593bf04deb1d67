"""Finds the model that a command names as TENANT/MODEL. What is not there is one line on the command's way out."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from models_app.models import MLModel
from tenants.models import Tenant
from tenants.reporting import tenant_named
from tenants.store import activated


def split_target(target: str) -> tuple[str, str]:
    """Return the slugs of TENANT/MODEL; raises CommandError for what is not written so."""
    slugs = target.split("/")
    if len(slugs) != 2 or not all(slugs):
        raise CommandError(f"“{target}” names no model. Write TENANT/MODEL, such as acme/support.")
    return slugs[0], slugs[1]


@contextmanager
def activated_model(target: str) -> Iterator[MLModel]:
    """Activate the tenant's store and yield the model named TENANT/MODEL; raises CommandError, StoreNotReady."""
    slug, model_slug = split_target(target)
    with activated_tenant(slug):
        model = MLModel.objects.filter(slug=model_slug).first()
        if model is None:
            known = ", ".join(MLModel.objects.values_list("slug", flat=True)) or "none yet"
            raise CommandError(f"Tenant {slug} has no model “{model_slug}” (it has: {known}).")
        yield model


@contextmanager
def activated_tenant(slug: str) -> Iterator[Tenant]:
    """Activate the store of the tenant with this slug and yield it; raises CommandError, StoreNotReady."""
    tenant = tenant_named(slug)
    with activated(tenant):
        yield tenant
