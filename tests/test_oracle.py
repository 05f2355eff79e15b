"""Every statistic, in every mode, agrees with the oracle (`naive.py`) to 1e-6 of the statistic's own scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from backends import BACKENDS, needs_torch, on_device, with_torch
from naive import Floats, Indices
from tocsin import LSDD, MMD, Blocks, Custom, Detector, Gaussian, Independent, MeanShift
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.plan import Mode, Plan, make_plan
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Backend, on_host
from tocsin._compute.arrays import Float32Array, Int64Array
from tocsin._detector.base import altered
from tocsin._detector.stepping import entered
from tocsin._execution.threads import Threads
from tocsin._samplers import DrawnStreams, InBlocks, Sampler, Singly, Source, Streams
from tocsin._state import Run
from tocsin._statistics.base import NullPaths, Parts, Prepared, Setting, Statistic
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.kernels import median_distance
from tocsin._statistics.lsdd import BOOTSTRAPS, CANDIDATES, bumps_products, choose_regularisation

TOLERANCE = 1e-6
COPIES, PATHS, TOGETHER = 3, 3, 2
REGULARISATION = 0.05

pytestmark = pytest.mark.usefixtures("quick_fits")
backends = pytest.mark.parametrize("backend", with_torch)


# Random references: offsets up to a million standard deviations, tiny and huge scales, duplicates, the fewest points.
# (At an offset of 1e12 standard deviations the float64 data themselves keep only four digits of each deviation.)


@dataclass(frozen=True)
class Case:
    """A reference, and a stream that begins like it and then moves away.

    guard: how far apart reference points must be to be compared; where it is not 0, they are drawn in blocks.
    """

    seed: int
    columns: int
    windows: tuple[int, ...]
    spare: int
    offset: float
    scale: float
    repeats: bool
    constant: bool = False
    guard: int = 0

    @property
    def widest(self) -> int:
        """The widest window."""
        return self.windows[-1]

    @property
    def rng(self) -> np.random.Generator:
        """The same generator each time."""
        return np.random.default_rng(self.seed)

    @property
    def points(self) -> Floats:
        """The reference."""
        count = 2 * self.widest + 2 + self.spare
        values = self.rng.normal(size=(count, self.columns))
        if self.repeats:
            values = values[np.r_[0, 1, self.rng.integers(0, 2 + count // 2, count - 2)]]
        return self.place(values)

    @property
    def centres(self) -> Floats:
        """Points that LSDD sets aside."""
        return self.place(np.random.default_rng([self.seed, 1]).normal(size=(7, self.columns)))

    def stream(self, length: int) -> Floats:
        """New observations, which drift away by four standard deviations.

        (Not much further: at narrow widths the float32 coordinates of points far from all others, in a window of two,
        would be off by a few 1e-6.)
        """
        values = np.random.default_rng([self.seed, 2]).normal(size=(length, self.columns))
        values[length // 2 :] += np.linspace(0, 4, length - length // 2)[:, None]
        return self.place(values)

    @property
    def source(self) -> Source:
        """How null streams and pseudo-references are drawn: with a guard, from blocks of two recordings."""
        count = len(self.points)
        return InBlocks(np.array([0, count // 3, count]), 4, self.guard) if self.guard else Singly(count)

    def place(self, values: Floats) -> Floats:
        """From standard deviations to the units of the case."""
        placed = np.asarray(self.scale * (self.offset + values))
        if self.constant:
            # Not a sum of powers of two: the mean of many such numbers is not the number.
            placed[:, -1] = 0.1
        return placed


cases = st.builds(
    Case,
    seed=st.integers(0, 2**32),
    columns=st.sampled_from([1, 2, 33]),
    windows=st.sampled_from([(2,), (5,), (2, 3, 7), (4, 9)]),
    spare=st.sampled_from([0, 1, 25]),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    repeats=st.booleans(),
)
guarded_cases = st.builds(
    Case,
    seed=st.integers(0, 2**32),
    columns=st.sampled_from([1, 3]),
    windows=st.sampled_from([(2,), (5,), (2, 3, 7)]),
    spare=st.sampled_from([25, 40]),
    offset=st.sampled_from([0.0, -1e6]),
    scale=st.sampled_from([1e-8, 1.0]),
    repeats=st.booleans(),
    guard=st.sampled_from([1, 3, 6]),
)
HARD = Case(seed=5, columns=2, windows=(2, 3, 7), spare=25, offset=-1e6, scale=1e-8, repeats=True)


# Statistics, each with its oracle


@dataclass(frozen=True)
class Oracle:
    """What the oracle says of one channel but for its window.

    unit: the scale of the statistic; None for the largest value that it takes.
    """

    distance: Callable[[Any, Any], float]
    bootstrap: Callable[[Indices, Indices, int, int], Floats] | None = None
    warm: Callable[[naive.Window], float] | None = None
    unit: float | None = None


@dataclass(frozen=True)
class Problem:
    """A statistic, the points it sets aside, and the oracle and window of each of its channels."""

    statistic: Statistic
    held_out: Floats
    channels: list[tuple[Oracle, int]]


def _mmd_oracle(case: Case, kernel: naive.Kernel, unit: float = 1.0) -> Oracle:
    points, guard = case.points, case.guard
    K = kernel(points, points)
    return Oracle(
        distance=lambda X, Y: naive.mmd(X, Y, kernel, guard),
        bootstrap=lambda v, stream, window, widest: naive.bootstrap_mmd_path(K, v, stream, window, widest, guard),
        warm=lambda window: naive.warm_mmd(points, window, kernel, guard),
        unit=unit,
    )


def _gaussian_problem(factors: tuple[float, ...]) -> Callable[[Case], Problem]:
    def problem(case: Case) -> Problem:
        median = naive.median_distance(case.points)
        oracles = [_mmd_oracle(case, naive.gaussian(median * f)) for f in sorted(factors, reverse=True)]
        return _problem(MMD(Gaussian(factors=factors)), oracles, case)

    return problem


def _typical_oracle(case: Case, kernel: naive.Kernel, sign: int) -> Oracle:
    points, guard = case.points, case.guard
    K = kernel(points, points)
    return Oracle(
        distance=lambda X, Y: sign * naive.atypicality(X, Y, kernel, guard),
        bootstrap=lambda v, stream, window, widest: (
            sign * naive.bootstrap_atypicality_path(K, v, stream, window, widest, guard)
        ),
        warm=lambda window: sign * naive.warm_atypicality(points, window, kernel, guard),
        unit=1.0,
    )


def _default_problem(case: Case) -> Problem:
    """Only channels whose window can hold a pair that is alike at the width, but always all windows at the widest.

    Then how untypical points are at the median width, or the next that has channels; and how typical, over all windows
    but the shortest.
    """
    median, channels = naive.median_distance(case.points), []
    widths = []
    for factor in (2.0, 1.0, 0.5, 0.25, 0.125):
        oracle = _mmd_oracle(case, naive.gaussian(median * factor))
        K = naive.gaussian(median * factor)(case.points, case.points)
        alike = naive.mean_kernels(K, case.guard).mean()
        heard = [(oracle, w) for w in case.windows if factor == 2 or alike * w * (w - 1) / 2 >= 1]
        channels += heard
        widths += [median * factor] if heard else []
    typical = naive.gaussian(widths[min(1, len(widths) - 1)])
    channels += [(_typical_oracle(case, typical, 1), w) for w in case.windows]
    longer = case.windows[1:] or case.windows
    channels += [(_typical_oracle(case, typical, -1), w) for w in longer]
    return Problem(MMD(), case.points[:0], channels)


def _width_problem(case: Case) -> Problem:
    widths = (0.7 * case.scale, 1.4 * case.scale)
    oracles = [_mmd_oracle(case, naive.gaussian(width)) for width in reversed(widths)]
    return _problem(MMD(Gaussian(width=widths)), oracles, case)


def _callable_problem(case: Case) -> Problem:
    """A polynomial kernel: k(x, x) is neither 1 nor the same for all x."""

    def kernel(X: Floats, Y: Floats) -> Floats:
        X, Y = X / case.scale - case.offset, Y / case.scale - case.offset
        return np.asarray((1 + X @ Y.T / case.columns) ** 2)

    unit = float(kernel(case.points, case.points).max())
    return _problem(MMD(kernel), [_mmd_oracle(case, kernel, unit)], case)


def _lsdd_oracle(points: Floats, centres: Floats, width: float, guard: int = 0) -> Oracle:
    root = np.linalg.cholesky(naive.lsdd_form(centres, width, REGULARISATION))
    features = naive.bumps(points, centres, width) @ root
    return Oracle(
        distance=lambda X, Y: naive.lsdd(X, Y, centres, width, REGULARISATION),
        bootstrap=lambda v, stream, window, widest: naive.bootstrap_feature_path(
            features, v, stream, window, widest, guard
        ),
        warm=lambda window: naive.warm_features(
            features, replace(window, points=naive.bumps(window.points, centres, width) @ root), guard
        ),
    )


def _lsdd_problem(relative_width: float | None) -> Callable[[Case], Problem]:
    def problem(case: Case) -> Problem:
        width = None if relative_width is None else relative_width * case.scale
        oracle = _lsdd_oracle(case.points, case.centres, width or naive.median_distance(case.points), case.guard)
        return _problem(LSDD(len(case.centres), width, REGULARISATION), [oracle], case, case.centres)

    return problem


def _mean_problem(case: Case) -> Problem:
    points = case.points
    deviations = np.where(np.ptp(points, axis=0) > 0, points.std(0), 1.0)
    oracle = Oracle(
        distance=lambda X, Y: naive.mean_shift(X, Y, deviations),
        bootstrap=lambda v, stream, window, widest: naive.bootstrap_feature_path(
            points / deviations, v, stream, window, widest, case.guard
        ),
        warm=lambda window: naive.warm_features(
            points / deviations, replace(window, points=window.points / deviations), case.guard
        ),
    )
    return _problem(MeanShift(), [oracle], case)


def _signed_problem(case: Case) -> Problem:
    points, direction = case.points, case.rng.normal(size=case.columns)
    oracle = Oracle(
        distance=lambda X, Y: naive.mean_shift_along(X, Y, direction),
        bootstrap=lambda v, stream, window, widest: naive.bootstrap_signed_path(
            (points - points.mean(0)) @ direction, v, stream, window, widest, case.guard
        ),
        warm=lambda window: naive.warm_signed(
            (points - points.mean(0)) @ direction,
            replace(window, points=(window.points - points.mean(0)) @ direction),
            case.guard,
        ),
    )
    return _problem(MeanShift(direction=direction.tolist()), [oracle], case)


def _custom_problem(case: Case) -> Problem:
    def distance(X: Floats, Y: Floats) -> float:
        return float(np.abs(np.median(X, axis=0) - np.median(Y, axis=0)).max())

    return _problem(Custom(distance), [Oracle(distance)], case)


def _problem(statistic: Statistic, oracles: list[Oracle], case: Case, held_out: Floats | None = None) -> Problem:
    """Channels are ordered width by width, each over all windows."""
    channels = [(oracle, window) for oracle in oracles for window in case.windows]
    return Problem(statistic, case.points[:0] if held_out is None else held_out, channels)


PROBLEMS: dict[str, Callable[[Case], Problem]] = {
    "MMD": _default_problem,
    "MMD, one width": _gaussian_problem((1.0,)),
    "MMD, widths in ratio 2": _gaussian_problem((0.125, 0.25, 0.5, 1.0, 2.0)),
    "MMD, other ratios": _gaussian_problem((1.7, 1.0, 0.3)),
    "MMD, ratio 2 and others": _gaussian_problem((2.0, 1.0, 0.6, 0.3)),
    "MMD, given widths": _width_problem,
    "MMD, callable kernel": _callable_problem,
    "LSDD": _lsdd_problem(None),
    "LSDD, given width": _lsdd_problem(1.5),
    "MeanShift": _mean_problem,
    "MeanShift, signed": _signed_problem,
    "Custom": _custom_problem,
}
problems = pytest.mark.parametrize("name", PROBLEMS)
bootstrapping = pytest.mark.parametrize("name", [name for name in PROBLEMS if name != "Custom"])


# Helpers


def _prepare(case: Case, problem: Problem, backend: Backend) -> Prepared:
    setting = Setting(case.windows, on_device(backend), Threads(1), np.random.default_rng(0), guard=case.guard)
    return problem.statistic.prepare(case.points, problem.held_out, setting)


def _paths(null: NullPaths, streams: Streams, backend: Backend) -> Float32Array:
    """Of streams that are where the backend has drawn them."""
    put = on_device(backend).put
    return on_device(backend).get(null(Streams(put(streams.points), put(streams.copies), put(streams.coins))))


def _agree(got: Any, expected: Floats, unit: float | None) -> None:
    scale = float(np.nanmax(np.abs(expected))) if unit is None else unit
    np.testing.assert_allclose(got, expected, rtol=0, atol=TOLERANCE * scale)


def _draw_weights(case: Case) -> Float32Array:
    return case.source.references(case.rng, COPIES, on_device("numpy"))


def _bootstrap_streams(case: Case) -> Streams:
    """With replacement, from few points, so that many are drawn twice into a window; against several references."""
    length = 2 * case.widest + 3
    points = case.source.streams(case.rng, PATHS, length, on_device("numpy"))
    points[0] %= 3
    copies = np.arange(PATHS * TOGETHER, dtype=np.int32).reshape(PATHS, TOGETHER) % COPIES
    return Streams(points, copies, np.zeros((PATHS, length)))


def _split_streams(case: Case) -> Streams:
    """As long as in Algorithm 3; of the smallest reference three points remain to compare with."""
    rng, length = case.rng, 2 * case.widest - 1
    points = np.stack([rng.permutation(len(case.points))[:length] for _ in range(PATHS)])
    return Streams(points.astype(np.int32), np.empty((PATHS, 0), np.int32), np.zeros((PATHS, length)))


def _path(
    rule: Callable[[naive.Distance, int, Indices, int, int], Floats],
    case: Case,
    oracle: Oracle,
    stream: Indices,
    window: int,
) -> Floats:
    """naive.split_path or naive.direct_path."""
    points = case.points

    def distance(reference: Indices, inside: Indices) -> float:
        return oracle.distance(points[list(reference)], points[list(inside)])

    return rule(distance, len(points), stream, window, case.widest)


# Null paths


def _check_bootstrap_paths(name: str, backend: Backend, case: Case) -> None:
    problem, weights, streams = PROBLEMS[name](case), _draw_weights(case), _bootstrap_streams(case)
    null = _prepare(case, problem, backend).bootstrap_paths(on_device(backend).put(weights))
    paths = _paths(null, streams, backend)
    assert paths.shape[:2] == (len(problem.channels), PATHS * TOGETHER)
    for got, (oracle, window) in zip(paths, problem.channels, strict=True):
        assert oracle.bootstrap is not None
        expected = [
            oracle.bootstrap(weights[:, g].astype(int).tolist(), stream, window, case.widest)
            for stream, copies in zip(streams.points.tolist(), streams.copies, strict=True)
            for g in copies
        ]
        _agree(got, np.array(expected), oracle.unit)


def _check_split_paths(name: str, backend: Backend, case: Case) -> None:
    problem, streams = PROBLEMS[name](case), _split_streams(case)
    paths = _paths(_prepare(case, problem, backend).split_paths(), streams, backend)
    assert paths.shape[:2] == (len(problem.channels), PATHS)
    for got, (oracle, window) in zip(paths, problem.channels, strict=True):
        expected = [_path(naive.split_path, case, oracle, stream, window) for stream in streams.points.tolist()]
        _agree(got, np.array(expected), oracle.unit)


def _check_direct_paths(name: str, backend: Backend, case: Case) -> None:
    problem, streams = PROBLEMS[name](case), replace(_bootstrap_streams(case), copies=np.zeros((PATHS, 1), np.int32))
    paths = _paths(_prepare(case, problem, backend).direct_paths(), streams, backend)
    assert paths.shape[:2] == (len(problem.channels), PATHS)
    for got, (oracle, window) in zip(paths, problem.channels, strict=True):
        expected = [_path(naive.direct_path, case, oracle, stream, window) for stream in streams.points.tolist()]
        _agree(got, np.array(expected), oracle.unit)


@bootstrapping
@backends
@given(case=cases)
def test_bootstrap_paths(name: str, backend: Backend, case: Case) -> None:
    """Streams drawn with replacement, against bootstrap pseudo-references (docs/how-it-works.md)."""
    _check_bootstrap_paths(name, backend, case)


@bootstrapping
@backends
@settings(max_examples=6)
@given(case=guarded_cases)
def test_bootstrap_paths_with_a_guard(name: str, backend: Backend, case: Case) -> None:
    """Streams and pseudo-references in blocks: points are not compared with those that are close to them in time."""
    _check_bootstrap_paths(name, backend, case)


@bootstrapping
@backends
@settings(max_examples=6)
@given(case=guarded_cases)
def test_reflections_of_pseudo_references(name: str, backend: Backend, case: Case) -> None:
    """What is known of them as such, to save work, is what would have been computed."""
    problem, drawn, streams = PROBLEMS[name](case), _draw_weights(case), _bootstrap_streams(case)
    streams, put = replace(streams, copies=streams.copies + COPIES), on_device(backend).put
    weights, prepared = put(np.hstack([drawn, 2 - drawn])), _prepare(case, problem, backend)
    for got, expected, (oracle, _) in zip(
        _paths(prepared.bootstrap_paths(weights, reflected=COPIES), streams, backend),
        _paths(prepared.bootstrap_paths(weights), streams, backend),
        problem.channels,
        strict=True,
    ):
        _agree(got, expected, oracle.unit)


@problems
@backends
@given(case=cases)
def test_split_paths(name: str, backend: Backend, case: Case) -> None:
    """Streams of distinct points, against all other points (Algorithm 3)."""
    _check_split_paths(name, backend, case)


@bootstrapping
@backends
@settings(max_examples=6)
@given(case=guarded_cases)
def test_direct_paths_with_a_guard(name: str, backend: Backend, case: Case) -> None:
    """The guard keeps reference points from each other; streams meet all of them, as live ones do."""
    _check_direct_paths(name, backend, case)


@problems
@backends
@given(case=cases)
def test_direct_paths(name: str, backend: Backend, case: Case) -> None:
    """Streams drawn with replacement, against the reference itself (discrete data)."""
    _check_direct_paths(name, backend, case)


# The live statistic


def _expected_live(case: Case, oracle: Oracle, window: int, seen: Floats, began: list[int]) -> Floats:
    """After each point of a run that begins with these reference points: W that leave the reference for the next W."""
    own = [*began, *[-1] * (len(seen) - len(began))]
    path = np.full(len(seen), np.nan)
    for t in range(window, len(seen) + 1):
        inside = range(t - window, t)
        recent, theirs, lacking = seen[t - window : t], own[t - window : t], [i < 2 * len(began) for i in inside]
        if oracle.warm is not None and any(lacking):
            path[t - 1] = oracle.warm(naive.Window(recent, theirs, lacking, began))
        else:  # For a function of two samples, they are away as long as they are in the window.
            present = [place for place in theirs if place >= 0]
            path[t - 1] = oracle.distance(np.delete(case.points, present, axis=0), recent)
    return path


def _begun(live: LiveFamily, points: Floats, starters: Int64Array, guard: int) -> tuple[Run, Floats]:
    """A run that begins with these points, as `warm_run` has it, and its channels after each of them."""
    near = [j for j in range(len(points)) if 0 < np.abs(starters - j).min() <= guard]
    block = np.array([*starters, *near])
    observed, left = live.leave_out(live.observe(points[block], block), block, len(starters))
    run = Run.begun(live.begin(0), len(starters), 0, points[starters], left)
    return run, on_host(live.advance(run.windows, observed, 0, len(starters)))


def _check_live(case: Case, name: str, backend: Backend, length: int) -> None:
    """A warm start with reference points, then a stream in blocks of all sizes."""
    problem, stream = PROBLEMS[name](case), case.stream(length)
    live = LiveFamily([_prepare(case, problem, backend).live(None)])
    starters = case.rng.permutation(len(case.points))[: case.widest]
    run, first = _begun(live, case.points, starters, case.guard)
    assert run.left is not None
    pieces = [first[-1:] + live.due(run.left)]
    fitted: Any = SimpleNamespace(live=live, widest=case.widest)
    cuts = np.unique(np.r_[0, 1, case.rng.integers(0, length, 3), length])
    for start, stop in pairwise(cuts.tolist()):
        pieces.append(on_host(entered(fitted, run, live.observe(stream[start:stop], None), 0, stop - start)))
        run.age(run.time + stop - start)
    assert (run.left is None) == (length >= 2 * case.widest)
    values = np.concatenate(pieces)
    seen = np.concatenate([case.points[starters], stream])
    for got, (oracle, window) in zip(values.T, problem.channels, strict=True):
        _agree(got, _expected_live(case, oracle, window, seen, starters.tolist())[case.widest - 1 :], oracle.unit)


@problems
@backends
@settings(max_examples=6)
@given(case=cases)
def test_live_statistic(name: str, backend: Backend, case: Case) -> None:
    """The incremental statistic equals the one computed from scratch, past the point where its buffers turn over."""
    _check_live(case, name, backend, 5 * case.widest)


@bootstrapping
@backends
@settings(max_examples=6)
@given(case=guarded_cases)
def test_live_statistic_with_a_guard(name: str, backend: Backend, case: Case) -> None:
    """Points of a warm start, observed along with their neighbours in time, are not compared with these."""
    _check_live(case, name, backend, 2 * case.widest)


@problems
@backends
def test_live_statistic_does_not_drift(name: str, backend: Backend) -> None:
    """Nor after many turns of the buffers."""
    _check_live(HARD, name, backend, 30 * HARD.widest)


@pytest.mark.parametrize("name", ["MMD, given widths", "MMD, callable kernel", "LSDD, given width", "MeanShift"])
def test_large_reference(name: str) -> None:
    """More points than the kernel matrix is computed in at once, in rows or in columns."""
    case = Case(seed=7, columns=1, windows=(3,), spare=2100, offset=1e3, scale=1.0, repeats=False)
    _check_bootstrap_paths(name, "numba", case)
    _check_live(case, name, "numba", 1)


@problems
@backends
def test_constant_column(name: str, backend: Backend) -> None:
    """A column that never changes counts for nothing, and does no harm, in any mode."""
    case = Case(seed=6, columns=3, windows=(2, 5), spare=25, offset=0.0, scale=1.0, repeats=False, constant=True)
    if name != "Custom":
        _check_bootstrap_paths(name, backend, case)
    _check_split_paths(name, backend, case)
    _check_direct_paths(name, backend, case)
    _check_live(case, name, backend, 5 * case.widest)


@pytest.mark.parametrize("name", ["MMD, one width", "LSDD", "MeanShift", "MeanShift, signed"])
@backends
@pytest.mark.parametrize("size", [1e6, 1e12, 1e18])
def test_an_outlier_leaves_no_trace(name: str, backend: Backend, size: float) -> None:
    """Once a wild value has left the window, the statistic is what it would have been without it."""
    case = Case(seed=3, columns=2, windows=(2, 5), spare=25, offset=0.0, scale=1.0, repeats=False)
    problem, stream = PROBLEMS[name](case), case.rng.normal(size=(30, 2))
    stream[7] = size
    live = _prepare(case, problem, backend).live(None)
    paths = on_device(backend).get(live.advance(live.begin(0), live.observe(stream, None), 0, len(stream)))
    for got, (oracle, window) in zip(paths.T, problem.channels, strict=True):
        clean = naive.live_path(oracle.distance, case.points, stream, window)[7 + window :]
        _agree(got[7 + window :], clean, oracle.unit)


# Through the detector


def _fit(
    case: Case,
    problem: Problem,
    backend: Backend,
    calibration: Mode = "steady",
    sampler: Sampler | None = None,
    paths: int = 100,
    ert: float = 30,
) -> Detector:
    detector = Detector(
        ert, problem.statistic, window=case.windows, sampler=sampler or Independent(), mode=calibration,
        interval=False, start="cold", reset_on_alarm=False, paths=paths, seed=1, backend=backend, device="cpu",
    )  # fmt: skip
    return altered(detector.fit(np.concatenate([case.points, problem.held_out])), hears=False)


def _fitted_parts(detector: Detector) -> tuple[Floats, Floats, Normaliser, Parts]:
    """All reference points, those that are compared with, the normaliser, and the first statistic's parts."""
    fitted = detector._fitted
    assert fitted is not None
    compared = fitted.reference if fitted.kept is None else fitted.reference[fitted.kept]
    return fitted.reference, compared, fitted.normaliser, fitted.live.parts()[0]


