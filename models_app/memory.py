"""Gives memory back to the machine that a process holds without needing it."""

import ctypes
import gc
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BETWEEN_SEARCHES = 100_000


def return_free_memory() -> None:
    """Give freed memory back, which the C library (glibc) keeps otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


@contextmanager
def rare_garbage_searches() -> Iterator[None]:
    """Look for garbage in cycles a hundred times less often: a job of many steps spends a tenth of its time on that."""
    usual = gc.get_threshold()
    gc.set_threshold(OBJECTS_BETWEEN_SEARCHES, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def drop_pages(mapping: mmap.mmap) -> None:
    """Take a mapped file's pages out of this process. They stay in the machine's cache and come back when read."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
