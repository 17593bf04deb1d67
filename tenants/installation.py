"""Makes what an installation consists of: the control database, tenants with their stores, and what is missing of both."""

from collections.abc import Iterator

from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor

from tenants.models import Membership, Role, Tenant
from tenants.store import StoreNotReady, activated, create_store, delete_store, migrate_store, store_of


def prepare() -> list[StoreNotReady]:
    """Make and migrate what the data folder lacks; returns the stores that failed, which stay closed."""
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        call_command("migrate", verbosity=0, interactive=False)
    failures = []
    for tenant in Tenant.objects.all():
        try:
            bring_up_to_date(tenant)
        except StoreNotReady as error:
            failures.append(error)
    return failures


def bring_up_to_date(tenant: Tenant) -> bool:
    """Make or migrate the tenant's store when it needs that; returns whether it did. Raises StoreNotReady."""
    if not store_of(tenant).path.exists():
        create_store(tenant)
        return True
    try:
        with activated(tenant):
            return False
    except StoreNotReady:
        migrate_store(tenant)
        return True


def create_tenant(slug: str, name: str = "", owner=None) -> Tenant:
    """Make a tenant with an empty store, and the user as its owner; raises ValidationError on a bad slug."""
    tenant = Tenant(slug=slug, name=name or slug)
    tenant.full_clean()
    with transaction.atomic():
        tenant.save()
        if owner is not None:
            Membership.objects.create(tenant=tenant, user=owner, role=Role.OWNER)
        create_store(tenant)
    return tenant


def delete_tenant(tenant: Tenant) -> None:
    """Remove the tenant, its members, keys and its whole store. A running import ends at its next step."""
    store = store_of(tenant)
    tenant.delete()
    delete_store(store)


def ready_tenants() -> Iterator[Tenant]:
    """Yield every tenant that is not suspended with its store active; those whose store is not ready are left out."""
    for tenant in Tenant.objects.filter(is_suspended=False):
        try:
            with activated(tenant):
                yield tenant
        except StoreNotReady:
            continue
