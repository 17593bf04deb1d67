"""Breaks a tenant's store as a bad disk does: it holds something else, or lets nothing be written."""

import ctypes
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tenants.store import Store

CAPABILITY_VERSION = 0x20080522  # of the kernel's interface, with 64 bits each
RIGHTS_OVER_FILES = 0b110  # root's, to write and to read what nobody may


def damage_table(store: Store, table: str) -> None:
    """Overwrite the first page of a table; the file's header and all other tables stay as they are."""
    with closing(sqlite3.connect(store.path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = file.execute("PRAGMA page_size").fetchone()[0]
        page = file.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
    with store.path.open("r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(b"\xde\xad" * (size // 2))


@contextmanager
def full_disk() -> Iterator[None]:
    """Let this process write no byte to any file, as where a disk has none left; sockets and deletions go on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def read_only(*paths: Path) -> Iterator[None]:
    """Take the right to write these files or folders away, from root as well, in this thread."""
    modes = {path: path.stat().st_mode for path in paths}
    rights = _rights()
    try:
        for path, mode in modes.items():
            path.chmod(mode & ~0o222)
        _set_rights([rights[0] & ~RIGHTS_OVER_FILES, *rights[1:]])
        yield
    finally:
        _set_rights(rights)
        for path, mode in modes.items():
            path.chmod(mode)


def _rights() -> list[int]:
    """Return this thread's capabilities as the kernel gives them: effective, permitted, inheritable; twice 32 bits."""
    data = (ctypes.c_uint32 * 6)()
    _call_kernel("capget", data)
    return list(data)


def _set_rights(rights: list[int]) -> None:
    _call_kernel("capset", (ctypes.c_uint32 * 6)(*rights))


def _call_kernel(name: str, data: ctypes.Array) -> None:
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)  # of this thread
    if getattr(ctypes.CDLL(None, use_errno=True), name)(header, data):
        raise OSError(ctypes.get_errno(), f"{name} failed")
