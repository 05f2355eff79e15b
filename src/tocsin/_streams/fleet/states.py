"""What an engine carries for a key between batches: a few numbers, the latest window, the alarms of the last batch.

    head    version, checksum of all that follows, fingerprint, key, count, last, run, time, resting, filled, alarms
    window  points (d, W) and sums (widths, W), float32, the newest in the last place; of views, see `view_states`
    news    of each column that it is heard of: 32 rows as bits, for each of three kinds; ties; the latest value
    tail    one record for each alarm of the last batch

All little endian, without padding. The reference and the thresholds are the detector's, and are not here.

A state comes from whoever carries it. What is read is looked at before it is used: one that was damaged, or made up, is
refused, or is the state of some key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self
from zlib import crc32

import numpy as np

from tocsin._common.errors import StorageError
from tocsin._compute.arrays import FARTHEST, Array, BoolArray, Float32Array, Float64Array, Int64Array
from tocsin._compute.numpy_news import LAST, MARKS, MOST_TIES, TIES

VERSION = 3
"""Also to be raised when the same state would lead to other alarms."""

NEVER = np.iinfo(np.int64).min
"""The last order of a key that has none."""

MOST = 2**62
"""Observations of a key, and runs: one more fits into 64 bits."""

LARGEST = 1e30
"""No mean kernel is larger, whatever the weights of landmarks."""

FOR_EVER = -1
"""How long a key rests that only a reset wakes."""

PREFIX = np.dtype([("version", "<u2"), ("checksum", "<u4"), ("fingerprint", "<u8")])
SUMMED = 6
"""Where that begins of which a state has a checksum."""

_FIELDS = [
    *PREFIX.descr, ("key", "<u8"), ("count", "<i8"), ("last", "<i8"), ("run", "<i8"), ("time", "<i8"),
    ("resting", "<i8"), ("filled", "<i4"), ("alarms", "<i4"),
]  # fmt: skip
HEAD = np.dtype(_FIELDS)
NUMBERS = ("count", "last", "run", "time", "resting", "filled")
ALARM = np.dtype(
    [
        ("order", "<i8"), ("count", "<i8"), ("run", "<i8"), ("time", "<i8"), ("statistic", "<f8"), ("threshold", "<f8"),
        ("channel", "<u2"),
    ]
)  # fmt: skip


def hash_of(key: str) -> int:
    """64 bits that stand for a key: in its state, its coins and the choice of its starts."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")


def layout(columns: int, widths: int, widest: int, heard: int) -> np.dtype[Any]:
    """Of a state without its tail. heard: columns that news is heard of, if it is."""
    news = [("marks", "<u4", (heard, MARKS)), ("ties", "<u4", (heard,)), ("latest", "<f8", (heard,))]
    return with_head(
        [("points", "<f4", (columns, widest)), ("sums", "<f4", (widths, widest)), *(news if heard else ())]
    )


def with_head(window: list[Any]) -> np.dtype[Any]:
    """Head and window."""
    return np.dtype([*_FIELDS, *window])


@dataclass(eq=False)
class KeyStates:
    """The states of some keys, as arrays that batches change, without their windows.

    count: observations so far.  last: the order of the last one.  run, time: as a detector has them.
    resting: observations that are still to be left alone after an alarm.
    filled: points in the window; of views, rows that stay silent (less than 0 where a stream begins).
    alarms: of the last batch, by key, as records.
    entered: columns of the window that are not those that were read, the newest ones; W when all of them are new.
    """

    key: Array
    count: Int64Array
    last: Int64Array
    run: Int64Array
    time: Int64Array
    resting: Int64Array
    filled: Int64Array
    alarms: dict[int, Array]
    entered: Int64Array

    @classmethod
    def read(cls, states: Sequence[bytes], alarms: dict[int, Array], kind: np.dtype[Any]) -> Self:
        """From heads and windows of this layout; tails are given apart."""
        records = np.frombuffer(b"".join(states), kind)
        arrays: dict[str, Any] = {name: records[name].astype(np.int64) for name in NUMBERS}
        arrays |= cls.windows({name: records[name] for name in kind.names or () if name not in HEAD.fields})  # type: ignore[operator]
        entered = np.zeros(len(records), np.int64)
        return cls(key=records["key"].astype(np.uint64), **arrays, alarms=alarms, entered=entered)

    @classmethod
    def windows(cls, parts: dict[str, Array]) -> dict[str, Any]:
        """The fields of windows, from the parts of states."""
        raise NotImplementedError

    def parts(self) -> dict[str, Array]:
        """The parts of states, from the fields of windows."""
        raise NotImplementedError

    def right(self) -> BoolArray:
        """Whether windows hold numbers that they can have."""
        raise NotImplementedError

    def check(self, names: Sequence[str], channels: int) -> None:
        """Refuse states with numbers that no state can have. names: of the keys.  channels: of the detector."""
        right = (self.count >= 0) & (self.run >= 0) & (self.time >= 0) & (self.time <= self.count)
        right &= np.maximum(self.count, self.run) <= MOST
        right &= (self.resting >= FOR_EVER) & self.right()
        for k, told in self.alarms.items():
            heard = np.isfinite(told["statistic"]) & np.isfinite(told["threshold"]) & (told["channel"] < channels)
            clocks = (told["count"] >= 1) & (told["run"] >= 0) & (told["time"] >= 1) & (told["time"] <= told["count"])
            right[k] &= bool((heard & clocks).all())
        wrong = np.flatnonzero(~right)
        if len(wrong):
            raise StorageError(
                f"The state of key {names[wrong[0]]!r} holds numbers that no key can have: it was not made by a Fleet. "
                "Restore it, or give None to begin the key anew."
            )

    def write(self, fingerprint: int, kind: np.dtype[Any]) -> list[bytes]:
        """A state of this layout for each key."""
        records = np.empty(len(self.key), kind)
        records["version"], records["checksum"] = VERSION, 0
        records["fingerprint"], records["alarms"] = fingerprint, 0
        for name in ("key", *NUMBERS):
            records[name] = getattr(self, name)
        for name, part in self.parts().items():
            records[name] = part
        for k, own in self.alarms.items():
            records["alarms"][k] = len(own)
        everything, size = memoryview(records.view(np.uint8).data), records.itemsize
        states = [bytes(everything[k * size : (k + 1) * size]) for k in range(len(records))]
        for k, own in self.alarms.items():
            states[k] += own.tobytes()
        return [state[:2] + checksum(state) + state[SUMMED:] for state in states]


