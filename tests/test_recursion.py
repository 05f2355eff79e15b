"""The recursion from paths to thresholds, against Algorithms 2 and 3 to the letter and against brute-force counting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
from backends import BACKENDS, needs_torch, on_device
from naive import Floats, Indices
from tocsin import Detector, MeanShift
from tocsin import _compute as compute
from tocsin._calibration import blocks as run_blocks
from tocsin._calibration import run
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.plan import Mode, Plan, make_plan
from tocsin._calibration.recursion import (
    FloorTooHighError,
    PassageCurve,
    Records,
    TooFewPathsError,
    floors,
    passage_curve,
    thresholds,
)
from tocsin._calibration.run import Simulation
from tocsin._detector import fitting


@dataclass(frozen=True)
class Paths:
    """Random paths that wander like a statistic over a sliding window; with few distinct values if `ties`."""

    seed: int
    count: int
    tests: int
    ties: bool

    @property
    def values(self) -> Floats:
        """(count, tests)."""
        steps = np.random.default_rng(self.seed).normal(size=(self.count, self.tests + 4))
        paths = np.stack([steps[:, t : t + 5].sum(1) for t in range(self.tests)], axis=1)
        return np.asarray(paths.round() if self.ties else paths)

    @property
    def edges(self) -> list[int]:
        """A random division of the tests into stretches."""
        cuts = np.random.default_rng([self.seed, 1]).integers(0, self.tests + 1, 3)
        return sorted({0, *map(int, cuts), self.tests})


many_paths = st.builds(
    Paths, seed=st.integers(0, 2**32), count=st.integers(1, 70), tests=st.integers(1, 14), ties=st.booleans()
)

expected_run_times = st.floats(2.1, 60.0).filter(lambda ert: (ert * 1e3) % 1 != 0)
"""Irregular ones: where (n - 1) / ert is whole, a quantile sits on a value, and rounding says on which side of it."""


def _records(
    paths: Floats, edges: list[int], functions: compute.Functions | None = None, least: Floats | None = None
) -> Records:
    module = functions or compute.load("numba")
    kept = np.full(len(edges) - 1, -np.inf) if least is None else least
    path, stretch, step, value = module.records(module.put(paths), np.array(edges), kept)
    return Records(path=path, stretch=stretch, step=step, value=value, paths=len(paths), floors=kept)


def _thresholds(paths: Floats, edges: list[int], alpha: float, *, falling: bool = False) -> list[float]:
    stretches = thresholds(_records(paths, edges), np.array(edges), alpha, falling=falling)
    return [stretch.threshold for stretch in stretches]


def _curve(paths: Floats) -> PassageCurve:
    length = paths.shape[1]
    records = _records(paths, [0, length])
    return passage_curve(records.path, records.step, records.value, length, len(paths))


@settings(max_examples=200)
@given(paths=many_paths, ert=expected_run_times)
def test_stretches_of_one_test_are_algorithm_3(paths: Paths, ert: float) -> None:
    """Each threshold is numpy's quantile of the paths that survived all those before."""
    expected = naive.algorithm_3(paths.values, 1 / ert)
    got = _thresholds(paths.values, list(range(paths.tests + 1)), 1 / ert)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


@given(paths=many_paths, ert=expected_run_times)
def test_a_single_test_is_algorithm_2(paths: Paths, ert: float) -> None:
    """One stretch of one test: the quantile of all paths."""
    first = paths.values[:, :1]
    expected = naive.algorithm_2(first[:, 0], 1 / ert)
    np.testing.assert_allclose(_thresholds(first, [0, 1], 1 / ert), [expected], rtol=0, atol=1e-12)


@settings(max_examples=200)
@given(paths=many_paths, ert=expected_run_times)
def test_pooled_stretches(paths: Paths, ert: float) -> None:
    """Stretches of any lengths: the same rule by counting, quiet paths going on."""
    paths = replace(paths, ties=False)
    expected = naive.stretch_thresholds(paths.values, paths.edges, 1 / ert)
    assume(len(expected) == len(paths.edges) - 1)
    np.testing.assert_allclose(_thresholds(paths.values, paths.edges, 1 / ert), expected, rtol=0, atol=1e-12)


