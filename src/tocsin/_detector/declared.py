"""What files hold: the classes, and what the fields of each must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_args

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.plan import Mode, References
from tocsin._calibration.rehearsal import Rehearsal
from tocsin._calibration.result import Calibration
from tocsin._calibration.tail import RateCurve, Tail
from tocsin._calibration.uncertainty import Errors
from tocsin._data.intake import Objects, Represented, Rows, Tabular
from tocsin._data.tables import Column, Columns
from tocsin._data.tables.column import ALLOWED
from tocsin._data.tables.table import Holds
from tocsin._detector import declared_context
from tocsin._detector.schema import (
    Array,
    Choice,
    Many,
    Maybe,
    Number,
    Of,
    Record,
    Rule,
    Whole,
    Wrong,
    must,
    text,
    truth,
)
from tocsin._detector.steps import representation
from tocsin._power.result import Kind as KindOfChange
from tocsin._power.result import Power, Remedy, SimulatedChange
from tocsin._samplers import Blocks, Independent
from tocsin._state.outcomes import Outcome
from tocsin._statistics import LSDD, MMD, Custom, Landmarks, MeanShift, Views
from tocsin._statistics.base import Channel
from tocsin._statistics.kernels import Gaussian

T = TypeVar("T")

LEAST, MOST = 1e-150, 1e150
"""Scales, and what they measure: their ratios are finite."""

POSITIVE = Number(least=1e-290, most=1e290)
SHARE = Number(0.0, 1.0)
ERROR = Number(-1e70, 1e70, infinite=True)
"""Its fourth power is a number. One that chance makes less than nothing is kept as it is."""

DELAY = Number(1.0, infinite=True)
"""In observations; infinite for what is not found."""

LOG_RATE = Number(-600.0, 50.0)
"""Its exponential is a number, a long way into the tail too."""


def must_be_given(value: object, at: str) -> None:
    """A function, which no file can hold."""
    raise Wrong(at, value, "given when the file is loaded: no file can hold a function")


def settings(value: object, at: str) -> None:
    """Numbers of a statistic's options; `check` says the rest."""
    numbers: object = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    (Many(Number()) if isinstance(numbers, list | tuple) else Number())(numbers, at)


THRESHOLDS: Mapping[str, Rule] = {
    "ert": Number(1.0),
    "thresholds": Array("f8", (None,), -MOST, MOST),
    "seconds": Number(0.0),
    "curve": Maybe(Of((RateCurve,))),
}
"""Of every kind of thresholds."""

FIELDS: dict[type[Any], Mapping[str, Rule]] = {
    Blocks: {"length": Maybe(Whole(1)), "guard": Maybe(Whole())},
    Calibration: {
        **THRESHOLDS,
        "mode": Choice(get_args(Mode)),
        "guarantee": Maybe(SHARE),
        "nominal": Number(1.0),
        "simulated": Number(0.0),
        "centre": Number(),
        "errors": Maybe(Of((Errors,))),
        "paths": Whole(1),
        "tests": Whole(1),
        "alarms": Number(0.0),
        "references": Choice(get_args(References)),
        "copies": Whole(),
        "compared": Whole(1),
        "block": Whole(1),
        "guard": Whole(),
        "dependence": Maybe(SHARE),
        "rehearsal": Maybe(Of((Rehearsal,))),
    },
    Channel: {
        "statistic": text,
        "window": Whole(2),
        "width": Maybe(POSITIVE),
        "view": Maybe(text),
        "column": Maybe(text),
    },
    Column: {
        "name": text,
        "holds": Choice(get_args(Holds)),
        "kind": Choice(("number", "category", "time", "elapsed", "text")),
        "missing": SHARE,
        "centre": Number(),
        "spread": POSITIVE,
        "weight": Number(1e-30, 1.0),
        "values": Many(text, distinct=True),
        "corners": truth,
    },
    Columns: {"columns": Many(Of((Column,)), least=1), "ignored": Many(text)},
    Custom: {"function": must_be_given, "label": text},
    Errors: dict.fromkeys(("simulation", "law", "reference", "tail"), ERROR)
    | {"law_freedom": Number(1e-30, 1e300, infinite=True)},
    Gaussian: {"width": Maybe(settings), "factors": settings},
    Independent: {},
    LSDD: {"centres": Maybe(Whole(1)), "width": Maybe(POSITIVE), "regularisation": Maybe(POSITIVE)},
    Landmarks: {"count": Whole(1)},
    MMD: {"kernel": Maybe(Of((Gaussian,))), "approximation": Maybe(Of((Landmarks,)))},
    MeanShift: {"direction": Maybe(settings)},
    Normaliser: {
        "centre": Array("f8", (None,), -MOST, MOST),
        "scale": Array("f8", (None,), LEAST, MOST),
        "tie": Number(0.0, MOST),
        "grid": Number(0.0, MOST),
        "origin": Number(-MOST, MOST),
    },
    Objects: {},
    Outcome: {
        "time": Whole(1),
        "alarm": truth,
        "statistic": Number(nan=True),
        "threshold": Number(nan=True),
        "rarity": Number(0.0, nan=True, infinite=True),
        "channel": Maybe(Of((Channel,))),
        "unseen": truth,
        "learning": truth,
    },
    Power: {
        "changes": Many(Of((SimulatedChange,))),
        "ert": Number(1.0),
        "horizon": Whole(),
        "trials": Whole(),
        "chance": SHARE,
        "rows": Choice(("stretches", "recordings", "draws")),
        "columns": Whole(),
        "tried": Many(text, distinct=True),
        "not_simulated": Many(text),
        "advice": Many(text),
        "would_help": Many(Of((Remedy,))),
    },
    RateCurve: {
        "values": Array("f8", (None,), -MOST, MOST),
        "log_rates": Array("f8", (None,), LOG_RATE.least, LOG_RATE.most),
        "tail": Of((Tail,)),
    },
    Rehearsal: {
        "rows": Whole(1),
        "once_in": Number(1.0),
        "passed": Whole(),
        "expected": Number(0.0),
        "spread": Number(0.0),
        "wandering": Many(text, distinct=True),
        "unforeseen": Number(0.0),
        "recordings": Maybe(Whole(1)),
        "recordings_to_halve": Maybe(Whole(1)),
    },
    Remedy: {
        "kind": Choice(get_args(KindOfChange)),
        "column": Maybe(text),
        "size": Maybe(Number(0.0)),
        "ert": Maybe(Number(1.0)),
        "rows": Maybe(Whole()),
    },
    SimulatedChange: {
        "kind": Choice(get_args(KindOfChange)),
        "column": Maybe(text),
        "size": Maybe(Number(0.0)),
        "amount": Maybe(Number(infinite=True)),
        "share": SHARE,
        "delay": DELAY,
        "low": DELAY,
        "high": DELAY,
    },
    Represented: {"parts": representation},
    Rows: {"width": Whole(1), "labels": Many(text, distinct=True)},
    Views: {},
    Tabular: {"columns": Of((Columns,))},
    Tail: {
        "start": Number(-MOST, MOST),
        "log_rate": LOG_RATE,
        "scale": Number(0.0, MOST),
        "shape": Number(-1.0, 1.0),
        "errors": Array("f8", (2, 2), infinite=True),
    },
    **declared_context.FIELDS,
}


