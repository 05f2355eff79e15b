"""Streams with a memory: the promise by blocks, and what independent sampling makes of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tocsin._calibration.result import LEVEL
from tocsin._common.errors import DependenceWarning
from tocsin._detector.detector import Detector
from tocsin._experiments.base import Experiment, Options, Perform, Result, Table, Tables, Unit, generator
from tocsin._experiments.coverage import Coverage, column
from tocsin._experiments.processes import PROCESSES
from tocsin._experiments.runs import run_lengths
from tocsin._samplers import Independent, Sampler
from tocsin._statistics import MMD

POINTS, ERT = 40_000, 512
RUNS, FEW_RUNS = 300, 100
CONFIGURATIONS, FEW_CONFIGURATIONS = 5, 1
QUICK_POINTS = 4_000

SAMPLERS: dict[str, Sampler | Literal["auto"]] = {"auto": "auto", "independent": Independent()}


@dataclass(frozen=True)
class Recording(Unit):
    """A reference from one process, a fit to it, and runs on streams from the same process."""

    process: str
    sampler: str
    points: int
    runs: int
    number: int
    seed: int

    def run(self) -> Result:
        process = PROCESSES[self.process]
        rng = generator(self.seed, "memories", self.process, self.number)
        chosen = SAMPLERS[self.sampler]
        detector = Detector(
            ERT, MMD(), sampler=chosen, interval=self.sampler == "auto", start="cold", seed=int(rng.integers(2**31))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DependenceWarning)
            detector.fit(process(rng, self.points), workers=1, progress=False)
        (lengths,) = run_lengths([detector], process, rng, self.runs)
        calibration = detector.calibration_
        errors = calibration.errors
        assert calibration.dependence is not None
        return {
            "art": np.array([lengths.mean()]),
            "reach": np.array([errors.quantile((1 + LEVEL) / 2) if errors else np.nan]),
            "total": np.array([errors.total if errors else np.nan]),
            "sampling": np.array([calibration.block, calibration.guard]),
            "dependence": np.array([calibration.dependence]),
        }


def measure(options: Options, perform: Perform) -> Tables:
    """A row per reference."""
    points = QUICK_POINTS if options.quick else POINTS
    sizes = {"auto": (CONFIGURATIONS, RUNS), "independent": (FEW_CONFIGURATIONS, FEW_RUNS)}
    if options.quick:
        sizes = {"auto": (1, 50), "independent": (1, 50)}
    units = [
        Recording(process, sampler, points, runs, number, options.seed)
        for number in range(CONFIGURATIONS)
        for process in PROCESSES
        for sampler, (configurations, runs) in sizes.items()
        if number < configurations
    ]
    table: Table = [
        {
            "process": unit.process,
            "sampler": unit.sampler,
            "points": unit.points,
            "number": unit.number,
            "runs": unit.runs,
            "art": round(float(result["art"][0]), 3),
            "error": float(f"{result['total'][0]:.5g}"),
            "reach": float(f"{result['reach'][0]:.5g}"),
            "block": int(result["sampling"][0]),
            "guard": int(result["sampling"][1]),
            "dependence": float(result["dependence"][0]),
        }
        for unit, result in zip(units, perform("references", units), strict=True)
    ]
    return {"memories": table}


def draw(tables: Tables, _folder: Path) -> str:
    """A table in Markdown."""
    rows = tables["memories"]
    lines = [
        "# Streams with a memory",
        "",
        f"References of {int(rows[0]['points']):,} observations, a promised ERT of {ERT}; ARTs of `MMD()` "
        "on streams from the same process. 'Covered' as in the experiment 'intervals'.",
        "",
        "| process | block | guard | ART by blocks or 'auto' | mean log(ART/ERT) | true spread | predicted | covered "
        "| ART by independent sampling |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    covered: list[bool] = []
    for process in PROCESSES:
        own = [row for row in rows if row["process"] == process and row["sampler"] == "auto"]
        others = [float(row["art"]) for row in rows if row["process"] == process and row["sampler"] == "independent"]
        found = Coverage.of([{**row, "ert": ERT} for row in own], ("error",))
        covered += found.held.tolist()
        blocks, guards = (sorted({int(row[name]) for row in own}) for name in ("block", "guard"))
        lines.append(
            f"| {process} | {_range(blocks)} | {_range(guards)} | {column(own, 'art').mean():.0f} | {found.mean} "
            f"| {found.spread:.3f} | {found.expected:.3f} | {found.held.sum()} of {len(own)} | {np.mean(others):.4g} |"
        )
    return "\n".join([*lines, "", f"Covered over all: {np.mean(covered):.0%} of {len(covered)}.", ""])


def _range(values: list[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]}-{values[-1]}"


MEMORIES = Experiment(
    "streams with a memory: calibration by blocks, and by independent draws",
    ("memories",),
    measure,
    draw,
    has_figures=False,
)
