"""Are explanations right? Onsets and their intervals, columns that moved, and columns that did not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from tocsin._common.errors import DependenceWarning
from tocsin._compute.arrays import Array, Int64Array
from tocsin._data.validation import DEFAULT_WINDOWS
from tocsin._detector.base import fitted_of
from tocsin._detector.detector import Detector
from tocsin._experiments import changes, laws
from tocsin._experiments.alarms import Alarm, alarms_after_changes, false_alarms
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._experiments.changes import Change
from tocsin._experiments.explanations_report import draw
from tocsin._experiments.laws import Law
from tocsin._explain.columns import ColumnTest
from tocsin._explain.contributions import column_contributions
from tocsin._explain.kernel import gaussian
from tocsin._explain.onset import find_onset
from tocsin._samplers import Independent

POINTS, ERT = 1000, 1000
ERROR = 0.05
"""Monte Carlo error to calibrate to: explanations do not depend on a threshold's last digits."""

REFERENCES, ALARMS = 5, 40
"""References of each kind, each with a fit of its own, and alarms of each."""

QUIET_REFERENCES, FALSE_ALARMS = 12, 200

CHANGES: dict[str, Change] = laws.PROBLEMS | changes.SEEN | changes.UNSEEN

LAWS: dict[str, Law] = {"normal": changes.normal(changes.COLUMNS), "t4": changes.student, "factors": changes.factors}

MOVES = (
    (1, 1.0),
    (1, 2.0),
    (1, 4.0),
    (3, 0.75),
    (3, 1.5),
    (3, 3.0),
    (10, 0.5),
    (10, 1.0),
    (10, 2.0),
    (10, 4.0),
    (10, 8.0),
)
"""How many columns move, and by how many standard deviations."""

LATER = 25
"""Rows after the alarm with which columns are looked at once more."""

QUIET: dict[str, tuple[Law, Int64Array]] = {
    **{name: (law, np.arange(changes.COLUMNS)) for name, law in LAWS.items()},
    "pump": (changes.pump(0.9), np.arange(2)),
    "table": (changes.table, changes.TABLE_COLUMNS),
}
"""Laws without a change, and the columns that features belong to."""


def fitted(law: Law, rng: np.random.Generator, window: int | None) -> Detector:
    """A detector, cold, whose reference is from this law."""
    detector = Detector(
        ERT, window=window, sampler=Independent(), interval=False, start="cold", error=ERROR,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DependenceWarning)  # one reference in a hundred, by chance
        return detector.fit(law(rng, POINTS), workers=1, progress=False)


def column_test(detector: Detector, groups: Int64Array) -> ColumnTest:
    """As `Detector.explain` has it."""
    known = fitted_of(detector)
    assert known.rang is not None
    return ColumnTest(known.reference, groups, known.rang, seed=known.seed)


@dataclass(frozen=True)
class Onsets(Unit):
    """One reference, and the onsets of changes that were found."""

    change: str
    window: int
    alarms: int
    number: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "onsets", self.change, self.window, self.number)
        before, after = CHANGES[self.change]
        detector = fitted(before, rng, self.window or None)
        found, share = alarms_after_changes(detector, before, after, rng, self.alarms)
        rows = []
        for alarm in found:
            width = alarm.channel.width
            assert width is not None
            began = find_onset(alarm.recent, detector.reference_, gaussian(width), alarm.channel.window)
            rows.append([alarm.delay, *(place - alarm.onset for place in (began.estimate, began.low, began.high))])
        return {"rows": np.array(rows).reshape(-1, 4), "share": np.array([share])}


