"""What contexts are worth, in tables: what fails its aim first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Table, Tables
from tocsin._experiments.contexts_baselines import WITHIN
from tocsin._experiments.stream_counts import column, distinct, number, where

LOWEST, HIGHEST = 0.8, 1.25
"""Observed over expected alarms that are aimed at."""

SOONER, COST = 3.0, 1.1
"""How many times sooner a shift should be found; and later, at most, where the context means nothing."""

OFTEN, SHARE = 1.5, 0.9
"""Alarms over those promised where only the context moves, in such a part of references at least."""

NOTHING = "nothing"


def draw(tables: Tables, _folder: Path) -> str:
    """Tables in Markdown."""
    simulated, recorded = tables["contexts_simulated"], tables["contexts_recorded"]
    return "\n".join(
        [
            "# Contexts\n",
            "## Simulated streams\n",
            f"An ERT of {simulated[0]['ert']}. 'With' and 'without' are alarms seen for every one that was promised, "
            "in streams whose context is as in the reference; aimed at with a context: "
            f"{LOWEST:g} to {HIGHEST:g}. 'Moved' is the same where the context has moved on by a spread and the law "
            f"given it has not, and 'within' the part of references in which that was at most {OFTEN:g}; aimed at: "
            f"{SHARE:.0%}. Delays are medians, in rows, of a shift of half the unconditional spread, at thresholds "
            f"moved until both ring as often as promised in the quiet stream; aimed at: {SOONER:g} times sooner, and "
            f"where the context means nothing at most {COST:g} times as late. What misses an aim comes first.\n",
            _simulated(simulated),
            "All laws together:\n",
            _together(simulated),
            "## Recorded streams\n",
            "Alarms for every one promised in what follows a reference, and the median delay of the same shift in the "
            "stream's own rows ('-': more than half of them were not found), at the detectors' own thresholds. These "
            "streams have changes of their own; nothing is aimed at.\n",
            _recorded(recorded),
            "# Own baselines\n",
            "First alarms of quiet recordings that the detector has not seen, after their baselines, and in these; and "
            f"changes found within {WITHIN} rows, of those before which it was quiet. 'Without' is a detector without "
            "baselines fitted to the same recordings: at its own threshold (times as rare: 1), and at one so high that "
            "about as few quiet recordings ring.\n",
            "## Simulated machines\n",
            _machines(tables["baselines_simulated"], ("recordings", "memory", "tails")),
            "## Recordings\n",
            _machines(tables["baselines_recorded"], ("set",)),
        ]
    )


def _simulated(rows: Table) -> str:
    lines = [
        "| law | memory | rows | with | without | moved | within | delay with | without | times sooner | misses |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    told = list[tuple[int, str]]()
    for law in distinct(rows, "law"):
        for memory in distinct(rows, "memory"):
            for size in distinct(rows, "reference"):
                own = where(rows, law=law, memory=memory, reference=size)
                if own:
                    told.append(_line(own))
    return "\n".join([*lines, *(line for _, line in sorted(told, key=lambda each: -each[0])), ""])


def _together(rows: Table) -> str:
    lines = ["| memory | rows | references | with | without | moved | within |", "|---|---|---|---|---|---|---|"]
    for memory in distinct(rows, "memory"):
        for size in distinct(rows, "reference"):
            own = where(rows, memory=memory, reference=size)
            rates = " | ".join(number(ratio(own, method)) for method in ("with", "without", "moved"))
            within = np.mean([ratio([row], "moved") <= OFTEN for row in own])
            lines.append(f"| {memory} | {int(size):,} | {len(own)} | {rates} | {within:.0%} |")
    return "\n".join([*lines, ""])


def _line(own: Table) -> tuple[int, str]:
    """How many aims it misses, and all of it."""
    rates = [ratio(own, method) for method in ("with", "without", "moved")]
    each = [ratio([row], "moved") for row in own]
    within = float(np.mean([rate <= OFTEN for rate in each]))
    delays = [median(own, method) for method in ("with", "without")]
    sooner = delays[1] / delays[0] if np.isfinite(delays).any() else np.nan
    missed = [] if LOWEST <= rates[0] <= HIGHEST else ["rate"]
    if own[0]["law"] != "cyclic" and within < SHARE:
        missed.append("moved")
    if own[0]["law"] == NOTHING:
        missed += ["delay"] if sooner < 1 / COST else []
    elif not sooner >= SOONER:
        missed.append("delay")
    row, (first, second) = own[0], delays
    return len(missed), (
        f"| {row['law']} | {row['memory']} | {int(row['reference']):,} | {' | '.join(map(number, rates))} "
        f"| {within:.0%} "
        f"| {_rows(first)} | {_rows(second)} | {number(sooner) if np.isfinite(sooner) else '-'} "
        f"| {', '.join(missed)} |"
    )


def ratio(rows: Table, method: str) -> float:
    """Observed over expected alarms."""
    expected = column(rows, f"{method}_rows").sum() / float(rows[0]["ert"])
    return float(column(rows, f"{method}_alarms").sum() / expected) if expected else np.nan


def median(rows: Table, method: str) -> float:
    """Of all delays; infinite if most shifts are not found."""
    return float(np.median(_delays(rows, method)))


def _delays(rows: Table, method: str) -> Float64Array:
    names = [name for name in rows[0] if name.removeprefix(f"{method}_").isdigit()]
    return np.concatenate([column(rows, name) for name in names])


def _recorded(rows: Table) -> str:
    lines = [
        "| set | given | cuts | with | without | not judged | delay with | without | found with | without |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in distinct(rows, "set"):
        every = where(rows, set=name)
        own = where(every, refused=0)
        if not own:
            lines.append(f"| {name} | {every[0]['given']} | {len(every)} refused | - | - | - | - | - | - | - |")
            continue
        unseen = column(own, "unseen").sum() / (column(own, "unseen") + column(own, "with_rows")).sum()
        found = [f"{np.isfinite(_delays(own, method)).mean():.0%}" for method in ("with", "without")]
        lines.append(
            f"| {name} | {own[0]['given']} | {len(own)} "
            f"| {number(ratio(own, 'with'))} | {number(ratio(own, 'without'))} "
            f"| {unseen:.0%} | {_rows(median(own, 'with'))} | {_rows(median(own, 'without'))} | {' | '.join(found)} |"
        )
    return "\n".join([*lines, ""])


def _machines(rows: Table, names: tuple[str, ...]) -> str:
    """tails: degrees of freedom, 0 for a normal law."""
    head = [*names, "method", "times as rare", "rang", "expected", "in baselines", "found", "of", "median delay"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        own = [str(row[name]) for name in names]
        told = [row["method"], number(float(row["fewer"])), row["rang"], row["expected"], row["rang_in_baseline"]]
        told += [row["found"], row["quiet_before"], _rows(float(row["median_delay"]))]
        lines.append(f"| {' | '.join([*own, *map(str, told)])} |")
    return "\n".join([*lines, ""])


def _rows(delay: float) -> str:
    return f"{delay:.0f}" if np.isfinite(delay) else "-"
