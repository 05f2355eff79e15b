"""What watching real streams has shown: tables in words, the furthest from the promise first, and a figure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Row, Table, Tables
from tocsin._experiments.recorded_changes import KINDS
from tocsin._experiments.recorded_sets import TENNESSEE
from tocsin._experiments.stream_methods import DEFAULT
from tocsin._plots.figures import COLOURS, PAGE, figure

HIDDEN = ("d03_te", "d09_te", "d15_te")
"""Faults that are hardly visible."""

SOON, AT_ALL = 100, 800
LIKELY = 0.95
NARROW, WIDE = 1.5, 3.0
"""Factors from the promise."""


class Kept:
    """False alarms in some recordings by one method at one ERT, over those that it did not refuse."""

    def __init__(self, rows: Table) -> None:
        watched = [row for row in rows if not row["refused"]]
        self.recordings, self.refused = len(rows), len(rows) - len(watched)
        self.rows = sum(int(row["rows"]) for row in watched)
        self.expected = sum(int(row["rows"]) / float(row["ert"]) for row in watched)
        self.observed = sum(int(row["alarms"]) for row in watched)
        self.most = max((int(row["alarms"]) for row in watched), default=0)
        stated = [within(row) for row in watched if row["rows"] and not np.isnan(float(row["low"]))]
        self.stated, self.within = len(stated), sum(stated)

    @property
    def ratio(self) -> float:
        """Observed to expected."""
        return self.observed / self.expected if self.expected else np.nan

    @property
    def distance(self) -> float:
        """From the promise, as a logarithm that few expected alarms do not move far; infinite if all was refused."""
        return abs(np.log((self.observed + 0.5) / (self.expected + 0.5))) if self.expected else np.inf


def within(row: Row) -> bool:
    """Whether so many alarms are likely (95 %) for some expected run time in the stated interval."""
    from scipy import special  # slow to import

    rows, alarms, low, high = (float(row[name]) for name in ("rows", "alarms", "low", "high"))
    tail = (1 - LIKELY) / 2
    most, fewest = rows / max(low, 1.0), rows / high
    # P(count >= alarms) at the highest rate, and P(count <= alarms) at the lowest: neither may be too unlikely.
    return bool(
        (alarms == 0 or special.pdtrc(alarms - 1, most) > tail) and (fewest == 0 or special.pdtr(alarms, fewest) > tail)
    )


def draw(tables: Tables, folder: Path) -> str:
    """Observed over expected false alarms, by set and method, and all tables."""
    rows = tables["streams"]
    erts = _distinct(rows, "ert")
    _draw(rows, erts, folder)
    parts = [
        "# Real quiet streams\n",
        "False alarms seen for every one that was promised (rows / ERT), over the recordings that were not refused.\n",
        _summary(rows, erts),
        "![Observed over expected false alarms](streams.png)\n",
        "Observed over expected. The line is the promise. An open mark at the edge means that there was no alarm; "
        "a method that refused a whole set has no mark there.\n",
        *(_false_alarms(_where(rows, ert=ert), ert) for ert in erts),
        _refusals(_where(rows, method=DEFAULT)),
        _power(rows),
        _faults(rows),
    ]
    return "\n".join(part for part in parts if part)


def _summary(rows: Table, erts: Sequence[object]) -> str:
    lines = [
        "| ERT | method | refused | sets not refused | median ratio over these | furthest of these "
        f"| sets within a factor of {NARROW:g} | of {WIDE:g} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for ert in erts:
        for method in _distinct(rows, "method"):
            own = _where(rows, ert=ert, method=method)
            sets = {str(name): Kept(_where(own, set=name)) for name in _distinct(own, "set")}
            known = {name: kept for name, kept in sets.items() if kept.expected}
            ratios = [kept.ratio for kept in known.values()]
            worst = max(known, key=lambda name: known[name].distance, default="")
            shares = " | ".join(
                f"{sum(1 / factor <= ratio <= factor for ratio in ratios)} of {len(sets)}" for factor in (NARROW, WIDE)
            )
            median = _number(float(np.median(ratios))) if ratios else "-"
            furthest = f"{worst}, {_number(known[worst].ratio)}" if worst else "-"
            refused = f"{_refused(Kept(own))} | {len(known)} of {len(sets)}"
            lines.append(f"| {ert} | {method} | {refused} | {median} | {furthest} | {shares} |")
    return "\n".join([*lines, ""])


def _false_alarms(rows: Table, ert: object) -> str:
    lines = [
        f"## False alarms at an ERT of {ert}\n",
        "First what the default refused altogether, then the sets in which it is furthest from the promise. 'Of them "
        "in one': the most in a single recording. 'Within': recordings with a count that is likely (95 %) for some "
        "expected run time in the stated 90 % interval.\n",
        "| set | method | refused | rows | expected | observed | of them in one | ratio | within |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    kept = {
        (name, method): Kept(_where(rows, set=name, method=method))
        for name in _distinct(rows, "set")
        for method in _distinct(rows, "method")
    }
    names = sorted(_distinct(rows, "set"), key=lambda name: -kept[name, DEFAULT].distance)
    for name in names:
        for method in _distinct(rows, "method"):
            one = kept[name, method]
            share = f"{one.within} of {one.stated}" if one.stated else "-"
            lines.append(
                f"| {name} | {method} | {_refused(one)} | {one.rows:,} | {one.expected:.1f} | {one.observed} "
                f"| {one.most} | {_number(one.ratio)} | {share} |"
            )
    every = Kept(_where(rows, method=DEFAULT))
    if every.stated:
        lines += ["", f"Within over all sets: {every.within} of {every.stated}, {every.within / every.stated:.0%}."]
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


def _power(rows: Table) -> str:
    tried = [row for row in rows if row["trials"] and not np.isnan(float(row[KINDS[0]]))]
    if not tried:
        return ""
    lines = [
        f"## Changes found at an ERT of {tried[0]['ert']}\n",
        "The share found within 50 rows, over the recordings that a method did not refuse and whose stream is longer, "
        "so not all lines are of the same ones. 'No change' is how often it rang when nothing was changed: what is "
        "found beyond that is power. Shifts are in long-run spreads. Tried in each recording, of each kind: "
        f"{tried[0]['trials']}.\n",
        f"| set | method | recordings | {' | '.join(KINDS)} |",
        "|---|---|---|" + "---|" * len(KINDS),
    ]
    refused = {_place(row) for row in rows if row["refused"]}
    groups = {"all": tried, "all that none refused": [row for row in tried if _place(row) not in refused]}
    for name, group in {**groups, **{str(name): _where(tried, set=name) for name in _distinct(tried, "set")}}.items():
        for method in _distinct(rows, "method"):
            own = _where(group, method=method)
            if own:
                shares = " | ".join(f"{_column(own, kind).mean():.0%}" for kind in KINDS)
                lines.append(f"| {name} | {method} | {len(own)} | {shares} |")
    return "\n".join([*lines, ""])


def _faults(rows: Table) -> str:
    made = [row for row in rows if row["set"] == TENNESSEE and row["recording"] != "d00_te" and row["trials"]]
    lines = [
        f"## Faults of {TENNESSEE}\n",
        f"Found within {SOON} and {AT_ALL} rows of their onset, and the median delay in rows (a fault that is not "
        "found has one without end). Faults 3, 9 and 15 are hardly visible: what is found of them is mostly luck.\n",
        f"| faults | method | refused | within {SOON} | within {AT_ALL} | median delay |",
        "|---|---|---|---|---|---|",
    ]
    for title, hidden in (("all but 3, 9 and 15", False), ("3, 9 and 15", True)):
        for method in _distinct(made, "method"):
            every = [row for row in _where(made, method=method) if (row["recording"] in HIDDEN) == hidden]
            own = [row for row in every if not row["refused"]]
            if not every:
                continue
            delays = _column(own, "delay")
            counts = " | ".join(f"{(delays <= most).sum()} of {len(own)}" if own else "-" for most in (SOON, AT_ALL))
            middle = float(np.median(delays)) if own else np.inf
            median = f"{middle:.0f}" if np.isfinite(middle) else "-"
            lines.append(f"| {title} | {method} | {_refused(Kept(every))} | {counts} | {median} |")
    return "\n".join([*lines, ""]) if made else ""


def _draw(rows: Table, erts: Sequence[object], folder: Path) -> None:
    sets, methods = _distinct(rows, "set"), _distinct(rows, "method")
    floor = 0.02
    with figure(folder, "streams", PAGE, 0.9 + 0.26 * len(sets)) as drawing:
        panels = drawing.subplots(1, len(erts), sharex=True, sharey=True, squeeze=False)[0]
        for ax, ert in zip(panels, erts, strict=True):
            for number, (method, colour) in enumerate(zip(methods, COLOURS, strict=False)):
                ratios = np.array([Kept(_where(rows, ert=ert, set=name, method=method)).ratio for name in sets])
                places = np.arange(len(sets)) + 0.2 * (number - (len(methods) - 1) / 2)
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


def _where(rows: Table, **equal: object) -> Table:
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def _place(row: Row) -> tuple[object, object]:
    return row["set"], row["recording"]


def _distinct(rows: Table, name: str) -> list[str | int | float]:
    return list(dict.fromkeys(row[name] for row in rows))


def _column(rows: Table, name: str) -> Float64Array:
    return np.array([row[name] for row in rows], dtype=np.float64)


def _refused(kept: Kept) -> str:
    return f"{kept.refused} of {kept.recordings}"


def _number(ratio: float) -> str:
    return "-" if np.isnan(ratio) else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"
