"""What there is to read about the experiment 'explanations'."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tocsin._experiments import changes
from tocsin._experiments.base import Table, Tables
from tocsin._experiments.coverage import column
from tocsin._experiments.laws import PROBLEMS
from tocsin._explain.columns import RATE
from tocsin._explain.onset import LEVEL

ONSET_HEAD = [
    "change", "windows", "alarms", "found within 2W", "delay", "error", "covered", "width",
]  # fmt: skip

MOVE_HEAD = [
    "law", "columns", "shift", "alarms", "delay", "first", "all ahead", "if the onset were known", "25 rows later",
    "by contribution", "precision", "reported", "wrongly",
]  # fmt: skip


def draw(tables: Tables, _folder: Path) -> str:
    """Tables in Markdown."""
    onsets = tables["onsets"]
    paper, rest = ([row for row in onsets if (row["change"] in PROBLEMS) == own] for own in (True, False))
    for row in rest:
        row["change"] = f"{row['change']}{' (not looked at before)' if row['change'] in changes.UNSEEN else ''}"
    return "\n".join(
        [
            "# Explanations",
            "",
            "References of 1000 rows. The change comes after one to three windows W without an alarm; alarms within 2W "
            "of it are explained. 'Error' and 'delay' are medians, in rows; 'covered' is how often the "
            f"{LEVEL:.0%} interval holds the onset (in brackets, 95% Wilson intervals), 'width' its median width. "
            "'Default': windows 8, 25 and 100 together, W = 100.",
            "",
            *_markdown(ONSET_HEAD, _grouped(paper, ("change", "default", "window")), _onset_line),
            "",
            "The same for other changes, with default windows.",
            "",
            *_markdown(ONSET_HEAD, _grouped(rest, ("change", "default", "window")), _onset_line),
            "",
            "## Columns that moved",
            "",
            "1, 3 or 10 of 50 columns move up by so many standard deviations, default windows. 'First': the column "
            "ranked first is one that moved. 'All ahead': all that moved are ranked ahead of all others. 'If the onset "
            "were known': the same, with columns ranked by how far their mean since the true onset is off: nothing "
            "ranks independent normal columns better. '25 rows later': with as many rows after the alarm. 'By "
            "contribution': ranked by the parts that add up to the statistic. 'Precision': of the columns ranked "
            "first, as many as moved, the part that did. 'Reported': of those that moved, the part that is said to "
            f"have changed (at {RATE:.0%}); 'wrongly': alarms in which another is.",
            "",
            *_markdown(MOVE_HEAD, _grouped(tables["moves"], ("law", "columns", "shift")), _move_line),
            "",
            "## Columns that did not move",
            "",
            "Alarms without any change of a single column: false alarms, and alarms after two columns lost their "
            f"correlation. 'Reported': some column is said to have changed; it should be {RATE:.0%} of false alarms at "
            "most.",
            "",
            *_markdown(["law", "references", "alarms", "reported"], _grouped(tables["unmoved"], ("law",)), _quiet_line),
            "",
        ]
    )


def _grouped(rows: Table, by: tuple[str, ...]) -> list[Table]:
    groups: dict[tuple[str | int | float, ...], Table] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)
    return list(groups.values())


def _markdown(head: list[str], groups: list[Table], line: Callable[[Table], list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *(line(rows) for rows in groups)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _onset_line(rows: Table) -> list[str]:
    covered = (column(rows, "low") <= 0) & (column(rows, "high") >= 0)
    return [
        str(rows[0]["change"]),
        "default" if rows[0]["default"] else str(int(rows[0]["window"])),
        str(len(rows)),
        f"{_by_reference(rows, 'found'):.0%}",
        f"{np.median(column(rows, 'delay')):g}",
        f"{np.median(np.abs(column(rows, 'error'))):g}",
        _share(covered.sum(), len(rows)),
        f"{np.median(column(rows, 'high') - column(rows, 'low') + 1):g}",
    ]


def _move_line(rows: Table) -> list[str]:
    row, count = rows[0], len(rows)
    counted = ("first", "all_ahead", "known_onset", "all_ahead_later")
    return [
        str(row["law"]),
        f"{row['columns']}",
        f"{row['shift']:g}",
        f"{count}",
        f"{np.median(column(rows, 'delay')):g}",
        *(_share(column(rows, name).sum(), count) for name in counted),
        *(f"{column(rows, name).mean():.0%}" for name in ("by_contribution", "precision", "reported", "wrongly")),
    ]


def _quiet_line(rows: Table) -> list[str]:
    count = int(column(rows, "alarms").sum())
    return [str(rows[0]["law"]), str(len(rows)), str(count), _share(column(rows, "reported").sum(), count, digits=1)]


def _by_reference(rows: Table, name: str) -> float:
    """The mean over references of what rows of the same reference share."""
    each: dict[int, float] = {int(row["number"]): float(row[name]) for row in rows}
    return float(np.mean(list(each.values())))


def _share(successes: float, count: int, digits: int = 0) -> str:
    from scipy import stats  # slow to import, and needed here alone

    low, high = stats.binomtest(int(successes), count).proportion_ci(0.95, "wilson")
    return f"{successes / count:.{digits}%} ({100 * low:.{digits}f}-{100 * high:.{digits}f})"
