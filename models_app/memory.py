"""Gives memory back to the machine that a process holds without needing it."""

import ctypes
import mmap


def return_free_memory() -> None:
    """Give freed memory back, which the C library (glibc) keeps otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)


def drop_pages(mapping: mmap.mmap) -> None:
    """Take a mapped file's pages out of this process. They stay in the machine's cache and come back when read."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)