def _check_outcomes(detector: Detector, channels: list[tuple[Oracle, int]], case: Case) -> None:
    """What `update` says, less the coin that breaks ties, is the loudest of the paths computed from scratch."""
    stream = case.stream(3 * case.widest)
    got = np.array([detector.update(x).statistic for x in stream])
    _, compared, normaliser, _ = _fitted_parts(detector)
    got -= normaliser.tie * np.array([naive.coin(detector.seed_, 0, 0, t + 1) for t in range(len(stream))])
    paths = [naive.live_path(oracle.distance, compared, stream, window) for oracle, window in channels]
    units = [oracle.unit or np.nanmax(np.abs(path)) for (oracle, _), path in zip(channels, paths, strict=True)]
    scores = (np.array(paths).T - normaliser.centre) / normaliser.scale
    scores[: case.widest - 1] = np.nan
    expected = np.array([naive.on_grid(score, normaliser.grid, normaliser.origin) for score in scores.max(1)])
    _agree(got, expected, float((units / normaliser.scale).max()))


@problems
@pytest.mark.parametrize("calibration", ["steady", "paper", "fixed"])
@settings(max_examples=4)
@given(case=cases, backend=st.sampled_from(BACKENDS))
def test_detector(name: str, calibration: Mode, case: Case, backend: Backend) -> None:
    """`Detector.update` follows the path, whichever reference points the calibration leaves to compare with."""
    problem = PROBLEMS[name](case)
    # Streams of a function of two samples leave points out of the reference, so they are short and seldom ring.
    detector = _fit(case, problem, backend, calibration, paths=600 if name == "Custom" else 100)
    channels = problem.channels
    if name.startswith("LSDD"):
        # The detector chooses the centres among all points that it is given.
        reference, _, _, parts = _fitted_parts(detector)
        centres, width = parts["features"]["centres"], parts["features"]["width"]
        everything = np.concatenate([case.points, problem.held_out])
        together = np.concatenate([reference, centres])
        assert sorted(together.tolist()) == sorted(everything.tolist())
        if name == "LSDD":
            assert width == pytest.approx(naive.median_distance(reference), rel=1e-9)
        channels = [(_lsdd_oracle(reference, centres, width), window) for window in case.windows]
    _check_outcomes(detector, channels, case)


