"""Tells whether the full-text table itself is damaged, and takes one away however damaged it is.

An FTS5 table keeps its content in ordinary tables named after it, and SQLite has to read them even to drop it. What
cannot be dropped so is taken out of the schema.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from django.db import DatabaseError

from models_app.index.connection import rows, write
from tenants.store import StoreDamaged, tenant_atomic

logger = logging.getLogger(__name__)

OWN_TABLES = ("data", "idx", "config")  # of a table that keeps neither texts nor sizes
IS_THERE = "SELECT 1 FROM sqlite_master WHERE name = %(name)s"
FORGET = "DELETE FROM sqlite_master WHERE type = 'table' AND name = %(name)s"


def damage() -> str:
    """Return what SQLite finds wrong with the full-text table itself, for all models of the store; empty if nothing.

    To SQLite it is a write: it keeps writers waiting, a second or two where there are 100,000 snippets, and writes
    nothing.
    """
    try:
        with tenant_atomic():
            write("INSERT INTO ret_fts (ret_fts) VALUES ('integrity-check')")
    except DatabaseError as error:
        if not is_damage(error):
            raise
        return f"The full-text table of the store is damaged ({error.__cause__ or error})."
    return ""


def is_damage(error: DatabaseError) -> bool:
    """Return whether a statement failed for what it came upon in the file, not for a lock, a full disk or the like."""
    name = getattr(error.__cause__, "sqlite_errorname", "")
    return isinstance(error, StoreDamaged) or name.startswith("SQLITE_ERROR")


def despite_damage(name: str, work: Callable[[Callable[[], None]], Any]) -> Any:
    """Return work(drop), where drop() drops this full-text table; `work` makes one transaction of it all.

    It is done a second time where that fails for damage, as an error of this kind spoils the transaction it is met in.
    Raises DatabaseError if it was not the table that is damaged.
    """
    try:
        return work(partial(write, f"DROP TABLE IF EXISTS {name}"))
    except DatabaseError as error:
        if not is_damage(error):
            raise
        logger.warning("%s is too damaged to be dropped as it is (%s)", name, error.__cause__ or error)
    return work(partial(_forget, name, [table for table in _own(name) if not _is_readable(table)]))


def _own(name: str) -> list[str]:
    return [f"{name}_{own}" for own in OWN_TABLES]


def _is_readable(table: str) -> bool:
    """Return whether the pages of a table can be read, so that they can be given free."""
    try:
        return not rows(IS_THERE, name=table) or rows(f"PRAGMA quick_check({table})") == [("ok",)]
    except DatabaseError as error:
        if not is_damage(error):
            raise
        return False


def _forget(name: str, unreadable: Sequence[str]) -> None:
    """Take a full-text table and those of its own that cannot be read out of the schema, and drop its other ones."""
    if unreadable:
        logger.warning("The pages of %s cannot be read: they stay in the file until it is vacuumed", unreadable)
    write("PRAGMA writable_schema = ON")
    try:
        for table in (name, *unreadable):
            write(FORGET, name=table)
    finally:
        write("PRAGMA writable_schema = RESET")  # and this connection reads the schema anew
    for table in _own(name):
        write(f"DROP TABLE IF EXISTS {table}")
