"""The detectors of the paper's comparison, configured as it says, and Tocsin's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin._baselines.lsdd_inc import LSDDInc
from tocsin._baselines.scan_b import ScanB
from tocsin._calibration.plan import Mode
from tocsin._compute.arrays import Float64Array
from tocsin._detector.detector import Detector
from tocsin._experiments.runs import AnyDetector
from tocsin._samplers import Independent
from tocsin._statistics import LSDD, MMD
from tocsin._statistics.base import Statistic
from tocsin._statistics.kernels import Gaussian

POINTS, WINDOW = 1000, 25


@dataclass(frozen=True)
class Method:
    """A detector to compare.

    fit: (expected run time, reference, seed) to a detector that is ready.
    baseline: the method whose average run time it is configured to when powers are compared, as in the paper.
    """

    fit: Callable[[float, Float64Array, int], AnyDetector]
    baseline: str | None = None


def _scan_b(ert: float, reference: Float64Array, seed: int) -> ScanB:
    return ScanB(ert, WINDOW, seed=seed).fit(reference)


def _lsdd_inc(ert: float, reference: Float64Array, seed: int) -> LSDDInc:
    # The paper gives all LSDD detectors as many reference points: those that CALM-LSDD keeps besides its centres.
    return LSDDInc(ert, WINDOW, redraw=True, seed=seed).fit(reference[: -2 * WINDOW])


def _detector(
    statistic: Statistic | None = None, window: int | None = None, mode: Mode = "steady"
) -> Callable[[float, Float64Array, int], Detector]:
    def fit(ert: float, reference: Float64Array, seed: int) -> Detector:
        detector = Detector(
            ert, statistic, window=window, mode=mode, sampler=Independent(), interval=False,
            start="cold", seed=seed,
        )  # fmt: skip
        return detector.fit(reference, workers=1, progress=False)

    return fit


METHODS = {
    "B-statistic": Method(_scan_b),
    "CALM-MMD": Method(_detector(MMD(Gaussian()), window=WINDOW, mode="paper"), baseline="B-statistic"),
    "LSDD-Inc": Method(_lsdd_inc),
    "CALM-LSDD": Method(_detector(LSDD(), window=WINDOW, mode="paper"), baseline="LSDD-Inc"),
    "steady MMD": Method(_detector(MMD(Gaussian()), window=WINDOW)),
    "default family": Method(_detector()),
}
