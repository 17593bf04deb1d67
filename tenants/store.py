"""A tenant's own database: create, migrate, activate, back up, delete.

Everything a tenant owns lies in one SQLite file. A store is activated once, at the edge of the program; below the edge
nothing names a tenant, and without an active store every query raises.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.utils import ConnectionDoesNotExist, DatabaseErrorWrapper, load_backend

TENANT_APPS = frozenset({"models_app", "crawler", "chat"})
PRIMARY_CODE = 0xFF  # the part of SQLite's error codes that says of what kind an error is
SIDE_FILES = ("-wal", "-shm", "-journal")
MISSING = "its file is missing; put a back-up of it back in its place, or delete the tenant"
EMPTY = "its file is empty; put a back-up of it back in its place, or delete the tenant"
BROKEN = "its file is broken ({}); put a back-up of it back in its place"
BROKEN_INDEX = "its index is broken ({}); run `manage.py rebuild_index {}`"
# By the kind of SQLite's error. A disk without room for the 32 KB that readers share is an error of the third kind.
DISK_FAILURES = {
    sqlite3.SQLITE_FULL: "the disk is full ({}); free some space",
    sqlite3.SQLITE_READONLY: (
        "its file cannot be written ({}); let Sitewise’s user write to it and to its folder, and see whether the disk "
        "is mounted read-only"
    ),
    sqlite3.SQLITE_IOERR: "the disk is full or fails ({}); free some space, or see what the system’s log says of it",
    sqlite3.SQLITE_CANTOPEN: (
        "its file cannot be opened ({}); let Sitewise’s user read and write it and its folder, and see whether the "
        "disk is mounted read-only"
    ),
}
# Reads the file as it is, without the files beside it, which cannot be made where the disk is full or read-only.
AS_IT_IS = "mode=ro&immutable=1"

logger = logging.getLogger(__name__)

_active: ContextVar["Store | None"] = ContextVar("active_store", default=None)


class NoActiveStore(RuntimeError):
    """A tenant's rows were asked for while no tenant is active."""

    def __init__(self):
        super().__init__("No tenant is active: activate a store with tenants.store.activated(tenant) first.")


class StoreNotReady(RuntimeError):
    """The store is missing, broken or lacks a migration."""

    refused = "opened"  # what cannot be done with it

    def __init__(self, slug: str, reason: str):
        super().__init__(f"The data of tenant {slug} cannot be {self.refused}: {reason}")
        self.slug, self.reason = slug, reason


class StoreDamaged(StoreNotReady, DatabaseError):
    """A query came upon a part of the store's file that cannot be read."""


class StoreDiskFails(StoreNotReady, OperationalError):
    """The disk is full, read-only or fails: what was to be written is not. What the file holds is not damaged."""

    refused = "written"


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
        # Named by the id alone, which is never given twice: a tenant may be renamed.
        return settings.STORES_DIR / f"{self.tenant_id}.sqlite3"

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
    return transaction.atomic(using=active_store().alias, **options)  # noqa: TID251  the active store is named


@contextmanager
def tenant_snapshot() -> Iterator[None]:
    """Let all that the block reads of the active store be what it was at the first of these reads; no writer waits.

    Whoever writes in it is refused, but for the transaction that it may stand in, which is a snapshot by itself.
    """
    database = connection()
    database.ensure_connection()
    if database.connection.in_transaction:
        yield
        return
    opened = database.connection
    try:
        opened.executescript("PRAGMA query_only = ON; BEGIN DEFERRED")
        yield
    finally:
        opened.rollback()  # nothing, where an error has ended it
        opened.execute("PRAGMA query_only = OFF")


def on_tenant_commit(function: Callable) -> None:
    """Call function once the active store's transaction is committed; never when it is rolled back."""
    transaction.on_commit(function, using=active_store().alias)


@contextmanager
def activated(tenant) -> Iterator[Store]:
    """Make the tenant's store the one all queries go to, until the block ends; raises StoreNotReady.

    Damage deep in the file is met by some query of the block, which raises StoreDamaged: a StoreNotReady, too. So is
    StoreDiskFails, which writers meet where the disk is full or read-only; who only reads is answered where SQLite can.
    The connection belongs to this thread and this block: other threads activate the store for themselves.
    """
    store = store_of(tenant)
    with _opened(store) as is_outermost:
        if is_outermost:
            try:
                _refuse_stale(store)
            except StoreDiskFails as error:
                _reopen_as_it_is(store, error)
                _refuse_stale(store)
        yield store


def create_store(tenant) -> Store:
    """Make the tenant's empty database with all its tables; raises FileExistsError when there is one."""
    store = store_of(tenant)
    store.path.parent.mkdir(parents=True, exist_ok=True)
    store.path.touch(mode=0o600, exist_ok=False)
    try:
        _migrate(store)
    except StoreNotReady:
        delete_store(store)
        raise
    return store


def migrate_store(tenant) -> None:
    """Bring the tenant's tables up to date; raises StoreNotReady and leaves the store closed when it fails."""
    store = store_of(tenant)
    _refuse_lost(store)
    _migrate(store)


def _migrate(store: Store) -> None:
    try:
        with _opened(store):
            for app in sorted(TENANT_APPS):
                call_command("migrate", app, database=store.alias, verbosity=0, interactive=False)
            with connections[store.alias].cursor() as cursor:
                cursor.execute(f"PRAGMA user_version = {schema_stamp()}")
    except StoreNotReady:
        raise
    except Exception as error:  # a migration is code: whatever it raises, this store stays closed and the others go on
        raise StoreNotReady(store.slug, f"its tables could not be brought up to date ({error})") from error


