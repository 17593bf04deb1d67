"""Finds the model that a command names as TENANT/MODEL."""

from collections.abc import Iterator
from contextlib import contextmanager

from models_app.models import MLModel
from tenants.models import Tenant
from tenants.store import activated


class UnknownTarget(Exception):
    """There is no such tenant or model; the text says what there is."""


@contextmanager
def activated_model(target: str) -> Iterator[MLModel]:
    """Activate the tenant's store and yield the model named TENANT/MODEL; raises UnknownTarget, StoreNotReady."""
    slug, _, model_slug = target.partition("/")
    with activated_tenant(slug):
        model = MLModel.objects.filter(slug=model_slug).first()
        if model is None:
            known = ", ".join(MLModel.objects.values_list("slug", flat=True)) or "none yet"
            raise UnknownTarget(f"Tenant {slug} has no model “{model_slug}” (it has: {known}). Write TENANT/MODEL.")
        yield model


@contextmanager
def activated_tenant(slug: str) -> Iterator[Tenant]:
    """Activate the store of the tenant with this slug and yield it; raises UnknownTarget, StoreNotReady."""
    tenant = Tenant.objects.filter(slug=slug).first()
    if tenant is None:
        known = ", ".join(Tenant.objects.values_list("slug", flat=True)) or "none yet"
        raise UnknownTarget(f"There is no tenant “{slug}” (there are: {known}). Make it with create_tenant {slug}.")
    with activated(tenant):
        yield tenant