def test_statistics_together() -> None:
    """A list of statistics is one detector whose loudest channel speaks."""
    together = [PROBLEMS["MMD, one width"](HARD), PROBLEMS["MeanShift"](HARD)]
    detector = Detector(
        30, [p.statistic for p in together], window=HARD.windows, start="cold", reset_on_alarm=False, paths=100, seed=1
    )
    _check_outcomes(
        altered(detector.fit(HARD.points), hears=False), [channel for p in together for channel in p.channels], HARD
    )


@pytest.mark.parametrize(
    ("calibration", "discrete"), [("steady", False), ("steady", True), ("paper", False), ("fixed", False)]
)
def test_warm_start(calibration: Mode, discrete: bool) -> None:
    """A run begins with distinct reference points that would not have rung, and leaves them out of its reference.

    So do the W observations after them; what follows is compared with all points. A discrete reference is met as it is.
    """
    rng, width, window = np.random.default_rng(3), 1.3, 4
    points = rng.integers(0, 2, (60, 1)).astype(np.float64) if discrete else rng.normal(size=(60, 2))
    kernel = naive.gaussian(width)
    detector = Detector(30, MMD(kernel), window=window, mode=calibration, paths=100, seed=2, reset_on_alarm=False)
    detector = altered(detector.fit(points), hears=False)
    reference, compared, normaliser, _ = _fitted_parts(detector)
    windows = set()
    for run_number in range(5):
        starters = np.array(detector._run.windows[0]["recent"])
        windows.add(tuple(sorted(starters.ravel().tolist())))
        own = [-1] * window
        if not discrete:
            assert len({int(np.flatnonzero((reference == point).all(1))[0]) for point in starters}) == window
            own = [int(found[0]) if len(found := np.flatnonzero((compared == point).all(1))) else -1
                   for point in starters]  # fmt: skip
        began = [place for place in own if place >= 0]
        seen, own = np.concatenate([starters, rng.normal(size=(10, points.shape[1]))]), [*own, *[-1] * 10]
        for time in range(11):
            inside = slice(time, time + window)
            lacking = [i < 2 * window for i in range(time, time + window)]
            if discrete:
                expected = naive.mmd(compared, seen[inside], kernel)
            else:
                expected = naive.warm_mmd(compared, naive.Window(seen[inside], own[inside], lacking, began), kernel)
            on_grid = naive.on_grid(expected, normaliser.grid, normaliser.origin)
            if not time:  # The coin of the test that was not made is not known.
                assert on_grid <= detector.thresholds_[0] + TOLERANCE
                continue
            new = seen[time + window - 1]
            got = detector.update(new).statistic - normaliser.tie * naive.coin(detector.seed_, 0, run_number, time)
            _agree(got, np.array(on_grid), 1.0)
        assert (normaliser.grid > 0) == discrete
        detector.reset()
    assert len(windows) > 1, "every run starts with the same window"


