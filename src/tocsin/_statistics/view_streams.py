"""What is kept of streams that are heard by views, and what they are heard with; one stream or many.

A stream's rows are kept in whole numbers, all digits of the latest and the coarse ones of those before; see
`_compute.numpy_view_streams`. Everything else about its windows follows from them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._compute.numpy_view_streams import COARSE, FARTHEST, LOUDEST, QUANTA, off
from tocsin._statistics.base import WindowState
from tocsin._statistics.view_model import FLOOR, LAGS, SOFT, Model, Spans

COARSEST = int(FARTHEST * QUANTA / COARSE)
"""Of rows, in coarse digits."""

EXACT = 2.0**53
"""Whole numbers up to this are floats."""

NO_CHANNELS = np.empty((0, 0))
"""Where channels are not asked for one by one."""

SETTLING, LAST = 2.0, 0.6
"""Rows of the past in which running scales settle: in their memories, and as a part of the reference."""

FOLLOWS = "sums"
"""What of a stream's state follows from the rest, and is not kept."""


class Pace(NamedTuple):
    """How running scales follow.

    memory: rows over which they forget.  attack: an alarm, and the rows after it, raise them until so many times the
    squared level is quiet.  cap: levels up to which a square counts.  early, fade: by how much more a stream must be
    loud to ring at first, and rows after which that has passed.
    """

    memory: float
    attack: float
    cap: float
    early: float
    fade: float


class Places(NamedTuple):
    """Rows of which coarse digits are kept, and of which all are: those that a step has part in, and the new one.

    And those from which a stream's own level is learnt.
    """

    coarse: int
    whole: int

    @classmethod
    def of(cls, spans: Spans) -> Places:
        coarse, whole = 2 * spans.widest + spans.gap + spans.base + 1, 2 * spans.widest + LAGS + 1
        return cls(max(coarse, spans.own), max(whole, spans.own))


class Ear(NamedTuple):
    """What hot functions hear a stream with, in their order; see `numpy_view_streams.view_watch`."""

    columns: Float64Array
    chosen: Int64Array
    axes: Float64Array
    lags: Float64Array
    windows: Int64Array
    base: int
    gap: int
    units: Float64Array
    shares: Float64Array
    pace: Float64Array
    usual: Float64Array

    @classmethod
    def of(cls, model: Model, middle: Float64Array, unit: Float64Array, level: float, pace: Pace) -> Ear:
        spans, d = model.spans, model.width
        each, moved = 1 / (QUANTA * spans.windows[:, None]), 1 / (QUANTA * spans.base * spans.windows[:, None])
        level_, error, change, moving = model.sizes
        means = [each / level_, each / error, each / change, moved / moving, np.full((2, d), 0.5)]
        units = np.stack([np.concatenate([part.ravel() for part in means]) / unit, middle / unit])
        shares = np.stack([1 / (QUANTA * error), error * 0, 1 / (QUANTA * change), change * 0])
        shares[1], shares[3] = shares[0] ** 2, shares[2] ** 2
        lags = model.lags.copy()
        lags[0] *= QUANTA
        largest = min((pace.cap * level) ** 2, LOUDEST)
        rule = [SOFT, FLOOR, most_of(spans), level, 1 / pace.memory, pace.attack, largest, pace.early, pace.fade]
        return cls(
            np.stack([model.centre, model.spread]), model.chosen, model.axes, lags, spans.windows, spans.base,
            spans.gap, units, shares / spans.widest, np.array(rule),
            np.stack([np.zeros((1, d)), np.ones((1, d))], axis=1),
        )  # fmt: skip

    def put(self, compute: Functions) -> Ear:
        """The same where streams are stepped."""
        columns, chosen, axes, lags, windows, base, gap, units, shares, pace, usual = self
        put = compute.put
        return Ear(
            put(columns), put(chosen), put(axes), put(lags), put(windows), base, gap, put(units), put(shares),
            put(pace), put(usual),
        )  # fmt: skip


class Loudest(NamedTuple):
    """Of each point, how loud its loudest channel was, NaN while its stream is silent; and which that is."""

    best: Float64Array
    which: Int64Array

    @classmethod
    def of(cls, count: int) -> Loudest:
        """Of so many points, to be found."""
        return cls(np.empty(count), np.empty(count, np.int64))

    def put(self, compute: Functions) -> Loudest:
        """The same where streams are stepped."""
        return Loudest(compute.put(self.best), compute.put(self.which))


