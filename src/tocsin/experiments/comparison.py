"""The comparison of section 5.1: every method on every problem. Table 1 and three figures are made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.compute.arrays import Array, Float64Array
from tocsin.experiments.base import Options, Perform, Result, Row, Table, Tables, Unit, generator
from tocsin.experiments.laws import PROBLEMS, Law, gaussian, square
from tocsin.experiments.methods import METHODS, POINTS
from tocsin.experiments.runs import delays, run_lengths

LAWS: dict[str, Law] = {"Gaussian": gaussian, "square": square}
"""The laws before a change."""

ERTS = (128, 256, 512, 1024)

CONFIGURATIONS, RUNS = 100, 500
QUICK_CONFIGURATIONS, QUICK_RUNS = 3, 60

PROMISED, BASELINE = "promised ERT", "baseline's ART"
"""What a detector was configured to: the expected run time in question, or what its baseline made of that."""

PROBABILITIES = np.concatenate([np.linspace(0.001, 0.9, 60), 1 - np.geomspace(0.1, 2e-5, 60)[1:]])
"""Where quantiles of run lengths are kept: evenly up to the ninth decile, then on to the far tail."""


@dataclass(frozen=True)
class Configuration(Unit):
    """One reference, one fit, and runs of it: without a change if `quiet`, then with each of the law's changes.

    All methods see the same references; streams are their own.
    """

    method: str
    law: str
    ert: float
    number: int
    runs: int
    quiet: bool
    seed: int

    def run(self) -> Result:
        before = LAWS[self.law]
        reference = before(generator(self.seed, "reference", self.law, self.number), POINTS)
        detector = METHODS[self.method].fit(self.ert, reference, self.number)
        rng = generator(self.seed, "streams", self.law, self.number, self.method, round(100 * self.ert))
        found = {"quiet": run_lengths(detector, before, rng, self.runs)} if self.quiet else {}
        for problem in problems_of(self.law):
            found[problem] = delays(detector, before, PROBLEMS[problem][1], rng, self.runs)
        return {name: lengths.astype(np.int32) for name, lengths in found.items()}


def problems_of(law: str) -> list[str]:
    """The problems in which this law changes."""
    return [name for name, (before, _) in PROBLEMS.items() if before is LAWS[law]]


def measure(options: Options, perform: Perform) -> Tables:
    """Run lengths and delays at the promised ERTs; then delays of the CALM methods at what their baselines achieved."""
    configurations, runs = (QUICK_CONFIGURATIONS, QUICK_RUNS) if options.quick else (CONFIGURATIONS, RUNS)

    def units(method: str, law: str, ert: float, *, quiet: bool) -> list[Unit]:
        return [Configuration(method, law, ert, i, runs, quiet, options.seed) for i in range(configurations)]

    cells = [(method, law, ert) for law in LAWS for ert in ERTS for method in METHODS]
    # The slowest first, so that no core is left waiting at the end.
    work = [unit for cell in sorted(cells, key=lambda cell: -cell[2]) for unit in units(*cell, quiet=True)]
    found = dict(zip(work, perform("detectors at the promised run times", work), strict=True))

    rows: Table = []
    quantiles: Table = []
    achieved: dict[tuple[str, str, int], float] = {}
    for method, law, ert in cells:
        results = [found[unit] for unit in units(method, law, ert, quiet=True)]
        lengths = np.concatenate([result["quiet"] for result in results])
        achieved[method, law, ert] = float(lengths.mean())
        rows += _rows(method, law, ert, PROMISED, ert, results)
        for probability, length in zip(PROBABILITIES, np.quantile(lengths, PROBABILITIES), strict=True):
            quantiles.append(
                {"method": method, "law": law, "ert": ert, "mean": _short(lengths.mean()), "runs": len(lengths),
                 "probability": round(float(probability), 6), "length": _short(length)}
            )  # fmt: skip

    again = [
        (method, law, ert, round(achieved[baseline, law, ert], 2))
        for method, law, ert in cells
        if (baseline := METHODS[method].baseline) is not None
    ]
    work = [unit for method, law, _, art in again for unit in units(method, law, art, quiet=False)]
    found = dict(zip(work, perform("the paper's detectors at the baselines' run times", work), strict=True))
    for method, law, ert, art in again:
        rows += _rows(method, law, ert, BASELINE, art, [found[u] for u in units(method, law, art, quiet=False)])
    return {"comparison": rows, "quantiles": quantiles}


def _rows(method: str, law: str, ert: int, configured_to: str, target: float, results: list[Result]) -> Table:
    """A row per configuration."""
    rows: Table = []
    for number, result in enumerate(results):
        row: Row = {"method": method, "law": law, "ert": ert, "configured to": configured_to, "target": target}
        row["configuration"], row["runs"] = number, len(result[problems_of(law)[0]])
        for name in ("quiet", *PROBLEMS):
            row[name] = _short(result[name].mean()) if name in result else float("nan")
        row["quiet deviation"] = _short(result["quiet"].std(ddof=1)) if "quiet" in result else float("nan")
        rows.append(row)
    return rows


def _short(value: float) -> float:
    return float(f"{value:.6g}")


@dataclass(frozen=True)
class Cell:
    """All configurations of a method at one run time on one law, from the table.

    quiet: mean run length without a change, per configuration.  noise: its standard error.
    delays: mean delay per configuration, by problem.
    """

    target: float
    quiet: Float64Array
    noise: Float64Array
    delays: dict[str, Float64Array]

    @property
    def art(self) -> float:
        """The average run time: measured, or, where it was not, the one configured to."""
        return float(self.quiet.mean()) if np.isfinite(self.quiet).all() else self.target

    @property
    def miscalibration(self) -> float:
        """|ART - ERT| / ERT."""
        return abs(self.art - self.target) / self.target

    @property
    def single(self) -> Float64Array:
        """|ART - ERT| / ERT of every configuration on its own."""
        return np.abs(self.quiet - self.target) / self.target

    @property
    def spread(self) -> float:
        """Standard deviation of ART / ERT over configurations, without the noise of measuring each."""
        variance = self.quiet.var(ddof=1) - (self.noise**2).mean()
        return float(np.sqrt(max(variance, 0.0)) / self.target)

    def reduction(self, problem: str) -> float:
        """(ART - ADD) / ART."""
        return 1 - float(self.delays[problem].mean()) / self.art


Cells = dict[tuple[str, str, str, int], Cell]
"""By method, what it was configured to, law and ERT."""


def cells(table: Table) -> Cells:
    """The table, cell by cell."""
    groups: dict[tuple[str, str, str, int], list[Row]] = {}
    for row in table:
        key = str(row["method"]), str(row["configured to"]), str(row["law"]), int(row["ert"])
        groups.setdefault(key, []).append(row)

    def column(rows: list[Row], name: str) -> Array:
        return np.array([float(row[name]) for row in rows])

    return {
        key: Cell(
            float(rows[0]["target"]),
            column(rows, "quiet"),
            column(rows, "quiet deviation") / np.sqrt(column(rows, "runs")),
            {problem: column(rows, problem) for problem in problems_of(key[2])},
        )
        for key, rows in groups.items()
    }
