"""Which columns changed, each on its own: so that noise is not explained, judged by null windows that rang.

Values become normal scores by their ranks in the reference. Let a change have begun n observations ago. How surely a
score's mean moved is n I(mean), with I the rate at which the reference's own law makes such means rare (Cramer): it is
mean^2 / 2 for normal scores and right for ties, rare categories and values never seen. The same for mean squares, which
tell of spreads. That, less log(n) / 2 for having looked for any size of a move, is close to a log Bayes factor.

Columns share n, and what is common among them: how many moved, how many spread. Averaged over these by their posterior,
a column's log Bayes factor is its evidence. By how much evidence goes beyond what chance gives is told by the same
calculation on null windows that rang: a false alarm comes with windows that look odd. Westfall and Young (1993): the
p-value of a column is how often the largest evidence of any column in such a window is as large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from tocsin._compute.arrays import Float64Array, Int32Array, Int64Array
from tocsin._explain.kernel import some

RATE = 0.05
"""False alarms of which some column is reported as changed, at most."""

SAMPLE = 2000
"""Reference rows that ranks are taken in, at most."""

NULL_WINDOWS, NULL_FEATURES, FEWEST_NULL = 500, 100_000, 100
"""Null windows that evidence is compared with: at most, at most in features of all of them, and at least."""

PIECE = 25
"""Null windows that are looked at at once."""

SHARES = (0.005, 0.05, 0.4)
"""Parts of the columns that may have moved, and that may have spread."""

LOG_SHARES = np.log([(moved, spread) for moved in SHARES for spread in SHARES])

GAP = 6.0
"""The law of a stream without a change is not quite the reference's. The gap adds n / N to the variance of a mean of n
scores, and it counts more in windows that ring: they ring more often where it helps them to. This much, measured."""

TILTS = np.concatenate([-(0.03 * 1.4 ** np.arange(20, -1, -1)), [0.0], 0.03 * 1.4 ** np.arange(21)])
"""Exponential tilts of the law of scores, in units of their spread: each shows a mean, and how rare it is."""

STEP = 1.2
"""Ratio of successive lengths n that are looked at, at most; all of them while they are few."""

How = Literal["higher", "lower", "wider", "narrower"]


@dataclass(frozen=True, eq=False)
class ColumnChanges:
    """Which columns changed; arrays of one entry per column.

    evidence: log Bayes factor of a change in the column alone.
    p_values: how often a false alarm shows a column with as much evidence.
    how: what its clearest feature did.  features: which that is.
    """

    evidence: Float64Array
    p_values: Float64Array
    how: tuple[How, ...]
    features: Int64Array

    @property
    def order(self) -> Int64Array:
        """Columns, the surest first."""
        return np.argsort(-self.evidence, kind="stable")

    @property
    def changed(self) -> Int64Array:
        """Columns that are reported as changed, the surest first. None: they changed together, or not at all."""
        order = self.order
        return order[self.p_values[order] <= RATE]


class ColumnTest:
    """Learned from a reference once, then asked about every alarm.

    Parameters
    ----------
    reference
        Rows of features (N, d).
    groups
        The column that each feature belongs to, (d,), from 0 on.
    rang
        Null windows that rang, as places in the reference (B, W); the widest window of each.
    """

    def __init__(self, reference: Float64Array, groups: Int64Array, rang: Int32Array, *, seed: int = 0) -> None:
        self._count, self._groups = len(reference), groups
        self._moves = Scores(reference[some(len(reference), SAMPLE, seed)])
        self._lengths = lengths(rang.shape[1])
        windows = rang[: min(NULL_WINDOWS, max(NULL_FEATURES // reference.shape[1], FEWEST_NULL))]
        drawn, place = np.unique(windows, return_inverse=True)
        scores, place = self._moves(reference[drawn]), place.reshape(windows.shape)
        pieces = [self._evidence(scores[place[i : i + PIECE]], 0.0) for i in range(0, len(place), PIECE)]
        self._largest = np.sort(np.concatenate([np.empty(0), *(piece.evidence.max(1) for piece in pieces)]))

    def __call__(self, recent: Float64Array) -> ColumnChanges:
        """From the recent rows of a run, oldest first; those of the widest window are looked at."""
        scores = self._moves(recent[-int(self._lengths[-1]) :])
        found = self._evidence(scores[None], GAP / self._count)
        as_large = len(self._largest) - np.searchsorted(self._largest, found.evidence[0])
        features, how = self._how(found)
        return ColumnChanges(found.evidence[0], (1 + as_large) / (1 + len(self._largest)), how, features)

    def _evidence(self, scores: Float64Array, gap: float) -> Evidence:
        """In windows (B, n, d); gap: what the reference adds to the variance of a mean, relative to one observation."""
        number = self._lengths[self._lengths <= scores.shape[1]]
        length = number[:, None]
        backwards = scores[:, ::-1]
        means, squares = (np.cumsum(x, axis=1)[:, number - 1] / length for x in (backwards, backwards**2))
        certain = length / (1 + length * gap) * length / (1 + length)
        moved, spread = (
            rates * certain - np.log1p(length) / 2
            for rates in (self._moves.rates(means), self._moves.spread_rates(squares - 1))
        )
        either = np.logaddexp(
            LOG_SHARES[:, 0, None, None, None] + self._by_column(moved),
            LOG_SHARES[:, 1, None, None, None] + self._by_column(spread),
        )  # (shares, B, lengths, columns)
        some_share = np.logaddexp(*LOG_SHARES.T)[:, None, None, None]
        log = np.logaddexp(np.log1p(-np.exp(some_share)), either).sum(3) + np.log(np.diff(number, prepend=0))
        posterior = np.exp(log - special.logsumexp(log, axis=(0, 2), keepdims=True))
        evidence = (posterior[..., None] * (either - some_share)).sum((0, 2))
        return Evidence(evidence, posterior.sum(0), means, squares - 1, moved, spread)

    def _by_column(self, factors: Float64Array) -> Float64Array:
        """Log Bayes factors of features (..., d) to those of columns: any one of a column's features may have moved."""
        sizes = np.bincount(self._groups)
        if len(sizes) == len(self._groups):
            return factors[..., np.argsort(self._groups)]
        largest = factors.max(-1, keepdims=True)
        belongs = (self._groups[:, None] == np.arange(len(sizes))) / np.maximum(sizes, 1)
        return np.asarray(largest + np.log(np.exp(factors - largest) @ belongs + np.finfo(np.float64).tiny))

    def _how(self, found: Evidence) -> tuple[Int64Array, tuple[How, ...]]:
        """The feature of each column that says most, at the likeliest length, and what it did."""
        at = 0, int(found.posterior[0].argmax())
        moved, spread = found.moved[at], found.spread[at]
        best = np.maximum(moved, spread)
        columns = range(int(self._groups.max()) + 1)
        features = np.array([np.where(self._groups == column, best, -np.inf).argmax() for column in columns])
        how: list[How] = []
        for feature in features:
            if moved[feature] >= spread[feature]:
                how.append("higher" if found.means[at][feature] > 0 else "lower")
            else:
                how.append("wider" if found.squares[at][feature] > 0 else "narrower")
        return features, tuple(how)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What windows say of their columns.

    evidence: (B, columns).  posterior: of the lengths, (B, lengths).
    means, squares: of scores, and of their squares less 1.  moved, spread: log Bayes factors of these; (B, lengths, d).
    """

    evidence: Float64Array
    posterior: Float64Array
    means: Float64Array
    squares: Float64Array
    moved: Float64Array
    spread: Float64Array


class Scores:
    """Normal scores of features by their ranks in a reference, in units of their own spread there.

    A value beyond all others is as rare as one row of the reference, to either side: so it is where a feature has one
    value only, too.
    """

    def __init__(self, sample: Float64Array) -> None:
        width = sample.shape[1]
        self._ordered = np.sort(sample, axis=0)
        self._mean, self._spread = np.zeros(width), np.ones(width)
        beyond = np.full((1, width), np.inf)
        scores = self(np.concatenate([-beyond, self._ordered, beyond]))
        # Features without ties all have the same scores.
        kinds = {column.tobytes(): column for column in scores.T.copy()}
        place = {key: i for i, key in enumerate(kinds)}
        self._kind = np.array([place[column.tobytes()] for column in scores.T.copy()])
        different = np.column_stack(list(kinds.values()))
        mean, spread = different.mean(0), different.std(0)
        self._mean, self._spread = mean[self._kind], spread[self._kind]
        different = (different - mean) / spread
        self._means = Rates(different)
        # A feature of two values has no spread apart from its mean.
        inner = different[1:-1]
        two_values = ((inner == inner[0]) | (inner == inner[-1])).all(0)
        self._spreads = Rates(np.where(two_values, 0.0, different**2 - 1))

    def __call__(self, rows: Float64Array) -> Float64Array:
        """Scores (n, d) of rows (n, d)."""
        ranks = np.empty(rows.shape)
        for j, (column, own) in enumerate(zip(self._ordered.T, rows.T, strict=True)):
            ranks[:, j] = (np.searchsorted(column, own, "left") + np.searchsorted(column, own, "right")) / 2
        return np.asarray((special.ndtri((ranks + 0.5) / (len(self._ordered) + 1)) - self._mean) / self._spread)

    def rates(self, means: Float64Array) -> Float64Array:
        """How rare such means (..., d) of scores are, as a rate per observation."""
        return self._means(means, self._kind)

    def spread_rates(self, spreads: Float64Array) -> Float64Array:
        """The same for means of squares, less 1."""
        return self._spreads(spreads, self._kind)


class Rates:
    """sup_t (t mean - log E exp(t value)), for kinds of features with values (n, kinds).

    The square root is interpolated, which is exact for normal values.
    """

    def __init__(self, values: Float64Array) -> None:
        tilts = TILTS / np.maximum(values.std(0), np.finfo(np.float64).eps)[:, None]  # (kinds, tilts)
        self._means, self._roots = np.empty(tilts.shape), np.empty(tilts.shape)
        for k, tilt in enumerate(tilts.T):
            log = special.logsumexp(tilt * values, axis=0)
            self._means[:, k] = (np.exp(tilt * values - log) * values).sum(0)
            rate = tilt * self._means[:, k] - log + np.log(len(values))
            self._roots[:, k] = np.sign(tilt) * np.sqrt(np.maximum(rate, 0.0))

    def __call__(self, means: Float64Array, kinds: Int64Array) -> Float64Array:
        """Of means (..., d) of features of these kinds, (d,)."""
        roots = np.empty(means.shape)
        for kind in np.unique(kinds):
            own = kinds == kind
            roots[..., own] = np.interp(means[..., own], self._means[kind], self._roots[kind])
        return roots**2


def lengths(longest: int) -> Int64Array:
    """Lengths 1, 2, 3, ... up to the longest, growing by STEP at most once they are large."""
    chosen = [1]
    while chosen[-1] < longest:
        chosen.append(min(max(chosen[-1] + 1, int(chosen[-1] * STEP)), longest))
    return np.array(chosen)