@dataclass(eq=False)
class PairStates(KeyStates):
    """With windows of points, and of their -2 c(x).

    news: what is kept of it, as hot functions have it; None where none is heard.
    """

    points: Float32Array
    sums: Float32Array
    news: Float64Array | None

    @classmethod
    def windows(cls, parts: dict[str, Array]) -> dict[str, Any]:
        news = None
        if "marks" in parts:
            news = np.concatenate(
                [parts["marks"], parts["ties"][:, :, None], parts["latest"][:, :, None]], 2, dtype="f8"
            )
        return {name: np.array(parts[name], np.float32, order="C") for name in ("points", "sums")} | {"news": news}

    def parts(self) -> dict[str, Array]:
        own: dict[str, Array] = {"points": self.points, "sums": self.sums}
        if self.news is not None:
            own |= {"marks": self.news[..., :MARKS], "ties": self.news[..., TIES], "latest": self.news[..., LAST]}
        return own

    def right(self) -> BoolArray:
        right: BoolArray = (self.filled >= 0) & (self.filled <= self.points.shape[2])
        if self.news is not None:
            right &= ((self.news[..., TIES] <= MOST_TIES) & (self.news[..., LAST] > -np.inf)).all(1)
        right &= (np.abs(self.points) <= FARTHEST).all((1, 2)) & (np.abs(self.sums) <= LARGEST).all((1, 2))
        return right


def split(state: bytes, kind: np.dtype[Any], name: str) -> tuple[bytes, Array]:
    """Head and window, and the alarms of the tail, of a state that has this layout."""
    head, tail = state[: kind.itemsize], state[kind.itemsize :]
    whole = len(head) == kind.itemsize
    alarms = int(np.frombuffer(head[: HEAD.itemsize], HEAD)["alarms"][0]) if whole else 0
    if not whole or alarms < 0 or len(tail) != alarms * ALARM.itemsize:
        raise StorageError(
            f"The state of key {name!r} has {len(state):,} bytes, and should have {kind.itemsize:,} and "
            f"{ALARM.itemsize} for each alarm of its last batch: it is cut short, or something else. Restore it, or "
            "give None to begin the key anew."
        )
    if state[2:SUMMED] != checksum(state):
        raise StorageError(
            f"The state of key {name!r} is damaged: its checksum is that of another. Restore it, or give None to begin "
            "the key anew."
        )
    return head, np.frombuffer(tail, ALARM)


def prefix_of(state: bytes, name: str) -> int:
    """The fingerprint of the detector that wrote it."""
    if len(state) < PREFIX.itemsize:
        raise StorageError(
            f"The state of key {name!r} has {len(state)} bytes, too few for one. Restore it, or give None."
        )
    prefix = np.frombuffer(state[: PREFIX.itemsize], PREFIX)[0]
    if int(prefix["version"]) != VERSION:
        raise StorageError(
            f"The state of key {name!r} is not one of Tocsin's, or of another version ({prefix['version']}; this is "
            f"{VERSION}). Run it with the Tocsin that wrote it, or give None to begin the key anew."
        )
    return int(prefix["fingerprint"])


def checksum(state: bytes) -> bytes:
    """Of all that follows it in a state."""
    return crc32(memoryview(state)[SUMMED:]).to_bytes(4, "little")
