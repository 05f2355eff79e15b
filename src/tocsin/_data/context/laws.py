"""What is expected of one number given the context: where it is, how far it spreads, and how well that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.context.ridge import NONE, Chosen, Functions, Ridge

What = Literal["value", "level", "gap"]
"""A column's number, whether it holds a category, or whether it is missing."""

FARTHEST = 10.0
"""Spreads beyond which a value weighs in on expectations as if it were no further away."""

SMALLEST = 0.1
"""Of a typical residual, that is added to each before its logarithm is taken: a tiny one says little."""

MOST = 8.0
"""Of a squared residual, in spreads, that says how far others spread."""

LEAST_SHARE = 0.01
"""Of what is said to be impossible, or certain, given the context."""

QUARTILES_OF_NORMAL = 1.349

FARTHEST_RESIDUAL = 1e300
"""Spreads beyond which all are alike."""


@dataclass(frozen=True, eq=False)
class Law:
    """What one number is like given the context.

    column, what, level: which it is; the level of a category.
    places, weights: of the functions whose sum is expected.
    half: a square root of what is not known of the weights, in the units of `spread_weights`; (p, p), 0 above its
        diagonal.
    spread_places, spread_weights: of those whose sum is the logarithm of the spread.
    low, high: between which that lies in the reference.  scale: what spreads are multiplied by.
    typical: spread, over the reference.  explained: part of the variance, in stretches left out.
    probes, answers: where a regressor of the user's says what is expected: rows, and what it said of them.
    """

    column: str
    what: What
    level: str
    places: Int64Array
    weights: Float64Array
    half: Float64Array
    spread_places: Int64Array
    spread_weights: Float64Array
    low: float
    high: float
    scale: float
    typical: float
    explained: float
    probes: Float64Array = field(default_factory=lambda: np.zeros((0, 0)))
    answers: Float64Array = field(default_factory=lambda: np.zeros(0))

    @property
    def is_foreign(self) -> bool:
        """Whether a regressor of the user's says what is expected."""
        return len(self.answers) > 0

    @property
    def name(self) -> str:
        """What the number is called."""
        return {"value": self.column, "gap": f"{self.column} missing"}.get(self.what, f"{self.column}: {self.level}")


class Learned(NamedTuple):
    """A law, and what the reference is relative to it, as each stretch is to what the others say."""

    law: Law
    residuals: Float64Array


def learn(
    column: str,
    what: What,
    level: str,
    values: Float64Array,
    functions: Functions,
    foretold: Float64Array | None = None,
) -> Learned:
    """From the reference. Values may be missing (NaN), and residuals are then.

    foretold: what a regressor of the user's expects of each row, as it knows the other stretches.
    """
    there = np.flatnonzero(~np.isnan(values))
    functions, own = functions.some(there), values[there]
    centre, unit = _middle(own)
    moderate = (own - centre) / unit
    if what == "value":
        moderate = np.clip(moderate, -FARTHEST, FARTHEST)
    if foretold is not None:
        told = (foretold[there] - centre) / unit
        return _of_a_regressor(column, (own - centre) / unit, told, unit, functions, there, len(values))
    chosen = Ridge(functions, moderate).choose()
    explained = chosen.explained
    expected, unsure = _left_out(chosen, functions)
    if what == "value":
        spread = _spread((own - centre) / unit - expected, functions, [k != NONE for k in chosen.shrinkages])
        if len(spread.places) > 1:
            # Where values spread less, they say more of what is expected.
            equal = spread.logarithms - spread.logarithms.mean()
            weights = np.exp(-equal)
            chosen = Ridge(functions.weighed(weights), moderate * weights).choose(before=chosen)
            expected, unsure = _left_out(chosen, functions)
            spread = _fitted_to(_squared((own - centre) / unit - expected, spread), functions, spread.chosen)
    else:
        share = _of_share(expected * unit + centre, unit)
        spread = Spread(share, np.zeros(0, np.int64), np.zeros(0))
    logarithms = spread.logarithms
    error, usual = (own - centre) / unit - expected, float(np.exp(logarithms.mean()))
    relative = error / np.sqrt(np.exp(2 * logarithms) + usual**2 * unsure)
    places, weights = chosen.places, chosen.weights
    half: Float64Array = usual * np.linalg.cholesky(chosen.inverse).astype(np.float64)
    scale = _scale(relative) if what == "value" else 1.0
    residuals = np.full(len(values), np.nan)
    residuals[there] = relative / scale
    weights = weights * unit
    if len(weights):
        weights[0] += centre
    law = Law(
        column, what, level, places, weights, half, spread.places, spread.weights,
        float(logarithms.min()), float(logarithms.max()), float(scale * unit),
        float(np.median(np.exp(logarithms)) * scale * unit), explained,
    )  # fmt: skip
    return Learned(law, residuals)