def test_warm_start_in_blocks() -> None:
    """A run begins with pieces of the reference as it came, which are not compared with what is close to them."""
    rng, window, guard, edges = np.random.default_rng(4), 6, 3, [0, 50, 160]
    points, kernel = rng.normal(size=(160, 2)), naive.gaussian(1.3)
    detector = Detector(30, MMD(kernel), window=window, sampler=Blocks(4, guard), paths=100, seed=2)
    detector.fit(points, groups=np.repeat(["a", "b"], np.diff(edges)))
    normaliser = _fitted_parts(detector)[2]
    jumps, crossings = [], 0
    for run_number in range(40):
        starters = np.array(detector._run.windows[0]["recent"])
        own = [int(np.flatnonzero((points == point).all(1))[0]) for point in starters]
        assert len(set(own)) == window
        jumps.append(sum(j != i + 1 for i, j in pairwise(own)))
        crossings += (edges[1] - 1, edges[1]) in pairwise(own)
        quiet = naive.warm_mmd(points, naive.Window(starters, own, [True] * window, own), kernel, guard)
        assert quiet <= detector.thresholds_[0] + TOLERANCE
        new = rng.normal(size=2)
        got = detector.update(new).statistic - normaliser.tie * naive.coin(detector.seed_, 0, run_number, 1)
        after = naive.Window(np.vstack([starters[1:], new]), [*own[1:], -1], [True] * window, own)
        _agree(got, np.array(naive.warm_mmd(points, after, kernel, guard)), 1.0)
        detector.reset()
    assert np.mean(jumps) < 2, "six points are four and two, but where a group ends"
    assert crossings == 0


