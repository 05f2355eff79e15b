"""A detector for every key of a stream, that any engine can carry: states and a batch in, states and alarms out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._common.checks import is_whole
from tocsin._common.errors import Code, InputError, Option, StorageError
from tocsin._common.wording import counted, listed
from tocsin._compute.arrays import Array, BoolArray, Float64Array, Int64Array
from tocsin._data import validation
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Intake, Rows
from tocsin._data.representations.batches import count_of, form_of, rows_at
from tocsin._detector.base import fitted_of
from tocsin._detector.detector import Detector
from tocsin._streams.fleet.alarms import Alarms, FleetAlarm
from tocsin._streams.fleet.batch import Batch
from tocsin._streams.fleet.changes import applied, changes_of
from tocsin._streams.fleet.kinds import windows_of
from tocsin._streams.fleet.states import FOR_EVER, NEVER, KeyStates, hash_of, prefix_of, split
from tocsin._streams.fleet.turns import Refused, in_turn, whole_numbers
from tocsin._streams.promise import promising, told

KEYS_AT_ONCE = 256
"""Keys that are read, advanced and written together."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch came to.

    states: of the keys, in their order.  taken: observations that were taken in.
    changes: if they were asked for, what `Fleet.applied` makes these states of, given those that came in.
    """

    states: list[bytes]
    alarms: list[FleetAlarm]
    refused: list[Refused]
    taken: int
    changes: list[bytes]


class Fleet:
    """Watches one stream for each of any number of keys, and keeps nothing: all that changes is in states, as bytes.

    Keys share the detector's reference and thresholds; each has a window, a clock and alarms of its own. A batch that
    comes again is not counted twice, and tells the same alarms.

    Parameters
    ----------
    detector
        A fitted detector whose only statistic is MMD with Gaussian kernels, or Views (the defaults), and whose runs end
        with an alarm (`reset_on_alarm`, the default). It is not changed.
    ert
        Observations of a key between false alarms, if not as many as the detector was fitted for.
    for_all
        How many keys share that promise: none of so many rings in `ert` observations of each, on average, if they do
        not depend on each other. None: each key keeps the promise by itself.
    rest
        Observations that a key is left alone for after an alarm, before a new run begins. 0: it begins at once. None:
        only a reset begins it.
    gapless
        Whether orders count 1, 2, 3, ... within a key. Gaps are then refused, and rows that come again are known for
        what they are.
    explain
        Whether alarms carry explanations, which take some 20 milliseconds each.
    before
        Detectors that this one replaces, whose states may still come: their windows are carried over.
    workers
        Threads to use; all cores by default. Their number changes nothing in the result.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=5000, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> fleet = Fleet(detector)
    >>> rows, owner = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
    >>> rows[20:] += 3
    >>> step = fleet.step(["a", "b"], [None, None], rows, owner, np.arange(40))
    >>> sorted({alarm.key for alarm in step.alarms})
    ['b']
    >>> step = fleet.step(["a", "b"], step.states, rows[:1], [0], [40])
    """

    def __init__(
        self,
        detector: Detector,
        *,
        ert: float | None = None,
        for_all: int | None = None,
        rest: int | None = 0,
        gapless: bool = False,
        explain: bool = False,
        before: Sequence[Detector] = (),
        workers: int | None = None,
    ) -> None:
        if rest is not None and not is_whole(rest, 0):
            raise InputError(Option("rest", rest), " must be a number of observations from 0 on, or None for no end.")
        if not fitted_of(detector).resets:
            raise InputError(
                Option("reset_on_alarm", False),
                ": in a fleet an alarm always ends its run, since a key that went on would ring with every row while "
                "its window shows the change. Fit the detector with ",
                Option("reset_on_alarm", True),
                "; ",
                Option("rest", ...),
                " says how long a key is left alone after an alarm.",
            )
        fitted = promising(fitted_of(detector), ert, for_all)
        self._windows = windows_of(fitted, validation.positive_integer("workers", workers))
        self._promise = told(fitted.calibration, "key", ert or detector.calibration_.ert, for_all)
        self._rest, self._gapless, self._explain = FOR_EVER if rest is None else int(rest), gapless, explain
        earlier = [windows_of(fitted_of(each)) for each in before]
        self._before = {windows.fingerprint: windows for windows in earlier}

    def step(
        self,
        keys: Sequence[str],
        states: Sequence[bytes | None],
        batch: object,
        owner: object,
        order: object,
        resets: object = None,
        *,
        changes: bool = False,
    ) -> Step:
        """Take in a batch: observations of some keys, in any order. Nothing is changed but what is returned.

        Parameters
        ----------
        keys
            The names of the keys, each once.
        states
            What the last step with each of them returned; None for a key that is new.
        batch
            Observations, as `Detector.update_many` takes them.
        owner
            Which of the keys each observation belongs to, from 0 on.
        order
            A whole number for each observation that grows within a key: a sequence number, an offset, a time in
            microseconds. Rows are put in this order; those that are not after their key's last are refused.
        resets
            Whether a new run begins with each observation, as after a repair.
        changes
            Whether to tell what is new in states too, which is less to write than states are: see `Fleet.applied`.
        """
        rows = count_of(batch)
        owner, order, resets = self._checked(keys, states, rows, owner, order, resets)
        points, bad = self._taken_in(batch, rows)
        # Some keys at a time: what they hold stays in a core's cache.
        by_key, some = np.argsort(owner, kind="stable"), range(0, len(keys), KEYS_AT_ONCE)
        bounds = np.searchsorted(owner[by_key], [*some, len(keys)])
        steps = []
        for k, (start, stop) in zip(some, pairwise(bounds), strict=True):
            mine, own = by_key[start:stop], slice(k, k + KEYS_AT_ONCE)
            wrong = {i: bad[row] for i, row in enumerate(mine.tolist()) if row in bad} if bad else {}
            given = points[mine], owner[mine] - k, order[mine], resets[mine], wrong
            steps.append(self._step(keys[own], states[own], *given, changes=changes))
            steps[-1].refused[:] = [replace(each, row=int(mine[each.row])) for each in steps[-1].refused]
        return Step(
            [state for step in steps for state in step.states],
            [alarm for step in steps for alarm in step.alarms],
            sorted((each for step in steps for each in step.refused), key=lambda each: each.row),
            sum(step.taken for step in steps),
            [change for step in steps for change in step.changes],
        )

    def _step(
        self,
        keys: Sequence[str],
        states: Sequence[bytes | None],
        points: Float64Array,
        owner: Int64Array,
        order: Int64Array,
        resets: BoolArray,
        bad: dict[int, str],
        *,
        changes: bool,
    ) -> Step:
        """`step` of some keys; bad: what is wrong with points that are none, by row."""
        kept = self._read(keys, states)
        turns = in_turn(owner, order, kept.last, gapless=self._gapless)
        # A row that cannot be taken in has had its turn.
        kept.last[owner[turns.taken]] = order[turns.taken]
        wrong, unseen = np.isin(turns.taken, list(bad)), np.isnan(points[turns.taken, 0])
        refused = [*turns.refused, *(Refused(int(i), "bad", bad[int(i)]) for i in turns.taken[wrong])]
        refused += [Refused(int(i), "unseen", self._lacking) for i in turns.taken[unseen]]
        taken = turns.taken[~wrong & ~unseen]
        found = Alarms(self._windows, kept, keys, owner, order, taken, explain=self._explain)
        found.tell_again(turns.before)
        if len(taken):
            Batch(self._windows, kept, owner[taken], resets[taken], self._rest, found.rang).run(points[taken])
        found.remember()
        written = kept.write(self._windows.fingerprint, self._windows.layout)
        new = changes_of(kept, written, self._windows.layout) if changes else []
        return Step(written, found.alarms, refused, len(taken), new)

    @staticmethod
    def applied(change: bytes, state: bytes | None) -> bytes:
        """The state that a step came to, made of one of its `changes` and of the state that was given to it."""
        return applied(change, state)

    # What comes in

    def _checked(
        self,
        keys: Sequence[str],
        states: Sequence[bytes | None],
        rows: int,
        owner: object,
        order: object,
        resets: object,
    ) -> tuple[Int64Array, Int64Array, BoolArray]:
        if len(keys) != len(states) or len(set(keys)) < len(keys) or not all(isinstance(key, str) for key in keys):
            raise InputError(
                f"There are {counted(len(keys), 'key')} and {counted(len(states), 'state')}: give a state, or None, "
                "for each key. Keys are strings, and none may come twice."
            )
        owner, order = whole_numbers("owner", owner, rows), whole_numbers("order", order, rows)
        if rows and not 0 <= owner.min() <= owner.max() < len(keys):
            raise InputError(
                Option("owner"), f" must say which of {counted(len(keys), 'key')} each row belongs to, from 0 on."
            )
        if rows and order.min() == NEVER:
            raise InputError(
                Option("order"), f" holds {NEVER}, which stands for a key without a past. Give larger numbers."
            )
        flags: BoolArray = np.zeros(rows, dtype=bool) if resets is None else np.asarray(resets, dtype=bool)
        if flags.shape != (rows,):
            raise InputError(
                Option("resets"), f" has shape {flags.shape}, and there are {counted(rows, 'row')}: give one for each."
            )
        return owner, order, flags

    def _taken_in(self, batch: object, rows: int) -> tuple[Float64Array, dict[int, str]]:
        """Points, and what is wrong with rows that make none, found by halving what fails."""
        intake, points = self._windows.fitted.intake, np.zeros((rows, self._windows.columns))
        bad, waiting = dict[int, str](), [(0, rows)]
        while waiting:
            start, stop = waiting.pop()
            try:
                points[start:stop] = intake.many(
                    batch if stop - start == rows else rows_at(batch, np.arange(start, stop))
                )
            except InputError as error:
                if stop - start == 1:
                    bad[start] = _wrong_with(rows_at(batch, np.array([start])), intake) or str(error)
                elif stop > start:
                    middle = (start + stop) // 2
                    waiting += [(middle, stop), (start, middle)]
        return points, bad

    @property
    def _lacking(self) -> str:
        """Why rows are left out whose points are NaN."""
        intake = self._windows.fitted.intake
        names = listed(intake.given) if isinstance(intake, Contextual) else ""
        return f"The reference lacks the like of this row's context ({names}), so nothing can be expected of it."

    # States

    def _read(self, keys: Sequence[str], states: Sequence[bytes | None]) -> KeyStates:
        windows = self._windows
        blank, heads, alarms = bytes(windows.layout.itemsize), list[bytes](), dict[int, Array]()
        others: dict[int, bytes | None] = {}
        for k, (name, state) in enumerate(zip(keys, states, strict=True)):
            if state is not None and not isinstance(state, bytes):
                raise InputError(f"The state of key {name!r} is a {type(state).__name__}; states are bytes, or None.")
            if state is None or prefix_of(state, name) != windows.fingerprint:
                others[k] = state
                heads.append(blank)
                continue
            head, tail = split(state, windows.layout, name)
            heads.append(head)
            if len(tail):
                alarms[k] = tail
        kept: KeyStates = windows.read(heads, alarms)
        hashes, new = np.array([hash_of(key) for key in keys], np.uint64), np.array(list(others), np.int64)
        kept.key[new] = hashes[new]
        kept.last[new], kept.entered[new] = NEVER, windows.widest
        windows.begin(kept, new)
        kept.check(keys, len(windows.fitted.channels))
        wrong = np.flatnonzero(kept.key != hashes)
        if len(wrong):
            raise _another_key(keys[wrong[0]])
        for k, state in others.items():
            if state is not None:
                self._carry_over(kept, k, keys[k], state)
        return kept

    def _carry_over(self, kept: KeyStates, k: int, name: str, state: bytes) -> None:
        """Go on from what an earlier detector has left of a key."""
        earlier, windows = self._before.get(prefix_of(state, name)), self._windows
        if earlier is None:
            raise StorageError(
                f"The state of key {name!r} was made with another detector. Give that one as ",
                Option("before", Code("[...]")),
                " to carry its window over, or None instead of the state to begin the key anew.",
            )
        head, _ = split(state, earlier.layout, name)
        old = earlier.read([head], {})
        old.check([name], len(earlier.fitted.channels))
        if old.key[0] != kept.key[k]:
            raise _another_key(name)
        kept.count[k], kept.last[k], kept.run[k] = old.count[0], old.last[0], old.run[0]
        intake = windows.fitted.intake
        same = isinstance(intake, Rows) and intake == earlier.fitted.intake
        if same and windows.carry(kept, k, old, earlier):
            kept.time[k] = old.time[0]
        else:
            # What a table or a representation made of observations means something else now.
            kept.run[k] += 1
            windows.begin(kept, np.array([k]))
        kept.resting[k] = old.resting[0]

    # What is known

    @property
    def calibration_(self) -> Calibration:
        """What the thresholds of each key rest on."""
        return self._windows.fitted.calibration

    def __repr__(self) -> str:
        return f"<Fleet ringing {self._promise}; {self._windows.layout.itemsize:,} bytes a key>"


def _wrong_with(row: Any, intake: Intake) -> str | None:
    """The complaint about one observation, not about a place in a block."""
    try:
        intake.one(row[0] if form_of(row) in ("array", "list") else row)
    except InputError as error:
        return str(error)
    return None


def _another_key(name: str) -> StorageError:
    return StorageError(f"The state given for key {name!r} is that of another key. Give each key its own.")
