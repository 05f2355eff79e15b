"""The compiled hot functions against the readable ones, pair by pair, and the exponential that they all rest on."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import InputError, compute
from tocsin.compute import numba_, numpy_
from tocsin.compute.arrays import Array, Float32Array

Arguments = list[Any]


@dataclass(frozen=True)
class Sizes:
    """N reference points of d columns, and what is done with them (strips and chunks hold 16, 64 and 512 points)."""

    seed: int
    count: int
    columns: int
    windows: tuple[int, ...]
    multipliers: tuple[float, ...]
    tabulated: bool
    typical: int = -1
    together: int = 1
    guard: int = 0

    @property
    def rng(self) -> np.random.Generator:
        """The same generator each time."""
        return np.random.default_rng(self.seed)

    @property
    def points(self) -> Float32Array:
        """(N, d), the scale at which kernels are neither 0 nor 1."""
        points: Array = self.rng.normal(size=(self.count, self.columns)) / self.columns**0.5
        return points.astype(np.float32)

    @property
    def padded(self) -> Float32Array:
        """(d, N) and zeros, up to a whole number of strips."""
        columns = np.zeros((self.columns, -(-self.count // 64) * 64), np.float32)
        columns[:, : self.count] = self.points.T
        return columns

    @property
    def table(self) -> Float32Array:
        """A kernel matrix, or none."""
        if not self.tabulated:
            return np.empty((0, 0), np.float32)
        half = self.rng.normal(size=(self.count, self.count))
        return (half + half.T).astype(np.float32)

    @property
    def widths(self) -> Float32Array:
        """Multipliers per width; 0 is the fourth power of the one before."""
        return np.array((1.0,) if self.tabulated else self.multipliers, np.float32)

    @property
    def window_array(self) -> Array:
        """The windows."""
        return np.array(self.windows)

    def streams(self, length: int) -> Array:
        """Indices with repetitions."""
        return self.rng.integers(0, self.count, (3, length), dtype=np.int32)

    @property
    def copies(self) -> Array:
        """Which of two pseudo-references each stream meets: `together` times one."""
        return self.rng.integers(0, 2, (3, self.together), dtype=np.int32)


all_sizes = st.builds(
    Sizes,
    seed=st.integers(0, 2**32),
    count=st.sampled_from([20, 63, 64, 65, 130, 600]),
    columns=st.sampled_from([1, 2, 17, 33]),
    windows=st.sampled_from([(2,), (5,), (2, 3, 9), (8, 9)]),
    multipliers=st.sampled_from([(1.0,), (1.0, 0.0, 0.0, 64.0, 0.0), (1.0, 2.3, 30.0), (1.0, 3.0, 0.0)]),
    tabulated=st.booleans(),
    typical=st.sampled_from([-1, 0]),
    together=st.sampled_from([1, 2, 5]),
    guard=st.sampled_from([0, 1, 7, 70, 1000]),
)


# Arguments for every hot function


def _queries(s: Sizes) -> tuple[Array, Array]:
    """Some of the points themselves, the first and the last among them, and three others."""
    own = np.r_[0, s.rng.integers(0, s.count, 4), s.count - 1, [-1, -1, -1]]
    return np.concatenate([s.points[own[:6]], s.points[:3] + np.float32(0.3)]).T.copy(), own


def _row_sums(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    return [s.padded, s.count, queries, own, s.guard, s.widths]


def _block(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    return [s.padded, 64 if s.count > 64 else 0, s.count, queries, own, s.guard, s.widths]


def _observe(s: Sizes) -> Arguments:
    queries, own = _queries(s)
    rows = queries.T.astype(np.float64)
    guard = min(s.guard, (s.count - 1) // 2)  # something must be left to compare with
    return [s.padded, s.count, 1e6 + 5 * rows, np.full(s.columns, 1e6), 0.2, own, guard, s.widths]


def _pair_bootstrap(s: Sizes) -> Arguments:
    streams, widths = s.streams(2 * s.windows[-1] + 7), len(s.widths)
    neutral, linear = s.rng.normal(size=(widths, s.count)), s.rng.normal(size=(2, widths, s.count))
    return [
        s.points, s.table, streams, s.copies, s.window_array, s.widths,
        neutral.astype(np.float32), s.rng.normal(size=(widths, 2)), linear.astype(np.float32),
        s.typical,
    ]  # fmt: skip


def _pair_split(s: Sizes) -> Arguments:
    streams = np.stack([s.rng.permutation(s.count)[: 2 * s.windows[-1] - 1] for _ in range(3)]).astype(np.int32)
    row_sums = s.rng.uniform(0, s.count, (len(s.widths), s.count))
    return [s.points, s.table, streams, s.window_array, s.widths, row_sums, s.typical]


def _pair_advance(s: Sizes) -> Arguments:
    """Enough points to turn the buffer over twice, beginning in the middle of it."""
    widths, widest, new = len(s.multipliers), s.windows[-1], 9 * s.windows[-1] + 1
    multipliers, capacity = np.array(s.multipliers, np.float32), 4 * s.windows[-1]
    block = np.tile(s.points.T, 10)[:, : new + 3].copy()
    return [
        np.zeros((s.columns, capacity + 64), np.float32), np.zeros((widths, capacity), np.float32),
        np.zeros((widths, capacity)), np.array([widest // 2]), s.window_array, multipliers, s.rng.normal(size=widths),
        s.typical, block, s.rng.normal(size=(widths, new + 3)), 3, new + 3,
        np.zeros((new, (widths + (s.typical >= 0)) * len(s.windows))),
    ]  # fmt: skip


def _features(s: Sizes) -> Array:
    return s.points.astype(np.float64)


def _feature_bootstrap(s: Sizes) -> Arguments:
    streams = s.streams(2 * s.windows[-1] + 7)
    linear, excess = s.rng.normal(size=(2, s.count)), s.rng.normal(size=s.count)
    offset, quadratic = s.rng.normal(size=2), float(s.tabulated)
    return [_features(s), streams, s.copies, s.window_array, excess, offset, linear, quadratic]


def _feature_split(s: Sizes) -> Arguments:
    streams = np.stack([s.rng.permutation(s.count)[: 2 * s.windows[-1] - 1] for _ in range(3)]).astype(np.int32)
    return [_features(s), streams, s.window_array, s.tabulated]


def _feature_advance(s: Sizes) -> Arguments:
    new, capacity = 9 * s.windows[-1] + 1, 4 * s.windows[-1]
    block, quadratic = np.tile(_features(s), (10, 1))[: new + 3].copy(), float(s.tabulated)
    return [
        np.zeros((capacity, s.columns)), np.zeros(capacity),
        np.zeros((len(s.windows), s.windows[-1] + 1, s.columns)), np.zeros((len(s.windows), s.columns)),
        np.zeros(len(s.windows), np.int64), np.array([0]),
        s.window_array, quadratic, block, s.rng.normal(size=new + 3), 3, new + 3, np.zeros((new, len(s.windows))),
    ]  # fmt: skip


def _records(s: Sizes) -> Arguments:
    values = s.rng.normal(size=(7, 30))
    return [values.round() if s.tabulated else values, np.array([0, 1, 2, 9, 30])]


def _loudest(s: Sizes) -> Arguments:
    paths, channels = s.rng.normal(size=(len(s.multipliers), 3 * s.together, 11)), len(s.multipliers)
    paths = paths.round() if s.tabulated else paths
    return [
        paths.astype(np.float32), s.rng.normal(size=channels), s.rng.uniform(0.1, 2, channels), s.rng.random((3, 11))
    ]  # fmt: skip


def _bumps(s: Sizes) -> Arguments:
    points = _features(s)
    return [points, points[:4].copy(), 1.3, s.rng.normal(size=(4, 3))]


def _mean_distances(s: Sizes) -> Arguments:
    values, others = _features(s), s.rng.normal(size=(9, s.columns))
    return [values, s.rng.integers(0, s.count, (6, 4)), others, s.rng.integers(0, 9, (6, 3))]


ARGUMENTS: dict[str, Callable[[Sizes], Arguments]] = {
    "bumps": _bumps,
    "distinct_streams": lambda s: [s.rng.random((5, 19)), s.count],
    "exponentials": lambda s: [-np.abs(s.points[:, 0]) * 20],
    "feature_advance": _feature_advance,
    "feature_bootstrap_paths": _feature_bootstrap,
    "feature_split_paths": _feature_split,
    "gaussian_block": _block,
    "gaussian_observe": _observe,
    "gaussian_row_sums": _row_sums,
    "loudest": _loudest,
    "mean_distances": _mean_distances,
    "pair_advance": _pair_advance,
    "pair_bootstrap_paths": _pair_bootstrap,
    "pair_split_paths": _pair_split,
    "records": _records,
}
hot_functions = pytest.mark.parametrize("name", ARGUMENTS)


# Pair by pair


@hot_functions
@given(sizes=all_sizes)
def test_compiled_equals_readable(name: str, sizes: Sizes) -> None:
    """The same answer, and the same left behind in arrays that are written to."""
    for_numba = ARGUMENTS[name](sizes)
    for_numpy = copy.deepcopy(for_numba)
    got, expected = getattr(numba_, name)(*for_numba), getattr(numpy_, name)(*for_numpy)
    if not isinstance(got, tuple):
        got, expected = (got,), (expected,)
    for one, other in [*zip(got, expected, strict=True), *zip(for_numba, for_numpy, strict=True)]:
        if other is None or name in ("distinct_streams", "records"):
            np.testing.assert_array_equal(one, other)
        else:
            scale = max(1.0, float(np.nanmax(np.abs(other)))) if np.size(other) else 1.0
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * scale)


def test_every_hot_function_is_compared() -> None:
    """The list above is all that the compiled module offers."""
    assert sorted(ARGUMENTS) == numba_.__all__


@hot_functions
def test_signatures_are_the_same(name: str) -> None:
    """One signature, two implementations."""
    compiled, readable = getattr(numba_, name).py_func, getattr(numpy_, name)
    assert list(inspect.signature(compiled).parameters) == list(inspect.signature(readable).parameters)


@hot_functions
@pytest.mark.parametrize("seed", [0, 1])
def test_inputs_are_left_alone(functions: compute.Functions, name: str, seed: int) -> None:
    """Only the two that take in new points write to their arguments."""
    arguments = ARGUMENTS[name](Sizes(seed, 65, 2, (2, 5), (1.0, 0.0), tabulated=False))
    before = copy.deepcopy(arguments)
    getattr(functions, name)(*arguments)
    written = {"pair_advance": 4, "feature_advance": 6}.get(name, 0)
    for one, other in list(zip(arguments, before, strict=True))[written : -1 if written else None]:
        np.testing.assert_array_equal(one, other)


# The exponential


def test_exponential_over_its_range() -> None:
    """To 1.2e-7 (an ulp of float32) of exp(x) down to -87, and not more than 1e-37 below."""
    x = np.linspace(0, -200, 400_001).astype(np.float32)
    got, expected = numba_.exponentials(x).astype(np.float64), np.exp(x.astype(np.float64))
    inside = x >= -87
    assert np.abs(got[inside] / expected[inside] - 1).max() < 1.2e-7
    assert (np.abs(got - expected)[~inside] < 1e-37).all()
    assert (got >= 0).all()
    assert (got <= 1).all()


@pytest.mark.parametrize("x", [0.0, -0.0, -1e-45, -1e-40, -1.2e-38, -1e-20, -2e-8])
def test_exponential_is_exactly_one_at_nothing(functions: compute.Functions, x: float) -> None:
    """Points that coincide, or nearly, have a kernel of exactly 1."""
    assert functions.exponentials(np.array([x], np.float32))[0] == 1.0


@pytest.mark.parametrize("x", [-np.inf, -3.4e38, -1e20, -1000.0])
def test_exponential_far_away(functions: compute.Functions, x: float) -> None:
    """Points too far apart for float32 have a kernel of 0, for all purposes."""
    assert 0 <= functions.exponentials(np.array([x], np.float32))[0] < 1e-37


def test_exponential_never_rises() -> None:
    """Farther points are never more alike, up to rounding."""
    x = -np.sort(np.random.default_rng(0).exponential(5, 100_000)).astype(np.float32)
    y = numba_.exponentials(x).astype(np.float64)
    assert (y[1:] <= y[:-1] * (1 + 2e-7)).all()


# What the pair tests cannot show


@pytest.mark.parametrize("name", ["pair_bootstrap_paths", "feature_bootstrap_paths"])
@pytest.mark.parametrize("backend", [numba_, numpy_])
@given(sizes=all_sizes)
def test_copies_together_are_copies_one_by_one(name: str, backend: Any, sizes: Sizes) -> None:
    """A stream that meets m pseudo-references has m paths in a row, each as if it met that one alone."""
    place = 3 if name == "pair_bootstrap_paths" else 2
    arguments = ARGUMENTS[name](sizes)
    copies, together = arguments[place], getattr(backend, name)(*arguments)
    for i in range(sizes.together):
        arguments[place] = copies[:, i : i + 1].copy()
        np.testing.assert_array_equal(together[:, i :: sizes.together], getattr(backend, name)(*arguments))


@pytest.mark.parametrize("guard", [0, 1, 3, 64, 70, 200])
def test_a_guard_leaves_out_what_is_close_in_time(functions: compute.Functions, guard: int) -> None:
    """Sums, single kernels and means, by a loop over the points that are further away than the guard."""
    s = Sizes(0, 500, 2, (5,), (1.0,), tabulated=False)
    points, own = s.points.astype(np.float64), np.array([0, 1, 64, 130, 300, 499, -1])
    queries = s.points[own].T.copy()
    met = [[i for i in range(s.count) if j < 0 or abs(i - j) > guard] for j in own]
    kernel = np.exp(-((points[own][:, None] - points[None]) ** 2).sum(-1))
    expected = np.array([row[places].sum() for row, places in zip(kernel, met, strict=True)])
    sums = functions.gaussian_row_sums(s.padded, s.count, queries, own, guard, s.widths)
    np.testing.assert_allclose(sums[0], expected, rtol=1e-5)
    block = functions.gaussian_block(s.padded, 64, s.count, queries, own, guard, s.widths)
    np.testing.assert_allclose(
        block[0].sum(1),
        [row[[i for i in places if i >= 64]].sum() for row, places in zip(kernel, met, strict=True)],
        rtol=1e-5,
    )
    _, linear = functions.gaussian_observe(s.padded, s.count, points[own], np.zeros(2), 1.0, own, guard, s.widths)
    np.testing.assert_allclose(linear[0], -2 * expected / [len(places) for places in met], rtol=1e-5)


def test_the_loudest_channel_speaks(functions: compute.Functions) -> None:
    """By hand: two channels, one stream against two pseudo-references that share its coins."""
    channels = np.array([[[1.0, 5.0], [3.0, 2.0]], [[2.0, 0.0], [0.0, 9.0]]], np.float32)
    got = functions.loudest(channels, np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.array([[0.25, 0.5]]))
    assert got.tolist() == [[2.25, 2.5], [1.25, 9.5]]


@given(sizes=all_sizes)
def test_distinct_streams_are_distinct(sizes: Sizes) -> None:
    """No stream holds a point twice, and all points are there to be drawn."""
    count = sizes.count
    streams = numba_.distinct_streams(sizes.rng.random((40, count)), count)
    assert all(sorted(stream) == list(range(count)) for stream in streams.tolist())


def test_distinct_streams_at_the_edge() -> None:
    """The largest number below 1 draws the last card of the deck and not the one after it."""
    almost_one = np.full((2, 5), np.nextafter(1.0, 0.0))
    for module in (numba_, numpy_):
        streams = module.distinct_streams(almost_one, 5)
        assert streams.max() == 4
        assert all(len(set(stream)) == 5 for stream in streams.tolist())


def test_backends_by_name() -> None:
    """'auto' and 'numba' are compiled, 'numpy' is readable, anything else is refused."""
    for name in ARGUMENTS:
        assert getattr(compute.load("auto"), name) is getattr(compute.load("numba"), name) is getattr(numba_, name)
        assert getattr(compute.load("numpy"), name) is getattr(numpy_, name)
    unknown: Any = "torch"
    with pytest.raises(InputError, match=r"backend='torch' is unknown; choose one of 'auto', 'numba', 'numpy'"):
        compute.load(unknown)