# Thresholds, from the reference to the end


def _simulated(
    detector: Detector, case: Case, channels: list[tuple[Oracle, int]], source: Source
) -> tuple[Floats, Plan]:
    """The null paths of a fit, computed by the oracle on the same streams; and the plan that they follow."""
    functions, seed = on_device(detector.backend), detector.seed_
    normaliser = _fitted_parts(detector)[2]
    plan = make_plan(
        detector.mode, detector.ert, case.windows, source,
        bootstraps=True, discrete=False, error=detector.error, paths=detector.paths, block_work=functions.BLOCK_WORK,
    )  # fmt: skip
    counts: list[Indices] = []
    if isinstance(plan.sampler, DrawnStreams):
        weights = source.references(generator(seed, Purpose.REFERENCES), plan.sampler.copies, functions)
        counts = functions.get(weights).T.astype(int).tolist()
    paths: list[Floats] = []
    for block in range(plan.blocks):
        count = min(plan.block, plan.paths - len(paths))
        streams = plan.sampler.draw(generator(seed, Purpose.MAIN, block), count, functions)
        ties = functions.get(streams.coins)
        for p, stream in enumerate(streams.points.tolist()):
            values = []
            for oracle, window in channels:
                if streams.copies.shape[1]:
                    assert oracle.bootstrap is not None
                    values.append(oracle.bootstrap(counts[streams.copies[p, 0]], stream, window, case.widest))
                else:
                    values.append(_path(naive.split_path, case, oracle, stream, window))
            scores = (np.array(values).T - normaliser.centre) / normaliser.scale
            paths.append(scores.max(1) + normaliser.tie * ties[p, : plan.tests])
    return np.array(paths), plan


