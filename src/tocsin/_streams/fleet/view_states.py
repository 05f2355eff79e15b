"""States of keys that are heard by views.

    window  rows (d, places), coarse, in 16 bits, the newest in the last place; rests of the latest (d, places) in 8;
            running scales in float32; rows of the stream so far; its own level and spread, if streams have these
    news    of each column that may stop: ties, and the latest value

What else a step needs follows from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tocsin._compute.arrays import Array, BoolArray, Float32Array, Float64Array, Int8Array, Int16Array, Int64Array
from tocsin._compute.numpy_news import KEPT, LAST, MOST_TIES, TIES
from tocsin._compute.numpy_view_streams import LOUDEST
from tocsin._statistics.base import WindowState
from tocsin._statistics.view_model import LAGS
from tocsin._statistics.view_streams import COARSEST, Places
from tocsin._streams.fleet.states import MOST, KeyStates, with_head

NARROWEST = 1e-100
"""What a stream's own spread is at least."""


def layout_of_views(columns: int, channels: int, places: Places, heard: int, *, own: bool) -> np.dtype[Any]:
    """Of a state without its tail. heard: columns that may stop.  own: whether streams have levels of their own."""
    window: list[Any] = [
        ("rows", "<i2", (columns, places.coarse)), ("rests", "i1", (columns, places.whole)),
        ("scale", "<f4", (channels,)), ("age", "<i8"),
    ]  # fmt: skip
    levels: list[Any] = [("own", "<f8", (2, columns))] if own else []
    news: list[Any] = [("ties", "<u4", (heard,)), ("latest", "<f8", (heard,))] if heard else []
    return with_head([*window, *levels, *news])


@dataclass(eq=False)
class ViewStates(KeyStates):
    """With rows as hot functions have them: see `numpy_view_streams`. filled is the first of the clock's numbers.

    age: rows of the stream so far; less than 0 while its level is learnt.  own: that, and its spread.
    news: what is kept of it, as hot functions have it; None where none is heard.
    sums: of windows, once a batch asks for them.
    """

    rows: Int16Array
    rests: Int8Array
    scale: Float32Array
    age: Int64Array
    position: Int64Array
    loud: Float64Array
    own: Float64Array | None = None
    news: Float64Array | None = None
    sums: Float64Array | None = None

    @classmethod
    def windows(cls, parts: dict[str, Array]) -> dict[str, Any]:
        many, few = parts["rows"].shape[2], parts["rests"].shape[2]
        news = None
        if "ties" in parts:
            news = np.zeros((*parts["ties"].shape, KEPT))
            news[..., TIES], news[..., LAST] = parts["ties"], parts["latest"]
        return {
            "rows": np.array(parts["rows"].transpose(0, 2, 1), np.int16, order="C"),
            "rests": np.ascontiguousarray(np.roll(parts["rests"].transpose(0, 2, 1), many % few, axis=1)),
            "scale": np.array(parts["scale"], np.float32, order="C"),
            "age": parts["age"].astype(np.int64),
            "position": np.full(len(parts["rows"]), many),
            "loud": np.zeros(parts["scale"].shape),
            **({"own": np.array(parts["own"], np.float64, order="C")} if "own" in parts else {}),
            "news": news,
        }

    def parts(self) -> dict[str, Array]:
        return {
            "rows": _in_order(self.rows, self.position), "rests": _in_order(self.rests, self.position),
            "scale": self.scale, "age": self.age, **self._levels,
            **({} if self.news is None else {"ties": self.news[..., TIES], "latest": self.news[..., LAST]}),
        }  # fmt: skip

    @property
    def _levels(self) -> dict[str, Array]:
        return {} if self.own is None else {"own": self.own}

    def right(self) -> BoolArray:
        whole = self.rests.shape[1]
        youngest = 0 if self.own is None else -whole
        right: BoolArray = (
            (np.abs(self.filled) <= (whole - LAGS - 1) // 2) & (self.age >= youngest) & (self.age <= MOST)
        )
        right &= (np.abs(self.rows.astype(np.int32)) <= COARSEST).all((1, 2))
        # Also where a number is none.
        right &= ((self.scale >= 1) & (self.scale <= LOUDEST)).all(1)
        if self.own is not None:
            right &= np.isfinite(self.own).all((1, 2)) & (self.own[:, 1] >= NARROWEST).all(1)
        if self.news is not None:
            right &= ((self.news[..., TIES] <= MOST_TIES) & (self.news[..., LAST] > -np.inf)).all(1)
        return right

    def streams(self) -> WindowState:
        """What hot functions take, all but sums. Clocks are a copy: see `follow`."""
        return {
            "rows": self.rows, "rests": self.rests, "position": self.position, "scale": self.scale,
            "clock": np.stack([self.filled, self.age], axis=1), "loud": self.loud, **self._levels,
        }  # fmt: skip

    def put(self, k: int, state: WindowState) -> None:
        """Let a key have what one stream has."""
        self.rows[k], self.rests[k], self.scale[k] = state["rows"][0], state["rests"][0], state["scale"][0]
        self.position[k], (self.filled[k], self.age[k]) = state["position"][0], state["clock"][0]
        if self.own is not None:
            self.own[k] = state["own"][0]


def _in_order(kept: Array, position: Int64Array) -> Array:
    """Of each key, with the newest in the last place: (keys, d, places)."""
    places = kept.shape[1]
    order = (position[:, None] + np.arange(places)) % places
    return np.take_along_axis(kept, order[:, :, None], axis=1).transpose(0, 2, 1)
