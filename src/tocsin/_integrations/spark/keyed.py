"""The keys of one bucket: their rows and states in, their states, alarms and refused rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tocsin._compute.arrays import Int64Array
from tocsin._integrations.spark.observations import Layout, rows_of
from tocsin._integrations.spark.shipping import Detectors
from tocsin._streams.fleet import Fleet, FleetAlarm

ANSWER = (
    "kind string, key string, order long, count long, run long, time long, statistic double, threshold double, "
    "rarity double, channel string, explanation string, reason string, message string, row string"
)
"""Columns of what `watch` and `history` return."""

Answer = dict[str, str | float | None]
"""A row of these; columns that it lacks are null."""

NAMES = [column.split()[0] for column in ANSWER.split(", ")]
NO_DETECTOR = (
    "No detector was fitted for this key. Fit one with tocsin.integrations.spark.fit, or put its file into the folder."
)


@dataclass(frozen=True)
class Keyed:
    """How rows of a bucket are watched."""

    detectors: Detectors
    layout: Layout

    def step(
        self, bundles: Sequence[bytes], states: dict[str, bytes], changes: dict[str, bytes] | None = None
    ) -> list[Answer]:
        """Watch the rows of a bucket; what there is to tell.

        `states` change in place; `changes`, if given, come to hold what is new in them.
        """
        answers: list[Answer] = []
        table = self._nameable(rows_of(bundles), answers)
        encoded = table["key"].combine_chunks().dictionary_encode()
        keys, owner = encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)
        for fleet, members in self.detectors.fleets(keys):
            named = [keys[k] for k in members]
            rows = table if len(named) == len(keys) else table.filter(pa.array(np.isin(owner, members)))
            if fleet is None:
                answers += [self._refused(rows, i, "no detector", NO_DETECTOR) for i in range(len(rows))]
                continue
            place = np.empty(len(keys), np.int64)
            place[members] = np.arange(len(members))
            owners = owner if rows is table else place[owner[np.isin(owner, members)]]
            self._advance(fleet, named, rows, owners, states, changes, answers)
        return answers

    def _advance(
        self,
        fleet: Fleet,
        keys: list[str],
        rows: pa.Table,
        owner: Int64Array,
        states: dict[str, bytes],
        changes: dict[str, bytes] | None,
        answers: list[Answer],
    ) -> None:
        batch, wrong = self.layout.observations(rows)
        resets = rows["reset"].to_numpy() if self.layout.reset is not None else None
        known, orders = [states.get(key) for key in keys], rows["order"].to_numpy()
        step = fleet.step(keys, known, batch, owner, orders, resets, changes=changes is not None)
        states.update(zip(keys, step.states, strict=True))
        if changes is not None:
            changes.update(zip(keys, step.changes, strict=True))
        answers += map(_told, step.alarms)
        answers += [
            self._refused(
                rows, each.row, each.reason, wrong.get(each.row, each.message) if each.reason == "bad" else each.message
            )
            for each in step.refused
        ]

    def _nameable(self, table: pa.Table, answers: list[Answer]) -> pa.Table:
        """Rows that have a key and an order."""
        for name in ("key", "order"):
            missing = pc.is_null(table[name])
            if pc.any(missing).as_py():
                lacking = table.filter(missing)
                message = f"The row has no {name}; without one its place in a stream is unknown."
                answers += [self._refused(lacking, i, "bad", message) for i in range(len(lacking))]
                table = table.filter(pc.invert(missing))
        return table

    def _refused(self, table: pa.Table, place: int, reason: str, message: str) -> Answer:
        return {
            "kind": "refused",
            "key": table["key"][place].as_py(),
            "order": table["order"][place].as_py(),
            "reason": reason,
            "message": message,
            "row": self.layout.row(table, place),
        }


def table_of(answers: list[Answer]) -> pd.DataFrame:
    """As Spark takes them."""
    # As objects: pandas would make texts of its own, which Spark cannot read.
    return pd.DataFrame(answers, columns=NAMES, dtype=object)


def _told(alarm: FleetAlarm) -> Answer:
    return {
        "kind": "alarm",
        "key": alarm.key,
        "order": alarm.order,
        "count": alarm.count,
        "run": alarm.run,
        "time": alarm.time,
        "statistic": alarm.statistic,
        "threshold": alarm.threshold,
        "rarity": alarm.rarity,
        "channel": str(alarm.channel),
        "explanation": None if alarm.explanation is None else alarm.explanation.to_json(),
    }
