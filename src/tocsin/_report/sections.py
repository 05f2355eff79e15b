"""The parts of a report besides its alarms: verdict, promise, path, data quality and calibration."""

from __future__ import annotations

import base64
import datetime
import math

import numpy as np

from tocsin._calibration.result import LEVEL
from tocsin._common.wording import counted, few, rounded, share
from tocsin._compute.arrays import Float64Array
from tocsin._plots.path import decades
from tocsin._plots.samples import cut
from tocsin._report.alarms import spans, told
from tocsin._report.charts import interval, path_chart
from tocsin._report.describing import rehearsal
from tocsin._report.gathering import MOST_MARKS, Gathered
from tocsin._report.html import Markup, data, join, table, tag
from tocsin._report.quality import CLOSE, Seen
from tocsin._report.verdict import Verdict
from tocsin._report.words import count

STATIC_BINS = 800
"""Bins of the path where it cannot be zoomed: on paper, and without scripts."""

MOST_OPEN = 40
"""Columns up to which those without a note are shown with the others."""

SIGNS = {"quiet": "✓", "unsure": "~", "rang": "!"}


def verdict_section(said: Verdict, seen: Gathered) -> Markup:
    """The one sentence, and the figures that it rests on."""
    calibration = seen.detector.calibration_
    by_chance = "unknown" if said.expected is None else few(said.expected)
    figures = [
        ("observation" if seen.rows == 1 else "observations", f"{seen.rows:,}"),
        ("alarm" if seen.alarms == 1 else "alarms", f"{seen.alarms:,}"),
        ("by chance alone", by_chance),
        ("observations per false alarm, promised", count(calibration.ert)),
    ]
    return tag(
        "section",
        tag("p", tag("span", SIGNS[said.level], class_="sign", aria_hidden="true"), said.sentence, class_="sentence"),
        tag("p", said.next, class_="next"),
        tag("p", said.more, class_="quiet-text"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in figures), class_="figures"),
        class_=f"verdict {said.level}",
        id="verdict",
    )


def promise_section(seen: Gathered, promise: str, precision: str, causes: str | None) -> Markup:
    """What is promised, how surely, and what that rests on."""
    calibration = seen.detector.calibration_
    bounds = calibration.interval()
    chart = None
    if bounds is not None:
        low, high = bounds
        label = (
            f"Expected run time {rounded(calibration.nominal)}, {LEVEL:.0%} interval {rounded(low)} to {rounded(high)}"
        )
        chart = tag(
            "div",
            tag("p", f"True expected run time, {LEVEL:.0%} interval (observations)", class_="key"),
            interval(low, calibration.nominal, high, label),
            class_="interval",
        )
    return join(
        tag("p", _sentence(promise)),
        chart,
        tag("p", _sentence(precision)),
        tag("p", _sentence(causes), class_="quiet-text") if causes else None,
        *(tag("p", tag("b", f"{name}: "), f"{text}.") for name, text in rehearsal(seen.detector)),
    )


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def path_section(seen: Gathered) -> Markup:
    """The path, drawn once for paper, and with its data for the script that zooms."""
    if not seen.rows:
        return tag("p", "There are no observations to draw.")
    began = [span for series in seen.series for alarm in series.alarms for span in spans(alarm)]
    label = (
        f"Statistic against threshold over {counted(seen.rows, 'observation')}, with {counted(seen.alarms, 'alarm')}"
    )
    still = path_chart(
        seen.statistic.coarser(STATIC_BINS),
        seen.threshold.coarser(STATIC_BINS),
        first=1,
        marks=seen.marks,
        spans=began,
        height=260,
        label=label,
        when=lambda row: told(seen, seen.clock.at(row)),
    )
    note = f"The first {MOST_MARKS:,} alarms are marked." if seen.alarms > MOST_MARKS else None
    return join(
        tag("figure", tag("div", still, class_="still"), id="path-figure", aria_label=label),
        tag(
            "p",
            tag("span", "statistic", class_="key-statistic"),
            tag("span", "threshold", class_="key-threshold"),
            tag("span", "alarm", class_="key-alarm") if seen.alarms else None,
            tag("span", "change began", class_="key-onset") if began else None,
            note,
            class_="key",
        ),
        data("path-data", path_data(seen, began)),
    )


