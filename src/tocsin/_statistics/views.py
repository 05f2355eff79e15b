"""Views: every column heard in the forms in which it may be quiet, for streams that have a memory and wander.

A column that wanders is useless by its level and sharp by its changes; a column under control is the other way round.
So each is seen as its level, as the error of a small model that foresees it from its own last three rows, as the
difference from the row before, and relative to a moving baseline (`_compute.numpy_views` has the formulas). Channels
are means of these over short windows, and log spreads of two of them; each is told in units of its own, learnt by
rehearsal (`_calibration.rehearsal`), and the path is the loudest. What a channel has been seen to do is not news: a
running scale for each follows its squares, and an alarm raises it, so that the next must exceed what the last showed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tocsin._common.caches import Caching
from tocsin._common.errors import Code, InputError, Option
from tocsin._compute import Functions
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._statistics.base import Channel, Cold, Live, Parts, Prepared, Setting, WindowState, snapshot
from tocsin._statistics.view_model import FLOOR, SOFT, Model, Spans

ROOM = 2
"""Rows for which there is room before the latest are moved to the front, in widest windows."""


@dataclass(frozen=True)
class Views:
    """Means and spreads of single columns, each in the forms in which it is quiet: for streams with a memory.

    It is what a detector takes by default where the reference depends on its order; with a reference in which the order
    means nothing, `MMD` sees more. Observations are rows of numbers or of tables, in order, and few of them will do:
    the promise rests on rehearsing on the reference itself. It is watched alone, not beside other statistics. A run
    begins with as many silent observations as the longest window has, and remembers what the runs before it showed.

    Examples
    --------
    >>> from tocsin import Detector
    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(size=(400, 1)), axis=0) / 20 + rng.normal(size=(400, 1))
    >>> detector = Detector(ert=200, statistic=Views(), seed=1).fit(walk)
    >>> outcomes = detector.update_many(walk[-1:] + 8 + rng.normal(size=(60, 1)))
    >>> bool(outcomes.alarm.any())
    True
    """

    def check(self) -> None:
        pass

    @property
    def name(self) -> str:
        return "Views"

    @property
    def takes_objects(self) -> bool:
        return False

    def holds_out(self, count: int, windows: tuple[int, ...]) -> int:
        return 0

    def prepare(self, points: Float64Array, held_out: Float64Array, setting: Setting) -> Prepared:
        raise InputError(
            Option("statistic", Code("Views()")),
            " stands alone, and its null streams are made after the reference. Leave out what is beside it, ",
            Option("sampler", ...),
            " and ",
            Option("mode", ...),
            ", or choose ",
            Option("statistic", Code("MMD()")),
            ".",
        )

    def restore(self, parts: Parts, windows: tuple[int, ...], compute: Functions) -> Live:
        return ViewsLive.restore(parts, windows, compute)


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


@dataclass(frozen=True, eq=False)
class ViewsLive(Caching, Cold):
    """Views at work.

    middle, unit: of each channel, from which deviations are taken and in which they are told.  level: the threshold.
    past: the latest points of the reference, after which a first run comes.  scale: running scales at its end.
    columns, owners: names of columns, and which of them each number of a point belongs to.
    """

    model: Model
    middle: Float64Array
    unit: Float64Array
    level: float
    pace: Pace
    past: Float64Array
    scale: Float64Array
    columns: tuple[str, ...]
    owners: Int64Array
    compute: Functions

    takes_tensors = False
    goes_on = True

    @property
    def at_once(self) -> bool:
        return self.compute.backend != "numpy"  # PyTorch leaves views to Numba

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return self.model.channel_names(self.columns, self.owners)

    def observe(self, points: Float64Array, own: Int64Array | None) -> Float64Array:
        return points

    def begin(self, run: int) -> WindowState:
        """After the reference. The points that fill the windows are silent."""
        spans, width = self.model.spans, self.model.width
        past, widest = spans.base + spans.gap, spans.widest
        room = ROOM * widest
        state = {
            "rows": np.zeros((past + room, width)),
            "views": np.zeros((widest + room, 4 * width)),
            "squares": np.zeros((widest + room, len(self.unit))),
            "loud": np.zeros(len(self.unit)),
            "scale": self.scale.copy(),
            "clock": np.zeros(2, np.int64),
            "position": np.zeros(1, np.int64),
        }
        state["rows"][:past] = self.model.rows(self.past[:past], self.compute)
        self.advance(state, self.past, past, past + widest)
        # Only the last of these has whole windows behind it: running scales are to learn nothing of the others.
        state["squares"][: 2 * widest - 1] = self.scale
        state["scale"][:] = self.scale
        state["clock"][:] = -widest, 0
        return state

    def renew(self, state: WindowState) -> WindowState:
        """What a new run of the same stream begins with: the same, silent until its windows hold rows of its own."""
        state = snapshot(state)
        state["clock"][0] = self.model.spans.widest * (1 if state["clock"][0] > 0 else -1)
        return state

    def advance(self, state: WindowState, observed: Float64Array, start: int, stop: int) -> Float64Array:
        out = np.empty((stop - start, len(self.unit)))
        self._advance(state, observed, start, stop, out)
        return out

    def enter(self, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        self._advance(state, point, 0, 1, values)

    def _advance(self, state: WindowState, points: Float64Array, start: int, stop: int, out: Float64Array) -> None:
        model, spans, pace = self.model, self.model.spans, self.pace
        self.compute.view_watch(
            points, start, stop, state["rows"], state["views"], state["squares"], state["loud"], state["scale"],
            state["clock"], state["position"], model.centre, model.spread, model.chosen, model.axes, SOFT, model.lags,
            model.sizes,
            spans.base, spans.gap, spans.windows, FLOOR, self.middle, self.unit, self.level, pace.memory, pace.attack,
            pace.cap, pace.early, pace.fade, out,
        )  # fmt: skip

    def parts(self) -> Parts:
        model = self.model
        return {
            "base": model.spans.base, "gap": model.spans.gap, "centre": model.centre, "spread": model.spread,
            "chosen": model.chosen, "axes": model.axes, "lags": model.lags, "sizes": model.sizes,
            "middle": self.middle, "unit": self.unit, "level": self.level, "pace": list(self.pace), "past": self.past,
            "scale": self.scale, "columns": list(self.columns), "owners": self.owners,
        }  # fmt: skip

    @classmethod
    def restore(cls, parts: Parts, windows: tuple[int, ...], compute: Functions) -> ViewsLive:
        """The object that `parts` describes."""
        spans = Spans(np.array(windows, np.int64), parts["base"], parts["gap"])
        learnt = (parts[name] for name in ("centre", "spread", "chosen", "axes", "lags", "sizes"))
        return cls(
            Model(spans, *learnt), parts["middle"], parts["unit"], parts["level"], Pace(*parts["pace"]), parts["past"],
            parts["scale"], tuple(parts["columns"]), parts["owners"], compute,
        )  # fmt: skip
