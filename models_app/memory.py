"""Gives memory back to the machine that a process holds without needing it."""

import ctypes
import gc
import mmap


def return_free_memory() -> None:
    """Collect what is unreachable and give freed memory back; the C library (glibc) keeps it otherwise."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def drop_pages(mapping: mmap.mmap) -> None:
    """Take a mapped file's pages out of this process. They stay in the machine's cache and come back when read."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
