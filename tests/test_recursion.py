"""The recursion from paths to thresholds, against Algorithms 2 and 3 to the letter and against brute-force counting."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive
from naive import Floats
from tocsin import compute
from tocsin.calibration.recursion import PassageCurve, Records, passage_curve, thresholds


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


def _records(paths: Floats, edges: list[int], functions: compute.Functions | None = None) -> Records:
    module = functions or compute.load("numba")
    path, stretch, step, value = module.records(paths, np.array(edges))
    return Records(path=path, stretch=stretch, step=step, value=value, paths=len(paths))


def _thresholds(paths: Floats, edges: list[int], alpha: float, *, falling: bool = False) -> list[float]:
    stretches = thresholds(_records(paths, edges), np.array(edges), alpha, falling=falling)
    return [stretch.threshold for stretch in stretches]


def _curve(paths: Floats) -> PassageCurve:
    length = paths.shape[1]
    records = _records(paths, [0, length])
    return passage_curve(records.path, records.step, records.value, length)


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


@given(paths=many_paths)
def test_records_by_hand(paths: Paths) -> None:
    """A record is a value above all before it in its stretch."""
    expected = [
        (p, b, t - start + 1, path[t])
        for p, path in enumerate(paths.values)
        for b, (start, stop) in enumerate(pairwise(paths.edges))
        for t in range(start, stop)
        if all(path[t] > earlier for earlier in path[start:t])
    ]
    for backend in ("numba", "numpy"):
        module = compute.load("numba" if backend == "numba" else "numpy")
        records = _records(paths.values, paths.edges, module)
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
