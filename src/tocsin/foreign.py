"""Data as other libraries hold them, known by what they can do: to tell, none of these libraries need be there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, TypeGuard

from tocsin.compute.arrays import Array, Int64Array


class Tensor(Protocol):
    """An array of PyTorch's, on any device."""

    @property
    def dtype(self) -> object: ...

    @property
    def device(self) -> object: ...

    def detach(self) -> Tensor:
        """Apart from the graph that it may be in."""

    def cpu(self) -> Tensor: ...

    def double(self) -> Tensor: ...

    def to(self, *, device: object, dtype: object) -> Tensor: ...

    def numpy(self) -> Array: ...

    def is_floating_point(self) -> bool: ...

    def reshape(self, shape: tuple[int, ...]) -> Tensor: ...


class Indexed(Protocol):
    """What gives rows as a sequence of the same kind."""

    def __getitem__(self, rows: slice | Int64Array) -> object: ...


class Sparse(Protocol):
    """A matrix without its zeros, as SciPy has them."""

    def toarray(self) -> Array: ...


class Compressible(Protocol):
    """A sparse matrix of which rows can be had, once it is brought to the form for that."""

    def tocsr(self) -> Indexed: ...


class Located(Protocol):
    """A frame or a series of pandas, whose rows are had by their places."""

    @property
    def iloc(self) -> Indexed: ...


def is_tensor(values: object) -> TypeGuard[Tensor]:
    return hasattr(values, "detach")


def is_on_gpu(values: object) -> TypeGuard[Tensor]:
    return bool(getattr(values, "is_cuda", False))


def is_sparse(values: object) -> TypeGuard[Sparse]:
    return hasattr(values, "toarray")


def is_compressible(values: object) -> TypeGuard[Compressible]:
    return hasattr(values, "tocsr")


def is_located(values: object) -> TypeGuard[Located]:
    return hasattr(values, "iloc")


def is_indexed(values: object) -> TypeGuard[Indexed]:
    return hasattr(values, "__getitem__")


def is_collection(values: object) -> TypeGuard[Collection[object]]:
    """Whether it has a length: what has one can be gone through, be it by its places only."""
    return hasattr(values, "__len__")
