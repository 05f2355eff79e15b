"""What watching real streams has shown: tables in words, the furthest from the promise first, and a figure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tocsin._experiments import streams_power, streams_targets
from tocsin._experiments.base import Table, Tables
from tocsin._experiments.recorded_sets import SOURCES
from tocsin._experiments.stream_counts import Kept, column, distinct, number, where
from tocsin._experiments.stream_methods import DEFAULT
from tocsin._plots.figures import COLOURS, PAGE, figure

NARROW, WIDE = 1.5, 3.0
"""Factors from the promise."""


def draw(tables: Tables, folder: Path) -> str:
    """Observed over expected false alarms, by set and method, and all tables."""
    rows, limits = tables["streams"], tables["streams_limits"]
    erts = distinct(rows, "ert")
    _draw(rows, erts, folder)
    parts = [
        "# Real quiet streams\n",
        streams_targets.told(rows, limits),
        "## False alarms over all sets\n",
        "False alarms seen for every one that was promised (rows / ERT), over the recordings that were not refused. "
        "'Chosen on': the recordings that choices of the default were made on; all others are only reported, of the "
        "first nine sets and of those that were added later.\n",
        _summary(rows, erts),
        "![Observed over expected false alarms](streams.png)\n",
        "Observed over expected. The line is the promise. An open mark at the edge means that there was no alarm; "
        "a method that refused a whole set has no mark there.\n",
        *(_false_alarms(where(rows, ert=ert), ert) for ert in erts),
        _refusals(where(rows, method=DEFAULT)),
        streams_power.at_equal_rates(limits),
        streams_power.faults(rows),
        streams_power.as_they_come(rows),
        _seconds(rows),
    ]
    return "\n".join(part for part in parts if part)


def _summary(rows: Table, erts: Sequence[object]) -> str:
    lines = [
        "| ERT | recordings | method | refused | sets not refused | median ratio over these | furthest of these "
        f"| sets within a factor of {NARROW:g} | of {WIDE:g} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    asked = [row for row in rows if SOURCES[str(row["set"])].asked]
    groups = {
        "first sets": asked,
        "chosen on": where(rows, chosen=1),
        "first sets, not chosen on": where(asked, chosen=0),
        "later sets": [row for row in rows if not SOURCES[str(row["set"])].asked],
    }
    for ert in erts:
        for title, group in groups.items():
            for method in distinct(group, "method") if group is asked else (DEFAULT,):
                own = where(group, ert=ert, method=method)
                lines.append(f"| {ert} | {title} | {method} | {_over_sets(own)} |")
    return "\n".join([*lines, ""])


def _over_sets(own: Table) -> str:
    sets = {str(name): Kept(where(own, set=name)) for name in distinct(own, "set")}
    known = {name: kept for name, kept in sets.items() if kept.expected}
    ratios = [kept.ratio for kept in known.values()]
    worst = max(known, key=lambda name: known[name].distance, default="")
    shares = " | ".join(
        f"{sum(1 / factor <= ratio <= factor for ratio in ratios)} of {len(sets)}" for factor in (NARROW, WIDE)
    )
    median = number(float(np.median(ratios))) if ratios else "-"
    furthest = f"{worst}, {number(known[worst].ratio)}" if worst else "-"
    return f"{Kept(own).refusals} | {len(known)} of {len(sets)} | {median} | {furthest} | {shares}"


def _false_alarms(rows: Table, ert: object) -> str:
    lines = [
        f"## False alarms at an ERT of {ert}\n",
        "First what the default refused altogether, then the sets in which it is furthest from the promise. 'Of them "
        "in one': the most in a single recording. 'Chosen on' and 'only reported': the ratio in such recordings. "
        "'Within': recordings with a count that is likely (95 %) for some expected run time in the stated 90 % "
        "interval.\n",
        "| set | method | refused | rows | expected | observed | of them in one | ratio | chosen on | only reported "
        "| within |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    kept = {
        (name, method): Kept(where(rows, set=name, method=method))
        for name in distinct(rows, "set")
        for method in distinct(rows, "method")
    }
    names = sorted(distinct(rows, "set"), key=lambda name: -kept[name, DEFAULT].distance)
    for name in names:
        for method in distinct(rows, "method"):
            one = kept[name, method]
            parts = [Kept(where(rows, set=name, method=method, chosen=chosen)) for chosen in (1, 0)]
            apart = " | ".join(number(part.ratio) for part in parts)
            share = f"{one.within} of {one.stated}" if one.stated else "-"
            lines.append(
                f"| {name} | {method} | {one.refusals} | {one.rows:,} | {one.expected:.1f} | {one.observed} "
                f"| {one.most} | {number(one.ratio)} | {apart} | {share} |"
            )
    for title, own in (("all", rows), ("the first", [row for row in rows if SOURCES[str(row["set"])].asked])):
        every = Kept(where(own, method=DEFAULT))
        if every.stated:
            share = f"{every.within} of {every.stated}, {every.within / every.stated:.0%}"
            lines += ["", f"Within over {title} sets, by the default: {share}."]
    return "\n".join([*lines, ""])


def _refusals(rows: Table) -> str:
    """First sentences of what the default said, without their numbers."""
    said = Counter(
        re.sub(r"\d[\d,]*", "N", re.split(r"[:.;] ", str(row["refusal"]))[0]) for row in rows if row["refused"]
    )
    if not said:
        return ""
    lines = ["## What the default refused, and why\n", "| fits | said |", "|---|---|"]
    return "\n".join([*lines, *(f"| {count} of {len(rows)} | {what} |" for what, count in said.most_common()), ""])


def _seconds(rows: Table) -> str:
    lines = [
        "## Seconds of a fit\n",
        "On one core; runs of a plant share one.\n",
        "| method | median | most |",
        "|---|---|---|",
    ]
    for method in distinct(rows, "method"):
        seconds = column(where(rows, method=method, refused=0), "seconds")
        if len(seconds):
            lines.append(f"| {method} | {np.median(seconds):.2f} | {seconds.max():.1f} |")
    return "\n".join([*lines, ""])


def _draw(rows: Table, erts: Sequence[object], folder: Path) -> None:
    sets, methods = distinct(rows, "set"), distinct(rows, "method")
    floor = 0.02
    with figure(folder, "streams", PAGE, 0.9 + 0.36 * len(sets)) as drawing:
        panels = drawing.subplots(1, len(erts), sharex=True, sharey=True, squeeze=False)[0]
        for ax, ert in zip(panels, erts, strict=True):
            for number, (method, colour) in enumerate(zip(methods, COLOURS, strict=False)):
                ratios = np.array([Kept(where(rows, ert=ert, set=name, method=method)).ratio for name in sets])
                places = np.arange(len(sets)) + 0.16 * (number - (len(methods) - 1) / 2)
                for some, fill in ((ratios > 0, colour), (ratios == 0, "none")):
                    ax.plot(
                        np.maximum(ratios[some], floor), places[some],
                        "o", color=colour, markerfacecolor=fill, label=str(method) if fill != "none" else None,
                    )  # fmt: skip
            ax.axvline(1, color="black", linewidth=0.8)
            ax.set(xscale="log", xlabel="observed / expected", title=f"ERT {ert}")
        panels[0].set_xlim(left=floor / 1.5)  # of all, and only now: it ends the search for the right end
        panels[0].set_yticks(range(len(sets)), [str(name) for name in sets])
        panels[0].invert_yaxis()
        drawing.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(methods))
