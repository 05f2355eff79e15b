"""What a detector hands out cannot be written to: neither its reference nor its thresholds are a user's to change."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path

import numpy as np
import pytest

from tocsin import LSDD, MMD, Detector, DetectorBank, Independent, MeanShift
from tocsin._detector.base import fitted_of

pytestmark = pytest.mark.usefixtures("quick_fits")


def fitted() -> Detector:
    rows = np.random.default_rng(0).normal(size=(80, 2))
    detector = Detector(
        50, [MMD(), LSDD(), MeanShift()], window=5, paths=50, interval=False, seed=1, backend="numba",
        sampler=Independent(),
    )  # fmt: skip
    return detector.fit(rows, progress=False)


def loaded(detector: Detector, folder: Path) -> Detector:
    detector.save(folder / "saved.tocsin")
    return Detector.load(folder / "saved.tocsin")


WAYS: dict[str, Callable[[Detector, Path], Detector]] = {
    "fitted": lambda detector, _: detector,
    "copied": lambda detector, _: copy(detector),
    "deeply copied": lambda detector, _: deepcopy(detector),
    "pickled": lambda detector, _: pickle.loads(pickle.dumps(detector)),
    "loaded": loaded,
}


@pytest.mark.parametrize("way", WAYS)
def test_internals_cannot_be_written_to(way: str, tmp_path: Path) -> None:
    detector = WAYS[way](fitted(), tmp_path)
    curve = detector.calibration_.curve
    assert curve is not None
    arrays = (detector.reference_, detector.calibration_.thresholds, curve.values, curve.log_rates, curve.tail.errors)
    for array in arrays:
        assert isinstance(array, np.ndarray)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    inside = fitted_of(detector)
    assert np.shares_memory(detector.reference_, inside.reference)
    assert np.shares_memory(detector.calibration_.thresholds, inside.calibration.thresholds)
    assert inside.calibration.curve is not None
    assert inside.calibration.curve.values.flags.writeable
    # Inside they are as ever: compiled functions would be compiled anew for arrays that are read-only.
    assert inside.reference.flags.writeable
    assert inside.calibration.thresholds.flags.writeable
    detector.thresholds_[:] = 0
    detector.recent[:] = 0
    outcomes = fitted().update_many(np.ones((30, 2)))
    np.testing.assert_array_equal(detector.update_many(np.ones((30, 2))).threshold, outcomes.threshold)


def test_banks() -> None:
    rows = np.random.default_rng(0).normal(size=(80, 2))
    detector = Detector(50, window=5, paths=50, interval=False, seed=1, sampler=Independent()).fit(rows, progress=False)
    with pytest.raises(ValueError, match="read-only"):
        DetectorBank(detector, 2).calibration_.thresholds[0] = 0


def test_references_of_objects_are_copies() -> None:
    words = [f"word {i % 9}" for i in np.random.default_rng(0).permutation(60)]

    def kernel(X: list[str], Y: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        return np.array([[1.0 if x == y else 0.5 for y in Y] for x in X]).reshape(len(X), len(Y))

    detector = Detector(20, MMD(kernel), window=3, interval=False, seed=1, sampler=Independent())
    detector.fit(words, progress=False).reference_.clear()
    assert len(detector.reference_) == 60
