"""A tenant's own database: create, migrate, open, activate, back up, delete.

Everything a tenant owns lies in one SQLite file. A store is activated once, at the edge of the program; below the edge
nothing names a tenant, and without an active store every query raises.
"""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from zlib import crc32

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader

TENANT_APPS = frozenset({"models_app", "crawler", "chat"})

_active: ContextVar["Store | None"] = ContextVar("active_store", default=None)


class NoActiveStore(RuntimeError):
    """A tenant's rows were asked for while no tenant is active."""

    def __init__(self):
        super().__init__("No tenant is active: activate a store with tenants.store.activated(tenant) first.")


class StoreNotReady(RuntimeError):
    """The store is missing, broken or lacks a migration."""

    def __init__(self, slug: str, reason: str):
        super().__init__(f"The data of tenant {slug} cannot be opened: {reason}")
        self.slug, self.reason = slug, reason


@dataclass(frozen=True)
class Store:
    """One tenant's database; hashable, and safe to hand to another thread."""

    tenant_id: int
    slug: str

    @property
    def alias(self) -> str:
        return f"store_{self.tenant_id}"

    @property
    def path(self) -> Path:
        return settings.STORES_DIR / f"{self.tenant_id}-{self.slug}.sqlite3"

    async def run(self, function: Callable, *arguments, **options):
        """Return function(...) called in a thread with this store active: one database step of a stream."""
        return await sync_to_async(self._call)(function, *arguments, **options)

    def _call(self, function: Callable, *arguments, **options):
        with activated(self):
            return function(*arguments, **options)


def store_of(tenant) -> Store:
    """Return the store of a tenant row (or the store itself)."""
    return tenant if isinstance(tenant, Store) else Store(tenant.pk, tenant.slug)


def active_store() -> Store:
    """Return the active store; raises NoActiveStore."""
    store = _active.get()
    if store is None:
        raise NoActiveStore
    return store


def connection() -> BaseDatabaseWrapper:
    """Return Django's connection to the active store; raises NoActiveStore."""
    return connections[active_store().alias]


def tenant_atomic(**options):
    """Return a transaction on the active store, to be used as `with tenant_atomic():`."""
    return transaction.atomic(using=active_store().alias, **options)


def on_tenant_commit(function: Callable) -> None:
    """Call function once the active store's transaction is committed; never when it is rolled back."""
    transaction.on_commit(function, using=active_store().alias)


@contextmanager
def activated(tenant) -> Iterator[Store]:
    """Make the tenant's store the one all queries go to, until the block ends; raises StoreNotReady."""
    store = store_of(tenant)
    if _active.get() == store:
        yield store
        return
    _register(store)
    token = _active.set(store)
    try:
        _refuse_stale(store)
        yield store
    finally:
        _active.reset(token)
        # A thread serves many tenants in turn: an open connection each would never be given back.
        if not connections[store.alias].in_atomic_block:
            connections[store.alias].close()


def create_store(tenant) -> Store:
    """Make the tenant's empty database with all its tables; raises FileExistsError when there is one."""
    store = store_of(tenant)
    settings.STORES_DIR.mkdir(parents=True, exist_ok=True)
    store.path.touch(exist_ok=False)
    migrate_store(store)
    return store


def migrate_store(tenant) -> None:
    """Bring the tenant's tables up to date; raises StoreNotReady and leaves the store closed when it fails."""
    store = store_of(tenant)
    _register(store)
    token = _active.set(store)
    try:
        for app in sorted(TENANT_APPS):
            call_command("migrate", app, database=store.alias, verbosity=0, interactive=False)
        with connections[store.alias].cursor() as cursor:
            cursor.execute(f"PRAGMA user_version = {schema_stamp()}")
    except Exception as error:
        raise StoreNotReady(store.slug, f"its tables could not be brought up to date ({error})") from error
    finally:
        _active.reset(token)
        connections[store.alias].close()


def back_up_store(tenant, target: Path) -> Path:
    """Copy the store to a file through SQLite's online backup, while it is in use; returns the file."""
    store = store_of(tenant)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with (
        closing(sqlite3.connect(f"file:{store.path}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(partial)) as copy,
    ):
        source.backup(copy)
    return partial.replace(target)


def delete_store(tenant) -> None:
    """Remove the tenant's database from disk."""
    store = store_of(tenant)
    if store.alias in connections.databases:
        connections[store.alias].close()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store.path}{suffix}").unlink(missing_ok=True)


def copy_store(template: Path, tenant) -> Store:
    """Make the tenant's store as a copy of a migrated file: the quick way when many are made."""
    store = store_of(tenant)
    shutil.copyfile(template, store.path)
    _register(store)
    return store


def store_size_bytes(tenant) -> int:
    """Return how much disk the store takes, its write-ahead log included."""
    files = (Path(f"{store_of(tenant).path}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


@cache
def schema_stamp() -> int:
    """Return the number that says which migrations a store must have: 31 bits over their names."""
    graph = MigrationLoader(None, ignore_no_initial=True).graph
    names = sorted(f"{app}.{name}" for app, name in graph.nodes if app in TENANT_APPS)
    return crc32(sha256("\n".join(names).encode()).digest()) & 0x7FFFFFFF or 1


def _register(store: Store) -> None:
    """Give Django the connection settings of a store. mode=rw: opening never makes an empty database."""
    if store.alias not in connections.databases:
        connections.databases[store.alias] = {
            **connections.databases["default"],
            "NAME": f"file:{store.path}?mode=rw",
            "OPTIONS": {**settings.SQLITE_OPTIONS, "uri": True},
        }


def _refuse_stale(store: Store) -> None:
    if not store.path.exists():
        raise StoreNotReady(store.slug, "its file is missing")
    try:
        with connections[store.alias].cursor() as cursor:
            stamp = cursor.execute("PRAGMA user_version").fetchone()[0]
    except DatabaseError as error:
        raise StoreNotReady(store.slug, f"its file is broken ({error})") from error
    if stamp != schema_stamp():
        raise StoreNotReady(store.slug, "its tables are of another version; run `manage.py migrate_tenants`")
