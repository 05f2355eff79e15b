"""The hot functions, each with its signature: what every backend must have, and mypy checks.

What each computes is told where it can be read as NumPy: in `numpy_`, and for arrays and random numbers in `host`.
A long file, since every parameter has a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tocsin._compute.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int16Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)

S = TypeVar("S", bound=np.generic)


class Hot(Protocol):
    """Functions of arrays, which compute where their first array is.

    Arrays are spelled as NumPy's, which those of the CPU backends are. PyTorch's are tensors of the same shapes and
    types, as far as they are too large to go to and fro.
    """

    BLOCK_WORK: int
    SPREAD_STREAMS: int
    ROWS: int

    # Arrays

    def get(self, array: NDArray[S]) -> NDArray[S]: ...

    def concatenate(self, arrays: Sequence[NDArray[S]], axis: int = 0) -> NDArray[S]: ...

    def flat(self, array: Float32Array) -> Float64Array: ...

    def take(self, array: NDArray[S], rows: Int64Array, columns: Int64Array) -> NDArray[S]: ...

    # Kernels between points

    def exponentials(self, x: Float32Array) -> Float32Array: ...

    def gaussian_row_sums(
        self,
        points: Float32Array,
        count: int,
        queries: Float32Array,
        own: Int64Array,
        guard: int,
        multipliers: Float32Array,
        weights: Float32Array,
    ) -> Float64Array: ...

    def gaussian_products(
        self,
        points: Float32Array,
        count: int,
        queries: Float32Array,
        own: Int64Array,
        guard: int,
        multipliers: Float32Array,
        weights: Float32Array,
    ) -> Float64Array: ...

    def gaussian_observe(
        self,
        points: Float32Array,
        count: int,
        queries: Float64Array,
        centre: Float64Array,
        scale: float,
        own: Int64Array,
        guard: int,
        multipliers: Float32Array,
        weights: Float32Array,
    ) -> tuple[Float32Array, Float64Array]: ...

    # Null paths of kernel statistics

    def pair_terms(
        self, products: Float64Array, row_means: Float64Array, weights: Float32Array, near: Float64Array
    ) -> tuple[Float64Array, Float32Array, Float32Array]: ...

    def pair_bootstrap_paths(
        self,
        points: Float32Array,
        table: Float32Array,
        streams: Int32Array,
        copies: Int32Array,
        windows: Int64Array,
        multipliers: Float32Array,
        neutral: Float32Array,
        offset: Float64Array,
        linear: Float32Array,
        typical: int,
    ) -> Float32Array: ...

    def pair_bootstrap_loudest(
        self,
        points: Float32Array,
        table: Float32Array,
        streams: Int32Array,
        copies: Int32Array,
        windows: Int64Array,
        multipliers: Float32Array,
        neutral: Float32Array,
        offset: Float64Array,
        linear: Float32Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        grid: float,
        origin: float,
    ) -> Float64Array: ...

    def pair_bootstrap_passages(
        self,
        points: Float32Array,
        table: Float32Array,
        streams: Int32Array,
        windows: Int64Array,
        multipliers: Float32Array,
        neutral: Float32Array,
        offset: Float64Array,
        linear: Float32Array,
        mean_offset: Float64Array,
        mean_linear: Float32Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        levels: Float64Array,
        floors: Float64Array,
    ) -> tuple[Int64Array, float]: ...

    def pair_split_paths(
        self,
        points: Float32Array,
        table: Float32Array,
        streams: Int32Array,
        windows: Int64Array,
        multipliers: Float32Array,
        row_sums: Float64Array,
        typical: int,
    ) -> Float32Array: ...

    # Live streams of kernel statistics

    def pair_advance(
        self,
        buffer: Float32Array,
        ahead: Float32Array,
        linear: Float64Array,
        cursor: Int64Array,
        windows: Int64Array,
        multipliers: Float32Array,
        offset: Float64Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        block: Float32Array,
        block_linear: Float64Array,
        start: int,
        stop: int,
    ) -> Float64Array: ...

    def pair_step(
        self,
        points: Float32Array,
        count: int,
        centre: Float64Array,
        scale: float,
        multipliers: Float32Array,
        weights: Float32Array,
        windows: Int64Array,
        offset: Float64Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        query: Float64Array,
        buffer: Float32Array,
        ahead: Float32Array,
        linear: Float64Array,
        cursor: Int64Array,
        out: Float64Array,
    ) -> None: ...

    def pair_step_lacking(
        self,
        points: Float32Array,
        count: int,
        centre: Float64Array,
        scale: float,
        multipliers: Float32Array,
        weights: Float32Array,
        windows: Int64Array,
        offset: Float64Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        query: Float64Array,
        gone: Float32Array,
        size: int,
        own: float,
        leaving: float,
        moved: Float64Array,
        buffer: Float32Array,
        ahead: Float32Array,
        linear: Float64Array,
        cursor: Int64Array,
        out: Float64Array,
    ) -> None: ...

    def pair_bank_step(
        self,
        buffer: Float32Array,
        ahead: Float32Array,
        linear: Float64Array,
        position: Int64Array,
        filled: Int64Array,
        windows: Int64Array,
        multipliers: Float32Array,
        offset: Float64Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        chosen: Int64Array,
        start: int,
        stop: int,
        block: Float32Array,
        block_linear: Float64Array,
    ) -> Float64Array: ...

    def pair_sums(
        self,
        windows: Float32Array,
        sizes: Int64Array,
        multipliers: Float32Array,
        which: Int64Array,
        columns: Int64Array,
        block: Float32Array,
    ) -> Float64Array: ...

    def pair_keys_advance(
        self,
        points: Float32Array,
        sums: Float32Array,
        filled: Int64Array,
        windows: Int64Array,
        multipliers: Float32Array,
        offset: Float64Array,
        typical: int,
        rows: Int64Array,
        signs: Float64Array,
        chosen: Int64Array,
        first: Int64Array,
        last: Int64Array,
        start: int,
        stop: int,
        block: Float32Array,
        block_linear: Float64Array,
    ) -> Float64Array: ...

    def pair_keys_take(
        self,
        points: Float32Array,
        sums: Float32Array,
        filled: Int64Array,
        chosen: Int64Array,
        first: Int64Array,
        last: Int64Array,
        block: Float32Array,
        block_linear: Float64Array,
    ) -> None: ...

    # Features

    def bumps(
        self, points: Float64Array, centres: Float64Array, width: float, factor: Float64Array
    ) -> Float64Array: ...

    def mean_distances(
        self, values: Float64Array, places: Int64Array, others: Float64Array, other_places: Int64Array
    ) -> Float64Array: ...

    def feature_bootstrap_paths(
        self,
        features: Float64Array,
        streams: Int32Array,
        copies: Int32Array,
        windows: Int64Array,
        excess: Float64Array,
        offset: Float64Array,
        linear: Float64Array,
        quadratic: float,
    ) -> Float32Array: ...

    def feature_split_paths(
        self, features: Float64Array, streams: Int32Array, windows: Int64Array, signed: bool
    ) -> Float32Array: ...

    def feature_advance(
        self,
        buffer: Float64Array,
        linear: Float64Array,
        tails: Float64Array,
        fresh: Float64Array,
        age: Int64Array,
        cursor: Int64Array,
        windows: Int64Array,
        quadratic: float,
        block: Float64Array,
        block_linear: Float64Array,
        start: int,
        stop: int,
        out: Float64Array,
    ) -> None: ...

    # Views

    def autoregress(self, errors: Float64Array, weights: Float64Array) -> Float64Array: ...

    def view_rows(
        self,
        points: Float64Array,
        centre: Float64Array,
        spread: Float64Array,
        chosen: Int64Array,
        axes: Float64Array,
        soft: float,
    ) -> Float64Array: ...

    def view_channels(
        self,
        rows: Float64Array,
        lags: Float64Array,
        sizes: Float64Array,
        base: int,
        gap: int,
        windows: Int64Array,
        floor: float,
    ) -> Float64Array: ...

    def view_follow(
        self,
        squares: Float32Array,
        born: int,
        scale: Float64Array,
        level: float,
        memory: float,
        attack: float,
        cap: float,
        silent: int,
        early: float,
        fade: float,
    ) -> BoolArray: ...

    def view_watch(
        self,
        points: Float64Array,
        streams: Int64Array,
        first: Int64Array,
        last: Int64Array,
        begin: int,
        end: int,
        halt: bool,
        rows: Int16Array,
        rests: Int8Array,
        sums: Float64Array,
        position: Int64Array,
        scale: Float32Array,
        clock: Int64Array,
        loud: Float64Array,
        usual: Float64Array,
        columns: Float64Array,
        chosen: Int64Array,
        axes: Float64Array,
        lags: Float64Array,
        windows: Int64Array,
        base: int,
        gap: int,
        units: Float64Array,
        shares: Float64Array,
        pace: Float64Array,
        best: Float64Array,
        which: Int64Array,
        out: Float64Array,
    ) -> None: ...

    def view_sums(
        self,
        rows: Int16Array,
        rests: Int8Array,
        position: Int64Array,
        lags: Float64Array,
        windows: Int64Array,
        base: int,
        gap: int,
        most: float,
    ) -> Float64Array: ...

    # What is read off paths

    def quantile(self, values: Float64Array, level: float) -> float: ...

    def loudest(
        self,
        channels: Float32Array,
        centre: Float64Array,
        scale: Float64Array,
        ties: Float64Array,
        grid: float,
        origin: float,
    ) -> Float64Array: ...

    # The alarm rule, for arrays on the host

    def coins(self, seed: np.uint64, stream: UInt64Array, run: Int64Array, time: Int64Array) -> Float64Array: ...

    def decide(
        self,
        values: Float64Array,
        coins: Float64Array,
        tests: Int64Array,
        centre: Float64Array,
        scale: Float64Array,
        tie: float,
        grid: float,
        origin: float,
        thresholds: Float64Array,
    ) -> tuple[Float64Array, Float64Array, Int64Array]: ...

    def judge(
        self,
        values: Float64Array,
        seed: np.uint64,
        stream: UInt64Array,
        run: Int64Array,
        time: Int64Array,
        untested: int,
        centre: Float64Array,
        scale: Float64Array,
        tie: float,
        grid: float,
        origin: float,
        thresholds: Float64Array,
    ) -> tuple[Float64Array, Float64Array, Int64Array]: ...

    def judge_one(
        self,
        values: Float64Array,
        seed: np.uint64,
        run: int,
        time: int,
        untested: int,
        centre: Float64Array,
        scale: Float64Array,
        tie: float,
        grid: float,
        origin: float,
        thresholds: Float64Array,
    ) -> tuple[float, float, int]: ...

    def news_watch(
        self,
        points: Float64Array,
        owner: Int64Array,
        heard: Float64Array,
        layout: Int64Array,
        limits: Float64Array,
        spans: Int64Array,
        quiet: Int64Array,
        rates: Float64Array,
        first: Int64Array,
        known: Float64Array,
        stops: Float64Array,
        alone: Float64Array,
        lasting: bool,
    ) -> tuple[Int64Array, Float64Array]: ...

    def stretch_maxima(self, paths: Float64Array, edges: Int64Array) -> Float64Array: ...

    def records(
        self, paths: Float64Array, edges: Int64Array, floors: Float64Array
    ) -> tuple[Int32Array, Int32Array, Int32Array, Float64Array]: ...

    def first_passages(self, paths: Float64Array, levels: Float64Array, start: int) -> tuple[BoolArray, Int64Array]: ...


class BackendModule(Hot, Protocol):
    """A backend: also the functions that make arrays out of nothing, and must be told on which device."""

    def put(self, device: str, array: NDArray[S]) -> NDArray[S]: ...

    def uniforms(self, device: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array: ...

    def integers(self, device: str, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Int32Array: ...

    def distinct(self, device: str, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array: ...

    def references(self, device: str, rng: np.random.Generator, count: int, copies: int) -> Float32Array: ...


class Functions(Hot, Protocol):
    """A backend on a device, as the library has it: `put` makes the backend's arrays of NumPy's, `get` the reverse."""

    backend: str
    device: str

    @property
    def on_gpu(self) -> bool: ...

    @property
    def nearby(self) -> Functions:
        """For work that is too little to be worth the way to a GPU: the CPU's."""

    @property
    def stepping(self) -> Functions:
        """For streams of views, which step by Triton where there is a GPU that has it, and by Numba elsewhere."""

    def put(self, array: NDArray[S]) -> NDArray[S]: ...

    def uniforms(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array: ...

    def integers(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Int32Array: ...

    def distinct(self, rng: np.random.Generator, count: int, shape: tuple[int, int]) -> Int32Array: ...

    def references(self, rng: np.random.Generator, count: int, copies: int) -> Float32Array: ...
