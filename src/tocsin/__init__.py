"""Sequential change detection with a known false alarm rate."""

from tocsin._calibration.result import Calibration
from tocsin._common.errors import (
    DependenceWarning,
    InputError,
    MissingExtraError,
    NotFittedError,
    ReferenceWarning,
    StorageError,
    TocsinError,
)
from tocsin._compare.compare import compare
from tocsin._compare.result import Comparison
from tocsin._detector.detector import Detector
from tocsin._explain.result import Explanation
from tocsin._incidents.incident import Incident
from tocsin._incidents.monitor import Monitor
from tocsin._samplers import Blocks, Independent
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._statistics import LSDD, MMD, Custom, Landmarks, MeanShift, Views
from tocsin._statistics.base import Channel
from tocsin._statistics.kernels import Gaussian
from tocsin._streams.bank import DetectorBank
from tocsin._streams.fleet import Fleet, FleetAlarm, Refused, Step

__all__ = [
    "LSDD",
    "MMD",
    "Blocks",
    "Calibration",
    "Channel",
    "Comparison",
    "Custom",
    "DependenceWarning",
    "Detector",
    "DetectorBank",
    "Explanation",
    "Fleet",
    "FleetAlarm",
    "Gaussian",
    "Incident",
    "Independent",
    "InputError",
    "Landmarks",
    "MeanShift",
    "MissingExtraError",
    "Monitor",
    "NotFittedError",
    "Outcome",
    "Outcomes",
    "ReferenceWarning",
    "Refused",
    "Step",
    "StorageError",
    "TocsinError",
    "Views",
    "compare",
]
__version__ = "0.1.0"
