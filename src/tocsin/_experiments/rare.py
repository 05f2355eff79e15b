"""Rare alarms: thresholds for an expected run time of 10^5, extrapolated from alarms once in 10^3, and brute force."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin._calibration.result import LEVEL
from tocsin._common.errors import DependenceWarning
from tocsin._detector.detector import Detector
from tocsin._experiments import laws
from tocsin._experiments.base import Experiment, Options, Perform, Result, Table, Tables, Unit, generator
from tocsin._experiments.coverage import Coverage, column
from tocsin._experiments.runs import run_lengths
from tocsin._samplers import Independent

POINTS, ERT, PATHS = 1000, 1e5, 6250
"""With the default windows, so many paths make 2.5 million steady tests: 2500 alarms once in 10^3."""

RUNS, CONFIGURATIONS = 100, 12
QUICK_ERT, QUICK_PATHS = 4000.0, 1000

ERRORS = ("simulation", "law_error", "reference_error", "tail")

LAWS: dict[str, laws.Law] = {
    "Gaussian": laws.gaussian,
    "3-mixture t5": laws.mixture_t5,
    "square": laws.square,
    "ring": laws.ring,
    "counts": laws.counts,
}


@dataclass(frozen=True)
class Extrapolation(Unit):
    """One reference, thresholds far beyond what was simulated, and runs."""

    law: str
    ert: float
    paths: int
    runs: int
    number: int
    seed: int

    def run(self) -> Result:
        law = LAWS[self.law]
        rng = generator(self.seed, "rare", self.law, self.number)
        detector = Detector(
            self.ert, sampler=Independent(), paths=self.paths, start="cold", seed=int(rng.integers(2**31))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DependenceWarning)  # one reference in a hundred, by chance
            detector.fit(law(rng, POINTS), workers=1, progress=False)
        (lengths,) = run_lengths([detector], law, rng, self.runs)
        calibration = detector.calibration_
        assert calibration.errors is not None
        assert calibration.curve is not None
        errors = calibration.errors
        return {
            "art": np.array([lengths.mean()]),
            "simulated": np.array([calibration.simulated]),
            "errors": np.array([errors.simulation, errors.law, errors.reference, errors.tail]),
            "reach": np.array([errors.quantile((1 + LEVEL) / 2)]),
            "shape": np.array([calibration.curve.tail.shape]),
        }


def measure(options: Options, perform: Perform) -> Tables:
    """A row per reference."""
    ert, paths = (QUICK_ERT, QUICK_PATHS) if options.quick else (ERT, PATHS)
    runs, configurations = (30, 1) if options.quick else (RUNS, CONFIGURATIONS)
    units = [
        Extrapolation(law, ert, paths, runs, number, options.seed) for number in range(configurations) for law in LAWS
    ]
    table: Table = [
        {
            "law": unit.law,
            "ert": unit.ert,
            "simulated": round(float(result["simulated"][0]), 1),
            "number": unit.number,
            "runs": unit.runs,
            "art": round(float(result["art"][0]), 1),
            **{name: float(f"{error:.5g}") for name, error in zip(ERRORS, result["errors"], strict=True)},
            "reach": float(f"{result['reach'][0]:.5g}"),
            "shape": float(f"{result['shape'][0]:.4g}"),
        }
        for unit, result in zip(units, perform("references", units), strict=True)
    ]
    return {"rare": table}


def draw(tables: Tables, _folder: Path) -> str:
    """A table in Markdown."""
    rows = tables["rare"]
    lines = [
        "# Rare alarms",
        "",
        f"Thresholds for an ERT of {float(rows[0]['ert']):,.0f}, extrapolated from alarms once in about "
        f"{float(rows[0]['simulated']):,.0f}; the true run time is measured by {rows[0]['runs']} runs each. "
        f"References of {POINTS:,} points.",
        "",
        "| law | mean log(ART/ERT) | true spread | predicted | of it the tail | shape of the tail | covered |",
        "|---|---|---|---|---|---|---|",
    ]
    covered: list[bool] = []
    for law in LAWS:
        own = [row for row in rows if row["law"] == law]
        found, shape = Coverage.of(own, ERRORS), column(own, "shape")
        covered += found.held.tolist()
        tail = np.sqrt(np.mean(column(own, "tail") ** 2))
        lines.append(
            f"| {law} | {found.mean} | {found.spread:.2f} | {found.expected:.2f} | {tail:.2f} "
            f"| {shape.min():+.2f} to {shape.max():+.2f} | {found.held.sum()} of {len(own)} |"
        )
    return "\n".join([*lines, "", f"Covered over all: {np.mean(covered):.0%} of {len(covered)}.", ""])


RARE = Experiment(
    "rare alarms: extrapolated thresholds, checked by brute force", ("rare",), measure, draw, has_figures=False
)
