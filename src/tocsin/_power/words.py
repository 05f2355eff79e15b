"""What a detector can see, in words: changes of a kind are told together, and columns in which they are not found by
name, since that is what nobody would know else."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tocsin._common.wording import called, counted, few, listed

if TYPE_CHECKING:
    from tocsin._power.result import Power, Remedy, SimulatedChange

MOST_NAMES = 5
"""Columns that a line names."""

SPREAD = (
    "A spread is the distance between a column's quartiles over 1.35, which of a normal law is its standard deviation; "
    "of the whole reference, so that a level that wanders makes it wide."
)

WITHIN = SPREAD.replace("of the whole reference, so that a level that wanders makes it wide", "within recordings")

UP_OR_DOWN = ("higher", "lower")


@dataclass(frozen=True)
class Line:
    """Changes of one kind and size, of all columns that were tried.

    label: what happens.  verdict: in which columns it is found, and how soon.
    slowest: the longest typical delay among the columns in which it is found; infinite if it is found in none.
    missed: columns in which it is not found.  among: how many were tried; 0 of a change of all columns at once.
    """

    label: str
    verdict: str
    level: Literal["found", "partly", "unseen"]
    slowest: float
    missed: tuple[str, ...]
    among: int
    kind: str
    size: float | None

    @property
    def shift(self) -> bool:
        """Whether it is one column that moves."""
        return self.kind == "shift"


def lines(power: Power) -> list[Line]:
    """All that was tried, kind by kind."""
    groups: dict[tuple[str, float | None, bool], list[SimulatedChange]] = {}
    for change in power.changes:
        kind = "shift" if change.kind in UP_OR_DOWN else change.kind
        groups.setdefault((kind, change.size, change.column is None), []).append(change)
    order = list(ORDER)
    keys = sorted(groups, key=lambda key: (key[2], order.index(key[0]), -(key[1] or 0.0)))
    return [_line(*key, groups[key]) for key in keys]


ORDER = {
    "shift": "moves up or down by {spreads}",
    "other value": "takes another value than its only one",
    "stuck": "stops at its last value",
    "wider": "becomes noisier: its spread doubles",
    "narrower": "becomes quieter: its spread halves",
    "missing": "lacks {share} its values",
    "unseen": "holds a category never seen in {share} rows",
    "uncoupled": "goes its own way: its values are those of another time",
    "shifted": "move, each up or down, by {spreads}",
}
"""What a column does, by kind."""


def said(kind: str, size: float | None) -> str:
    """What a column does."""
    kind = "shift" if kind in UP_OR_DOWN else kind
    return _filled(ORDER[kind], kind, size)


def _filled(words: str, kind: str, size: float | None) -> str:
    if size is None:
        return words
    share = "all" if size == 1 else f"{size:.0%} of"
    return words.format(spreads=f"{'half a' if size == 0.5 else few(size)} spread{'s' * (size > 1)}", share=share)


def named(change: SimulatedChange) -> str:
    """One change."""
    what = said(change.kind, change.size)
    if change.column is None:
        return f"all columns {_plural(what)}"
    if change.kind in UP_OR_DOWN:
        what = what.replace("up or down", "up" if change.kind == "higher" else "down")
    amount = "" if change.amount is None else f" ({change.amount:.3g})"
    return f"{called(change.column)} {what}{amount}"


def _plural(what: str) -> str:
    return what.replace("stops at its last value", "stop at their last values")


def _line(kind: str, size: float | None, whole: bool, changes: Sequence[SimulatedChange]) -> Line:
    what = said(kind, size)
    slowest: dict[str, float] = {}
    for change in changes:
        name = change.column or ""
        slowest[name] = max(slowest.get(name, 0.0), change.delay)
    missed = tuple(name for name, delay in slowest.items() if not math.isfinite(delay))
    delays = [delay for delay in slowest.values() if math.isfinite(delay)]
    level: Literal["found", "partly", "unseen"] = "found" if not missed else "partly" if delays else "unseen"
    soon = _rows(delays)
    if whole:
        verdict = soon or "not found"
        return Line(
            f"all columns {_plural(what)}", verdict, level, max(delays, default=math.inf), missed, 0, kind, size
        )
    among = len(slowest)
    if level == "found":
        verdict = f"in {_all(slowest)}, {soon}"
    elif level == "partly":
        verdict = f"in {len(delays):,} of {among:,}, {soon}; not in {_names(missed)}"
    else:
        verdict = f"not found in {_names(missed)}" if among <= MOST_NAMES else f"not found in any of {among:,}"
    label = f"a column {what}"
    return Line(label, verdict, level, max(delays, default=math.inf), missed, among, kind, size)


def _all(names: Collection[str]) -> str:
    count = len(names)
    return called(next(iter(names))) if count == 1 else "both columns" if count == 2 else f"all {count:,} columns"


def _rows(delays: Sequence[float]) -> str:
    if not delays:
        return ""
    low, high = min(delays), max(delays)
    return f"within {counted(int(high), 'row')}" if low == high else f"within {low:,.0f} to {high:,.0f} rows"


def _names(names: Sequence[str]) -> str:
    some = [called(name) for name in names[:MOST_NAMES]]
    more = len(names) - len(some)
    return listed([*some, f"{more:,} more"] if more > 0 else some)


def text(power: Power) -> str:
    """All of it."""
    if not power.trials:
        return "\n".join(
            ["Nothing could be simulated on this reference.", *(f"  {why}" for why in power.not_simulated)]
        )
    told = lines(power)
    width = max(len(line.label) for line in told)
    body = [f"  {line.label:<{width}}  {line.verdict}" for line in told]
    return "\n".join([heading(power), *body, *remarks(power)])


def remarks(power: Power) -> list[str]:
    """What a spread is, what could not be simulated, and what would help."""
    moved = any(change.kind in (*UP_OR_DOWN, "shifted") for change in power.changes)
    return [
        *([WITHIN if power.rows == "recordings" else SPREAD] if moved else []),
        *([f"Not simulated: {'; '.join(power.not_simulated)}."] if power.not_simulated else []),
        *(f"What would help: {advice}." for advice in power.advice),
    ]


def heading(power: Power) -> str:
    """What the lines are."""
    where = {
        "stretches": "on stretches of the reference",
        "recordings": "on recordings of the reference, each met as a new stream with its own baseline",
        "draws": "on rows drawn from the reference",
    }[power.rows]
    return (
        f"Simulated {where}, {counted(power.trials, 'trial')} of each change: found half of the time, or not found so "
        f"within {counted(power.horizon, 'row')} (ERT {power.ert:,.10g}; {power.chance:.0%} ring in as many rows when "
        "nothing changes)."
    )


def in_short(power: Power) -> list[str]:
    """In two sentences: the smallest shift that is found in every column, and what is not found."""
    if not power.trials:
        return [f"What it can see could not be simulated: {'; '.join(power.not_simulated)}."]
    return [finds(power), misses(power)]


def finds(power: Power) -> str:
    """The smallest shift that is found in most columns, or the largest of all."""
    shifts = [line for line in lines(power) if line.shift and line.level != "unseen"]
    if not shifts:
        found = [line for line in lines(power) if line.level != "unseen"]
        if not found:
            return f"Finds nothing of what was simulated within {counted(power.horizon, 'row')}."
        return f"Finds, half of the time: {'; '.join(f'{line.label} ({line.verdict})' for line in found)}."
    most = [line for line in shifts if 2 * len(line.missed) < line.among]
    line = min(most, key=lambda each: each.size or 0.0) if most else max(shifts, key=lambda each: each.size or 0.0)
    heard = line.among - len(line.missed)
    where = "one column" if power.columns > 1 else "the column"
    if line.missed:
        where = f"{heard:,} of {counted(line.among, 'column')}"
    elif line.among < power.columns:
        where = f"one column of {line.among:,} that were tried" if line.among > 1 else "the one column that was tried"
    return f"Finds {noun('shift', line.size)} in {where} within {counted(int(line.slowest), 'row')} half of the time."


NOUNS = {
    "shift": "a shift of {spreads}",
    "other value": "another value of a constant column",
    "stuck": "a column that stops",
    "wider": "doubled noise",
    "narrower": "halved noise",
    "missing": "{share} values missing",
    "unseen": "a category never seen in {share} rows",
    "uncoupled": "a column that goes its own way",
    "shifted": "all columns moved by {spreads}",
}
"""The same, as things that are found or not."""


def noun(kind: str, size: float | None) -> str:
    """A change as a thing."""
    return _filled(NOUNS[kind], kind, size)


def gathered(remedies: Sequence[Remedy]) -> str:
    """Changes that have something in common, with the columns by name."""
    columns: dict[str, list[str | None]] = {}
    for own in remedies:
        kind = "shift" if own.kind in UP_OR_DOWN else own.kind
        columns.setdefault(noun(kind, own.size), []).append(own.column)
    told = []
    for what, names in columns.items():
        named = list(dict.fromkeys(name for name in names if name is not None))
        told.append(f"{what} ({_names(named)})" if named else what)
    return "; ".join(told)


def misses(power: Power) -> str:
    """What is not found, kind by kind, with the columns by name."""
    kinds: dict[str, list[Line]] = {}
    for line in lines(power):
        if line.level != "found":
            kinds.setdefault(f"{line.kind}{line.among == 0}", []).append(line)
    parts = [_missed(own) for own in kinds.values()]
    if not parts:
        return "Nothing of what was simulated is missed."
    return f"Does not find: {'; '.join(parts)}."


def _missed(sizes: Sequence[Line]) -> str:
    """Of a kind, the largest size that is not found, and smaller ones where that is so in more columns."""
    told: list[str] = []
    before = 0
    for line in sizes:
        if told and len(line.missed) <= before:
            continue
        before = len(line.missed)
        what = noun(line.kind, line.size) if not told else _smaller(line)
        told.append(f"{what}{_where(line)}")
    return ", ".join(told)


def _smaller(line: Line) -> str:
    """A smaller size of what was told just before."""
    return f"{line.size or 0.0:.0%}" if line.kind in ("missing", "unseen") else f"of {few(line.size or 0.0)}"


def _where(line: Line) -> str:
    if not line.among:
        return " together" if line.kind == "stuck" else ""
    if len(line.missed) == line.among > MOST_NAMES:
        return f" (any of {line.among:,} columns)"
    return f" ({_names(line.missed)})"
