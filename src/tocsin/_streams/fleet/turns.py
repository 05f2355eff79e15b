"""Whose turn it is: rows of a batch in the order of their keys, without those that came before, or come too early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._common.wording import counted
from tocsin._compute.arrays import Int64Array
from tocsin._streams.fleet.states import NEVER

Reason = Literal["bad", "unseen", "late", "twice", "gap"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that was not taken in.

    row: its place in the batch.
    reason: 'bad': the detector cannot take it (NaN, wrong width, ...). 'unseen': the reference lacks the like of its
        context. 'late': its order is not after the key's last.
        'twice': another row has its key and order. 'gap': an order before it is missing.
    """

    row: int
    reason: Reason
    message: str


@dataclass(frozen=True)
class Turns:
    """Places in the batch, in the order of keys and of rows within them.

    taken: of rows whose turn it is.  before: of rows that are not after their key's last.
    """

    taken: Int64Array
    before: Int64Array
    refused: list[Refused]


def in_turn(owner: Int64Array, order: Int64Array, last: Int64Array, *, gapless: bool) -> Turns:
    """Of rows that belong to keys `owner`, the last order of each key being `last`."""
    place = np.lexsort((order, owner))
    own, when = owner[place], order[place]
    twice = np.zeros(len(place), dtype=bool)
    twice[1:] = (own[1:] == own[:-1]) & (when[1:] == when[:-1])
    before = (when <= last[own]) & ~twice
    refused = [Refused(int(i), "twice", f"Order {order[i]} comes twice in this batch.") for i in place[twice]]
    turn = np.flatnonzero(~twice & ~before)
    if gapless:
        # What is not after the last has been taken in before, for sure.
        first = np.searchsorted(own[turn], own[turn])
        begins = np.where(last[own[turn]] == NEVER, when[turn][first], last[own[turn]] + 1)
        due = begins + np.arange(len(turn)) - first
        missing = when[turn] != due
        refused += [
            Refused(int(i), "gap", f"Order {order[i]} comes where {expected} is due: what is between is missing.")
            for i, expected in zip(place[turn[missing]], due[missing], strict=True)
        ]
        turn = turn[~missing]
    else:
        refused += [
            Refused(
                int(i),
                "late",
                f"Order {order[i]} is not after {last[owner[i]]}, the last that was taken in: it comes too late, or "
                "was taken in before.",
            )
            for i in place[before]
        ]
    return Turns(place[turn], place[before], refused)


def whole_numbers(name: str, values: object, rows: int) -> Int64Array:
    """One for each row."""
    numbers = np.asarray(values)
    if numbers.shape != (rows,) or (rows and numbers.dtype.kind not in "iu"):
        raise InputError(
            Option(name),
            f" has shape {numbers.shape} and holds {numbers.dtype}; it must have a whole number for each of "
            f"{counted(rows, 'row')}.",
        )
    return numbers.astype(np.int64)
