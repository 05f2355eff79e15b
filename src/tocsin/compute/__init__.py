"""The few hot functions, each written twice with one signature: `numpy_` to read, `numba_` to run."""

from __future__ import annotations

from types import ModuleType
from typing import Literal, get_args

from tocsin.errors import InputError

Backend = Literal["auto", "numba", "numpy"]


def load(backend: Backend) -> ModuleType:
    """The module of hot functions; numba is imported here and nowhere earlier."""
    if backend in ("auto", "numba"):
        from tocsin.compute import numba_

        return numba_
    if backend == "numpy":
        from tocsin.compute import numpy_

        return numpy_
    known = ", ".join(repr(name) for name in get_args(Backend))
    raise InputError(f"backend={backend!r} is unknown; choose one of {known}.")