@pytest.mark.parametrize("name", ["MMD, one width", "MMD, other ratios", "MeanShift"])
@pytest.mark.parametrize(("calibration", "guard"), [("steady", 0), ("steady", 2), ("paper", 0), ("fixed", 0)], ids=str)
@pytest.mark.parametrize("backend", ["numba", pytest.param("torch", marks=needs_torch)])
def test_thresholds(name: str, calibration: Mode, guard: int, backend: Backend) -> None:
    """A fit gives the thresholds of Algorithm 3 (2 if 'fixed', pooled if 'steady') on the oracle's null paths."""
    case = Case(seed=8, columns=2, windows=(2, 4), spare=45, offset=0.0, scale=1.0, repeats=False, guard=guard)
    problem, count = PROBLEMS[name](case), len(case.points)
    sampler, source = (Blocks(5, guard), InBlocks(np.array([0, count]), 5, guard)) if guard else (None, Singly(count))
    ert = 8 if guard else 30  # blocks hold no more alarms than the reference does
    detector = _fit(case, problem, backend, calibration, sampler, ert=ert)
    paths, plan = _simulated(detector, case, problem.channels, source)
    edges, alpha = plan.edges.tolist(), 1 / ert
    assert plan.simulated == ert
    if calibration == "steady":
        expected = np.repeat(naive.falling_thresholds(paths, edges, alpha), [*np.diff(edges)[:-1], 1])
    elif calibration == "paper":
        expected = np.array(naive.algorithm_3(paths, alpha))
    else:
        expected = np.array([naive.algorithm_2(paths[:, 0], alpha)])
    # A statistic of scale 1 is divided by the normaliser's scale.
    _agree(detector.thresholds_, expected, 1 / float(_fitted_parts(detector)[2].scale.min()))


