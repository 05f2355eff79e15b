"""The paper's four problems, as they look: points before and after the change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Table, Tables, Unit, generator
from tocsin._experiments.laws import PROBLEMS
from tocsin._plots.figures import COLOURS, PAGE, figure

POINTS, QUICK_POINTS = 500, 200

TITLES = {"D1": "D1: mean shift", "D2": "D2: covariance", "D3": "D3: square to diamond", "D4": "D4: hollowing"}

TICKS = {"D1": (-4, -2, 0, 2, 4), "D2": (-4, -2, 0, 2, 4), "D3": (-2, -1, 0, 1, 2), "D4": (-1, 0, 1)}
MARGIN = 1.15
"""Axes reach this many times as far as the last tick, before and after the change alike."""


@dataclass(frozen=True)
class Sample(Unit):
    """Points of one problem, in two dimensions."""

    problem: str
    points: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "problems", self.problem)
        before, after = PROBLEMS[self.problem]
        # D2 leaves the first half of the coordinates alone, so the first and the last show both kinds.
        return {"p": before(rng, self.points)[:, [0, -1]], "q": after(rng, self.points)[:, [0, -1]]}


def measure(options: Options, perform: Perform) -> Tables:
    """One row per point."""
    points = QUICK_POINTS if options.quick else POINTS
    units = [Sample(problem, points, options.seed) for problem in PROBLEMS]
    table: Table = []
    for unit, result in zip(units, perform("problems", units), strict=True):
        for law in ("p", "q"):
            for x, y in result[law]:
                row: Row = {"problem": unit.problem, "law": law, "x": round(float(x), 4), "y": round(float(y), 4)}
                table.append(row)
    return {"problems": table}


def draw(tables: Tables, folder: Path) -> str:
    """A column per problem: before the change above, after it below."""
    table = tables["problems"]
    with figure(folder, "problems", PAGE, 3.45) as drawing:
        axes = drawing.subplots(2, len(PROBLEMS), squeeze=False)
        for column, problem in enumerate(PROBLEMS):
            axes[0, column].set_title(TITLES[problem])
            for row, law in enumerate("pq"):
                ax = axes[row, column]
                points = np.array([(r["x"], r["y"]) for r in table if r["problem"] == problem and r["law"] == law])
                limit = MARGIN * TICKS[problem][-1]
                ax.scatter(*points.T, s=4, alpha=0.7, linewidths=0, color=COLOURS[row])
                ax.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
                ax.set(xticks=TICKS[problem], yticks=TICKS[problem])
                ax.set_axisbelow(True)
                ax.tick_params(labelbottom=row == 1)
        axes[0, 0].set_ylabel("before the change: $p$")
        axes[1, 0].set_ylabel("after the change: $q$")
    count = sum(r["problem"] == "D1" and r["law"] == "p" for r in table)
    return f"""## Problems D1 to D4

{count} points of each law. D1 and D2 live in 20 dimensions; shown are two of their coordinates, which are independent
of the others. In D1 every coordinate moves by 0.3. In D2 the one shown across keeps its variance and the one shown
upwards doubles it, as half of the 20 do. Singly, such changes are hard to see; a detector has all coordinates to go by.

![Points before and after the change, for each of the four problems](problems.png)
"""


PROBLEMS_FIGURE = Experiment("samples of D1 to D4, before and after the change", ("problems",), measure, draw)
