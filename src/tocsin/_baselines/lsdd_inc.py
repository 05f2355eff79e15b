"""LSDD-Inc (Bu, Alippi and Zhao, IEEE TNNLS 28, 2017): the paper's Algorithm 1, and the variant that the paper ran."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Thresholds
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._data import validation
from tocsin._data.intake import Rows
from tocsin._detector import schema
from tocsin._detector.checking import BUMPS
from tocsin._detector.declared import POSITIVE, storable
from tocsin._detector.detector import Watcher
from tocsin._detector.schema import Number, Record, Rule, Whole, must
from tocsin._detector.sizes import Sizes
from tocsin._state import ALONE, Fitted
from tocsin._statistics.base import Channel, Cold, Live, Parts, Stepwise, WindowState
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.kernels import median_distance
from tocsin._statistics.lsdd import LSDD, MANY, Bumps, bumps_products, choose_regularisation, factor

REDRAWS = 2**32
"""Added to the number of a run in the hash that redraws reference points, which is then that of no other hash."""

BLOCK = 4096

FEWEST_BEYOND = 10


@storable(paths=Whole(1), mean=Number(), regularisation=POSITIVE)
@dataclass(frozen=True, eq=False)
class LSDDIncThreshold(Thresholds):
    """The threshold of an LSDD-Inc detector, and what it rests on.

    paths: pairs of windows drawn.  mean: of the statistic over them.  regularisation: of the estimate.
    """

    paths: int
    mean: float
    regularisation: float

    @property
    def quality(self) -> str:
        return "of a single test: later ones depend on it"


class LSDDInc(Watcher[LSDDIncThreshold]):
    """The least-squares density difference, with one threshold: the (1 - 1/ert)-quantile of a single test.

    The first test is made when the window is full. Alarms are rarer than one in `ert`, as Algorithm 1 of the paper
    intends: it bounds the run time from below, often by orders of magnitude (by 8 to 27 % with `redraw`).

    Parameters
    ----------
    ert
        Expected run time to bound from below.
    window
        Recent observations to compare with the reference.
    redraw
        False: Algorithm 1. The window is compared with the whole reference, the threshold being moved from pairs of
        windows to that. True: as the paper ran it. The window is compared with as many reference points, drawn anew
        with replacement at every test.
    width
        Width of the Gaussian bumps. None: the median distance between reference points.
    paths
        Pairs of windows to draw.
    seed
        Whole number for reproducible thresholds; None for a fresh one, kept in `seed_`.
    backend
        'auto', 'numba', or 'numpy' (slow, to be read).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = LSDDInc(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> bool(detector.update_many(rng.normal(loc=3, size=(20, 2))).alarm.any())
    True
    """

    _rests_on = LSDDIncThreshold

    def __init__(
        self,
        ert: float,
        window: int = 25,
        *,
        redraw: bool = False,
        width: float | None = None,
        paths: int = 25_000,
        seed: int | None = None,
        backend: compute.Backend = "auto",
    ) -> None:
        self.ert = ert
        self.window = window
        self.redraw = redraw
        self.width = width
        self.paths = paths
        self.seed = seed
        self.backend = backend

    def fit(self, reference: object) -> Self:
        """Choose 2 W of the reference points (rows of numbers) as centres of bumps, and set the threshold."""
        began = time.perf_counter()
        seed, functions = validation.seed_number(self.seed), compute.load(self.backend)
        paths = validation.positive_integer("paths", self.paths) or 25_000
        points = validation.reference_points(reference, objects_allowed=False).copy()
        window = validation.one_window(self.window)
        validation.enough_points(len(points), 0, (window,))
        ert = validation.expected_run_time(self.ert, window)
        if paths < FEWEST_BEYOND * ert:
            raise InputError(
                f"paths={paths} is too few for ert={ert:g}: the threshold would rest on fewer than {FEWEST_BEYOND} "
                f"values beyond it. Give paths={math.ceil(FEWEST_BEYOND * ert)} or more."
            )
        rng = np.random.default_rng(seed)
        LSDD(width=self.width).check()
        width = self.width or median_distance(points, rng)

        centres = points[rng.choice(len(points), 2 * window, replace=False)]
        products = bumps_products(centres, width)
        plain = Bumps(centres, width, np.eye(len(centres)), functions)(points)
        regularisation = choose_regularisation(plain, products, window, rng)
        bumps = Bumps(centres, width, factor(products, regularisation), functions)
        values = bumps(points)
        there = functions.put(values)
        distances = np.concatenate([_null_distances(functions, there, rng, (size, window)) for size in _sizes(paths)])
        mean = float(distances.mean())
        threshold = float(np.quantile(distances, 1 - 1 / ert))
        if not self.redraw:
            # E[D] = (1/n + 1/W) tr(A Cov phi) for n reference points: from n = W, as drawn, to all of them.
            threshold += ((1 / len(values) + 1 / window) / (2 / window) - 1) * mean
        live = LSDDIncLive(bumps, values if self.redraw else values.mean(0, keepdims=True), window, seed)
        fitted = Fitted(
            LiveFamily([live]),
            Normaliser(np.zeros(1), np.ones(1), tie=0.0),
            LSDDIncThreshold(
                ert=ert,
                thresholds=np.array([threshold]),
                seconds=time.perf_counter() - began,
                paths=paths,
                mean=mean,
                regularisation=regularisation,
            ),
            (window,),
            Rows(points.shape[1]),
            points,
            None,
            "cold",
            seed,
            functions,
        )
        self._deploy(fitted)
        return self

    def _rules(self, sizes: Sizes) -> list[Rule]:
        return [partial(_check_parts, sizes=sizes)]

    def _state_rule(self, live: Live, sizes: Sizes, time: int) -> Rule:
        assert isinstance(live, LSDDIncLive)
        return partial(_check_windows, features=live.reference.shape[1], window=sizes.widest)

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        saved = parts[0]
        bumps = Bumps(saved["centres"], saved["width"], saved["factor"], functions)
        return LiveFamily([LSDDIncLive(bumps, saved["reference"], windows[0], saved["seed"])])


def _check_parts(value: Any, at: str, sizes: Sizes) -> None:
    """What a file holds of the statistic."""
    rules: dict[str, Rule] = {
        "centres": schema.Array("f8", (None, sizes.columns)),
        "reference": schema.Array("f8", (None, None)),
        "seed": Whole(0, 2**4096),
    }
    Record({**BUMPS, **rules})(value, at)
    bumps, features = value["factor"].shape
    must(bumps == len(value["centres"]), f"{at}.factor", bumps, "one row per bump")
    fits = len(value["reference"]) > 0 and value["reference"].shape[1] == features
    must(fits, f"{at}.reference", value["reference"].shape, "rows of features")


def _check_windows(value: Any, at: str, features: int, window: int) -> None:
    """What a file holds of a window."""
    rules: dict[str, Rule] = {
        "recent": schema.Array("f8", (None, features)),
        "run": Whole(0, 2**50),
        "tests": Whole(0, 2**50 // window),
    }
    Record(rules)(value, at)
    must(len(value["recent"]) < window, f"{at}.recent", len(value["recent"]), "less than a window")


def _sizes(count: int) -> list[int]:
    return [min(BLOCK, count - start) for start in range(0, count, BLOCK)]


def _null_distances(
    functions: compute.Functions, values: Array, rng: np.random.Generator, shape: tuple[int, int]
) -> Float64Array:
    """Between means of points drawn from the reference; shape: of as many means, of so many points each."""
    first, second = rng.integers(0, len(values), shape), rng.integers(0, len(values), shape)
    return functions.mean_distances(values, first, values, second)


class LSDDIncLive(Cold, Stepwise):
    """Squared distance of the window's mean feature from the reference's, or from that of W redrawn points.

    reference: the features to draw from; a single row stands for itself, the mean of all.
    """

    takes_tensors = False

    def __init__(self, bumps: Bumps, reference: Float64Array, window: int, seed: int) -> None:
        self.bumps, self.reference, self.window, self.seed = bumps, reference, window, seed
        self.channels = (Channel("LSDD", window),)

    def observe(self, points: Float64Array, own: Int64Array | None) -> Float64Array:
        return self.bumps(points)

    def begin(self, run: int) -> WindowState:
        """A run has redraws of its own, whatever the last one had looked at beyond its alarm."""
        return {"recent": np.zeros((0, self.reference.shape[1])), "run": run, "tests": 0}

    def advance(self, state: WindowState, observed: Float64Array, start: int, stop: int) -> Float64Array:
        window = self.window
        values = np.concatenate([state["recent"], observed[start:stop]])
        out = np.full((stop - start, 1), np.nan)
        tests = len(values) - window + 1
        first = stop - start - tests
        compute = self.bumps.compute if tests >= MANY else self.bumps.compute.nearby
        there, reference = compute.put(values), compute.put(self.reference)
        for done in range(0, tests, BLOCK):
            count = min(BLOCK, tests - done)
            places = done + np.arange(count)[:, None] + np.arange(window)
            drawn = self._drawn(state["run"], state["tests"], count)
            out[first + done : first + done + count, 0] = compute.mean_distances(there, places, reference, drawn)
            state["tests"] += count
        state["recent"] = values[max(len(values) - window + 1, 0) :].copy()
        return out

    def _drawn(self, run: int, tests: int, count: int) -> Int64Array:
        """(count, W) places in the reference: a hash of the run and its tests so far, so that no generator is kept."""
        if len(self.reference) == 1:
            return np.zeros((count, 1), np.int64)
        number = tests * self.window + np.arange(count * self.window)
        uniforms = self.bumps.compute.nearby.coins(
            np.uint64(self.seed % 2**64), ALONE, np.array([REDRAWS + run]), number
        )
        return np.asarray((uniforms * len(self.reference)).astype(np.int64).reshape(count, self.window))

    def parts(self) -> Parts:
        return {
            "centres": self.bumps.centres,
            "width": self.bumps.width,
            "factor": self.bumps.factor,
            "reference": self.reference,
            "seed": self.seed,
        }
