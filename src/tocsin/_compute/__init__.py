"""The hot functions, each with one signature (`protocol`): `numpy_` to read, `numba_` for CPUs, `torch_` for GPUs."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from tocsin._common.checks import one_of
from tocsin._common.errors import InputError, MissingExtraError, Option, Part
from tocsin._compute.arrays import Array, Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.protocol import BackendModule, Functions, S

if TYPE_CHECKING:
    from tocsin._compute import numba_, numpy_, torch_

    # A backend that lacks a function, or has it with other parameters, fails here.
    _NUMPY: BackendModule = numpy_
    _NUMBA: BackendModule = numba_
    _TORCH: BackendModule = torch_

__all__ = ["Backend", "Functions", "LazyFunctions", "load", "on_host", "speaking"]

Backend = Literal["auto", "numba", "torch", "numpy"]

DRIVERS = ("libcuda.so.1", "nvcuda.dll")

BACKEND_VARIABLE, DEVICE_VARIABLE = "TOCSIN_BACKEND", "TOCSIN_DEVICE"


class LazyFunctions:
    """`Functions` of a module that is imported when the first of them is called. Unlike it they can be pickled."""

    _module: BackendModule

    def __init__(self, backend: str, device: str = "cpu") -> None:
        self.backend, self.device = backend, device

    def __getattr__(self, name: str) -> Any:  # the rest of `Functions`, which the modules were checked for
        if name.startswith("_") and name != "_module":
            raise AttributeError(name)
        found = self._imported() if name == "_module" else getattr(self._module, name)
        setattr(self, name, found)  # at once next time
        return found

    def _imported(self) -> BackendModule:
        return importlib.import_module(f"tocsin._compute.{self.backend}_")

    def put(self, array: NDArray[S]) -> NDArray[S]:
        return self._module.put(self.device, array)

    def uniforms(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array:
        return self._module.uniforms(self.device, rng, shape)

    def integers(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Int32Array:
        return self._module.integers(self.device, rng, count, shape)

    def distinct(self, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array:
        return self._module.distinct(self.device, rng, count, shape)

    def references(self, rng: np.random.Generator, count: int, copies: int) -> Float32Array:
        return self._module.references(self.device, rng, count, copies)

    def __reduce__(self) -> tuple[type[LazyFunctions], tuple[str, str]]:
        return LazyFunctions, (self.backend, self.device)

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    @property
    def nearby(self) -> Functions:
        return LazyFunctions("numba") if self.on_gpu else self

    @property
    def stepping(self) -> Functions:
        stays = self.backend != "torch" or (self.on_gpu and importlib.util.find_spec("triton") is not None)
        return self if stays else LazyFunctions("numba")

    def __str__(self) -> str:
        return f"torch on {self.device}" if self.backend == "torch" else self.backend


def load(backend: Backend, device: str | None = None) -> Functions:
    """The hot functions; what they need is imported when the first of them is called, and nowhere earlier.

    device: for 'torch' and 'auto': 'cpu', 'cuda', 'cuda:0', ...; None for a GPU if there is one.
    The environment variable TOCSIN_BACKEND, if it is set, is what 'auto' stands for, with TOCSIN_DEVICE for no device.
    """
    given: Part = Option("backend", backend)
    if isinstance(backend, str) and backend == "auto" and BACKEND_VARIABLE in os.environ:
        backend = cast(Backend, os.environ[BACKEND_VARIABLE])
        given = f"The environment variable {BACKEND_VARIABLE}={backend!r}"
        device = os.environ.get(DEVICE_VARIABLE) if device is None else device
    one_of(given, backend, get_args(Backend))
    device = None if device is None else str(device)  # it may be a torch.device
    if device is not None and not (
        device == "cpu" or device == "cuda" or (device[:5] == "cuda:" and device[5:].isdigit())
    ):
        raise InputError(Option("device", device), " is unknown; choose 'cpu', 'cuda', or 'cuda:0', 'cuda:1', ...")
    gpu = device is not None and device != "cpu"
    if backend in ("numba", "numpy"):
        if gpu:
            raise InputError(
                given, f" runs on the CPU, not on {device!r}. Give ", Option("backend", "torch"), ", or 'auto'."
            )
        return LazyFunctions(backend)
    if backend == "auto" and not gpu:
        return LazyFunctions("torch", "cuda") if device is None and _gpu_ready() else LazyFunctions("numba")
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "torch", given if backend == "torch" else Option("device", device))
    if device is None:
        return LazyFunctions("torch", "cuda" if _gpu_ready() else "cpu")
    if gpu:
        torch = importlib.import_module("torch")
        count = torch.cuda.device_count()
        if int(device[5:] or 0) >= count:
            raise InputError(
                Option("device", device),
                f" is not there: PyTorch {torch.__version__} sees {count} GPUs. Give ",
                Option("device", "cpu"),
                ", or install a driver and a PyTorch that go together.",
            )
    return LazyFunctions("torch", device)


def on_host(array: Array) -> Array:
    """A backend's array as one of NumPy's, whatever the backend."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def speaking(channels: Array, centre: Float64Array, scale: Float64Array) -> tuple[Float64Array, Int64Array]:
    """The largest (S^k - centre_k) / scale_k of every row (n, channels) of a tensor, and which channel's it is."""
    from tocsin._compute import torch_

    return torch_.speaking(channels, centre, scale)


def _gpu_ready() -> bool:
    """Whether there is a GPU that PyTorch can use. PyTorch takes seconds to import, so the driver is asked first."""
    if importlib.util.find_spec("torch") is None:
        return False
    if "torch" not in sys.modules and not any(map(_loads, DRIVERS)):
        return False
    torch = importlib.import_module("torch")
    return bool(torch.cuda.is_available())


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
