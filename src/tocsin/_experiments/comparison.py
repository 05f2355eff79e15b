"""The comparison of section 5.1: every method on every problem. Table 1 and three figures are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._experiments.base import Options, Perform, Result, Row, Table, Tables, Unit, generator
from tocsin._experiments.laws import PROBLEMS, Law, gaussian, square
from tocsin._experiments.methods import METHODS, POINTS
from tocsin._experiments.runs import delays, run_lengths

LAWS: dict[str, Law] = {"Gaussian": gaussian, "square": square}
"""The laws before a change."""

ERTS = (128, 256, 512, 1024)

CONFIGURATIONS, RUNS = 100, 500
QUICK_CONFIGURATIONS, QUICK_RUNS = 3, 60

SEEDS_APART = 1_000_003
"""Detectors of different seeds share no random numbers."""

PROMISED, BASELINE = "promised ERT", "baseline's ART"
"""What a detector was configured to: the expected run time in question, or what its baseline made of that."""

PROBABILITIES = np.concatenate([np.linspace(0.001, 0.9, 60), 1 - np.geomspace(0.1, 2e-5, 60)[1:]])
"""Where quantiles of run lengths are kept: evenly up to the ninth decile, then on to the far tail."""


@dataclass(frozen=True)
class Configuration(Unit):
    """One reference, a fit to each of the ERTs, and runs: without a change if `quiet`, then with the law's changes.

    All methods see the same references; streams are their own. Detectors of one channel have the same statistic at
    every ERT, and share streams too.
    """

    method: str
    law: str
    erts: tuple[float, ...]
    number: int
    runs: int
    quiet: bool
    seed: int

    def run(self) -> Result:
        before = LAWS[self.law]
        reference = before(generator(self.seed, "reference", self.law, self.number), POINTS)
        rng = generator(self.seed, "streams", self.law, self.number, self.method, int(self.quiet))
        seed = self.number + SEEDS_APART * self.seed
        detectors = [METHODS[self.method].fit(ert, reference, seed) for ert in self.erts]
        alike = len(detectors[0].channels_) == 1
        groups = [detectors] if alike else [[detector] for detector in detectors]
        found: dict[str, list[Int64Array]] = {}
        if self.quiet:
            found["quiet"] = [lengths for group in groups for lengths in run_lengths(group, before, rng, self.runs)]
        for problem in problems_of(self.law):
            change = PROBLEMS[problem]
            found[problem] = [lengths for group in groups for lengths in delays(group, *change, rng, self.runs)]
        return {name: np.stack(lengths).astype(np.int32) for name, lengths in found.items()}


def problems_of(law: str) -> list[str]:
    """The problems in which this law changes."""
    return [name for name, (before, _) in PROBLEMS.items() if before is LAWS[law]]


def measure(options: Options, perform: Perform) -> Tables:
    """Run lengths and delays at the promised ERTs; then delays of the CALM methods at what their baselines achieved."""
    configurations, runs = (QUICK_CONFIGURATIONS, QUICK_RUNS) if options.quick else (CONFIGURATIONS, RUNS)

    def units(method: str, law: str, erts: tuple[float, ...], *, quiet: bool) -> list[Unit]:
        return [Configuration(method, law, erts, i, runs, quiet, options.seed) for i in range(configurations)]

    work = {(m, law): units(m, law, ERTS, quiet=True) for m in METHODS for law in LAWS}
    found = _performed(perform, "detectors at the promised run times", work)
    rows: Table = []
    quantiles: Table = []
    achieved: dict[tuple[str, str], tuple[float, ...]] = {}
    for method in METHODS:
        for law in LAWS:
            results = found[method, law]
            lengths = np.concatenate([result["quiet"] for result in results], axis=1)
            achieved[method, law] = tuple(round(float(mean), 2) for mean in lengths.mean(1))
            rows += _rows(method, law, PROMISED, ERTS, results)
            quantiles += _quantiles(method, law, lengths)

    again = {(m, law): method.baseline for m, method in METHODS.items() for law in LAWS if method.baseline}
    work = {(m, law): units(m, law, achieved[baseline, law], quiet=False) for (m, law), baseline in again.items()}
    found = _performed(perform, "the paper's detectors at the baselines' run times", work)
    for (method, law), baseline in again.items():
        rows += _rows(method, law, BASELINE, achieved[baseline, law], found[method, law])
    return {"comparison": rows, "quantiles": quantiles}


def _performed(
    perform: Perform, what: str, work: dict[tuple[str, str], list[Unit]]
) -> dict[tuple[str, str], list[Result]]:
    """Results under the keys of their pieces of work, as many for each key."""
    # By turns: some wait for a GPU, if there is one, while others keep the cores busy.
    results = perform(what, [unit for units in zip(*work.values(), strict=True) for unit in units])
    return {key: results[place :: len(work)] for place, key in enumerate(work)}


def _quantiles(method: str, law: str, lengths: Int64Array) -> Table:
    return [
        {"method": method, "law": law, "ert": ert, "mean": _short(found.mean()), "runs": len(found),
         "probability": round(float(probability), 9), "length": _short(length)}
        for ert, found in zip(ERTS, lengths, strict=True)
        for probability, length in zip(PROBABILITIES, np.quantile(found, PROBABILITIES), strict=True)
    ]  # fmt: skip


def _rows(method: str, law: str, configured_to: str, targets: Sequence[float], results: list[Result]) -> Table:
    """A row per ERT and configuration."""
    rows: Table = []
    for place, (ert, target) in enumerate(zip(ERTS, targets, strict=True)):
        for number, result in enumerate(results):
            row: Row = {"method": method, "law": law, "ert": ert, "configured to": configured_to, "target": target}
            row["configuration"], row["runs"] = number, result[problems_of(law)[0]].shape[1]
            for name in ("quiet", *PROBLEMS):
                row[name] = _short(result[name][place].mean()) if name in result else float("nan")
            row["quiet deviation"] = _short(result["quiet"][place].std(ddof=1)) if "quiet" in result else float("nan")
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