@settings(max_examples=200)
@given(paths=many_paths, ert=expected_run_times)
def test_falling_thresholds(paths: Paths, ert: float) -> None:
    """Where a threshold would rise, its stretch and the one before share one, by counting over both."""
    paths = replace(paths, ties=False)
    expected = naive.falling_thresholds(paths.values, paths.edges, 1 / ert)
    assume(len(expected) == len(paths.edges) - 1)
    got = _thresholds(paths.values, paths.edges, 1 / ert, falling=True)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)
    assert (np.diff(got) <= 0).all()


@settings(max_examples=100)
@given(paths=many_paths, ert=expected_run_times)
def test_pooled_stretches_with_ties(paths: Paths, ert: float) -> None:
    """Where values tie, no threshold may attain the rate: it is exceeded below the threshold and not above."""
    values, edges = replace(paths, ties=True).values, paths.edges
    assume(len(naive.stretch_thresholds(values, edges, 1 / ert)) == len(edges) - 1)

    for (start, stop), h in zip(pairwise(edges), _thresholds(values, edges, 1 / ert), strict=True):
        seen, rates = naive.passage_rates(values[:, start:stop])
        assert (rates[seen < h] > 1 / ert).all()
        assert (rates[seen >= h] <= 1 / ert).all()
        values = values[(values[:, start:stop] <= h).all(1)]


@settings(max_examples=100)
@given(paths=many_paths)
def test_passage_curve_counts_first_passages(paths: Paths) -> None:
    """Alarms and tests at every threshold: at each value, between values, below all and above all."""
    values, curve = paths.values, _curve(paths.values)
    seen = np.unique(values)
    between = [(low + high) / 2 for low, high in pairwise(seen)]
    for threshold in [*seen, *between, seen[-1] + 1]:
        entry = np.searchsorted(curve.value, threshold, side="right") - 1
        counted = (curve.alarms[entry], curve.tests[entry]) if entry >= 0 else (paths.count, paths.count)
        assert counted == naive.first_passages(values, threshold)
    assert naive.first_passages(values, seen[0] - 1) == (paths.count, paths.count)


@given(paths=many_paths, ert=expected_run_times)
def test_alarms_and_tests_behind_a_threshold(paths: Paths, ert: float) -> None:
    """They lie between those counted at the records on either side of the threshold (other values change nothing)."""
    values = paths.values
    records = _records(values, [0, paths.tests])
    (stretch,) = thresholds(records, np.array([0, paths.tests]), 1 / ert)
    seen = np.unique(records.value)
    below, above = seen[seen <= stretch.threshold].max(), seen[seen >= stretch.threshold].min()
    low, high = naive.first_passages(values, below), naive.first_passages(values, above)
    if below < above:
        assert low[0] >= stretch.alarms >= high[0]
        assert low[1] <= stretch.tests <= high[1]
    assert stretch.alarms <= paths.count
    assert stretch.tests <= values.size