def settling(count: int, memory: float) -> int:
    """Rows of the past in which running scales settle, of so many."""
    return min(int(LAST * count), int(SETTLING * memory))


def most_of(spans: Spans) -> float:
    """Of an error or a change, in whole numbers: the sum of its squares over the widest window is exact."""
    return float(np.floor(np.sqrt(EXACT / spans.widest)))


def as_kept(rows: Float64Array) -> Float64Array:
    """Rows in units of their columns' spread, as far as streams keep them."""
    return np.rint(np.clip(rows, -FARTHEST, FARTHEST) * QUANTA) / QUANTA


def begun(past: Float64Array, scale: Float64Array, ear: Ear, spans: Spans, compute: Functions) -> WindowState:
    """Of one stream that comes after these rows (n, d), in units of their columns' spread."""
    places, d = Places.of(spans), past.shape[1]
    whole = np.zeros((places.coarse, d))
    whole[-len(past) :] = past[-places.coarse :] * QUANTA
    coarse = np.floor((whole + COARSE / 2) / COARSE)
    rests = (whole - COARSE * coarse).astype(np.int8)
    state: WindowState = {
        "rows": coarse.astype(np.int16)[None],
        "rests": np.roll(rests[-places.whole :], places.coarse % places.whole, axis=0)[None],
        "position": np.array([places.coarse]),
        "scale": np.minimum(scale, LOUDEST).astype(np.float32)[None],
        "clock": np.array([[-spans.widest, 0]]),
        "loud": np.zeros((1, len(scale))),
    }
    return state | {"sums": summed(state, ear, spans, compute)}


def summed(state: WindowState, ear: Ear, spans: Spans, compute: Functions) -> Float64Array:
    """Sums of windows that streams with these rows have."""
    return compute.view_sums(
        state["rows"], state["rests"], state["position"], ear.lags, ear.windows, ear.base, ear.gap, most_of(spans)
    )


def watch(
    compute: Functions,
    ear: Ear,
    state: WindowState,
    points: Float64Array,
    streams: Int64Array,
    first: Int64Array,
    last: Int64Array,
    pieces: slice,
    found: Loudest,
    out: Float64Array = NO_CHANNELS,
    *,
    halt: bool = False,
) -> None:
    """`view_watch` of some pieces: points first..last of streams with this state."""
    columns, chosen, axes, lags, windows, base, gap, units, shares, pace, usual = ear
    compute.view_watch(
        points, streams, first, last, pieces.start, pieces.stop, halt, state["rows"], state["rests"], state["sums"],
        state["position"], state["scale"], state["clock"], state["loud"], state.get("own", usual), columns, chosen,
        axes, lags, windows, base, gap, units, shares, pace, found.best, found.which, out,
    )  # fmt: skip


def latest(state: WindowState, s: int, count: int) -> Float64Array:
    """Of a stream, the latest rows of which all digits are kept, oldest first, in units of their columns' spread."""
    rows, rests = state["rows"][s], state["rests"][s]
    numbers = int(state["position"][s]) - count + np.arange(count)
    return np.asarray((COARSE * rows[numbers % len(rows)] + rests[numbers % len(rests)]) / QUANTA)


def history(state: WindowState, s: int) -> Float64Array:
    """Of a stream, all rows that are kept, oldest first, in units of their columns' spread: the older ones coarse."""
    rows, whole = state["rows"][s], state["rests"].shape[1]
    numbers = int(state["position"][s]) + np.arange(len(rows) - whole)
    return np.concatenate([COARSE / QUANTA * rows[numbers % len(rows)], latest(state, s, whole)])


def deviations(state: WindowState, s: int, ear: Ear, spans: Spans) -> Float64Array:
    """Of a stream, how far each channel is off with the latest row, in its units."""
    whole = latest(state, s, 2 * spans.widest + LAGS) * QUANTA
    return off(state["sums"][s], whole, 0, ear.windows, ear.base, ear.units, ear.shares, FLOOR)


def silenced(state: WindowState, chosen: Int64Array | slice, widest: int) -> None:
    """Streams begin new runs: the same, silent until their windows hold rows of their own."""
    clock = state["clock"]
    after_alarms = clock[chosen, 0] > 0
    clock[chosen, 0] = widest * (2 * after_alarms - 1)
