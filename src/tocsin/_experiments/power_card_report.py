"""How right power cards are, in tables and a figure: where they are furthest off comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tocsin._experiments.base import Row, Table, Tables
from tocsin._experiments.stream_counts import column, distinct, where
from tocsin._plots.figures import PAGE, figure

FACTOR, SLACK, TWICE = 1.5, 1.0, 2.0
"""A median is close if it is within this factor of the card's, with so many rows more or less: where both are a few
rows, one row is more than any factor. And what is found soon is found in so many times the stated delay."""

AIMS = (
    ("found by the card, and the measured median within a factor of 1.5 (and a row)", "close", 0.8, True),
    ("found by the card, and measured to be found within twice the stated delay, half of the time", "soon", 0.8, True),
    ("trials of what the card calls found that ring within twice the stated delay", "twice", 0.8, True),
    ("not found by the card, and measured to be found half of the time within its horizon", "missed", 0.3, False),
    ("trials of what the card calls not found that ring within its horizon", "rang", 0.3, False),
)
"""What was aimed at: what, by which share, at least or at most so much."""


def draw(tables: Tables, folder: Path) -> str:
    """The page's tables, and the figure."""
    rows = tables["power_card"]
    if not rows:
        return "No recording had a card.\n"
    _draw(rows, folder)
    return "\n".join([_aims(rows), _apart(rows, "set"), _apart(rows, "kind"), _seconds(rows), "![](power_card.png)\n"])


def shares(rows: Table) -> dict[str, float]:
    """Of what the card calls found, and of what it does not; NaN where there is none."""
    found = [row for row in rows if np.isfinite(float(row["delay"]))]
    missed = [row for row in rows if not np.isfinite(float(row["delay"]))]
    return {
        "found": float(len(found)),
        "close": _mean(found, is_close),
        "early": _mean(found, lambda row: not is_close(row) and float(row["median"]) < float(row["delay"])),
        "late": _mean(found, lambda row: not is_close(row) and float(row["median"]) > float(row["delay"])),
        "soon": _mean(found, lambda row: float(row["median"]) <= TWICE * float(row["delay"])),
        "twice": _mean(found, lambda row: float(row["twice"])),
        "not found": float(len(missed)),
        "missed": _mean(missed, lambda row: float(row["within"]) >= 0.5),
        "rang": _mean(missed, lambda row: float(row["within"])),
        "chance": _mean(rows, lambda row: float(row["chance"])),
        "luck": _mean(rows, lambda row: float(row["luck"])),
    }


def is_close(row: Row) -> bool:
    """Whether the measured median is within the factor of the card's, with a row of slack."""
    delay, median = float(row["delay"]), float(row["median"])
    return median <= FACTOR * delay + SLACK and delay <= FACTOR * median + SLACK


def _mean(rows: Table, of: Callable[[Row], float]) -> float:
    return float(np.mean([of(row) for row in rows])) if rows else np.nan


def _aims(rows: Table) -> str:
    found = shares(rows)
    told = [(what, most, found[name], least) for what, name, most, least in AIMS]
    told.sort(key=lambda each: (each[2] >= each[1]) == each[3])  # what was missed first
    lines = [
        f"{len(rows)} triples: {found['found']:.0f} called found, {found['not found']:.0f} not.\n",
        "| of | aim | measured | |",
        "|---|---|---|---|",
    ]
    for what, bound, share, least in told:
        reached = "reached" if (share >= bound if least else share <= bound) else "**missed**"
        lines.append(f"| {what} | at {'least' if least else 'most'} {bound:.0%} | {share:.0%} | {reached} |")
    return "\n".join([*lines, ""])


def _apart(rows: Table, by: str) -> str:
    """Set by set, or kind by kind, those that are furthest off first."""
    groups = {name: shares(where(rows, **{by: name})) for name in distinct(rows, by)}
    order = sorted(groups, key=lambda name: np.nan_to_num(groups[name]["close"], nan=2.0))
    lines = [
        f"| {by} | found | close | too late | too early | trials within twice | not found | of them found half of the "
        "time | chance | luck |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in order:
        own = groups[name]
        parts = [f"{own['found']:.0f}", *(_share(own[each]) for each in ("close", "late", "early", "twice"))]
        parts += [f"{own['not found']:.0f}", *(_share(own[each]) for each in ("missed", "chance", "luck"))]
        lines.append(f"| {name} | {' | '.join(parts)} |")
    return "\n".join([*lines, ""])


def _share(share: float) -> str:
    return "-" if np.isnan(share) else f"{share:.0%}"


def _seconds(rows: Table) -> str:
    fit, card = column(rows, "fit_seconds"), column(rows, "card_seconds")
    return (
        f"A fit takes {np.median(fit):.2f} s at the median and {fit.max():.1f} s at most, and its card "
        f"{np.median(card):.2f} s and {card.max():.1f} s; {np.mean(card <= fit):.0%} of cards take no longer than "
        "their fit.\n"
    )


def _draw(rows: Table, folder: Path) -> None:
    found = [row for row in rows if np.isfinite(float(row["delay"]))]
    with figure(folder, "power_card", PAGE * 0.6, PAGE * 0.55) as drawing:
        axes = drawing.subplots()
        delay, median = column(found, "delay"), column(found, "median")
        top = 3 * float(np.max([*delay, *median[np.isfinite(median)], 10.0]))
        rng = np.random.default_rng(0)
        spread = np.exp(rng.uniform(-0.06, 0.06, (2, len(found))))  # many have the same few rows
        views = column(found, "views") > 0
        measured = np.where(np.isfinite(median), median, top / 1.3)
        for which, colour, label in ((views, "C0", "in order"), (~views, "C1", "drawn")):
            axes.plot(
                (delay * spread[0])[which], (measured * spread[1])[which], "o", color=colour, alpha=0.6, label=label
            )
        ends = np.geomspace(0.7, top, 200)
        axes.plot(ends, ends, color="black", linewidth=0.8)
        for sign in (1, -1):
            edge = FACTOR * ends + SLACK if sign > 0 else (ends - SLACK) / FACTOR
            shown = edge > 0.1
            axes.plot(ends[shown], edge[shown], color="black", linewidth=0.5, linestyle="--")
        axes.set(
            xscale="log", yscale="log", xlim=(0.7, top), ylim=(0.7, top), xlabel="delay on the card (rows)",
            ylabel="measured median (rows; at the top: none)",
        )  # fmt: skip
        axes.legend(loc="lower right")
