"""The detector that stands behind another library's face."""

from __future__ import annotations

import copy

from tocsin._common.errors import InputError, NotFittedError, Option
from tocsin._detector.detector import Detector

DEFAULT_ERT = 1000.0


def detector_for(detector: Detector | None, ert: float | None, seed: int | None) -> Detector:
    """A copy of the detector that is given, or one with this `ert` and the defaults for all else; with this seed."""
    if detector is None:
        return Detector(DEFAULT_ERT if ert is None else ert, seed=seed)
    if not isinstance(detector, Detector):
        raise InputError(
            Option("detector", detector),
            f" is a {type(detector).__name__}; give a tocsin.Detector, or ",
            Option("ert", ...),
        )
    if ert is not None:
        raise InputError(
            Option("ert", ert),
            " is given beside a detector, which has its own (",
            Option("ert", detector.ert),
            "); give one of them.",
        )
    detector = copy.deepcopy(detector)
    if seed is not None:
        detector.seed = seed
    return detector


def is_fitted(detector: Detector) -> bool:
    """Whether it has a reference."""
    try:
        return bool(detector.windows_)
    except NotFittedError:
        return False
