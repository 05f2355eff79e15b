"""Table 1 of the paper, with our figures beside its own, and with the columns and rows that it leaves out."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tocsin._experiments.base import Experiment, Tables
from tocsin._experiments.comparison import BASELINE, ERTS, LAWS, PROMISED, Cells, cells, measure, problems_of
from tocsin._experiments.laws import PROBLEMS
from tocsin._experiments.methods import METHODS

PAPER = {
    "B-statistic": ((0.253, 0.201), (0.951, 0.910, 0.903, 0.562)),
    "CALM-MMD": ((0.010, 0.010), (0.951, 0.909, 0.903, 0.560)),
    "LSDD-Inc": ((0.202, 0.187), (0.936, 0.866, 0.888, 0.522)),
    "CALM-LSDD": ((0.010, 0.014), (0.950, 0.921, 0.933, 0.700)),
}
"""The paper's miscalibrations on both laws, and its reductions on D1 to D4."""

TITLES = [" & ".join(problems_of(law)) for law in LAWS]


def draw(tables: Tables, _folder: Path) -> str:
    """Three tables in Markdown."""
    found = cells(tables["comparison"])
    configurations = len(next(iter(found.values())).quiet)
    runs = int(tables["comparison"][0]["runs"])
    return "\n".join(
        [
            "# Table 1",
            "",
            f"{configurations} configurations x {runs} runs, averaged over ERTs of {', '.join(map(str, ERTS))}; the "
            "paper's figure in brackets. Miscalibration is |ART - ERT| / ERT, reduction (ART - ADD) / ART. As in the "
            "paper, the CALM detectors' reductions are those of detectors configured to the ARTs that their baselines "
            "(B-statistic, LSDD-Inc) achieved. A miscalibration has a standard error of about "
            f"{_error(found):.3f}: smaller ones cannot be told from 0.",
            "",
            *_as_in_the_paper(found),
            "",
            "All detectors at the promised ERT, those of the paper above and Tocsin's below:",
            "",
            *_at_the_promised_ert(found),
            "",
            "The error of a single configuration, |ART - ERT| / ERT: its mean and its 95th percentile over "
            f"configurations. An ART measured by {runs} runs is itself off: a perfect detector would show "
            f"{0.8 / np.sqrt(runs):.3f} and {1.96 / np.sqrt(runs):.3f}. Spread is the standard deviation of ART / ERT "
            "over configurations without that noise.",
            "",
            *_single_configurations(found),
            "",
        ]
    )


def _error(found: Cells) -> float:
    """Typical standard error of ART / ERT, over the paper's calibrated detectors."""
    calibrated = [found[m, PROMISED, law, ert] for m in METHODS if METHODS[m].baseline for law in LAWS for ert in ERTS]
    return float(np.mean([cell.quiet.std(ddof=1) / np.sqrt(len(cell.quiet)) / cell.target for cell in calibrated]))


def _lines(header: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]


def _beside(value: float, papers: float) -> str:
    return f"{value:.3f} ({papers:.3f})"


def _reduction(found: Cells, method: str, problem: str, configured_to: str) -> float:
    law = next(law for law in LAWS if problem in problems_of(law))
    return float(np.mean([found[method, configured_to, law, ert].reduction(problem) for ert in ERTS]))


def _miscalibration(found: Cells, method: str, law: str) -> float:
    return float(np.mean([found[method, PROMISED, law, ert].miscalibration for ert in ERTS]))


def _as_in_the_paper(found: Cells) -> list[str]:
    rows = []
    for method, (miscalibrations, reductions) in PAPER.items():
        configured_to = BASELINE if METHODS[method].baseline else PROMISED
        ours = [_miscalibration(found, method, law) for law in LAWS]
        ours += [_reduction(found, method, problem, configured_to) for problem in PROBLEMS]
        rows.append([method, *map(_beside, ours, (*miscalibrations, *reductions))])
    return _lines(["method", *(f"miscal. {title}" for title in TITLES), *PROBLEMS], rows)


def _at_the_promised_ert(found: Cells) -> list[str]:
    rows = []
    for method in METHODS:
        values = [_miscalibration(found, method, law) for law in LAWS]
        values += [_reduction(found, method, problem, PROMISED) for problem in PROBLEMS]
        rows.append([method, *(f"{value:.3f}" for value in values)])
    return _lines(["method", *(f"miscal. {title}" for title in TITLES), *PROBLEMS], rows)


def _single_configurations(found: Cells) -> list[str]:
    rows = []
    for method in METHODS:
        values: list[float] = []
        for law in LAWS:
            here = [found[method, PROMISED, law, ert] for ert in ERTS]
            values += [
                float(np.mean([cell.single.mean() for cell in here])),
                float(np.mean([np.quantile(cell.single, 0.95) for cell in here])),
                float(np.mean([cell.spread for cell in here])),
            ]
        rows.append([method, *(f"{value:.3f}" for value in values)])
    return _lines(["method", *(f"{law}: {what}" for law in LAWS for what in ("mean", "95 %", "spread"))], rows)


TABLE1 = Experiment(
    "all methods of the paper, and ours: miscalibration and power",
    ("comparison", "quantiles"),
    measure,
    draw,
    has_figures=False,
)
