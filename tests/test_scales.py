"""Enormous, minute and wild values: a reference is refused in words, or the detector sees what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tocsin import LSDD, MMD, Custom, Detector, Gaussian, InputError, Landmarks, MeanShift
from tocsin._compute import Backend
from tocsin._compute.arrays import Array, Float64Array

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quick_fits")]


def middles(X: Array, Y: Array) -> float:
    """A statistic of a user's."""
    return float(np.abs(np.median(X, 0) / 2 - np.median(Y, 0) / 2).max() / np.abs(X).max())


STATISTICS: dict[str, Any] = {
    "default": MMD(),
    "one width": MMD(Gaussian()),
    "landmarks": MMD(approximation=Landmarks(60)),
    "LSDD": LSDD(),
    "MeanShift": MeanShift(),
    "direction": MeanShift(direction=[1.0, 0.5]),
}

WILD = (1e30, 1e100, 1e200, 1e308)
REFUSING = ("LSDD", "MeanShift", "direction")
"""Statistics that may refuse; the others must take any reference here."""


def rings(statistic: Any, reference: Float64Array, scale: float, backend: Backend = "numba") -> bool:
    """Whether a shift of ten spreads in all columns rings within 50 observations."""
    detector = Detector(1000, statistic, window=(8, 25), paths=100, interval=False, seed=1, backend=backend)
    detector.fit(reference, progress=False)
    shifted = (np.random.default_rng(1).normal(size=(50, reference.shape[1])) + 10) * scale
    return bool(detector.update_many(shifted).alarm.any())


def seen_or_refused(name: str, reference: Float64Array, scale: float, backend: Backend = "numba") -> None:
    refused = None
    try:
        assert rings(STATISTICS[name], reference, scale, backend)
    except InputError as error:
        refused = str(error)
    assert refused is None or name in REFUSING, refused
    assert refused is None or "unit" in refused or "Drop or cap" in refused  # a remedy


@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("how", ["one", "one each way", "in every column", "one in a hundred"])
@pytest.mark.parametrize("name", STATISTICS)
def test_a_few_wild_values(name: str, how: str, wild: float) -> None:
    reference = np.random.default_rng(0).normal(size=(300, 2))
    if how == "one in a hundred":
        reference[::100] = wild
    else:
        reference[17, 1] = wild
        reference[18, 0] = {"one": 0.0, "one each way": -wild, "in every column": wild}[how]
    seen_or_refused(name, reference, 1.0)


def test_one_wild_value_among_zeros_and_ones() -> None:
    """What is usual is judged by the values that differ from the median: most of a column may be one number."""
    reference = np.random.default_rng(0).normal(size=(300, 2))
    reference[:, 1] = reference[:, 1] > 0.8
    assert rings(MeanShift(), reference, 1.0)
    reference[17, 1] = 1e30
    with pytest.raises(InputError, match=r"1e\+30 in column 1, .* Drop or cap"):
        rings(MeanShift(), reference, 1.0)


@pytest.mark.parametrize("exponent", [-300, -200, -160, -140, -100, -30, 30, 100, 140, 160, 200, 300])
@pytest.mark.parametrize("name", STATISTICS)
def test_any_scale(name: str, exponent: int) -> None:
    scale = 10.0**exponent
    seen_or_refused(name, np.random.default_rng(0).normal(size=(300, 2)) * scale, scale)


@pytest.mark.parametrize("wild", [1e30, 1e308])
@pytest.mark.parametrize("name", ["one width", "LSDD"])
def test_in_plain_numpy(name: str, wild: float) -> None:
    reference = np.random.default_rng(0).normal(size=(120, 1))
    reference[17] = wild
    seen_or_refused(name, reference, 1.0, "numpy")


def test_a_function_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    detector = Detector(50, Custom(middles), window=5, interval=False, seed=1, backend="numba")
    detector.fit(rng.normal(size=(120, 2)) * 1e300, progress=False)
    assert detector.update_many((rng.normal(size=(50, 2)) + 10) * 1e300).alarm.any()


@pytest.mark.parametrize("factor", [1.0, 1e-6, 1e6, 1e20])
def test_ordinary_references_are_taken_as_before(factor: float) -> None:
    """Heavy tails are no reason to refuse, and weights and widths are what they were, to the last bit."""
    points = np.random.default_rng(0).standard_t(1.5, size=(300, 2)) * factor
    weights = MeanShift()._weights(points)
    np.testing.assert_array_equal(weights, 1 / points.std(0))
    (width,) = Gaussian().widths(points, np.random.default_rng(0))
    centred = points - np.median(points, axis=0)
    scale = np.abs(centred).max()
    unit = centred / scale
    squares = ((unit[:, None] - unit[None]) ** 2).sum(-1)[np.triu_indices(300, 1)]
    assert width == pytest.approx(np.sqrt(np.median(squares)) * scale, rel=1e-14)
