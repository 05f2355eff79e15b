"""Power at equal rates of false alarms: limits of charts are moved until they ring as often as the default does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._experiments.base import Result, Row, Table
from tocsin._experiments.charts import Chart, clusters
from tocsin._experiments.recorded_changes import KINDS
from tocsin._experiments.stream_methods import CHARTS, DEFAULT, Method

if TYPE_CHECKING:
    from pandas import DataFrame

FACTORS = tuple(float(1.2**power) for power in range(-16, 41))
"""Of a limit: from a twentieth to fifteen hundred times, as T-squared is a square, and the textbook's may be far off."""

def heard(method: Method, stream: DataFrame, factors: Sequence[float]) -> list[Int64Array]:
    """Alarms with each of the limits; other methods than charts have one."""
    if not isinstance(method, Chart):
        return [method.alarms(stream)]
    score = method.score(stream)
    return [clusters(score, factor * method.limit) for factor in factors]


def table(watched: Sequence[tuple[Row, Result]]) -> Table:
    """By set, chart and factor, and the default beside each chart, on the recordings that neither refused."""
    by_place = {(row["set"], row["recording"], row["method"]): (row, result) for row, result in watched}
    found: Table = []
    for name in dict.fromkeys(str(row["set"]) for row, _ in watched):
        for chart in CHARTS:
            places = [place for place in by_place if place[0] == name and place[2] == DEFAULT]
            pairs = [(by_place[place], by_place[name, place[1], chart]) for place in places]
            both = [pair for pair in pairs if not any(row["refused"] for row, _ in pair)]
            if both:
                ours, theirs = zip(*both, strict=True)
                found.append(_summed(name, chart, DEFAULT, 1.0, 0, ours))
                found += [_summed(name, chart, chart, factor, k, theirs) for k, factor in enumerate(FACTORS)]
    return found


def _summed(
    name: str, chart: str, method: str, factor: float, place: int, watched: Sequence[tuple[Row, Result]]
) -> Row:
    """Over recordings: of alarms the sum, of shares found the mean, where any change was tried."""
    shares = np.array([result["found"][place] for _, result in watched])
    tried = shares[~np.isnan(shares[:, 0])]
    return {
        "set": name,
        "beside": chart,
        "method": method,
        "factor": round(factor, 5),
        "recordings": len(watched),
        "expected": round(sum(int(row["rows"]) / int(row["ert"]) for row, _ in watched), 3),
        "alarms": sum(int(result["alarms"][place]) for _, result in watched),
        "tried": len(tried),
        **{kind: round(float(tried[:, k].mean()), 5) if len(tried) else np.nan for k, kind in enumerate(KINDS)},
    }


@dataclass(frozen=True)
class Equal:
    """What the default and a chart find in a set when both ring as often.

    reached: whether any limit that was tried does; if not, the chart's shares are those of the quietest, or loudest.
    """

    set: str
    chart: str
    recordings: int
    tried: int
    expected: float
    alarms: int
    factor: float
    reached: bool
    ours: Float64Array
    theirs: Float64Array

    @property
    def behind(self) -> float:
        """By how much the chart finds more, at most."""
        return float((self.theirs - self.ours)[1:].max())


def equal(rows: Table) -> list[Equal]:
    """Of each set and chart, from the table."""
    found = []
    for own in rows:
        if own["method"] == DEFAULT and own["tried"]:
            moved = [
                row for row in rows if row["set"] == own["set"] and row["method"] == row["beside"] == own["beside"]
            ]
            factor, theirs, reached = _at_rate(sorted(moved, key=lambda row: float(row["factor"])), int(own["alarms"]))
            found.append(
                Equal(
                    str(own["set"]), str(own["beside"]), int(own["recordings"]), int(own["tried"]),
                    float(own["expected"]), int(own["alarms"]), factor, reached, _shares(own), theirs,
                )
            )  # fmt: skip
    return found


def _at_rate(moved: Table, alarms: int) -> tuple[float, Float64Array, bool]:
    """The factor with so many alarms, and the shares found there: between factors, by the logarithm of the rate.

    Of several factors with the same alarms the smallest, which finds most.
    """
    counts = np.array([int(row["alarms"]) for row in moved])
    quiet = np.flatnonzero(counts <= alarms)
    if not len(quiet) or quiet[0] == 0:
        row = moved[0] if len(quiet) else moved[-1]
        return float(row["factor"]), _shares(row), bool(len(quiet)) and counts[0] == alarms
    after = int(quiet[0])
    loud, low, wanted = (np.log(count + 0.5) for count in (counts[after - 1], counts[after], alarms))
    weight = float((loud - wanted) / (loud - low))
    factors = np.log([float(moved[place]["factor"]) for place in (after - 1, after)])
    before, beyond = _shares(moved[after - 1]), _shares(moved[after])
    return float(np.exp(factors @ [1 - weight, weight])), (1 - weight) * before + weight * beyond, True


def _shares(row: Row) -> Float64Array:
    return np.array([float(row[kind]) for kind in KINDS])