def _of_a_regressor(
    column: str,
    values: Float64Array,
    expected: Float64Array,
    unit: float,
    functions: Functions,
    there: Int64Array,
    count: int,
) -> Learned:
    """The same for a column whose place a regressor of the user's foretells; in units."""
    error = values - expected
    spread = _spread(error, functions, [False] * (len(functions.terms) - 1))
    relative = error / np.exp(spread.logarithms)
    scale, residuals, nothing = _scale(relative), np.full(count, np.nan), np.zeros(0, np.int64)
    residuals[there] = relative / scale
    logarithms = spread.logarithms
    law = Law(
        column, "value", "", nothing, np.zeros(0), np.zeros((0, 0)), spread.places, spread.weights,
        float(logarithms.min()), float(logarithms.max()), float(scale * unit),
        float(np.median(np.exp(logarithms)) * scale * unit),
        1 - _size(error) / max(_size(values), 1e-300),
    )  # fmt: skip
    return Learned(law, residuals)


def _size(errors: Float64Array) -> float:
    """Mean of squares, those far out drawn in."""
    return float(np.mean(np.minimum(errors**2, FARTHEST**2)))


def _middle(values: Float64Array) -> tuple[float, float]:
    """A centre, and a unit that is no 0."""
    low, centre, high = np.percentile(values, [25, 50, 75])
    unit = (high - low) / QUARTILES_OF_NORMAL or values.std() or 1.0
    return float(centre), float(unit)


def _scale(relative: Float64Array) -> float:
    return _middle(relative)[1]


def _of_share(expected: Float64Array, unit: float) -> Float64Array:
    """The logarithm of the spread, in units, of what is 1 so often, and 0 else."""
    share = np.clip(expected, LEAST_SHARE, 1 - LEAST_SHARE)
    logarithm: Float64Array = np.log(share * (1 - share)) / 2 - np.log(unit)
    return logarithm


def _left_out(chosen: Chosen, functions: Functions) -> tuple[Float64Array, Float64Array]:
    """What is expected of each row by the other stretches, and the variance of that, as a part of the usual one."""
    own, fold = functions.rows[:, chosen.places], functions.folds
    expected, unsure = np.empty((2, len(own)))
    for k, (weights, inverse) in enumerate(zip(chosen.fold_weights, chosen.fold_inverses, strict=True)):
        mine = own[fold == k]
        expected[fold == k] = mine @ weights
        unsure[fold == k] = ((mine @ inverse) * mine).sum(1)
    return expected, unsure


class Spread(NamedTuple):
    """Logarithms of the spread of each row by the other stretches; places and weights of functions for new rows."""

    logarithms: Float64Array
    places: Int64Array
    weights: Float64Array
    chosen: Chosen | None = None


def _spread(error: Float64Array, functions: Functions, among: Sequence[bool]) -> Spread:
    """First by logarithms of errors, of which the far tails say little; then by a step towards what a normal law makes
    of squares, which is as sure with 40 % of the rows. Of pairs of columns, those that values themselves depend on."""
    small = SMALLEST * float(np.median(np.abs(error))) or 1e-12
    among = [chosen or k < functions.singles for k, chosen in enumerate(among)]
    spread = _fitted_to(np.log(error**2 + small**2) / 2, functions, among=among)
    return _fitted_to(_squared(error, spread), functions, among=among)


def _squared(error: Float64Array, spread: Spread) -> Float64Array:
    """What a normal law makes of squares, as numbers around the logarithm of the spread that is known so far."""
    relative = error / np.exp(spread.logarithms)
    squares = np.minimum((relative / _scale(relative)) ** 2, MOST)
    sizes: Float64Array = spread.logarithms + squares / squares.mean() / 2
    return sizes


def _fitted_to(
    sizes: Float64Array, functions: Functions, before: Chosen | None = None, among: Sequence[bool] | None = None
) -> Spread:
    middle = float(sizes.mean())
    chosen = Ridge(functions, sizes - middle).choose(among, before)
    weights = chosen.weights.copy()
    weights[0] += middle
    return Spread(_left_out(chosen, functions)[0] + middle, chosen.places, weights, chosen)
