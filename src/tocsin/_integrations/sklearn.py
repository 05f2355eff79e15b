"""A detector as scikit-learn knows outlier detectors. Needs the extra `sklearn`."""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from tocsin._common.errors import MissingExtraError
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.detector import Detector
from tocsin._integrations.given import detector_for
from tocsin._state.outcomes import Outcomes

try:
    from sklearn.base import BaseEstimator, OutlierMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise MissingExtraError("scikit-learn", "sklearn", "tocsin.integrations.sklearn") from error


class ChangeDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Rings when the distribution behind a stream changes; when nothing changes, once in `ert` observations on average.

    The rows of X are a stream, in the order in which they came. `fit` learns the reference; `predict` watches the rows
    that it is given as a stream of their own, from a fresh start, so that the same rows give the same answer. To go on
    from one block of a live stream to the next, use `detector_`, which is the `tocsin.Detector` itself.

    Arrays are checked as scikit-learn does it: numbers, none of them missing. Data frames whose columns have names go
    to the detector as they are, with columns of any kind, which it brings to one scale.

    Parameters
    ----------
    ert
        Expected run time: observations between false alarms, on average over reference sets. Default: 1000.
    seed
        For reproducible thresholds.
    detector
        A `tocsin.Detector` with other options (statistic, windows, guarantee, ...), to use instead of one with this
        `ert`. It is copied, and fitted anew.

    Attributes
    ----------
    detector_
        The fitted `tocsin.Detector`, at the start of a run.
    offset_
        0: what `score_samples` is above `decision_function`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> rng = np.random.default_rng(0)
    >>> watch = make_pipeline(StandardScaler(), ChangeDetector(ert=500, seed=2)).fit(rng.normal(size=(1000, 3)))
    >>> watch.predict(rng.normal(size=(5, 3)))
    array([1, 1, 1, 1, 1])
    >>> bool((watch.predict(rng.normal(2, size=(20, 3))) == -1).any())
    True
    """

    def __init__(self, *, ert: float | None = None, seed: int | None = None, detector: Detector | None = None) -> None:
        self.ert = ert
        self.seed = seed
        self.detector = detector

    def fit(self, X: object, y: object = None, *, groups: object = None) -> Self:
        """Learn the reference X: one row per observation from the time when all was well, in order; y is ignored.

        groups
            A label per row where the reference is made of several recordings, or has gaps, as in `Detector.fit`.
        """
        X = self._rows(X, reset=True)
        self.detector_ = detector_for(self.detector, self.ert, self.seed).fit(X, groups=groups)
        self.offset_ = 0.0
        return self

    def predict(self, X: object) -> Int64Array:
        """-1 for rows that ring, 1 for all others. A new run starts after each that rings."""
        return np.where(self._watch(X).alarm, -1, 1)

    def decision_function(self, X: object) -> Float64Array:
        """How far each row's statistic stays below its threshold: negative where it rings, NaN where none is tested."""
        outcomes = self._watch(X)
        return outcomes.threshold - outcomes.statistic

    def score_samples(self, X: object) -> Float64Array:
        """The same as `decision_function`: thresholds change in the course of a run, so scores count from them."""
        return self.decision_function(X)

    def _watch(self, X: object) -> Outcomes:
        check_is_fitted(self, "detector_")
        X = self._rows(X, reset=False)
        return copy.deepcopy(self.detector_).update_many(X)

    def _rows(self, X: object, *, reset: bool) -> object:
        if all(isinstance(name, str) for name in getattr(X, "columns", [None])):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=2 if reset else 1)