@pytest.mark.parametrize("name", ["MMD, one width", "MMD, callable kernel", "MeanShift"])
@pytest.mark.parametrize("calibration", ["paper", "fixed"])
def test_streams_that_leave_points_out_know_no_guard(name: str, calibration: Mode) -> None:
    """They are tested against all of the rest, so a guard changes nothing."""
    case = Case(seed=8, columns=2, windows=(2, 4), spare=45, offset=0.0, scale=1.0, repeats=False)
    problem = PROBLEMS[name](case)
    with_guard, without = (_fit(case, problem, "numba", calibration, Blocks(5, guard)) for guard in (2, 0))
    assert with_guard.calibration_.guard == 0
    assert with_guard.thresholds_.tolist() == without.thresholds_.tolist()
    stream = case.stream(20)
    assert with_guard.update_many(stream).statistic[4:].tolist() == without.update_many(stream).statistic[4:].tolist()


# What statistics take from the data


@given(case=cases)
def test_median_distance(case: Case) -> None:
    """The median rule, of the distance itself."""
    got = median_distance(case.points, np.random.default_rng(0))
    assert got == pytest.approx(naive.median_distance(case.points), rel=TOLERANCE)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_median_distance_of_mostly_equal_points(scale: float) -> None:
    """Where most pairs coincide the median is taken over those that do not; and squares neither vanish nor overflow."""
    points = scale * np.array([0.0] * 12 + [1.0, 1.0, 4.0, 9.5])[:, None]
    got = median_distance(points, np.random.default_rng(0))
    assert got == pytest.approx(naive.median_distance(points), rel=TOLERANCE)
    assert got >= scale


