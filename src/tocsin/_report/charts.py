"""Charts as inline SVG that needs no script: widths are percentages, so letters keep their size on any screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._explain.beside import time_beside
from tocsin._plots.envelope import Envelope
from tocsin._plots.samples import Bars, Histogram, cut
from tocsin._report.html import Markup, join, table, tag

SIDE = 1000
"""Units of a plot's width and height; it is stretched to its place."""

ROOM, FOOT, SECOND_LINE = 0.06, 22, 15
"""Part of a plot's height that is left free above and below, pixels below it for its labels, and for times below."""

When = Callable[[float], str | None]
"""When a row came, in words; None where that is not known."""

MOST_TRIANGLES = 60
"""Alarms up to which each has a triangle."""


def path_chart(
    statistic: Envelope,
    threshold: Envelope,
    *,
    first: int,
    marks: Sequence[int],
    spans: Sequence[tuple[float, float, float]],
    height: int,
    label: str,
    when: When | None = None,
) -> Markup:
    """The statistic against its threshold.

    first: the row of the first value.  marks: rows that rang.  spans: when changes began, as low, estimate and high.
    when: when a row came, in words.
    """
    last = first + statistic.count - 1
    values = np.concatenate([statistic.low, statistic.high, threshold.low, threshold.high])
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = (high - low) * ROOM or 1.0
    low, high = low - room, high + 2 * room

    def across(row: float) -> float:
        return 100 * (row - first + 0.5) / (last - first + 1)

    def down(value: float) -> float:
        return 100 * (high - value) / (high - low)

    marked = [row for row in marks if first <= row <= last]
    numbered = [tick for tick in ticks(first, last, 4) if tick == round(tick) and first <= tick <= last]
    times = [] if when is None else _times([when(tick) for tick in numbered])
    foot = FOOT + (SECOND_LINE if any(times) else 0)
    drawing = _svg(
        height,
        label,
        tag(
            "svg",
            *(_span(*(max(across(row), 0.0) for row in (span[0] - 0.5, span[1], span[2] + 0.5))) for span in spans),
            *(
                tag("line", x1="0", x2="100%", y1=_percent(down(tick)), y2=_percent(down(tick)), class_="grid")
                for tick in ticks(low, high, 4)
            ),
            _stretched(_band(statistic, low, high, "statistic"), _band(threshold, low, high, "threshold")),
            *(
                tag("text", f"{tick:g}", x="-7", y=_percent(down(tick)), dy="4", text_anchor="end")
                for tick in ticks(low, high, 4)
            ),
            *(_mark(across(row), len(marked)) for row in marked),
            width="100%",
            height=height - FOOT,
            overflow="visible",
        ),
        *(_x_label(across(tick), f"{tick:,.0f}", height - 5) for tick in numbered),
        *(
            _x_label(across(tick), words, height - FOOT + foot - 5, "when" if 0 < i < len(times) - 1 else None)
            for i, (tick, words) in enumerate(zip(numbered, times, strict=False))
        ),
        foot=foot - FOOT,
    )
    return tag("div", drawing, class_="plot")


def _times(found: Sequence[str | None]) -> list[str]:
    """When rows came, dates only where they are others; nothing if any is not known."""
    known = [words for words in found if words is not None]
    if len(known) < len(found):
        return []
    return [words if i == 0 else time_beside(known[i - 1], words) for i, words in enumerate(known)]


def _span(low: float, estimate: float, high: float) -> Markup:
    return join(
        tag("rect", x=_percent(low), width=_percent(max(high - low, 0.15)), y="0", height="100%", class_="onset"),
        tag("line", x1=_percent(estimate), x2=_percent(estimate), y1="0", y2="100%", class_="onset-line"),
    )


def _mark(place: float, among: int) -> Markup:
    if among > MOST_TRIANGLES:
        return tag("line", x1=_percent(place), x2=_percent(place), y1="-8", y2="0", class_="alarm-line")
    # A position in percent, with a triangle of fixed size in it.
    return tag("svg", tag("path", d="M-5 -9L5 -9L0 0Z", class_="alarm"), x=_percent(place), overflow="visible")


def _band(envelope: Envelope, low: float, high: float, name: str) -> Markup:
    """An envelope as lines (where values are single) or areas; it is interrupted where there is no value."""
    count = max(envelope.count, 1)
    x = (envelope.middles - 0.5) / count * SIDE
    tops, bottoms = ((high - side) / (high - low) * SIDE for side in (envelope.high, envelope.low))
    there = np.isfinite(tops)
    pieces = np.split(np.arange(len(x)), np.flatnonzero(np.diff(there)) + 1)
    drawn = []
    for piece in pieces:
        if not len(piece) or not there[piece[0]]:
            continue
        upper = _points(x[piece], tops[piece])
        if envelope.each == 1:
            drawn.append(tag("polyline", points=upper, class_=f"{name} line"))
        else:
            lower = _points(x[piece][::-1], bottoms[piece][::-1])
            drawn.append(tag("polygon", points=f"{upper} {lower}", class_=f"{name} area"))
    return join(*drawn)


def _points(x: Float64Array, y: Float64Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))


