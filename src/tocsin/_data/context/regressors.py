"""Regressors of the user's, such as scikit-learn has them, in the place of terms: where a column is expected to be.

One is cloned for each column, and for each stretch that is left out. No file holds it: it is given again when a
detector is loaded, and must answer as it did then.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tocsin._common.errors import InputError, Option, StorageError
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.context.basis import CYCLES
from tocsin._data.context.design import Design
from tocsin._data.tables import Table

PROBES = 32
"""Rows of the reference by which a regressor is known again."""

CLOSE = 1e-6
"""How far its answers may be from those that it gave, in spreads."""


class Regressor(Protocol):
    """What scikit-learn calls a regressor."""

    def fit(self, rows: Float64Array, wanted: Float64Array, /) -> object: ...

    def predict(self, rows: Float64Array, /) -> object: ...


def rows_of(design: Design, context: Table) -> Float64Array:
    """A known context as rows of numbers: a column for each number and each level; of times, points on circles."""
    parts = list[Float64Array]()
    for own in design.columns:
        values = context.columns[own.name]
        if own.kind == "category":
            parts += own.terms(values)
        elif own.kind == "number":
            parts.append(values.data[:, None])
        else:
            angles = [values.data % CYCLES[cycle] * (2 * np.pi / CYCLES[cycle]) for cycle in own.cycles]
            parts += [np.column_stack([np.cos(angle), np.sin(angle)]) for angle in angles]
    return np.column_stack(parts)


def fitted(given: object, column: str, rows: Float64Array, wanted: Float64Array, seed: int) -> Regressor:
    """A copy of what was given, that has learned; of several, the one for this column."""
    if isinstance(given, Mapping):
        if column not in given:
            raise InputError(Option("context_model", given), f" has no regressor for column {column!r}; give one.")
        given = given[column]
    if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "predict")):
        raise InputError(
            Option("context_model", given),
            f" is a {type(given).__name__}; it must be a regressor with fit(rows, values) and predict(rows), as "
            "scikit-learn has them, or one for each column, by name.",
        )
    if hasattr(given, "get_params"):
        fresh = importlib.import_module("sklearn.base").clone(given)
        seeds = [name for name, own in fresh.get_params().items() if name.endswith("random_state") and own is None]
        fresh.set_params(**dict.fromkeys(seeds, seed % 2**32))
    else:
        fresh = copy.deepcopy(given)
    fresh.fit(rows, wanted)
    regressor: Regressor = fresh
    return regressor


def answers_of(regressor: Regressor, rows: Float64Array, column: str) -> Float64Array:
    """A finite number for each row."""
    try:
        found: Float64Array = np.asarray(regressor.predict(rows), dtype=np.float64)
    except Exception as error:
        error.add_note(f"Raised while asking the regressor of column {column!r} (context_model).")
        raise
    if found.shape in ((len(rows),), (len(rows), 1)) and np.isfinite(found).all():
        return found.reshape(-1)
    raise InputError(
        Option("context_model"),
        f": for column {column!r} it gave an array of shape {found.shape} for {len(rows)} rows; it must give a finite "
        "number for each.",
    )


def left_out(
    given: object, column: str, rows: Float64Array, wanted: Float64Array, folds: Int64Array, seed: int
) -> tuple[Regressor, Float64Array]:
    """One that has learned from all rows with a value, and what those expect of each row that know not its stretch."""
    there, expected = ~np.isnan(wanted), np.full(len(wanted), np.nan)
    for fold in np.unique(folds[there]):
        own, others = there & (folds == fold), there & (folds != fold)
        expected[own] = answers_of(fitted(given, column, rows[others], wanted[others], seed), rows[own], column)
    return fitted(given, column, rows[there], wanted[there], seed), expected


def must_answer(given: object, column: str, probes: Float64Array, answers: Float64Array, unit: float) -> Regressor:
    """The regressor of a column, if it is the one that a detector was fitted with."""
    if given is None:
        raise StorageError(
            "The detector was made with regressors, which no file can hold. Load it with them, as they were fitted: "
            "Detector.load(path, context_model=...), where a detector that was just fitted has intake_.models."
        )
    own = given.get(column) if isinstance(given, Mapping) else None
    if own is None or not hasattr(own, "predict"):
        raise InputError(
            Option("context_model", given), f" must be fitted regressors by column, and has none for {column!r}."
        )
    if not np.allclose(answers_of(own, probes, column), answers, rtol=0, atol=CLOSE * unit):
        raise InputError(
            Option("context_model"),
            f": the regressor of column {column!r} does not answer as it did when the detector was fitted. Give the "
            "one that it was fitted with.",
        )
    regressor: Regressor = own
    return regressor