@given(case=cases)
def test_regularisation(case: Case) -> None:
    """The largest candidate whose relative difference is below 0.2, on the same random windows."""
    points, centres, window = case.points, case.centres, case.widest
    width = naive.median_distance(points)
    values, H = naive.bumps(points, centres, width), naive.bump_products(centres, width)
    np.testing.assert_allclose(bumps_products(centres, width), H, rtol=0, atol=1e-12)
    rng = case.rng
    differences = []
    for _ in range(BOOTSTRAPS):
        inside = rng.choice(len(points), window, replace=False)
        differences.append(np.delete(values, inside, axis=0).mean(0) - values[inside].mean(0))
    good = [c for c in CANDIDATES if naive.relative_difference(np.array(differences), H, c) < 0.2]
    assert choose_regularisation(values, H, window, case.rng) == max(good, default=CANDIDATES[-1])


@pytest.mark.parametrize(("square", "expected"), [(False, 1 / 16), (True, 1 / 8)])
def test_regularisation_of_the_paper(square: bool, expected: float) -> None:
    """1/16 on the 20-dimensional Gaussian, 1/8 on the square, with 50 centres, N = 950, W = 25: docs/baselines.md."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (1000, 2)) if square else rng.normal(size=(1000, 20))
    centres, points = points[:50], points[50:]
    width = median_distance(points, rng)
    values = naive.bumps(points, centres, width)
    assert choose_regularisation(values, bumps_products(centres, width), 25, rng) == expected
