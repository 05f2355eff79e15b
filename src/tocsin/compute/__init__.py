"""The few hot functions, each written twice with one signature: `numpy_` to read, `numba_` to run."""

from __future__ import annotations

import importlib
from typing import Any, Literal, get_args

from tocsin.errors import InputError

Backend = Literal["auto", "numba", "numpy"]


class Functions:
    """The hot functions of one backend, as attributes. Unlike a module it can be pickled and copied."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        function = getattr(importlib.import_module(self._module), name)
        setattr(self, name, function)  # found at once next time
        return function

    def __reduce__(self) -> tuple[type[Functions], tuple[str]]:
        return Functions, (self._module,)


def load(backend: Backend) -> Functions:
    """The hot functions; numba is imported when the first of them is called, and nowhere earlier."""
    if backend not in get_args(Backend):
        known = ", ".join(repr(name) for name in get_args(Backend))
        raise InputError(f"backend={backend!r} is unknown; choose one of {known}.")
    return Functions("tocsin.compute.numpy_" if backend == "numpy" else "tocsin.compute.numba_")
