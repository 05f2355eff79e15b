"""What the default should reach on real streams, and whether it does: set down before it was measured.

Only sets for which targets were set count here, at an ERT of 500. Power is compared at equal rates of false alarms, in
each set and over all, and judged by the mean over sets and kinds of change; each kind is told beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tocsin._experiments.base import Table
from tocsin._experiments.equal_rates import equal, with_one_factor
from tocsin._experiments.recorded_changes import KINDS, NOTHING
from tocsin._experiments.recorded_sets import SOURCES, TENNESSEE
from tocsin._experiments.stream_counts import Kept, column, distinct, number, where
from tocsin._experiments.stream_methods import DEFAULT, PROTOTYPE
from tocsin._experiments.streams_power import HIDDEN, SOON, means

MIDDLE = (0.67, 1.5)
WORST, WORST_OF = 2.5, {"3W wells": 3.5}
WITHIN = 0.85
ROOM, LARGE = 0.02, 0.8
"""What the prototype may find more; and the share of the largest shifts that is to be found."""

VISIBLE, FOUND, DELAY, LOUDEST = 18, 17, 15.0, 1.5
"""Tennessee Eastman: visible faults, those to be found, their median delay in rows, and false alarms, at most."""


class Target(NamedTuple):
    """What is asked, how much, what was found, and whether that is enough."""

    asked: str
    limit: str
    found: str
    reached: bool

    def __str__(self) -> str:
        return f"| {self.asked} | {self.limit} | {self.found} | {'reached' if self.reached else '**missed**'} |"


def told(rows: Table, limits: Table) -> str:
    """A table of them, what was missed first."""
    asked = [name for name, source in SOURCES.items() if source.asked]
    tried = [row for row in rows if row["trials"] and row["set"] in asked]
    own = where(tried, method=DEFAULT)
    if not own:
        return ""
    found = [*_alarms(own), *_power(own, [row for row in limits if row["set"] in asked]), *_plant(own)]
    lines = [
        f"## What was aimed at, at an ERT of {own[0]['ert']}\n",
        "Set down before it was measured, for the first nine sets. What was missed comes first.\n",
        "| aim | limit | found | |",
        "|---|---|---|---|",
    ]
    by_failure = sorted(found, key=lambda each: each.reached)
    return "\n".join([*lines, *map(str, by_failure), ""])


def _alarms(own: Table) -> Iterator[Target]:
    sets = {str(name): Kept(where(own, set=name)) for name in distinct(own, "set")}
    known = {name: kept for name, kept in sets.items() if kept.expected}
    low, high = MIDDLE
    middle = float(np.median([kept.ratio for kept in known.values()])) if known else np.nan
    yield Target(
        "false alarms over expected, median over sets", f"{low:g} to {high:g}", number(middle), low <= middle <= high
    )
    loud = {name: kept.ratio for name, kept in known.items() if kept.ratio > WORST_OF.get(name, WORST)}
    most = max(known, key=lambda name: known[name].ratio / WORST_OF.get(name, WORST))
    names = loud or {most: known[most].ratio}
    yield Target(
        "the same, of each set",
        f"at most {WORST:g} (3W wells {WORST_OF['3W wells']:g})",
        ", ".join(f"{name} {number(ratio)}" for name, ratio in names.items()),
        not loud,
    )
    every = Kept(own)
    yield Target("refused references", "none", every.refusals, not every.refused)
    share = every.within / every.stated if every.stated else np.nan
    limit = f"at least {WITHIN:.0%}"
    yield Target("recordings with a count likely for the stated interval", limit, f"{share:.0%}", share >= WITHIN)


def _power(own: Table, limits: Table) -> Iterator[Target]:
    largest = KINDS[3]
    shares = [column(rows, largest) for rows in (where(own, set=name, refused=0) for name in distinct(own, "set"))]
    tried = [each[~np.isnan(each)].mean() for each in shares if not np.isnan(each).all()]
    if tried:
        mean = float(np.mean(tried))
        limit = f"at least {LARGE:.0%}"
        yield Target("shifts of 4 long-run spreads found, mean over sets", limit, f"{mean:.0%}", mean >= LARGE)
    for each in [*means(equal(limits), "a factor for each set"), *with_one_factor(limits, "one factor for all")]:
        gain = each.ours - each.theirs
        mean = float(gain[[kind != NOTHING for kind in KINDS]].mean())
        near = each.chart == PROTOTYPE
        words = ", ".join(f"{kind} {more:+.2f}" for kind, more in zip(KINDS, gain, strict=True))
        yield Target(
            f"found within 50 rows more than by '{each.chart}', at equal rates, {each.sets}",
            f"at least -{ROOM:g}" if near else "more than 0",
            f"{mean:+.2f} ({words})",
            mean >= -ROOM if near else mean > 0,
        )


def _plant(own: Table) -> Iterator[Target]:
    runs = where(own, set=TENNESSEE)
    visible = [row for row in runs if row["recording"] not in (*HIDDEN, "d00_te")]
    if len(visible) < VISIBLE:
        return
    delays, ratio = np.nan_to_num(column(visible, "delay"), nan=np.inf), Kept(runs).ratio
    soon, middle = int((delays <= SOON).sum()), float(np.median(delays))
    yield Target(
        f"{TENNESSEE}: visible faults found within {SOON} rows", f"{FOUND} of {VISIBLE}", str(soon), soon >= FOUND
    )
    yield Target("their median delay, in rows", f"at most {DELAY:g}", f"{middle:g}", middle <= DELAY)
    yield Target("false alarms over expected there", f"at most {LOUDEST:g}", number(ratio), ratio <= LOUDEST)
