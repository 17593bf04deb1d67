"""Runs the index's statements on the active store, in which the aggregate topk() is there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from models_app.index.chunks import TopK
from tenants.store import connection


def rows(sql: str, **parameters) -> list[tuple]:
    """Return all rows of a statement; parameters stand in it as %(name)s."""
    with _cursor() as cursor:
        return cursor.execute(sql, parameters).fetchall()


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