def storable(**rules: Rule) -> Callable[[type[T]], type[T]]:
    """Let files hold objects of this dataclass, whose fields keep these rules; decorates it."""

    def declare(kind: type[T]) -> type[T]:
        FIELDS[kind] = {**THRESHOLDS, **rules}
        return kind

    return declare


def made(name: object, values: dict[str, Any], at: str) -> object:
    """The object of the class of this name with these fields, once they have been looked at."""
    kind = next((kind for kind in FIELDS if kind.__name__ == name), None)
    if kind is None:
        raise Wrong(at, name, "a class that files can hold")
    defaults = {own.name for own in fields(kind) if own.default is not MISSING}
    Record(FIELDS[kind], frozenset(defaults))(values, at)
    together = TOGETHER.get(kind)
    built: object = kind(**values)
    if together is not None:
        together(built, at)
    return built


def _rows(rows: Rows, at: str) -> None:
    labels = len(rows.labels)
    must(labels in (0, rows.width), at, f"of {labels} labels", "given a label for each column, or none")


def _column(column: Column, at: str) -> None:
    must(column.kind in ALLOWED[column.holds], at, column.kind, "a kind that its values can be taken for")


def _columns(columns: Columns, at: str) -> None:
    names = [column.name for column in columns.columns]
    must(len(set(names)) == len(names), at, names, "without a name that comes twice")


def _normaliser(normaliser: Normaliser, at: str) -> None:
    must(normaliser.centre.shape == normaliser.scale.shape, at, normaliser, "given a centre and a scale per channel")


def _curve(curve: RateCurve, at: str) -> None:
    values, rates = curve.values, curve.log_rates
    must(len(values) > 0 and values.shape == rates.shape, at, values.shape, "points of a curve, one at least")
    falls = (values[1:] >= values[:-1]).all() and (rates[1:] <= rates[:-1]).all() and values[-1] <= curve.tail.start
    must(bool(falls), at, curve, "a curve that falls, up to where its tail starts")
    must(curve.tail.scale > 0, at, curve.tail.scale, "given a tail of some scale")


def _power(power: Power, at: str) -> None:
    names = {change.column for change in power.changes} - {None}
    must(names <= set(power.tried), at, sorted(map(str, names)), "of changes of columns that were tried")
    helped = {remedy.column for remedy in power.would_help} - {None}
    must(helped <= names, at, sorted(map(str, helped - names)), "about changes that were tried")
    must(power.trials > 0 or not power.changes, at, power.trials, "of some trials, if it tells of changes")


def _calibration(calibration: Calibration, at: str) -> None:
    must(len(calibration.thresholds) > 0, at, calibration.thresholds, "given a threshold at least")


TOGETHER: dict[type[Any], Callable[[Any, str], None]] = {
    Calibration: _calibration,
    Column: _column,
    Columns: _columns,
    Normaliser: _normaliser,
    Power: _power,
    RateCurve: _curve,
    Rows: _rows,
    **declared_context.TOGETHER,
}
"""What the fields of a class must be to each other."""
