"""A detector as river knows drift detectors, and as a step of its pipelines. Needs the extra `river`."""

from __future__ import annotations

import math
import numbers
import warnings
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from typing import TypedDict, TypeVar

import numpy as np

from tocsin._common.errors import InputError, MissingExtraError, NotFittedError, Option, ReferenceWarning
from tocsin._data import validation
from tocsin._data.tables import as_table
from tocsin._detector.detector import Detector
from tocsin._explain.result import Explanation
from tocsin._integrations.given import detector_for, is_fitted
from tocsin._samplers import Independent
from tocsin._state.outcomes import Outcome
from tocsin._statistics.mean_shift import MeanShift

try:
    from river import base
except ImportError as error:
    raise MissingExtraError("river", "river", "tocsin.integrations.river") from error


Observed = float | dict[Hashable, object]
"""A number, or features by name."""

X = TypeVar("X")


class ChangeDetector(base.DriftAndWarningDetector, base.Transformer):  # type: ignore[misc]
    """Rings when the distribution behind a stream changes; when nothing changes, once in `ert` observations on average.

    Takes numbers, as river's other drift detectors do, or dicts of features. In a pipeline it is a step that watches
    what passes and hands it on unchanged.

    The first update after a drift puts it back to how it was made: if it learns its reference from the stream, it
    collects a new one, from after the drift; if it was given a fitted detector, it starts a new run with that
    detector's reference, and rings again if the change stays.

    Options are checked when it is made, as those of river's own detectors are: there is no `fit`, and what is wrong
    with them would else come out when the reference is complete.

    Parameters
    ----------
    ert
        Expected run time: observations between false alarms, on average over reference sets. Default: 1000.
    reference
        Observations to learn from, at the start of the stream. Until there are so many (and as long as all of them are
        the same, since nothing can be measured by them) no drift is detected. The update that completes them fits the
        detector, which takes a second or more. If they are refused, a `ReferenceWarning` says why, and as many others
        are collected.
    warning
        A warning is given while chance alone would show such evidence once in `warning` times `ert` observations, or
        more rarely, and it does not suffice for an alarm.
    seed
        For reproducible thresholds.
    detector
        A `tocsin.Detector` to use instead of one with this `ert`: a fitted one, which then needs no reference from the
        stream, or one with other options (statistic, windows, guarantee, ...). It is copied.

    Examples
    --------
    >>> import random
    >>> from tocsin._integrations.river import ChangeDetector
    >>> rng = random.Random(1)
    >>> detector = ChangeDetector(ert=500, reference=1000, seed=1)
    >>> for i in range(1500):
    ...     detector.update(rng.gauss(0 if i < 1200 else 2, 1))
    ...     if detector.drift_detected:
    ...         break
    >>> i in range(1200, 1220)
    True
    """

    def __init__(
        self,
        *,
        ert: float | None = None,
        reference: int = 1000,
        warning: float = 0.1,
        seed: int | None = None,
        detector: Detector | None = None,
    ) -> None:
        super().__init__()
        self.ert = ert
        self.reference = reference
        self.warning = warning
        self.seed = seed
        self.detector = detector
        self._detector = detector_for(detector, ert, seed)
        validation.fraction("warning", warning, 0.0, 1.0)
        self._collected: deque[Observed] = deque(maxlen=validation.positive_integer("reference", reference))
        self._given = self._ready = is_fitted(self._detector)
        if not self._given:
            _must_suffice(self._detector, reference)
        self._outcome: Outcome | None = None
        self._n_detections = 0

    # As a drift detector

    def update(self, x: object) -> None:
        """Take in one observation: a number, or a dict of features."""
        observed = _observation(x)
        if self.drift_detected:
            self._reset()
        if self._ready:
            self._test(observed)
        else:
            self._collect(observed)

    def _collect(self, x: Observed) -> None:
        if self._collected and isinstance(x, dict) != isinstance(self._collected[0], dict):
            raise InputError(
                f"The observation is a {type(x).__name__}, and those before it were of the other kind; a stream is of "
                "numbers or of dicts."
            )
        if len(self._collected) + 1 >= self.reference and any(other != x for other in self._collected):
            self._fit([*self._collected, x][-self.reference :])
        else:
            self._collected.append(x)

    def _fit(self, collected: list[Observed]) -> None:
        try:
            self._detector.fit(collected if isinstance(collected[0], dict) else np.array(collected))
            self._ready = True
        except InputError as error:
            # No stream ends for this: they may hold a change of their own, and the next may not.
            told = ReferenceWarning(
                f"Nothing can be learned from the {self.reference} observations collected, and no drift is detected "
                "until as many others are. ",
                *error.parts,
            )
            warnings.warn(told, stacklevel=4)
        self._collected.clear()

    def _test(self, x: Observed) -> None:
        self._outcome = outcome = self._detector.update(x)
        self._drift_detected = bool(outcome.alarm)
        self._warning_detected = bool(not outcome.alarm and outcome.rarity >= self.warning * self._detector.ert)
        self._n_detections += self._drift_detected

    def _reset(self) -> None:
        super()._reset()
        self._outcome = None
        if self._given:
            self._detector.reset()
        else:
            self._ready = False

    @property
    def n_detections(self) -> int:
        """How many drifts were detected."""
        return self._n_detections

    @property
    def outcome(self) -> Outcome | None:
        """What the last update showed: statistic, threshold, rarity and more; None if it was collected."""
        return self._outcome

    @property
    def in_use(self) -> Detector:
        """The fitted detector at work, to look at its promise or to save it."""
        if not self._ready:
            raise NotFittedError(
                f"The reference is not complete: {len(self._collected)} of {self.reference} observations are collected."
            )
        return self._detector

    def explain(self) -> Explanation:
        """What changed; ask while `drift_detected`, since the next update starts anew."""
        return self.in_use.explain()

    # As a step of a pipeline

    def learn_one(self, x: object) -> None:
        """The same as `update`."""
        self.update(x)

    def transform_one(self, x: X) -> X:
        """The observation itself."""
        return x

    # For river's checks

    @classmethod
    def _unit_test_params(cls) -> Iterator[_Options]:
        quick = Detector(200, MeanShift(), window=5, sampler=Independent(), interval=False, paths=500)
        yield {"reference": 60, "seed": 1, "detector": quick}


class _Options(TypedDict):
    reference: int
    seed: int
    detector: Detector


def _must_suffice(detector: Detector, reference: int | None) -> None:
    """So many observations are enough to fit this detector: better asked now than when they are complete."""
    if reference is None:
        raise InputError(
            Option("reference", None),
            ": it must be a whole number of observations to collect; leave it out for 1000.",
        )
    if detector.window is None:
        windows = validation.default_windows(reference, detector.ert)
    else:
        windows = validation.windows_given(detector.window)
    validation.expected_run_time(detector.ert, windows[-1])
    validation.enough_points(reference, 0, windows)


def _observation(x: object) -> Observed:
    """A finite number, or a dict whose values can be columns, which the caller may go on to change."""
    if isinstance(x, Mapping) and x:
        as_table([x])
        return dict(x)
    if isinstance(x, numbers.Real) and math.isfinite(x):
        return float(x)
    raise InputError(f"The observation is {x!r}; it must be a finite number, or a dict of features with one or more.")
