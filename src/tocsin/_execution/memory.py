"""Keeps memory that will soon be asked for again, where the process was told to give it back at once."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "MALLOC_TRIM_THRESHOLD_"
"""Set for Dask's workers, to 64 KiB. It also fixes the size from which on arrays come from the system each time."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""What `mallopt` calls the free memory that is given back, and the size of arrays that come from the system."""

KEPT, DEFAULT_KEPT = 2**28, 2**17
FROM_SYSTEM, DEFAULT_FROM_SYSTEM = 2**25, 2**17
"""In bytes; the defaults are glibc's."""


@contextmanager
def memory_kept() -> Iterator[None]:
    """Blocks of null paths allocate the same arrays again and again: with the variable set, a third of their time."""
    if VARIABLE not in os.environ or platform.libc_ver()[0] != "glibc":
        yield
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(M_MMAP_THRESHOLD, FROM_SYSTEM)
    libc.mallopt(M_TRIM_THRESHOLD, KEPT)
    try:
        yield
    finally:
        given = os.environ[VARIABLE]
        libc.mallopt(M_MMAP_THRESHOLD, DEFAULT_FROM_SYSTEM)
        libc.mallopt(M_TRIM_THRESHOLD, int(given) if given.isdigit() else DEFAULT_KEPT)
        libc.malloc_trim(ctypes.c_size_t(0))
