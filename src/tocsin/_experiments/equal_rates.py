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
"""Of a limit: from a twentieth to 1500 times, as T-squared is a square, and the textbook's limit may be far off."""


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
    """What the default and a chart find when both ring as often, in a set or over several.

    recordings: in which changes were tried.
    reached: whether any limit that was tried rings as often; if not, the factor and shares are those of the nearest.
    """

    sets: str
    chart: str
    recordings: int
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
    groups = dict.fromkeys((row["set"], row["beside"]) for row in rows if row["tried"])
    return [_equal([row for row in rows if (row["set"], row["beside"]) == group]) for group in groups]


def with_one_factor(rows: Table, name: str) -> list[Equal]:
    """Of each chart, with the same factor in all sets: alarms are summed, and shares are means over sets."""
    found = []
    for chart in dict.fromkeys(row["beside"] for row in rows):
        own = [row for row in rows if row["beside"] == chart and row["tried"]]
        limits = dict.fromkeys((row["method"], row["factor"]) for row in own)
        found.append(_equal([_over_sets(name, own, *limit) for limit in limits]))
    return found


def _over_sets(name: str, rows: Table, method: object, factor: object) -> Row:
    own = [row for row in rows if (row["method"], row["factor"]) == (method, factor)]
    sums: Row = {what: sum(float(row[what]) for row in own) for what in ("expected", "alarms", "tried")}
    means: Row = {kind: float(np.mean([float(row[kind]) for row in own])) for kind in KINDS}
    return {**own[0], **sums, **means, "set": name}


def _equal(rows: Table) -> Equal:
    (own,) = (row for row in rows if row["method"] == DEFAULT)
    moved = sorted((row for row in rows if row["method"] != DEFAULT), key=lambda row: float(row["factor"]))
    factor, theirs, reached = _at_rate(moved, int(own["alarms"]))
    return Equal(
        str(own["set"]), str(own["beside"]), int(own["tried"]), float(own["expected"]), int(own["alarms"]), factor,
        reached, _shares(own), theirs,
    )  # fmt: skip


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
