"""Makes what an installation consists of: the control database, tenants with their stores, what is missing of both."""

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from tenants.models import Membership, Role, Tenant
from tenants.store import StoreNotReady, activated, create_store, delete_store, migrate_store, set_aside, store_of

logger = logging.getLogger(__name__)


class ControlDatabaseBroken(Exception):
    """Users, tenants and keys cannot be read, so that nothing can be done at all."""


def prepare() -> list[StoreNotReady]:
    """Make and migrate what the data folder lacks; returns the stores that failed, which stay closed.

    Raises ControlDatabaseBroken when not even that can be told.
    """
    failures = []
    with _alone():
        migrate_control_database()
        for tenant in Tenant.objects.all():
            try:
                bring_up_to_date(tenant)
            except StoreNotReady as error:
                failures.append(error)
    return failures


def migrate_control_database() -> None:
    """Make or migrate the tables of users, tenants, members and keys; raises ControlDatabaseBroken."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        name = connection.settings_dict["NAME"]
        raise ControlDatabaseBroken(f"The control database {name} cannot be used: {error}.") from error


def bring_up_to_date(tenant: Tenant) -> bool:
    """Migrate the tenant's store when it needs that; returns whether it did.

    Raises StoreNotReady, also for a file that is missing: an empty store in its place would hide the loss.
    """
    try:
        with activated(tenant):
            return False
    except StoreNotReady:
        migrate_store(tenant)
        return True


def create_tenant(slug: str, name: str = "", owner=None) -> Tenant:
    """Make a tenant with an empty store, and the user as its owner; raises ValidationError on a bad slug or name."""
    return add_tenant(Tenant(slug=slug, name=name or slug), owner)


def add_tenant(tenant: Tenant, owner=None) -> Tenant:
    """Save a new tenant together with its empty store; raises ValidationError."""
    tenant.full_clean()
    try:
        with transaction.atomic():  # noqa: TID251  the control database
            tenant.save()
            if owner is not None:
                Membership.objects.create(tenant=tenant, user=owner, role=Role.OWNER)
            _make_store(tenant)
    except IntegrityError as error:  # the same slug, made by somebody else after it was checked
        raise ValidationError({"slug": Tenant._meta.get_field("slug").error_messages["unique"]}) from error
    return tenant


def delete_tenant(tenant: Tenant) -> None:
    """Remove the tenant, its members, keys and its whole store. A running import ends at its next step."""
    store = store_of(tenant)
    with transaction.atomic():  # noqa: TID251  the control database
        tenant.delete()
        delete_store(store)  # inside: a file that cannot be removed keeps its tenant, who can be deleted again


def ready_tenants() -> list[Tenant]:
    """Return the tenants whose store can be activated, without the suspended ones. The caller activates each."""
    return [tenant for tenant in Tenant.objects.filter(is_suspended=False) if _is_ready(tenant)]


def _is_ready(tenant: Tenant) -> bool:
    try:
        with activated(tenant):
            return True
    except StoreNotReady:
        return False


def _make_store(tenant: Tenant) -> None:
    # The tenant is new, so whatever lies in its store's place belongs to nobody: a crash or an older back-up left it.
    aside = set_aside(tenant)
    if aside is not None:
        logger.warning("A file lay where the store of %s belongs. It was kept as %s.", tenant.slug, aside)
    create_store(tenant)


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time make and migrate: web and worker start at the same moment."""
    with (settings.SITEWISE_DATA_DIR / "preparing.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
