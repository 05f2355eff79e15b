"""The alarms of a stream, each explained."""

from __future__ import annotations

import math

from tocsin._common.wording import counted, rounded
from tocsin._explain.beside import time_beside
from tocsin._explain.result import ago, beside_it
from tocsin._plots.envelope import envelope
from tocsin._plots.samples import cut
from tocsin._report.charts import path_chart
from tocsin._report.clock import clock_of
from tocsin._report.contexts import against
from tocsin._report.explained import LONGEST_NAME, explained
from tocsin._report.gathering import MOST_EXPLAINED, Alarm, Gathered, Series, apart
from tocsin._report.html import Markup, join, table, tag
from tocsin._report.words import count, times

FEWEST_LISTED, MOST_LISTED = 4, 100
"""Series of alarms from which on an overview helps, and those that are listed without being explained."""


def alarm_section(seen: Gathered) -> Markup:
    """All of them, series by series."""
    if not seen.alarms:
        return tag("p", "None.", class_="card")
    explained_ones = [series for series in seen.series if series.alarms]
    rest = [series for series in seen.series if not series.alarms]
    close = count(math.floor(apart(seen.detector)))
    note = (
        tag(
            "p",
            f"Alarms that follow each other within {close} observations are shown as one series.",
            class_="quiet-text",
        )
        if seen.alarms > len(seen.series)
        else None
    )
    overview = _overview(explained_ones) if len(explained_ones) >= FEWEST_LISTED else None
    return join(overview, note, *(_series(series, seen) for series in explained_ones), _others(rest, seen))


def _overview(told: list[Series]) -> Markup:
    """Where to look first."""
    rows: list[list[object]] = []
    for series in sorted(told, key=Series.strength, reverse=True):
        first = series.alarms[0]
        where = f"{series.first:,}" if series.count == 1 else f"{series.first:,} to {series.last:,}"
        where += _from_to(series)
        why = first.explanation
        changed = [f"{own.name} ({own.how})" if why.one_by_one else own.name for own in why.changed]
        rows.append(
            [
                tag("a", where, href=f"#alarm-{first.number}"),
                tag("td", f"{series.count:,}", class_="number"),
                tag("td", rounded(series.rarity), class_="number"),
                _names(changed),
            ]
        )
    head: list[object] = ["Observations", "Alarms", "Rarest: by chance once in", "Changed"]
    return tag("section", tag("h3", "Overview, strongest first"), table(head, rows, "overview"), class_="card")


def _from_to(series: Series) -> str:
    """When they rang, after their rows."""
    first, last = series.when
    if first is None or last is None:
        return ""
    return f", {first}" if series.count == 1 else f" ({first} to {time_beside(first, last)})"


def _names(names: list[str]) -> str:
    shown = ", ".join(cut(name, LONGEST_NAME) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _series(series: Series, seen: Gathered) -> Markup:
    head = more = None
    if series.count > 1:
        left = series.count - len(series.alarms)
        head = tag(
            "p",
            f"{series.count:,} alarms between observations {series.first:,} and {series.last:,}{_from_to(series)}",
            class_="series-head",
        )
        more = tag(
            "details",
            tag("summary", f"It rang {times(series.count - 1)} more in this series"),
            *(_article(alarm, seen) for alarm in series.alarms[1:]),
            tag("p", f"{counted(left, 'alarm')} of this series not explained one by one.") if left else None,
        )
    return tag("section", head, _article(series.alarms[0], seen), more, class_="card series")


def _others(rest: list[Series], seen: Gathered) -> Markup | None:
    if not rest:
        return None
    rows: list[list[object]] = [
        [
            "".join([f"{series.first:,}", *beside_it(series.when[0], {})]),
            "".join([f"{series.last:,}", *beside_it(series.when[1], {})]),
            f"{series.count:,}",
            rounded(series.rarity),
        ]
        for series in rest[:MOST_LISTED]
    ]
    left, weaker = len(rest) - len(rows), seen.alarms - sum(series.count for series in seen.series)
    return tag(
        "section",
        tag("h3", "Further alarms"),
        tag("p", f"The {MOST_EXPLAINED} that say most are explained above. The others:"),
        table(["First observation", "Last observation", "Alarms", "By chance once in"], rows, "numbers"),
        tag("p", f"And {left:,} more.") if left else None,
        tag("p", f"And {counted(weaker, 'weaker alarm')}.") if weaker else None,
        class_="card",
    )


def _article(alarm: Alarm, seen: Gathered) -> Markup:
    why, outcome = alarm.explanation, alarm.explanation.outcome
    clock = clock_of(alarm.seconds)
    first = alarm.row - len(alarm.statistic) + 1
    rare = None
    if math.isfinite(outcome.rarity):
        rare = tag("span", f"by chance once in {rounded(outcome.rarity)} observations", class_="badge")
    shown = f"#rows={first}-{alarm.row + len(alarm.statistic) // 4}"
    return tag(
        "article",
        tag("h3", f"Alarm {alarm.number:,} at {why.where} ", rare),
        tag(
            "p",
            f"Statistic {outcome.statistic:.4g} over a threshold of {outcome.threshold:.4g} ({outcome.channel}). ",
            _began(alarm),
            tag("a", "Show in the path", href=shown, class_="jump"),
        ),
        path_chart(
            envelope(alarm.statistic, len(alarm.statistic)),
            envelope(alarm.threshold, len(alarm.threshold)),
            first=first,
            marks=[alarm.row],
            spans=spans(alarm),
            height=150,
            label=f"Statistic and threshold from observation {first:,} to the alarm at {alarm.row:,}",
            when=lambda row: told(seen, clock.at(row - first + 1)),
        ),
        against(alarm.followed, alarm.row),
        explained(alarm),
        id=f"alarm-{alarm.number}",
    )


def spans(alarm: Alarm) -> list[tuple[float, float, float]]:
    """When the change began, as rows of the stream."""
    began = alarm.explanation.began
    return [(began.low, began.time, began.high)]


def told(seen: Gathered, seconds: float | None) -> str | None:
    """A time in words, if it is known."""
    return None if seconds is None else seen.beside.shown(seconds)


def _began(alarm: Alarm) -> Markup:
    began = alarm.explanation.began
    return join("The change began ", tag("b", str(began)), f", {ago(alarm.row - began.time)}. ")