def path_data(seen: Gathered, began: list[tuple[float, float, float]]) -> dict[str, object]:
    """What the script draws. Arrays hold an entry per bin of `each` rows, float32 in base64.

    Of times it is the first in each bin, in seconds since 1970, as float64.
    """
    low = float(np.nanmin([np.inf, *seen.statistic.low]))
    high = float(np.nanmax([-np.inf, *seen.statistic.high, *seen.threshold.high]))
    curve = seen.detector.calibration_.curve
    single = seen.statistic.each == 1
    levels = [] if curve is None or not high > low else decades(curve, low, high + 0.1 * (high - low))
    return {
        "rows": seen.rows,
        "each": seen.statistic.each,
        "high": _packed(seen.statistic.high),
        "thresholdHigh": _packed(seen.threshold.high),
        **({} if single else {"low": _packed(seen.statistic.low), "thresholdLow": _packed(seen.threshold.low)}),
        "marks": seen.marks,
        "spans": began,
        "levels": [[level, _power(rarity)] for level, rarity in levels],
        **({"times": _packed(seen.clock.seconds.low, "<f8"), "clock": seen.beside.manner} if seen.clock.goes else {}),
    }


def _power(number: float) -> str:
    exponent = str(round(math.log10(number))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{exponent}" if number >= 1e5 else f"{number:,.0f}"


def _packed(values: Float64Array, kind: str = "<f4") -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode("ascii")


def quality_section(seen: Gathered) -> Markup:
    """A line for each column; those with something to say come first."""
    columns = list(seen.quality.columns.values())
    if not columns:
        return tag("p", "Observations have no columns that could be described.")
    noted, rest = [c for c in columns if c.notes()], [c for c in columns if not c.notes()]
    summary = "Nothing unusual." if not noted else f"{counted(len(noted), 'column')} of {len(columns):,} to look at."
    shown = [*noted, *rest] if len(columns) <= MOST_OPEN else noted
    hidden = [] if len(columns) <= MOST_OPEN else rest
    return join(
        tag("p", summary),
        _quality_table(shown) if shown else None,
        tag("details", tag("summary", f"{counted(len(hidden), 'further column')}"), _quality_table(hidden))
        if hidden
        else None,
        tag(
            "p",
            "New values: numbers beyond the reference's range, or categories that are not in it; in brackets what is "
            "expected without a change.",
            class_="key",
        ),
    )


def _quality_table(columns: list[Seen]) -> Markup:
    return table(
        ["Column", "Kind", "Missing before", "Missing here", "New values", "Range before", "Range here", "To note"],
        [_quality_row(column) for column in columns],
        "quality",
    )


def _quality_row(column: Seen) -> list[object]:
    known, there = column.known, column.rows - column.missing
    new = ""
    if known.new is not None and there:
        new = f"{share(column.new / there)} ({share(known.new.part)})"
    notes = column.notes()
    return [
        tag("th", cut(known.name, 40), scope="row"),
        known.kind,
        tag("td", share(known.missing.part), class_="number", data_label="Missing before"),
        tag(
            "td", share(column.missing / column.rows) if column.rows else "", class_="number", data_label="Missing here"
        ),
        tag("td", new, class_="number", data_label="New values"),
        tag("td", _range(known.range, known.kind), class_="number", data_label="Range before"),
        tag("td", _range(column.range, known.kind), class_="number", data_label="Range here"),
        tag("td", *(tag("span", note, class_="note") for note in notes), class_="words"),
    ]


def _range(bounds: tuple[float, float] | None, kind: str) -> str:
    if bounds is None or kind in ("category", "text", "time"):
        return ""
    if kind == "elapsed":
        return " to ".join(_moment(seconds) for seconds in bounds)
    # Values that a detector remembers in another form are off by rounding: what should be 0 is a little more.
    size = max(abs(bound) for bound in bounds)
    return " to ".join(f"{bound if abs(bound) > CLOSE * size else 0.0:.4g}" for bound in bounds)


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds):%Y-%m-%d %H:%M}"
    except OverflowError:
        return f"{seconds:.4g} s"


def calibration_section(facts: list[tuple[str, str]]) -> Markup:
    """How the thresholds were made, as `tocsin check` tells it."""
    return table([], [[tag("th", name, scope="row"), text] for name, text in facts], "facts")
