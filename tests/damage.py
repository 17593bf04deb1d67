"""Breaks a tenant's store as a bad disk does: a page in the middle of the file holds something else."""

import sqlite3
from contextlib import closing

from tenants.store import Store


def damage_table(store: Store, table: str) -> None:
    """Overwrite the first page of a table; the file's header and all other tables stay as they are."""
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = file.execute("PRAGMA page_size").fetchone()[0]
        page = file.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
    with store.path.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xde\xad" * (size // 2))
