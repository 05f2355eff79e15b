"""What a batch has changed in the state of a key: most of a window has only moved on, and need not be written again.

    mark    what this is, and the sizes of the window
    head    the new state's, with its checksum
    tail    the new state's alarms
    window  the columns that have entered

A change that all of the window has part in is the new state itself.
"""

from __future__ import annotations

import numpy as np

from tocsin._common.errors import StorageError
from tocsin._streams.fleet.states import HEAD, SUMMED, KeyStates, checksum

CHANGE = 0xC4A6
"""Where a state has its version."""

MARK = np.dtype([("change", "<u2"), ("rows", "<u4"), ("widest", "<u4"), ("entered", "<u4")])


def changes_of(kept: KeyStates, states: list[bytes]) -> list[bytes]:
    """What turns the states that were read into these, which `kept` has written."""
    changes, (columns, widest) = list(states), kept.points.shape[1:]
    rows = columns + kept.sums.shape[1]
    whole = HEAD.itemsize + 4 * rows * widest
    for entered in np.unique(kept.entered[kept.entered < widest]).tolist():
        mine = np.flatnonzero(kept.entered == entered)
        newest = [part[mine, :, widest - entered :] for part in (kept.points, kept.sums)]
        window, size = np.concatenate(newest, axis=1).tobytes(), 4 * rows * entered
        mark = np.array((CHANGE, rows, widest, entered), MARK).tobytes()
        for place, k in enumerate(mine.tolist()):
            state = states[k]
            own = window[place * size : (place + 1) * size]
            changes[k] = b"".join([mark, state[: HEAD.itemsize], state[whole:], own])
    return changes


def applied(change: bytes, state: bytes | None) -> bytes:
    """The state that a step came to, of one of its `changes` and the state of before."""
    if int.from_bytes(change[:2], "little") != CHANGE:
        return change
    if len(change) >= MARK.itemsize:
        mark = np.frombuffer(change, MARK, 1)[0]
        rows, widest, entered = int(mark["rows"]), int(mark["widest"]), int(mark["entered"])
        begin, end = HEAD.itemsize, len(change) - 4 * rows * entered
        if state is not None and len(state) >= begin + 4 * rows * widest and end >= MARK.itemsize + begin:
            window = np.frombuffer(state, np.uint32, rows * widest, begin).reshape(rows, widest)
            newest = np.frombuffer(change, np.uint32, rows * entered, end).reshape(rows, entered)
            head, tail = change[MARK.itemsize :][:begin], change[MARK.itemsize + begin : end]
            new = b"".join([head, np.concatenate([window[:, entered:], newest], axis=1).tobytes(), tail])
            if new[2:SUMMED] == checksum(new):
                return new
    raise StorageError("A change of a state does not fit the state: it was made of another, or is damaged.")