def back_up_store(tenant, target: Path) -> Path:
    """Copy the store to a file through SQLite's online backup, while it is in use; raises StoreNotReady."""
    store = store_of(tenant)
    _refuse_lost(store)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    _unlink(partial)
    partial.touch(mode=0o600)
    try:
        with (
            closing(sqlite3.connect(f"{store.path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # a back-up is one file, without a write-ahead log beside it
    except sqlite3.DatabaseError as error:
        _unlink(partial)
        raise _named(error, store) or StoreNotReady(store.slug, f"it cannot be backed up ({error})") from error
    return partial.replace(target)


def delete_store(tenant) -> None:
    """Remove the tenant's database from disk."""
    store = store_of(tenant)
    _close(store)
    _unlink(store.path)


def set_aside(tenant) -> Path | None:
    """Rename a file that lies where the tenant's store will be; returns its new place, or None when nothing lay there.

    For a tenant that is just being made: the file is what a crash or an older control database left, and it is kept.
    """
    path = store_of(tenant).path
    if not path.exists():
        return None
    aside = path.with_name(f"{path.stem}.left-over-{uuid4().hex[:8]}{path.suffix}")
    for suffix in ("", *SIDE_FILES):
        side = Path(f"{path}{suffix}")
        if side.exists():
            side.rename(f"{aside}{suffix}")
    return aside


def store_size_bytes(tenant) -> int:
    """Return how much disk the store takes, its write-ahead log included."""
    files = (Path(f"{store_of(tenant).path}{suffix}") for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


@cache
def schema_stamp() -> int:
    """Return the number that says which migrations a store must have: 31 bits over their names, never 0."""
    graph = MigrationLoader(None).graph
    names = sorted(f"{app}.{name}" for app, name in graph.nodes if app in TENANT_APPS)
    digest = sha256("\n".join(names).encode()).digest()
    return int.from_bytes(digest[:4]) >> 1 or 1


@contextmanager
def _opened(store: Store) -> Iterator[bool]:
    """Make the store active, on a connection of this thread; yields whether that had to be opened."""
    is_outermost = _open(store)
    token = _active.set(store)
    try:
        yield is_outermost
    finally:
        _active.reset(token)
        if is_outermost:
            _close(store)


def _open(store: Store, how: str = "mode=rw", reason: str = "") -> bool:
    """Give this thread a connection to the store; returns False when it has one already.

    The reason says why nothing can be written, where that is known before anybody tries. Django's table of databases is
    left alone: other threads walk through it, and it would grow with every tenant.
    """
    try:
        connections[store.alias]
        return False
    except ConnectionDoesNotExist:
        options = {**settings.SQLITE_OPTIONS, "uri": True}
        # mode=rw: opening never makes an empty database.
        place = {"NAME": f"{store.path.as_uri()}?{how}", "OPTIONS": options}
        wanted = {**connections.settings["default"], **place}
        opened = load_backend(wanted["ENGINE"]).DatabaseWrapper(wanted, store.alias)
        opened.wrap_database_errors = _StoreErrors(opened, store, reason)
        connections[store.alias] = opened
        return True


def _reopen_as_it_is(store: Store, error: StoreDiskFails) -> None:
    """Open the store anew without the files beside it, to be read alone; raises the error where one of them is of use.

    Who could write meanwhile would need these files, too: they are missing because nobody has the store open.
    """
    log = Path(f"{store.path}-wal")
    if log.exists() and log.stat().st_size:
        raise error
    logger.error("%s. Until then it is only read.", error)
    _close(store)
    _open(store, AS_IT_IS, error.reason)


class _StoreErrors(DatabaseErrorWrapper):
    """Names a damaged file or a full disk for what it is, at whichever statement or row SQLite comes upon it."""

    def __init__(self, wrapper: BaseDatabaseWrapper, store: Store, reason: str):
        super().__init__(wrapper)
        self._store, self._reason = store, reason

    def __exit__(self, kind, error, traceback):
        if named := _named(error, self._store, self._reason):
            raise named from error
        super().__exit__(kind, error, traceback)


def _named(error: Exception | None, store: Store, reason: str = "") -> StoreNotReady | None:
    """Return what an error of SQLite says of the store's file or disk; None where it is about something else.

    The reason, if there is one, is why nothing can be written.
    """
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    kind = code & PRIMARY_CODE
    if code == sqlite3.SQLITE_CORRUPT_VTAB:
        return StoreDamaged(store.slug, BROKEN_INDEX.format(error, store.slug))
    if kind in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(store.slug, BROKEN.format(error))
    if kind in DISK_FAILURES:
        return StoreDiskFails(store.slug, reason or DISK_FAILURES[kind].format(error))
    return None


def _close(store: Store) -> None:
    """Take this thread's connection to the store away, if it has one."""
    try:
        connections[store.alias].close()
        del connections[store.alias]
    except ConnectionDoesNotExist:
        pass


def _refuse_lost(store: Store) -> None:
    """Raise StoreNotReady where no file is, or one without a byte: SQLite would take that for a new store."""
    if not store.path.exists():
        raise StoreNotReady(store.slug, MISSING)
    if not store.path.stat().st_size:
        raise StoreNotReady(store.slug, EMPTY)


def _refuse_stale(store: Store) -> None:
    _refuse_lost(store)
    try:
        with connections[store.alias].cursor() as cursor:
            stamp = cursor.execute("PRAGMA user_version").fetchone()[0]
    except StoreNotReady:
        raise
    except DatabaseError as error:
        raise StoreNotReady(store.slug, f"its file cannot be read ({error})") from error
    if stamp != schema_stamp():
        raise StoreNotReady(store.slug, "its tables are of another version; run `manage.py migrate_tenants`")


def _unlink(path: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
