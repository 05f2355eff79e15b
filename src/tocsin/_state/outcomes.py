"""What a detector answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from tocsin._calibration.tail import RateCurve
from tocsin._common.caches import Caching
from tocsin._common.wording import counted
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._state.frames import frame_of
from tocsin._statistics.base import Channel

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


@dataclass(frozen=True, slots=True, init=False)
class Outcome:
    """The outcome of one observation.

    time: observations in this run so far, this one included.
    alarm: whether the statistic exceeds the threshold.
    statistic, threshold: NaN while a cold detector's windows fill. One channel is in its own units; several are
        each measured against their own null law, and the statistic is the largest. Of news, which the reference never
        shows, it is the level that others pass as rarely.
    rarity: chance alone would give a statistic as large once in so many observations; at the threshold it is the
        expected run time. NaN where the detector cannot tell.
    channel: the channel that spoke; None while windows fill.
    unseen: whether the observation was left out, since the reference lacks the like of its context: `time` has not
        moved on then, and nothing was tested.
    learning: whether the observation is one of those from which the stream's own level is learnt (`baseline`). Until
        these are whole, the stream is compared with all recordings of the reference together.
    """

    time: int
    alarm: bool
    statistic: float
    threshold: float
    rarity: float
    channel: Channel | None
    unseen: bool = False
    learning: bool = False

    def __init__(
        self,
        time: int,
        alarm: bool,
        statistic: float,
        threshold: float,
        rarity: float,
        channel: Channel | None,
        unseen: bool = False,
        learning: bool = False,
    ) -> None:
        # There is one of each observation, and the way round `__setattr__` that a frozen dataclass takes is long.
        _set_time(self, time)
        _set_alarm(self, alarm)
        _set_statistic(self, statistic)
        _set_threshold(self, threshold)
        _set_rarity(self, rarity)
        _set_channel(self, channel)
        _set_unseen(self, unseen)
        _set_learning(self, learning)


_set_time, _set_alarm, _set_statistic, _set_threshold, _set_rarity, _set_channel, _set_unseen, _set_learning = (
    vars(Outcome)[field.name].__set__ for field in fields(Outcome)
)


@dataclass(frozen=True, eq=False)
class Outcomes(Caching):
    """The outcomes of a block of observations, an array entry each.

    Indexing or iterating gives `Outcome`s, slicing `Outcomes`. Frames have the columns time, alarm, statistic,
    threshold and rarity, and, of the channel that spoke, channel_statistic, channel_window, channel_width,
    channel_view and channel_column; null for what is not known. Where observations have a context, unseen too.

    loudest: index into `channels` of the channel that spoke.  curve: how rare each statistic is.
    unseen: which were left out, since the reference lacks the like of their context; None where they have none.
    learns: `learning`; None where there is no such observation.
    """

    time: Int64Array
    alarm: BoolArray
    statistic: Float64Array
    threshold: Float64Array
    loudest: Int64Array
    channels: tuple[Channel, ...]
    curve: RateCurve | None
    unseen: BoolArray | None = None
    learns: BoolArray | None = None

    @property
    def learning(self) -> BoolArray:
        """Of each observation, whether the stream's own level is learnt from it."""
        return np.zeros(len(self), bool) if self.learns is None else self.learns

    @cached_property
    def rarity(self) -> Float64Array:
        """Of each observation, as in `Outcome`; looked up when it is asked for."""
        return np.full(len(self), np.nan) if self.curve is None else self.curve.rarities(self.statistic)

    def __len__(self) -> int:
        return len(self.time)

    @overload
    def __getitem__(self, i: int) -> Outcome: ...

    @overload
    def __getitem__(self, i: slice) -> Outcomes: ...

    def __getitem__(self, i: int | slice) -> Outcome | Outcomes:
        if isinstance(i, slice):
            return Outcomes(
                self.time[i], self.alarm[i], self.statistic[i], self.threshold[i], self.loudest[i], self.channels,
                self.curve, None if self.unseen is None else self.unseen[i],
                None if self.learns is None else self.learns[i],
            )  # fmt: skip
        full = not np.isnan(self.statistic[i])
        return Outcome(
            int(self.time[i]),
            bool(self.alarm[i]),
            float(self.statistic[i]),
            float(self.threshold[i]),
            self.curve.rarity(float(self.statistic[i])) if self.curve and full else float("nan"),
            self.channels[self.loudest[i]] if full else None,
            self.unseen is not None and bool(self.unseen[i]),
            self.learns is not None and bool(self.learns[i]),
        )

    @property
    def channel(self) -> list[Channel | None]:
        """The channel that spoke, of each observation; None while windows fill."""
        full = ~np.isnan(self.statistic)
        return [self.channels[k] if spoke else None for k, spoke in zip(self.loudest, full, strict=True)]

    @classmethod
    def join(cls, pieces: Sequence[Outcomes]) -> Outcomes:
        """Outcomes of blocks that follow each other, as one."""
        return cls(
            np.concatenate([piece.time for piece in pieces]),
            np.concatenate([piece.alarm for piece in pieces]),
            np.concatenate([piece.statistic for piece in pieces]),
            np.concatenate([piece.threshold for piece in pieces]),
            np.concatenate([piece.loudest for piece in pieces]),
            pieces[0].channels,
            pieces[0].curve,
            learns=np.concatenate([own.learning for own in pieces])
            if any(own.learns is not None for own in pieces)
            else None,
        )

    def among(self, known: BoolArray, times: Int64Array) -> Outcomes:
        """The same with those observations in between that were left out, each at the time of the one before it.

        known: which of all were not left out.  times: of those that were.
        """
        time, loudest = np.empty(len(known), np.int64), np.zeros(len(known), np.int64)
        statistic, threshold = np.full((2, len(known)), np.nan)
        alarm = np.zeros(len(known), bool)
        time[known], alarm[known], loudest[known] = self.time, self.alarm, self.loudest
        statistic[known], threshold[known], time[~known] = self.statistic, self.threshold, times
        learns = None
        if self.learns is not None:
            learns = np.zeros(len(known), bool)
            learns[known] = self.learns
        return Outcomes(time, alarm, statistic, threshold, loudest, self.channels, self.curve, ~known, learns)

    def to_pandas(self) -> pandas.DataFrame:
        """As a frame of pandas."""
        return frame_of(self, "pandas")

    def to_polars(self) -> polars.DataFrame:
        """As a frame of polars."""
        frame: polars.DataFrame = frame_of(self, "polars")
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """As an Arrow table."""
        return frame_of(self, "pyarrow")

    def __iter__(self) -> Iterator[Outcome]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        rang = np.flatnonzero(self.alarm)
        where = f", the first at observation {rang[0] + 1:,} of these" if len(rang) else ""
        return f"Outcomes({counted(len(self), 'observation')}, {counted(len(rang), 'alarm')}{where})"
