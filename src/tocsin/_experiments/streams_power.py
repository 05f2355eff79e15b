"""What was found of changes, in tables: as methods come, at equal rates of false alarms, and of Tennessee Eastman."""

from __future__ import annotations

import numpy as np

from tocsin._experiments.base import Row, Table
from tocsin._experiments.equal_rates import Equal, equal, with_one_factor
from tocsin._experiments.recorded_changes import KINDS
from tocsin._experiments.recorded_sets import SOURCES, TENNESSEE
from tocsin._experiments.stream_counts import Kept, column, distinct, number, where

HIDDEN = ("d03_te", "d09_te", "d15_te")
"""Faults that are hardly visible."""

SOON, AT_ALL = 100, 800


def at_equal_rates(limits: Table) -> str:
    """What charts find with limits that ring as often as the default, beside what that finds."""
    first = [row for row in limits if SOURCES[str(row["set"])].asked]
    by_set = sorted(equal(limits), key=lambda each: -each.behind)
    if not by_set:
        return ""
    lines = [
        "## Changes found at equal rates of false alarms\n",
        "Limits of charts are multiplied by a factor until they ring as often as the default does; between the factors "
        "that were tried, shares are interpolated by the logarithm of the rate. 'Default / chart': the shares found "
        "within 50 rows, on the recordings that neither refused. Above with a factor for each set, and with one for "
        "all, shares being means over sets; below the sets, those first in which the default is furthest behind. A "
        "factor in brackets: no limit that was tried rings as often, and this one is the nearest.\n",
        f"| sets | beside | recordings | expected | observed | factor | {' | '.join(KINDS)} |",
        "|---|---|---|---|---|---|" + "---|" * len(KINDS),
    ]
    for title, own in (("first sets", first), ("all sets", limits)):
        lines += [_equal(each, "own") for each in means(equal(own), f"{title}, a factor each")]
        lines += [_equal(each) for each in with_one_factor(own, f"{title}, one factor")]
    return "\n".join([*lines, *(_equal(each) for each in by_set), ""])


def means(found: list[Equal], name: str) -> list[Equal]:
    """Over sets, of each chart."""
    charts = {chart: [each for each in found if each.chart == chart] for chart in {each.chart: 0 for each in found}}
    return [
        Equal(
            name, chart, sum(each.recordings for each in own), sum(each.expected for each in own),
            sum(each.alarms for each in own), np.nan, True, np.mean([each.ours for each in own], axis=0),
            np.mean([each.theirs for each in own], axis=0),
        )
        for chart, own in charts.items()
    ]  # fmt: skip


def _equal(each: Equal, factor: str = "") -> str:
    factor = factor or (number(each.factor) if each.reached else f"({number(each.factor)})")
    shares = " | ".join(f"{a:.0%} / {b:.0%}" for a, b in zip(each.ours, each.theirs, strict=True))
    counts = f"{each.recordings} | {each.expected:.1f} | {each.alarms}"
    return f"| {each.sets} | {each.chart} | {counts} | {factor} | {shares} |"


def as_they_come(rows: Table) -> str:
    """What each method finds at its own rate of false alarms."""
    tried = [row for row in rows if row["trials"] and not np.isnan(float(row[KINDS[0]]))]
    if not tried:
        return ""
    lines = [
        f"## Changes found at an ERT of {tried[0]['ert']}\n",
        "The share found within 50 rows, over the recordings that a method did not refuse and whose stream is longer, "
        "so not all lines are of the same ones; each at its own rate of false alarms, so that a loud method finds "
        "more. 'No change' is how often it rang when nothing was changed: what is found beyond that is power. Shifts "
        f"are in long-run spreads. Tried in each recording, of each kind: {tried[0]['trials']}.\n",
        f"| set | method | recordings | {' | '.join(KINDS)} |",
        "|---|---|---|" + "---|" * len(KINDS),
    ]
    for method in distinct(rows, "method"):
        own = where(tried, method=method)
        if own:
            means = [np.mean([column(rows, kind).mean() for rows in _by_set(own)]) for kind in KINDS]
            shares = " | ".join(f"{mean:.0%}" for mean in means)
            lines.append(f"| mean of {len(_by_set(own))} | {method} | {len(own)} | {shares} |")
    refused = {_place(row) for row in rows if row["refused"]}
    groups = {"all that none refused": [row for row in tried if _place(row) not in refused]}
    for name, group in {**groups, **{str(name): where(tried, set=name) for name in distinct(tried, "set")}}.items():
        for method in distinct(rows, "method"):
            own = where(group, method=method)
            if own:
                shares = " | ".join(f"{column(own, kind).mean():.0%}" for kind in KINDS)
                lines.append(f"| {name} | {method} | {len(own)} | {shares} |")
    return "\n".join([*lines, ""])


def faults(rows: Table) -> str:
    """When Tennessee Eastman's faults were found."""
    made = [row for row in rows if row["set"] == TENNESSEE and row["recording"] != "d00_te" and row["trials"]]
    lines = [
        f"## Faults of {TENNESSEE}\n",
        f"Found within {SOON} and {AT_ALL} rows of their onset, and the median delay in rows (a fault that is not "
        "found has one without end). Faults 3, 9 and 15 are hardly visible: what is found of them is mostly luck.\n",
        f"| faults | method | refused | within {SOON} | within {AT_ALL} | median delay |",
        "|---|---|---|---|---|---|",
    ]
    for title, hidden in (("all but 3, 9 and 15", False), ("3, 9 and 15", True)):
        for method in distinct(made, "method"):
            every = [row for row in where(made, method=method) if (row["recording"] in HIDDEN) == hidden]
            own = [row for row in every if not row["refused"]]
            if not every:
                continue
            delays = column(own, "delay")
            counts = " | ".join(f"{(delays <= most).sum()} of {len(own)}" if own else "-" for most in (SOON, AT_ALL))
            middle = float(np.median(delays)) if own else np.inf
            median = f"{middle:.0f}" if np.isfinite(middle) else "-"
            lines.append(f"| {title} | {method} | {Kept(every).refusals} | {counts} | {median} |")
    return "\n".join([*lines, ""]) if made else ""


def _by_set(rows: Table) -> list[Table]:
    return [where(rows, set=name) for name in distinct(rows, "set")]


def _place(row: Row) -> tuple[object, object]:
    return row["set"], row["recording"]
