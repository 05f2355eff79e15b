"""Data as other libraries hold them, known by what they can do: to tell, none of these libraries need be there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, Self, TypeGuard

from tocsin._compute.arrays import Array, Int64Array


class Tensor(Protocol):
    """An array of PyTorch's, on any device."""

    @property
    def dtype(self) -> object: ...

    @property
    def device(self) -> object: ...

    @property
    def ndim(self) -> int: ...

    @property
    def shape(self) -> Sequence[int]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: object, /) -> Self: ...

    def all(self) -> Self: ...

    def detach(self) -> Self:
        """Apart from the graph that it may be in."""

    def cpu(self) -> Self: ...

    def double(self) -> Self: ...

    def to(self, *, device: object, dtype: object) -> Self: ...

    def numpy(self) -> Array: ...

    def is_floating_point(self) -> bool: ...

    def isfinite(self) -> Self: ...

    def reshape(self, shape: tuple[int, ...]) -> Self: ...


class Indexed(Protocol):
    """What gives rows as a sequence of the same kind."""

    def __getitem__(self, rows: slice | Int64Array) -> object: ...


class Sparse(Protocol):
    """A matrix without its zeros, as SciPy has them."""

    @property
    def shape(self) -> tuple[int, ...]: ...

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
    return hasattr(values, "__len__") and getattr(values, "ndim", 1) != 0
