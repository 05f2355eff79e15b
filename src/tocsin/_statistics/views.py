"""Views: every column heard in the forms in which it may be quiet, for streams that have a memory and wander.

A column that wanders is useless by its level and sharp by its changes; a column under control is the other way round.
So each is seen as its level, as the error of a small model that foresees it from its own last three rows, as the
difference from the row before, and relative to a moving baseline (`_compute.numpy_views` has the formulas). Channels
are means of these over short windows, and log spreads of two of them; each is told in units of its own, learnt by
rehearsal (`_calibration.rehearsal`), and the path is the loudest. What a channel has been seen to do is not news: a
running scale for each follows its squares, and an alarm raises it, so that the next must exceed what the last showed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from tocsin._common.caches import Caching
from tocsin._common.errors import Code, InputError, Option
from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._compute.numpy_view_streams import LOUDEST
from tocsin._statistics.base import Channel, Cold, Live, Parts, Prepared, Setting, WindowState, snapshot
from tocsin._statistics.own_levels import OwnLevels, hard, learning, new_stream, relative, watch_from_new
from tocsin._statistics.view_model import NEWS, SILENT, Model, Spans
from tocsin._statistics.view_streams import (
    NO_CHANNELS,
    Ear,
    Loudest,
    Pace,
    as_kept,
    begun,
    latest,
    settling,
    silenced,
    watch,
)

ALONE = np.zeros(1, np.int64)
"""The number of the stream that a detector watches, and of the first of its points."""

RECENT = 2
"""Widest windows of which a stream keeps all digits."""


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


@dataclass(frozen=True, eq=False)
class ViewsLive(Caching, Cold):
    """Views at work.

    middle, unit: of each channel, from which deviations are taken and in which they are told.  level: the threshold.
    past: the latest points of the reference, after which a first run comes.  scale: running scales at its end.
    columns, owners: names of columns, and which of them each number of a point belongs to.
    own: how streams get levels of their own, if they do: none of them then comes after the reference.
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
    own: OwnLevels | None = None

    takes_tensors = False
    goes_on = True

    @property
    def at_once(self) -> bool:
        return self.compute.backend != "numpy"  # PyTorch leaves streams on the host to Numba

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        named = self.model.channel_names(self.columns, self.owners)
        return tuple(
            replace(own, statistic=NEWS) if tells else own for own, tells in zip(named, self.news, strict=True)
        )

    @cached_property
    def news(self) -> BoolArray:
        """Which channels are of columns that tell news alone."""
        silent = (self.unit.reshape(-1, self.model.width) >= SILENT).any(0)
        return np.tile(silent, len(self.unit) // self.model.width)

    def observe(self, points: Float64Array, own: Int64Array | None) -> Float64Array:
        return np.ascontiguousarray(points)

    @cached_property
    def ear(self) -> Ear:
        """What hot functions hear with."""
        return Ear.of(self.model, self.middle, self.unit, self.level, self.pace)

    def at_level(self, level: float, reference: Float64Array, edges: Int64Array) -> ViewsLive:
        """The same, ringing at another one: alarms teach running scales, from the reference on. As many rows of news
        ring as before."""
        if level == self.level:
            return self
        if self.own is not None:
            return replace(self, level=level)
        model, pace, scale = self.model, self.pace, self.scale.copy()
        unit = np.where(self.news & (self.unit < SILENT), self.unit * (self.level / level), self.unit)
        rows = model.rows(reference, self.compute)
        channels = np.concatenate([model.channels(rows[a:b], self.compute) for a, b in pairwise(edges)])
        past = channels[len(channels) - settling(len(channels), pace.memory) :]
        squares = np.minimum(((past - self.middle) / unit) ** 2, LOUDEST).astype(np.float32)
        self.compute.view_follow(
            squares, len(squares), scale, level, pace.memory, pace.attack, pace.cap, model.spans.widest, pace.early,
            pace.fade,
        )  # fmt: skip
        return replace(self, level=level, scale=scale, unit=unit)

    def begin(self, run: int) -> WindowState:
        """After the reference. The points that fill the windows are silent."""
        if self.own is not None:
            return new_stream(self.own, self.model, self.ear, self.compute)
        return begun(self.rows(self.past), self.scale, self.ear, self.model.spans, self.compute)

    def renew(self, state: WindowState) -> WindowState:
        """What a new run of the same stream begins with: the same, silent until its windows hold rows of its own."""
        state = snapshot(state)
        silenced(state, slice(None), self.model.spans.widest)
        return state

    def advance(self, state: WindowState, observed: Float64Array, start: int, stop: int) -> Float64Array:
        out = np.empty((stop - start, len(self.unit)))
        if stop > start:
            self.enter(state, observed[start:stop], out)
        return out

    def enter(self, state: WindowState, point: Float64Array, values: Float64Array) -> None:
        self._watch(state, point, values)

    def listen(self, state: WindowState, observed: Float64Array) -> tuple[Float64Array, Int64Array]:
        found = self._watch(state, observed, NO_CHANNELS)
        return found.best[:, None], found.which

    def _watch(self, state: WindowState, points: Float64Array, out: Float64Array) -> Loudest:
        found = Loudest.of(len(points))
        self.watch(state, points, ALONE, ALONE, np.array([len(points)]), slice(0, 1), found, out)
        return found

    def watch(
        self,
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
        """Let points first..last of streams with this state enter, of some pieces; see `view_streams.watch`."""
        if self._ears is None or not learning(state):
            watch(self.compute, self.ear, state, points, streams, first, last, pieces, found, out, halt=halt)
        else:
            assert self.own is not None
            watch_from_new(
                self.own, self.model, self._ears, self.level, self.compute, state, points, streams, first, last, pieces,
                found, out, halt=halt,
            )  # fmt: skip

    @cached_property
    def _ears(self) -> tuple[Ear, Ear] | None:
        """For streams that have no level of their own yet, and for those that have."""
        return None if self.own is None else (self.own.ear(self.model, self.level, self.pace), self.ear)

    @property
    def ear_before(self) -> Ear:
        """What streams are heard with that have no level of their own yet."""
        return self.ear if self._ears is None else self._ears[0]

    @property
    def has_baselines(self) -> bool:
        return self.own is not None

    def learns(self, state: WindowState) -> int:
        """Rows that a stream still gives for its own level."""
        return 0 if self.own is None else max(-int(state["clock"][0, 1]), 0)

    # Looking back

    def rows(self, points: Float64Array, usual: Float64Array | None = None) -> Float64Array:
        """Points in units of their columns' spread, as streams keep them; or relative to a level and spread."""
        rows = self.model.rows(points, self.compute)
        return as_kept(rows if usual is None else relative(rows, usual))

    def points_of(self, state: WindowState, stream: int) -> Float64Array:
        """The latest points of a stream, oldest first, as far as the digits that are kept tell."""
        return self.points_at(latest(state, stream, RECENT * self.model.spans.widest), self.usual(state, stream))

    def usual(self, state: WindowState, stream: int) -> Float64Array | None:
        """A stream's own level and spread, if it has one."""
        return None if self.own is None else np.asarray(state["own"][stream])

    def points_at(self, along: Float64Array, usual: Float64Array | None = None) -> Float64Array:
        """Points whose rows these are, in units of their columns' spread; of directions, points that lie in them.

        usual: the level and spread that rows are relative to, if they are.
        """
        model = self.model
        own = hard(along)
        if usual is not None:
            own = usual[0] + usual[1] * own
        if model.axes.size:
            own = own @ np.linalg.pinv(model.axes)
        points = np.repeat(self.past[-1:], len(own), axis=0)
        points[:, model.chosen] = model.centre + model.spread * own
        return points

    def parts(self) -> Parts:
        model = self.model
        return {
            "base": model.spans.base, "gap": model.spans.gap, "centre": model.centre, "spread": model.spread,
            "chosen": model.chosen, "axes": model.axes, "lags": model.lags, "sizes": model.sizes,
            "middle": self.middle, "unit": self.unit, "level": self.level, "pace": list(self.pace), "past": self.past,
            "scale": self.scale, "columns": list(self.columns), "owners": self.owners,
            **({} if self.own is None else {"baseline": model.spans.own, "own": vars(self.own)}),
        }  # fmt: skip

    @classmethod
    def restore(cls, parts: Parts, windows: tuple[int, ...], compute: Functions) -> ViewsLive:
        """The object that `parts` describes."""
        spans = Spans(np.array(windows, np.int64), parts["base"], parts["gap"], parts.get("baseline", 0))
        learnt = (parts[name] for name in ("centre", "spread", "chosen", "axes", "lags", "sizes"))
        return cls(
            Model(spans, *learnt), parts["middle"], parts["unit"], parts["level"], Pace(*parts["pace"]), parts["past"],
            parts["scale"], tuple(parts["columns"]), parts["owners"], compute,
            OwnLevels(**parts["own"]) if "own" in parts else None,
        )  # fmt: skip
