"""A typed door to numba."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tocsin._compute import cache

P = ParamSpec("P")
R = TypeVar("R")

_numba = importlib.import_module("numba")
# Multiply-adds may be fused everywhere; sums may be reordered (so that they vectorise) only where `jit` says so.
_EXACT = {"contract", "nsz"}


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for the CPU, cache on disk, release the GIL; sums may be reordered."""
    return _compiled(function, _EXACT | {"reassoc"})


def exact(function: Callable[P, R]) -> Callable[P, R]:
    """As `jit`, with every operation in the order it is written."""
    return _compiled(function, _EXACT)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile as a part of each function that calls it, and not by itself as well: that would take as long again."""
    return _numba.njit(inline="always")(function)  # type: ignore[no-any-return]


def literal(function: Callable[P, R]) -> Callable[P, R]:
    """As `exact`, with every operation rounded on its own: the same bits as NumPy's."""
    return _compiled(function, set())


def _compiled(function: Callable[P, R], fastmath: set[str]) -> Callable[P, R]:
    def compiled(*, keep: bool) -> Callable[P, R]:
        # Nobody calls these functions from C; leaving that entrance out saves a tenth of the time to compile.
        options = {"cache": keep, "nogil": True, "no_cfunc_wrapper": True, "fastmath": fastmath}
        result = _numba.njit(**options)(function)
        if keep:
            kept = result._cache._cache_file
            kept._source_stamp = kept._source_stamp, cache.stamp()
        return result  # type: ignore[no-any-return]

    try:
        return compiled(keep=True)
    except RuntimeError as error:
        if not str(error).startswith(cache.NO_PLACE):
            raise
    folder = cache.elsewhere()
    if folder is None:
        return compiled(keep=False)
    before, _numba.config.CACHE_DIR = _numba.config.CACHE_DIR, str(folder)
    try:
        return compiled(keep=True)
    finally:
        _numba.config.CACHE_DIR = before