@dataclass(frozen=True)
class Moves(Unit):
    """One reference, and alarms after the first columns moved."""

    law: str
    columns: int
    shift: float
    alarms: int
    number: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "moves", self.law, self.columns, str(self.shift), self.number)
        before = LAWS[self.law]
        after = changes.moved(before, self.shift, self.columns)
        detector = fitted(before, rng, None)
        test = column_test(detector, np.arange(changes.COLUMNS))
        found, share = alarms_after_changes(detector, before, after, rng, self.alarms, LATER)
        return {"rows": np.array([self._ranked(detector, test, alarm) for alarm in found]), "share": np.array([share])}

    def _ranked(self, detector: Detector, test: ColumnTest, alarm: Alarm) -> list[float]:
        first, later = test(alarm.recent), test(np.concatenate([alarm.recent, alarm.later]))
        parts = column_contributions(alarm.channel, alarm.recent, detector.reference_, np.arange(changes.COLUMNS))
        # As well as can be, if the onset is known and that nothing but means moved.
        since = alarm.recent[alarm.onset :].mean(0) - detector.reference_.mean(0)
        reported = first.changed
        return [
            alarm.delay,
            first.order[0] < self.columns,
            self._ahead(first.order),
            self._ahead(np.argsort(-parts.columns)),
            self._ahead(np.argsort(-np.abs(since))),
            self._ahead(later.order),
            np.mean(first.order[: self.columns] < self.columns),
            np.sum(reported < self.columns) / self.columns,
            np.any(reported >= self.columns),
        ]

    def _ahead(self, order: Array) -> bool:
        """Whether those that moved are all ahead of all others."""
        return bool((order[: self.columns] < self.columns).all())


@dataclass(frozen=True)
class Unmoved(Unit):
    """One reference, and alarms in which no column changed on its own: false ones, or after a lost correlation."""

    law: str
    together: bool
    alarms: int
    number: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "unmoved", self.law, int(self.together), self.number)
        law, groups = QUIET[self.law]
        detector = fitted(law, rng, None)
        test = column_test(detector, groups)
        if self.together:
            found, _ = alarms_after_changes(detector, law, changes.pump(0.0), rng, self.alarms)
        else:
            found = false_alarms(detector, law, rng, self.alarms)
        return {"reported": np.array([len(test(alarm.recent).changed) > 0 for alarm in found])}


ONSET_COLUMNS = ("delay", "error", "low", "high")
MOVE_COLUMNS = (
    "delay", "first", "all_ahead", "by_contribution", "known_onset", "all_ahead_later", "precision", "reported",
    "wrongly",
)  # fmt: skip


def measure(options: Options, perform: Perform) -> Tables:
    """A row per alarm after a change; a row per reference without one."""
    references, alarms, fewer, quiet = (1, 16, 1, 40) if options.quick else (
        REFERENCES, ALARMS, QUIET_REFERENCES, FALSE_ALARMS,
    )  # fmt: skip
    windows = {change: (0, 25, 50) if change in laws.PROBLEMS else (0,) for change in CHANGES}
    onsets = [
        Onsets(change, window, alarms, number, options.seed)
        for number in range(references)
        for change, own in windows.items()
        for window in own
    ]
    some_laws = ("normal",) if options.quick else tuple(LAWS)
    moves = [
        Moves(law, columns, shift, alarms, number, options.seed)
        for number in range(references)
        for law in some_laws
        for columns, shift in MOVES
    ]
    unmoved = [
        Unmoved(law, together, quiet, number, options.seed)
        for number in range(fewer)
        for law, together in [*((law, False) for law in QUIET), ("pump", True)]
    ]
    tables: Tables = {"onsets": [], "moves": [], "unmoved": []}
    for one, result in zip(onsets, perform("onsets", onsets), strict=True):
        about: Row = {"change": one.change, "window": one.window or DEFAULT_WINDOWS[-1]}
        about |= {"default": int(not one.window), "number": one.number, "found": _short(result["share"][0])}
        tables["onsets"] += _rows(about, ONSET_COLUMNS, result)
    for two, result in zip(moves, perform("columns that moved", moves), strict=True):
        about = {"law": two.law, "columns": two.columns, "shift": two.shift, "number": two.number}
        about |= {"found": _short(result["share"][0])}
        tables["moves"] += _rows(about, MOVE_COLUMNS, result)
    for three, result in zip(unmoved, perform("columns that did not", unmoved), strict=True):
        tables["unmoved"].append(
            {
                "law": "pump, correlation lost" if three.together else three.law,
                "number": three.number,
                "alarms": len(result["reported"]),
                "reported": int(result["reported"].sum()),
            }
        )
    return tables


def _rows(about: Row, names: tuple[str, ...], result: Result) -> list[Row]:
    return [about | {name: _short(value) for name, value in zip(names, row, strict=True)} for row in result["rows"]]


def _short(value: float) -> float:
    return round(float(value), 3)


EXPLANATIONS = Experiment(
    "explanations: onsets, columns that moved, and columns that did not",
    ("onsets", "moves", "unmoved"),
    measure,
    draw,
    has_figures=False,
)
