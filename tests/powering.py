"""Detectors of every sort, of which tests of power cards ask what they can see."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tocsin import LSDD, MMD, Blocks, Custom, Detector, Landmarks, MeanShift, Views
from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import fitted_of
from tocsin._detector.starting import places_of
from tocsin._power.changes import Cells, Scene
from tocsin._power.draws import Draws
from tocsin._power.stretches import Stretches
from tocsin._power.trials import stage_of
from tocsin._statistics.view_model import MOST_COLUMNS


def independent(count: int, columns: int, seed: int = 0) -> Float64Array:
    return np.random.default_rng(seed).normal(size=(count, columns))


def remembering(count: int, columns: int, seed: int = 0, memory: float = 0.6) -> Float64Array:
    rows = np.random.default_rng(seed).standard_normal((count, columns))
    for t in range(1, count):
        rows[t] += memory * rows[t - 1]
    return rows


def difference(X: Float64Array, Y: Float64Array) -> float:
    """A statistic of a user's own."""
    return float(np.abs(X.mean(0) - Y.mean(0)).max())


def closeness(X: Float64Array, Y: Float64Array) -> Float64Array:
    """A kernel of a user's own."""
    kernel: Float64Array = np.exp(-((np.asarray(X)[:, None] - np.asarray(Y)) ** 2).sum(2))
    return kernel


def records(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """A table with columns of every kind."""
    rng = np.random.default_rng(seed)
    flow = rng.normal(size=count)
    return [
        {
            "flow": float(flow[i]),
            "gaps": None if rng.random() < 0.1 else float(3 * flow[i] + rng.normal()),
            "colour": str(rng.choice(["red", "green"])),
            "code": f"code {rng.integers(200)}",
            "when": f"2024-03-{rng.integers(1, 29):02d}T{rng.integers(24):02d}:00:00",
            "note": f"note {rng.integers(10**6)} of {rng.integers(10**6)}",
            "still": 2.5,
        }
        for i in range(count)
    ]


KINDS: dict[str, Any] = {"code": "category"}
FITS: dict[str, tuple[Any, Any]] = {
    "mmd": (lambda: Detector(100, window=[4, 10], seed=1, paths=300), independent(200, 2)),
    "blocks": (lambda: Detector(100, MMD(), window=5, sampler=Blocks(20, 1), seed=1, paths=300), remembering(400, 2)),
    "landmarks": (
        lambda: Detector(100, MMD(approximation=Landmarks(20)), window=5, seed=1, paths=300), independent(200, 2)
    ),
    "kernel": (lambda: Detector(30, MMD(closeness), window=5, seed=1, paths=200), independent(60, 2)),
    "lsdd": (lambda: Detector(100, LSDD(), window=10, seed=1, paths=300), independent(200, 2)),
    "mean": (lambda: Detector(100, MeanShift(), window=10, seed=1, paths=300), independent(200, 2)),
    "custom": (lambda: Detector(30, Custom(difference), window=5, seed=1, paths=200, error=0.1), independent(60, 2)),
    "two": (lambda: Detector(100, [MMD(), MeanShift()], window=10, seed=1, paths=300), independent(200, 2)),
    "table": (lambda: Detector(100, MMD(), window=10, seed=1, paths=300, kinds=KINDS), records(200)),
    "views": (lambda: Detector(100, Views(), seed=1, paths=6), remembering(200, 2)),
    "views of a table": (lambda: Detector(100, Views(), seed=1, paths=6, kinds=KINDS), records(200)),
    "directions": (lambda: Detector(100, Views(), seed=1, paths=6), remembering(120, MOST_COLUMNS + 6)),
    "represented": (
        lambda: Detector(100, window=10, seed=1, paths=300, preprocess=lambda x: np.asarray(x)), independent(200, 3)
    ),
}  # fmt: skip
every = pytest.mark.parametrize("name", FITS)


@cache
def made(name: str) -> Detector:
    """Of every sort, fitted once for all tests."""
    make, reference = FITS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        detector: Detector = make().fit(reference, progress=False)
        return detector


def stage(detector: Detector) -> Stretches | Draws:
    own = fitted_of(detector)
    return stage_of(own, None if own.live.goes_on else places_of(own), Cells(own.intake, own.reference))


def scene(before: Float64Array, after: Float64Array, elsewhere: Float64Array, ordered: bool = False) -> Scene:
    dice = (np.arange(len(after)) + 0.5) / len(after)
    return Scene(before, after, elsewhere, dice, np.where(np.arange(after.shape[1]) % 2, -1.0, 1.0), ordered)
