"""Frames with columns of every kind, and detectors of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tocsin import Detector, Independent
from tocsin._state.outcomes import Outcomes

pandas: Any = import_module("pandas")
polars: Any = import_module("polars")
arrow: Any = import_module("pyarrow")

NAMES = ("flow", "state", "open", "level", "seen", "note")


def frame(n: int, seed: int = 0, shift: float = 0.0) -> Any:
    """A pandas frame with a column of every kind, one with gaps."""
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "flow": rng.normal(shift, 1, n),
            "state": rng.choice(["on", "off", "idle"], n),
            "open": rng.random(n) < 0.3,
            "level": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "seen": pandas.Timestamp("2024-03-07") + pandas.to_timedelta(rng.integers(0, 10**7, n), unit="s"),
            "note": [f"{rng.choice(['leak', 'noise', 'dust'])} at {rng.integers(10**6)}" for _ in range(n)],
        }
    )


def detector(reference: Any, statistic: Any = None, **options: Any) -> Detector:
    """Fitted in a moment."""
    quick = {"window": (4, 8), "paths": 300, "interval": False, "sampler": Independent(), "seed": 1}
    return Detector(100, statistic, **{**quick, **options}).fit(reference)


def start(fitted: Detector) -> None:
    """The first run again, from its beginning."""
    fitted._run = fitted._begin(fitted._ready(), None)


def equal(one: Outcomes, other: Outcomes) -> None:
    """To the last bit."""
    np.testing.assert_array_equal(one.statistic, other.statistic)
    np.testing.assert_array_equal(one.alarm, other.alarm)
    np.testing.assert_array_equal(one.threshold, other.threshold)
