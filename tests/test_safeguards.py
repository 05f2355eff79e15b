"""What a user is kept from: kernels that are not, fits that never end, surprises with threads and compilers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tocsin import MMD, Custom, Detector, Gaussian, InputError
from tocsin._calibration import plan
from tocsin._compute import numba_stream
from tocsin._compute.arrays import Array
from tocsin._samplers import Singly

ROWS = np.random.default_rng(0).normal(size=(60, 2))


def test_a_kernel_must_be_symmetric() -> None:
    """Null paths and live ones would otherwise ask it in different orders."""

    def lopsided(X: Array, Y: Array) -> Array:
        return np.asarray(np.exp(-np.abs(X[:, None] - Y[None]).sum(-1)) * (1 + 0.1 * X[:, None, 0]))

    with pytest.raises(InputError, match=r"not symmetric.*use the mean of the two"):
        Detector(30, MMD(lopsided), window=5, paths=60).fit(ROWS)


@pytest.mark.parametrize("ert", [1e4, 1e6, 1e9, 1e15])
@pytest.mark.parametrize("window", [2, 5, 100])
def test_no_fit_simulates_without_end(ert: float, window: int) -> None:
    """Rarer alarms than MOST_TESTS show are extrapolated; a number of paths that is given is taken as meant."""
    options: dict[str, Any] = {"bootstraps": True, "discrete": False, "error": 0.02}
    chosen = plan.make_plan("steady", ert, (window,), Singly(3000), **options, paths=None)
    assert chosen.paths * chosen.tests < 2 * plan.MOST_TESTS
    assert chosen.simulated == min(ert, plan.MOST_TESTS * 0.02**2)
    assert plan.make_plan("steady", ert, (window,), Singly(60), **options, paths=10**9).paths == 10**9


def test_thresholds_for_rare_alarms_rise_with_their_rarity() -> None:
    """However rare they are to be: nothing is refused, and nothing is infinite."""
    detectors = [Detector(ert, MMD(), window=5, paths=2000, seed=0).fit(ROWS) for ert in (1e2, 1e4, 1e8, 1e15)]
    thresholds = [detector.calibration_.threshold for detector in detectors]
    assert thresholds == sorted(set(thresholds))
    assert np.isfinite(thresholds).all()
    assert len({detector.calibration_.simulated for detector in detectors[1:]}) == 1


def test_a_users_function_is_not_called_from_threads() -> None:
    """It may hold a cache or a model; unless workers are asked for."""
    callers = set()

    def gap(X: Array, Y: Array) -> float:
        callers.add(threading.get_ident())
        return abs(float(X.mean() - Y.mean()))

    Detector(20, Custom(gap), window=4, paths=300, seed=0).fit(ROWS)
    assert callers == {threading.get_ident()}


def test_rows_in_any_layout_compile_nothing_new() -> None:
    """A pause to compile in mid-stream would be an outage."""
    compiled: Any = numba_stream._step
    detector = Detector(30, MMD(Gaussian()), window=5, paths=60, seed=0).fit(ROWS)
    detector.update(ROWS[0])
    before = len(compiled.signatures)
    frozen = ROWS[1].copy()
    frozen.flags.writeable = False
    blocks = np.asfortranarray(ROWS[:4])
    blocks.flags.writeable = False
    detector.update(frozen)
    detector.update(np.repeat(ROWS[2], 2)[::2])
    detector.update_many(blocks)
    assert len(compiled.signatures) == before
