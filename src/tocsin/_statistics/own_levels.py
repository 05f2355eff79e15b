"""Streams that are watched relative to their own first rows: machines, patients and days have levels of their own.

Of a new stream the first rows are its baseline. Until it is whole, the stream is compared with what all recordings of
the reference have been, together: it is heard in units of the columns, and of what recordings differ by. Then it gets a
level, the median of the baseline, and a spread of its own: that of the baseline drawn towards the usual one, as far as
spreads of the reference's first rows did not foretell those of the rows after them. From then on it is heard in these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._statistics.base import WindowState
from tocsin._statistics.view_model import INTERQUARTILE, LEAST_QUARTILES, SMALLEST, SOFT, Model, Spans
from tocsin._statistics.view_streams import Ear, Loudest, Pace, as_kept, begun, latest, watch

LEAST_OWN = 0.05
"""What a stream's own spread is at least, in the usual one: a column that stands still in a baseline may move later."""

FEW = 10
"""Recordings by which a column's share is known as well as by what the other columns say."""


@dataclass(frozen=True, eq=False)
class OwnLevels:
    """How streams get levels of their own, and are heard before they have them.

    share: of each column, the part of a baseline's log spread that counts.  typical: the rest of a stream's log spread.
    middle, unit: of channels of streams that have no level of their own yet, as in `ViewsLive`.
    scale: running scales with which streams go on from their baselines.
    """

    share: Float64Array
    typical: Float64Array
    middle: Float64Array
    unit: Float64Array
    scale: Float64Array

    @classmethod
    def learn(cls, recordings: Sequence[Float64Array], baseline: int, channels: int) -> OwnLevels:
        """From rows (n, d) of recordings, in units of the columns; what is heard of them is found by rehearsal.

        What baselines foretell of the spread of the rows after them is the part that both have in common (variance
        components); that of a column is known badly where there are few recordings, and drawn towards that of all.
        """
        first, later = (
            np.array([log_spreads(hard(part)) for part in parts])
            for parts in zip(*((own[:baseline], own[baseline:]) for own in recordings), strict=True)
        )
        common = ((first - first.mean(0)) * (later - later.mean(0))).mean(0)
        each = np.clip(common / np.maximum(first.var(0), SMALLEST), 0.0, 1.0)
        known = len(first) / (len(first) + FEW)
        share, ones = known * each + (1 - known) * float(np.median(each)), np.ones(channels)
        return cls(share, later.mean(0) - share * first.mean(0), 0 * ones, ones, ones)

    def of(self, rows: Float64Array) -> Float64Array:
        """Level and spread that a baseline gives, in units of the columns; of its rows as streams keep them."""
        first = hard(rows)
        return np.stack([np.median(first, axis=0), np.exp(self.typical + self.share * log_spreads(first))])

    def ear(self, model: Model, level: float, pace: Pace) -> Ear:
        """What streams are heard with that have no level of their own yet."""
        return Ear.of(model, self.middle, self.unit, level, pace)


def hard(rows: Float64Array) -> Float64Array:
    """Rows in units of their columns' spread, what is far out not as its logarithm."""
    found: Float64Array = SOFT * np.sinh(rows / SOFT)
    return found


def soft(rows: Float64Array) -> Float64Array:
    """What is far out as its logarithm."""
    found: Float64Array = SOFT * np.arcsinh(rows / SOFT)
    return found


def relative(rows: Float64Array, own: Float64Array) -> Float64Array:
    """Rows in units of their columns' spread, as rows in units of a stream's own."""
    return soft((hard(rows) - own[0]) / own[1])


def log_spreads(rows: Float64Array) -> Float64Array:
    """Logarithms of the spreads of columns, which may stand still; in units of the columns."""
    quartiles, deviation = np.percentile(rows, [25, 75], axis=0), rows.std(0)
    spread = (quartiles[1] - quartiles[0]) / INTERQUARTILE
    found: Float64Array = np.log(
        np.maximum(np.where(spread > LEAST_QUARTILES * deviation, spread, deviation), LEAST_OWN)
    )
    return found


