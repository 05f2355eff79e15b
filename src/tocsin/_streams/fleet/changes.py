"""What a batch has changed in the state of a key: most of a window has only moved on, and need not be written again.

    mark    what this is, and the sizes of the window
    head    the new state's, with its checksum
    tail    the new state's alarms
    window  the columns that have entered; and what is new in each step, of views, and where news is heard

A change that all of the window has part in is the new state itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tocsin._common.errors import StorageError
from tocsin._compute.arrays import Array
from tocsin._compute.numpy_news import MARKS
from tocsin._streams.fleet.states import HEAD, SUMMED, KeyStates, checksum

CHANGE, CHANGE_OF_VIEWS, CHANGE_WITH_NEWS, CHANGE_OF_OWN = 0xC4A6, 0xC4A7, 0xC4A8, 0xC4A9
CHANGE_OF_HEARD = 0xC4AA
"""Where a state has its version; the last two of views with levels of their own, and of views with news beside."""

MARK = np.dtype([("change", "<u2"), ("rows", "<u4"), ("widest", "<u4"), ("entered", "<u4")])
MARK_WITH_NEWS = np.dtype([*MARK.descr, ("heard", "<u4")])
MARK_OF_VIEWS = np.dtype(
    [
        ("change", "<u2"), ("columns", "<u4"), ("places", "<u4"), ("whole", "<u4"), ("channels", "<u4"),
        ("entered", "<u4"),
    ]
)  # fmt: skip


MARK_OF_HEARD = np.dtype([*MARK_OF_VIEWS.descr, ("heard", "<u4")])


class Piece(NamedTuple):
    """A part of a window: rows of so many columns, each of so many bytes; and how many of the last are new."""

    rows: int
    columns: int
    size: int
    entered: int

    @property
    def whole(self) -> int:
        return self.rows * self.columns * self.size

    @property
    def new(self) -> int:
        return self.rows * self.entered * self.size


def changes_of(kept: KeyStates, states: list[bytes], kind: np.dtype[Any]) -> list[bytes]:
    """What turns the states that were read into these, of this layout, which `kept` has written."""
    changes, first = list(states), _mark(kind, 0)
    columns, size = _pieces(first)[0].columns, kind.itemsize
    for entered in np.unique(kept.entered[kept.entered < columns]).tolist():
        mine = np.flatnonzero(kept.entered == entered)
        mark, wholes = _mark(kind, entered), [states[k][:size] for k in mine.tolist()]
        windows = np.frombuffer(b"".join(wholes), np.uint8).reshape(len(mine), size)
        begin, newest = HEAD.itemsize, list[Array]()
        for piece in _pieces(mark):
            part = windows[:, begin : begin + piece.whole].reshape(len(mine), piece.rows, piece.columns * piece.size)
            newest.append(part[:, :, (piece.columns - piece.entered) * piece.size :].reshape(len(mine), piece.new))
            begin += piece.whole
        window = np.concatenate(newest, axis=1)
        for place, k in enumerate(mine.tolist()):
            head, tail = states[k][: HEAD.itemsize], states[k][size:]
            changes[k] = b"".join([mark.tobytes(), head, tail, window[place].tobytes()])
    return changes


def applied(change: bytes, state: bytes | None) -> bytes:
    """The state that a step came to, of one of its `changes` and the state of before."""
    form = FORMS.get(int.from_bytes(change[:2], "little"))
    if form is None:
        return change
    if len(change) >= form.itemsize:
        pieces = _pieces(np.frombuffer(change, form, 1)[0])
        begin, end = HEAD.itemsize, len(change) - sum(piece.new for piece in pieces)
        old = begin + sum(piece.whole for piece in pieces)
        if state is not None and len(state) >= old and end >= form.itemsize + begin:
            head, tail = change[form.itemsize :][:begin], change[form.itemsize + begin : end]
            new = b"".join([head, *_moved(pieces, state[begin:old], change[end:]), tail])
            if new[2:SUMMED] == checksum(new):
                return new
    raise StorageError("A change of a state does not fit the state: it was made of another, or is damaged.")


def _moved(pieces: Sequence[Piece], window: bytes, newest: bytes) -> list[bytes]:
    """A window that columns have entered, piece by piece."""
    moved, at, of = list[bytes](), 0, 0
    for piece in pieces:
        before = np.frombuffer(window, np.uint8, piece.whole, at).reshape(piece.rows, -1)
        entered = np.frombuffer(newest, np.uint8, piece.new, of).reshape(piece.rows, -1)
        moved.append(np.concatenate([before[:, piece.entered * piece.size :], entered], axis=1).tobytes())
        at, of = at + piece.whole, of + piece.new
    return moved


FORMS = {
    CHANGE: MARK, CHANGE_OF_VIEWS: MARK_OF_VIEWS, CHANGE_WITH_NEWS: MARK_WITH_NEWS, CHANGE_OF_OWN: MARK_OF_VIEWS,
    CHANGE_OF_HEARD: MARK_OF_HEARD,
}  # fmt: skip


def _mark(kind: np.dtype[Any], entered: int) -> Any:
    """What tells the sizes of a change, of states of this layout."""
    names = kind.names or ()
    if "rests" not in names:
        (columns, widest), (widths, _) = kind["points"].shape, kind["sums"].shape
        sizes = columns + widths, widest, entered
        if "marks" not in names:
            return np.array((CHANGE, *sizes), MARK)[()]
        return np.array((CHANGE_WITH_NEWS, *sizes, kind["latest"].shape[0]), MARK_WITH_NEWS)[()]
    (columns, places), (_, whole), (channels,) = (kind[name].shape for name in ("rows", "rests", "scale"))
    if "ties" in names:
        sizes_of_views = columns, places, whole, channels, entered, kind["ties"].shape[0]
        return np.array((CHANGE_OF_HEARD, *sizes_of_views), MARK_OF_HEARD)[()]
    change = CHANGE_OF_OWN if "own" in names else CHANGE_OF_VIEWS
    return np.array((change, columns, places, whole, channels, entered), MARK_OF_VIEWS)[()]


def _pieces(mark: Any) -> list[Piece]:
    if mark["change"] in (CHANGE, CHANGE_WITH_NEWS):
        rows, widest, entered = int(mark["rows"]), int(mark["widest"]), int(mark["entered"])
        window = Piece(rows, widest, 4, entered)
        if mark["change"] == CHANGE:
            return [window]
        heard = int(mark["heard"]) * (4 * MARKS + 4 + 8)
        return [window, Piece(1, heard, 1, heard)]
    columns, places, whole, channels, entered = (int(mark[name]) for name in MARK_OF_VIEWS.names[1:])  # type: ignore[index]
    # Running scales change with every row, and so does the number of rows, in eight bytes.
    pieces = [
        Piece(columns, places, 2, entered), Piece(columns, whole, 1, min(entered, whole)),
        Piece(1, channels, 4, channels), Piece(1, 1, 8, 1),
    ]  # fmt: skip
    if mark["change"] == CHANGE_OF_HEARD:
        heard = int(mark["heard"]) * (4 + 8)
        return [*pieces, Piece(1, heard, 1, heard)]
    return [*pieces, Piece(2, columns, 8, columns)] if mark["change"] == CHANGE_OF_OWN else pieces
