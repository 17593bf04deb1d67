"""Runs the index's statements on the active store, in which the aggregate topk() is there."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db.backends.utils import CursorWrapper

from models_app.index.chunks import TopK
from tenants.store import connection

ROWS_AT_ONCE = 2_000


def rows(sql: str, **parameters) -> list[tuple]:
    """Return all rows of a statement; parameters stand in it as %(name)s."""
    with _cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()  # of Django's cursor, so that an error at a later row is one of Django's, too


def each_row(sql: str, **parameters) -> Iterator[tuple]:
    """Yield the rows of a statement one by one: there may be too many to keep. To be read under a snapshot()."""
    with _cursor() as cursor:
        cursor.execute(sql, parameters)
        while some := cursor.fetchmany(ROWS_AT_ONCE):
            yield from some


@contextmanager
def snapshot() -> Iterator[None]:
    """Let all reads of the block see the store as it is at the first of them; no writer waits for it.

    Nothing can be written in it, and no transaction be opened. In a transaction, its own view is what is seen.
    """
    if connection().in_atomic_block:
        yield
        return
    with _cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")  # Django's own begin with the lock for writing
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def write(sql: str, **parameters) -> int:
    """Run a statement that changes rows; returns the key of the row it inserted."""
    with _cursor() as cursor:
        return cursor.execute(sql, parameters).lastrowid


def write_each(sql: str, parameters: Sequence[Mapping[str, Any]]) -> None:
    """Run a statement once for each set of parameters."""
    if parameters:
        with _cursor() as cursor:
            cursor.executemany(sql, parameters)


def id_list(ids: Iterable[int]) -> str:
    """Return ids as one parameter, for `IN (SELECT value FROM json_each(...))`: some builds allow 999 parameters."""
    return json.dumps([int(key) for key in ids])


def _cursor() -> CursorWrapper:
    database = connection()
    database.ensure_connection()
    # Django opens a connection anew whenever it closed one; registering twice would make SQLite recompile everything.
    if getattr(database, "connection_with_topk", None) is not database.connection:
        database.connection.create_aggregate("topk", 5, TopK)
        database.connection_with_topk = database.connection
    return database.cursor()