def contribution(value: float, usual: tuple[float, float], low: float, high: float, changed: bool) -> Markup:
    """A column's contribution as a bar on a scale from `low` to `high`, over where it usually is at false alarms."""

    def place(number: float) -> float:
        return 100 * (number - low) / (high - low)

    ends = sorted([place(0.0), place(value)])
    return _svg(
        22,
        f"{value:.3g}; usually {usual[0]:.3g} to {usual[1]:.3g}",
        _bar(place(usual[0]), place(usual[1]), 1, 20, "usual"),
        _bar(ends[0], max(ends[1], ends[0] + 0.5), 6, 10, "changed" if changed else "unchanged"),
        tag("line", x1=_percent(place(0.0)), x2=_percent(place(0.0)), y1="0", y2="22", class_="axis"),
    )


def comparison(name: str, sample: Histogram | Bars) -> Markup:
    """A column in the reference, and since the change began."""
    if isinstance(sample, Bars):
        rows: list[list[object]] = [
            [cut(word, 24), _two_bars(word, before, after), tag("td", f"{before:.0%} → {after:.0%}", class_="number")]
            for word, before, after in zip(sample.names, sample.before, sample.after, strict=True)
        ]
        chart = table([], rows, "bars")
    else:
        chart = _histogram(name, sample)
    return tag("figure", tag("figcaption", tag("b", name), _gaps(sample)), chart, class_="comparison")


def _gaps(sample: Histogram | Bars) -> str | None:
    if isinstance(sample, Bars) or not max(sample.missing):
        return None
    return f" missing {sample.missing[0]:.0%} → {sample.missing[1]:.0%}"


def _two_bars(word: str, before: float, after: float) -> Markup:
    return _svg(
        20,
        f"{word}: {before:.0%} in the reference, {after:.0%} since the change",
        _bar(0, 100 * before, 2, 7, "before"),
        _bar(0, 100 * after, 10, 7, "changed"),
    )


def _histogram(name: str, sample: Histogram) -> Markup:
    height, top = 120, max(float(sample.before.max()), float(sample.after.max()), 1e-9) * 1.05
    low, high = float(sample.edges[0]), float(sample.edges[-1])
    x = (sample.edges - low) / (high - low) * 100
    steps = np.repeat(sample.after / top, 2)
    outline = _points(np.repeat(x, 2)[1:-1] * SIDE / 100, (1 - steps) * SIDE)
    labels = range(0, 25, 6) if sample.of_day else ticks(low, high, 4)
    return _svg(
        height,
        f"Histogram of {name}, in the reference and since the change",
        tag(
            "svg",
            *(
                tag(
                    "rect", x=_percent(a), width=_percent(b - a), y=_percent(100 * (1 - share / top)),
                    height=_percent(100 * share / top), class_="before",
                )
                for a, b, share in zip(x[:-1], x[1:], sample.before, strict=True)
            ),
            _stretched(tag("polyline", points=outline, class_="after line")),
            width="100%",
            height=height - FOOT - 8,
        ),
        *(
            tag("line", x1=_percent(place), x2=_percent(place), y1=height - FOOT - 7, y2=height - FOOT, class_="point")
            for place in (100 * (sample.points - low) / (high - low)).tolist()
        ),
        *(
            _x_label(100 * (tick - low) / (high - low), f"{tick}:00" if sample.of_day else f"{tick:g}", height - 5)
            for tick in labels
        ),
    )  # fmt: skip


def interval(low: float, estimate: float, high: float, label: str) -> Markup:
    """An interval on a logarithmic scale with its ends and its middle."""
    start, end = math.log(low) - 0.15 * math.log(high / low), math.log(high) + 0.15 * math.log(high / low)

    def place(number: float) -> float:
        return 100 * (math.log(number) - start) / (end - start) if end > start else 50.0

    return _svg(
        52,
        label,
        tag("line", x1="0", x2="100%", y1="22", y2="22", class_="grid"),
        _bar(place(low), place(high), 16, 12, "span"),
        tag("circle", cx=_percent(place(estimate)), cy="22", r="6", class_="estimate"),
        *(_x_label(place(number), f"{float(f'{number:.3g}'):,.10g}", 47) for number in (low, estimate, high)),
    )


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two others.

    >>> ticks(0.03, 0.97, 4)
    [0.2, 0.4, 0.6, 0.8]
    """
    if not high > low:
        return [low]
    size = 10.0 ** math.floor(math.log10((high - low) / about))
    step = next(size * factor for factor in (1, 2, 5, 10) if (high - low) / (size * factor) <= about + 1)
    return [float(f"{i * step:.12g}") for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _svg(height: int, label: str, *content: Markup, foot: int = 0) -> Markup:
    return tag("svg", *content, width="100%", height=height + foot, role="img", aria_label=label)


def _stretched(*content: Markup) -> Markup:
    return tag(
        "svg", *content, viewBox=f"0 0 {SIDE} {SIDE}", preserveAspectRatio="none", width="100%", height="100%"
    )  # fmt: skip


def _bar(start: float, end: float, y: int, height: int, name: str) -> Markup:
    return tag("rect", x=_percent(start), width=_percent(max(end - start, 0)), y=y, height=height, class_=name)


def _x_label(place: float, words: str, y: int, class_: str | None = None) -> Markup:
    anchor = "start" if place < 6 else "end" if place > 94 else "middle"
    place = {"start": max(place, 0.0), "middle": place, "end": min(place, 100.0)}[anchor]
    return tag("text", words, x=_percent(place), y=y, text_anchor=anchor, class_=class_)


def _percent(number: float) -> str:
    return f"{number:.3f}%"
