"""Sequential change detection with a known false alarm rate."""

from tocsin.bank import DetectorBank
from tocsin.calibration.result import Calibration
from tocsin.detector import Detector
from tocsin.errors import (
    DependenceWarning,
    InputError,
    MissingExtraError,
    NotFittedError,
    ReferenceWarning,
    StorageError,
    TocsinError,
)
from tocsin.fleet import Fleet
from tocsin.kernels import Gaussian
from tocsin.outcomes import Outcome, Outcomes
from tocsin.samplers import Blocks, Independent
from tocsin.statistics import LSDD, MMD, Custom, Landmarks, MeanShift
from tocsin.statistics.base import Channel

__all__ = [
    "LSDD",
    "MMD",
    "Blocks",
    "Calibration",
    "Channel",
    "Custom",
    "DependenceWarning",
    "Detector",
    "DetectorBank",
    "Fleet",
    "Gaussian",
    "Independent",
    "InputError",
    "Landmarks",
    "MeanShift",
    "MissingExtraError",
    "NotFittedError",
    "Outcome",
    "Outcomes",
    "ReferenceWarning",
    "StorageError",
    "TocsinError",
]
__version__ = "0.1.0"
