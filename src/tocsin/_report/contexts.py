"""A column against what its context lets expect, up to an alarm."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin._common.wording import called
from tocsin._compute.arrays import Float64Array
from tocsin._data.contextual import Contextual
from tocsin._detector.base import now
from tocsin._detector.detector import Detector
from tocsin._explain.given import Deviations
from tocsin._explain.result import Explanation
from tocsin._plots.envelope import envelope
from tocsin._report.charts import path_chart
from tocsin._report.html import Markup, join, tag


@dataclass(frozen=True, eq=False)
class Followed:
    """A column in the latest observations that were judged, and what was expected of them.

    rows: of the stream.
    """

    name: str
    values: Float64Array
    expected: Float64Array

    @classmethod
    def of(cls, detector: Detector, explanation: Explanation) -> Followed | None:
        """The column that changed most surely; None where there is no context, or no number changed."""
        intake = detector.intake_
        beside = now(detector)[1].beside
        if not isinstance(intake, Contextual) or beside is None:
            return None
        laws = {law.name: k for k, law in enumerate(intake.expectation.laws) if law.what == "value"}
        name = next((own.name for own in (*explanation.changed, *explanation.columns) if own.name in laws), None)
        deviations = Deviations.of(intake, detector.recent, beside)
        expected = None if name is None else deviations.expected(laws[name])
        if name is None or expected is None:
            return None
        return cls(name, expected + deviations.off(laws[name]), expected)


def against(followed: Followed | None, row: int) -> Markup | None:
    """The chart. row: the observation that rang."""
    if followed is None:
        return None
    count = len(followed.values)
    chart = path_chart(
        envelope(followed.values, count),
        envelope(followed.expected, count),
        first=row - count + 1,
        marks=[row],
        spans=[],
        height=150,
        label=f"{called(followed.name)} and what is expected of it, in the last {count:,} judged observations",
    )
    return join(
        tag("h4", f"{called(followed.name)} and what is expected of it"),
        chart,
        tag(
            "p",
            tag("span", called(followed.name), class_="key-statistic"),
            tag("span", "expected", class_="key-threshold"),
            class_="key",
        ),
    )