class Sounds(NamedTuple):
    """What views hear of a recording, row by row: (rows, channels).

    before: of its baseline, by what all recordings have in common.  after: from one widest window before the end of the
    baseline on, relative to that.
    """

    before: Float64Array
    after: Float64Array


def sounds(own: OwnLevels, model: Model, rows: Float64Array, compute: Functions) -> Sounds:
    """Of rows of a recording in units of the columns. Those before the first are taken to be at its level."""
    spans = model.spans
    nothing, after = np.zeros((spans.history, model.width)), relative(rows, own.of(as_kept(rows[: spans.own])))
    heard = model.channels(np.concatenate([nothing, after]), compute)
    before = model.channels(np.concatenate([nothing, rows[: spans.own]]), compute)
    return Sounds(before, heard[spans.own - spans.widest :])


def long_enough(edges: Int64Array, spans: Spans) -> list[tuple[int, int]]:
    """Beginnings and ends of the recordings from which anything can be learnt."""
    ends = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [(start, stop) for start, stop in ends if stop - start > spans.own + spans.widest]


def left(state: WindowState, streams: Int64Array | slice) -> Int64Array:
    """Rows that these streams have to wait for until their baselines are whole."""
    found: Int64Array = np.maximum(-state["clock"][streams, 1], 0)
    return found


def learning(state: WindowState) -> bool:
    """Whether any of these streams waits for its baseline."""
    clock = state["clock"]
    return bool(clock[0, 1] < 0 if len(clock) == 1 else (clock[:, 1] < 0).any())


def new_stream(own: OwnLevels, model: Model, ear: Ear, compute: Functions) -> WindowState:
    """Of one stream of which nothing is known."""
    state = begun(np.zeros((1, model.width)), np.ones(len(own.unit)), ear, model.spans, compute)
    state["clock"][0, 1] = -model.spans.own
    return state | {"own": ear.usual.copy()}


def settle(own: OwnLevels, model: Model, ear: Ear, state: WindowState, s: int, compute: Functions) -> None:
    """Let a stream, whose baseline is whole, be heard relative to it from now on. ear: for those."""
    spans = model.spans
    rows = latest(state, s, spans.own)
    found = own.of(rows)
    after = begun(as_kept(relative(rows, found)), own.scale, ear, spans, compute)
    after["clock"][0] = max(int(state["clock"][s, 0]), 0), spans.widest
    after["own"] = found[None]
    for name, part in after.items():
        if name != "loud":
            state[name][s] = part[0]


def watch_from_new(
    own: OwnLevels,
    model: Model,
    ears: tuple[Ear, Ear],
    level: float,
    compute: Functions,
    state: WindowState,
    points: Float64Array,
    streams: Int64Array,
    first: Int64Array,
    last: Int64Array,
    pieces: slice,
    found: Loudest,
    out: Float64Array,
    *,
    halt: bool,
) -> None:
    """`watch` of streams, some of which may have no level of their own yet. ears: for these, and for others."""
    places = np.arange(pieces.start, pieces.stop)
    wait = left(state, streams[places])
    learning = places[(wait > 0) & (last[places] > first[places])]
    if len(learning):
        own_streams, start = streams[learning], first[learning]
        planned = np.minimum(last[learning], start + left(state, own_streams))
        until = planned.copy()
        watch(
            compute, ears[0], state, points, own_streams, start, until, slice(0, len(learning)), found, out, halt=halt
        )
        for s in own_streams[state["clock"][own_streams, 1] == 0].tolist():
            settle(own, model, ears[1], state, s, compute)
        first = first.copy()
        first[learning] = until
        if halt:
            rang = found.best[until - 1] > level
            last[learning[rang]] = until[rang]
    watch(compute, ears[1], state, points, streams, first, last, pieces, found, out, halt=halt)