@given(paths=many_paths, parts=st.integers(1, 4))
def test_merged_records_are_those_of_all_paths(paths: Paths, parts: int) -> None:
    """Blocks of paths may be simulated apart, in any division."""
    whole = _records(paths.values, paths.edges)
    pieces = [piece for piece in np.array_split(paths.values, parts) if len(piece)]
    merged = Records.merge([_records(piece, paths.edges) for piece in pieces])
    assert merged.paths == whole.paths
    for name in ("path", "stretch", "step", "value"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


@given(paths=many_paths, floor=st.sampled_from([-np.inf, -1.0, 2.5, 100.0]))
def test_records_by_hand(paths: Paths, floor: float) -> None:
    """A record is a value above all before it in its stretch, and above the floor."""
    least = np.full(len(paths.edges) - 1, floor)
    least[1:] = -np.inf
    expected = [
        (p, b, t - start + 1, path[t])
        for p, path in enumerate(paths.values)
        for b, (start, stop) in enumerate(pairwise(paths.edges))
        for t in range(start, stop)
        if path[t] > max([least[b], *path[start:t]])
    ]
    for backend in BACKENDS:
        records = _records(paths.values, paths.edges, on_device(backend), least)
        got = zip(records.path, records.stretch, records.step, records.value, strict=True)
        assert list(got) == expected


def test_paths_that_rang_are_dropped() -> None:
    """A path above the first threshold does not raise the second one."""
    loud = [[10.0, 10.0]] * 10
    soft = [[i / 90, i / 90] for i in range(90)]
    first, second = _thresholds(np.array(loud + soft), [0, 1, 2], 0.0975)
    assert 1 < first < 10
    assert second < 1


def test_a_path_at_its_threshold_survives() -> None:
    """The rule is alarm above, survive at: of many equal values none rings."""
    paths = np.full((50, 3), 2.5)
    (stretch,) = thresholds(_records(paths, [0, 3]), np.array([0, 3]), 0.1)
    assert stretch.threshold == 2.5
    assert _thresholds(paths, [0, 1, 2, 3], 0.1) == [2.5, 2.5, 2.5]
    assert naive.first_passages(paths, stretch.threshold) == (0, 150)


@pytest.mark.parametrize("alpha", [0.5, 0.01])
def test_one_path(alpha: float) -> None:
    """A single path is its own threshold: its maximum in a stretch, or its value at a test."""
    path = np.array([[1.0, 3.0, 2.0]])
    assert _thresholds(path, [0, 1, 2, 3], alpha) == [1.0, 3.0, 2.0]


# Floors


def _maxima(paths: Floats, edges: list[int], functions: compute.Functions) -> Floats:
    maxima: Floats = functions.stretch_maxima(functions.put(paths), np.array(edges))
    return maxima


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("first", [4000, 500])
@pytest.mark.parametrize("seed", range(5))
def test_floors_change_nothing(functions: compute.Functions, seed: int, first: int, falling: bool) -> None:
    """Thresholds, and what they rest on, are those of all records to the last bit: the first paths tell enough."""
    paths, edges, alpha = Paths(seed, 4000, 18, ties=False).values, [0, 1, 2, 4, 8, 18], 1 / 200
    least = floors(_maxima(paths[:first], edges, functions), np.array(edges), alpha)
    assert (least[:4] > -np.inf).all()
    kept, everything = _records(paths, edges, functions, least), _records(paths, edges, functions)
    assert len(kept.value) < 0.7 * len(everything.value)
    assert (kept.value > least[kept.stretch]).all()
    expected = thresholds(everything, np.array(edges), alpha, falling=falling)
    assert thresholds(kept, np.array(edges), alpha, falling=falling) == expected


def test_few_paths_have_no_floors() -> None:
    """Where they cannot tell what is rare, everything is kept."""
    edges = [0, 1, 4, 8]
    maxima = _maxima(Paths(0, 15, 8, ties=False).values, edges, compute.load("numba"))
    assert (floors(maxima, np.array(edges), 1 / 50) == -np.inf).all()


@dataclass(frozen=True)
class Steps:
    """Paths whose level differs from test to test, so that falling thresholds must be joined, and floors for them."""

    seed: int
    count: int
    spread: float

    @property
    def paths(self) -> Paths:
        """Without the steps."""
        return Paths(self.seed, self.count, 13, ties=False)

    @property
    def values(self) -> Floats:
        """(count, tests)."""
        levels = np.random.default_rng([self.seed, 2]).normal(size=self.paths.tests)
        return np.asarray(self.paths.values + self.spread * levels)

    @property
    def least(self) -> Floats:
        """A value that 3 % to 70 % of the paths exceed, for each stretch but the last."""
        maxima = _maxima(self.values, self.paths.edges, compute.load("numba"))
        levels = np.random.default_rng([self.seed, 3]).uniform(0.3, 0.97, len(self.paths.edges) - 1)
        found = np.array([np.quantile(own, level) for own, level in zip(maxima.T, levels, strict=True)])
        found[-1] = -np.inf
        return found


steps = st.builds(
    Steps, seed=st.integers(0, 2**32), count=st.integers(30, 200), spread=st.sampled_from([0.0, 1.0, 2.0])
)


@settings(max_examples=300)
@given(steps=steps, ert=st.floats(5.0, 60.0), falling=st.booleans())
def test_floors_are_harmless_or_too_high(steps: Steps, ert: float, falling: bool) -> None:
    """Whatever the floors: the thresholds are those of all records, or it is said that they are not known."""
    edges, alpha = np.array(steps.paths.edges), 1 / ert
    try:
        expected = thresholds(_records(steps.values, steps.paths.edges), edges, alpha, falling=falling)
        got = thresholds(_records(steps.values, steps.paths.edges, least=steps.least), edges, alpha, falling=falling)
    except (TooFewPathsError, FloorTooHighError):
        return
    assert got == expected


@pytest.mark.parametrize("floor", [2.2, 1e9])
def test_a_floor_that_is_too_high(floor: float) -> None:
    """Between the values, or above all of them: no threshold is made up."""
    paths, edges = np.linspace(0, 3, 100)[:, None] + np.zeros(3), [0, 1, 3]
    expected = _thresholds(paths, edges, 0.3)
    assert 2 < expected[0] < 2.2
    with pytest.raises(FloorTooHighError):
        thresholds(_records(paths, edges, least=np.array([floor, -np.inf])), np.array(edges), 0.3)
    low = thresholds(_records(paths, edges, least=np.array([1.5, -np.inf])), np.array(edges), 0.3)
    assert [stretch.threshold for stretch in low] == expected


def test_a_floor_above_what_joined_stretches_share() -> None:
    """Two stretches in one: their threshold must be above the floors of both, not only above the lower one.

    The second stretch alone has a threshold of 9.5, above its floor of 9; both together have one of about 5, and of the
    second stretch nothing is known there.
    """
    edges, alpha = np.array([0, 10, 11, 12]), 0.05
    rng = np.random.default_rng(0)
    paths = np.concatenate([rng.uniform(0, 5, (200, 10)), rng.uniform(0, 10, (200, 1)), np.zeros((200, 1))], 1)
    expected = thresholds(_records(paths, edges.tolist()), edges, alpha, falling=True)
    assert expected[0] == expected[1]
    kept = _records(paths, edges.tolist(), least=np.array([4.5, 9.0, -np.inf]))
    assert expected[0].threshold < 9
    with pytest.raises(FloorTooHighError):
        thresholds(kept, edges, alpha, falling=True)


# Through a fit


class Floors:
    """Stands for `floors`: all of them at one value, but for the last stretch, which has none."""

    def __init__(self, value: float) -> None:
        self.value, self.calls = value, 0

    def __call__(self, maxima: Floats, edges: Indices, alpha: float) -> Floats:
        """As many as there are stretches."""
        self.calls += 1
        return np.append(np.full(len(edges) - 2, self.value), -np.inf)


@pytest.mark.parametrize("calibration", ["steady", "paper"])
@pytest.mark.parametrize("backend", ["numba", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("blocks", [1, 4, 12])
def test_a_calibration_redoes_what_floors_have_spoilt(
    calibration: Mode, backend: compute.Backend, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same thresholds to the last bit, without floors, with those of the first paths, and with ones too high.

    blocks: the first, or the first few, tell the floors of all.
    """
    points = np.random.default_rng(0).normal(size=(200, 2))
    redone: list[bool] = []
    every_record = Simulation._records

    def _records(simulation: Simulation, normaliser: Normaliser, *, everything: bool = False, **known: Any) -> Records:
        redone.append(everything)
        return every_record(simulation, normaliser, everything=everything, **known)

    def fitted(use: Callable[..., Floats]) -> list[str]:
        monkeypatch.setattr(run, "floors", use)
        monkeypatch.setattr(run_blocks, "floors", use)
        redone.clear()
        detector = Detector(
            60, MeanShift(), window=4, mode=calibration, paths=2400, interval=False, seed=1, backend=backend,
            device="cpu",
        ).fit(points)  # fmt: skip
        assert detector._fitted is not None
        result, rang = detector.calibration_, detector._fitted.rang
        assert rang is not None
        return [repr(each) for each in (result.thresholds.tolist(), result.alarms, result.curve, rang.tolist())]

    def some_blocks(*arguments: Any, **options: Any) -> Plan:
        plan = make_plan(*arguments, **options)
        return replace(plan, block=-(-plan.paths // blocks))

    monkeypatch.setattr(Simulation, "_records", _records)
    monkeypatch.setattr(run, "FIRST_PATHS", 600)
    monkeypatch.setattr(fitting, "make_plan", some_blocks)
    without, too_high = Floors(-np.inf), Floors(1e9)
    expected = fitted(without)
    assert redone == [False]
    assert fitted(floors) == expected
    assert redone == [False]
    assert fitted(too_high) == expected
    assert redone == [False, True]
    assert without.calls == too_high.calls == 1
