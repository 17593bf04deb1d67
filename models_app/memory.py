"""Gives memory that Python has freed back to the machine: the C library keeps it otherwise."""

import ctypes
import gc


def return_free_memory() -> None:
    """Collect what is unreachable and give free memory back, where the C library can (glibc)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
