"""What the imaging experiment found, as a figure and in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Table, Tables
from tocsin._experiments.pictures import BREAKHIS
from tocsin._plots.figures import COLOURS, PAGE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STAND_IN = """**These are not the paper's data.** Camelyon17-WILDS, which it used, has to be downloaded (see
https://wilds.stanford.edu). This run took a stand-in: tiles of 32 x 32 pixels cut from BreaKHis (H&E-stained breast
tumours at 400X; Spanhol, Oliveira, Petitjean and Heutte, *A Dataset for Breast Cancer Histopathological Image
Classification*, IEEE Transactions on Biomedical Engineering 63(7), 2016; CC BY 4.0). Tiles of patients with pale slides
come before the change, tiles of patients with eosin-rich slides after it. The paper's numbers are there for
orientation: its data, its change and its sizes are others."""

CAMELYON = """The data are Camelyon17-WILDS, as in the paper: scans of the three training hospitals come before the
change, scans of the unseen test hospital after it."""

PAPER_LINE = "| the paper, on Camelyon17 | 100 | 20000 | 5000 | 4949 | 1.0 % | | 52.8 | 98.9 % |"

MARKERS: list[dict[str, str | float]] = [
    {"marker": "o", "markersize": 2.2},
    {"marker": "s", "markersize": 4.5, "markerfacecolor": "none"},
]
"""Dots in squares: the two lie on each other."""

BAND = 1.96
"""Standard errors to either side that 95 % of a Gaussian law lie within."""


def draw(tables: Tables, folder: Path) -> str:
    """Left, quantiles of run lengths against those of the promised law; right, how soon the change is found."""
    rows, quantiles = tables["imaging"], tables["imaging-quantiles"]
    names = list(dict.fromkeys(str(row["detector"]) for row in rows))
    with figure(folder, "imaging", PAGE, 3.0) as drawing:
        left, right = drawing.subplots(1, 2)
        _draw_diagonal(left, _of(quantiles, names[0]), _of(rows, names[0]))
        for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
            mine = _of(quantiles, name)
            left.plot(
                _column(mine, "geometric"), _column(mine, "run_length"),
                linestyle="none", color=colour, markeredgewidth=0.6, markevery=0.02, label=name, **marker,
            )  # fmt: skip
            delay = _column(_of(rows, name), "mean_delay").mean()
            label = f"{name}, mean {delay:.1f}"
            right.step(_column(mine, "delay"), _column(mine, "level"), where="post", color=colour, label=label)
            right.axvline(delay, color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
        left.set_ylim(0, 1.15 * max(_column(quantiles, name).max() for name in ("geometric", "run_length")))
        left.legend(loc="upper left")
        right.set(xlabel="tests after the change", ylabel="share of runs that rang", ylim=(0, 1.02))
        right.set_title("Delay after the change")
        right.set_xlim(left=0)
        right.legend(loc="lower right")
    return _text(rows, quantiles, names)


def _draw_diagonal(ax: Axes, quantiles: Table, rows: Table) -> None:
    ert, runs = int(rows[0]["ert"]), _column(rows, "runs").sum()
    level, geometric = _column(quantiles, "level"), _column(quantiles, "geometric")
    error = BAND * ert * np.sqrt(level / (1 - level) / runs)  # of an empirical quantile of an exponential law
    ax.fill_between(
        geometric, geometric - error, geometric + error,
        color="#d9d9d9", linewidth=0, label=f"95 % for {runs:,.0f} geometric runs",
    )  # fmt: skip
    ax.plot(geometric[[0, -1]], geometric[[0, -1]], color="black", linewidth=0.8)
    ax.set(xlabel=f"quantiles of the geometric law with mean {ert}", ylabel="quantiles of run lengths")
    ax.set_title("Run lengths without a change")
    ax.set_xlim(left=0)


def _of(table: Table, name: str) -> Table:
    return [row for row in table if row["detector"] == name]


def _column(table: Table, name: str) -> Float64Array:
    return np.array([row[name] for row in table], dtype=np.float64)


def _text(rows: Table, quantiles: Table, names: list[str]) -> str:
    one = rows[0]
    ert, runs, configurations = int(one["ert"]), int(one["runs"]), len(rows) // len(names)
    pool, reference = int(one["pool"]), int(one["reference"])
    lines = "\n".join(_line(name, _of(rows, name)) for name in names)
    gaps = " and ".join(f"{_gap(_of(quantiles, name), ert):.3f} ({name})" for name in names)
    return f"""## Medical imaging

{STAND_IN if one["dataset"] == BREAKHIS else CAMELYON}

Each of {configurations} configurations trains an autoencoder on {one["training"]} pictures ({one["epochs"]} epochs;
mean squared error at the end {_column(rows, "training_loss").mean():.4f}), which then leave the pool. Both detectors
are fitted to the 32-dimensional encodings of the same {reference} others, and watch {runs} streams without a change,
drawn without replacement from the {pool} that remain, and {runs} with one, drawn from {one["pool_after"]}. ART is the
average run time without a change in tests, ADD the average delay after it, ± standard errors over configurations;
reduction is (ART - ADD) / ART.

| detector | windows | N | ERT | ART | miscalibration | spread | ADD | reduction |
|---|---|---|---|---|---|---|---|---|
{lines}
{PAPER_LINE}

Spread is the standard deviation of ART / ERT over configurations, each measured with {runs} runs, which alone make for
{100 * runs**-0.5:.0f} %. The distribution functions of run lengths and of the geometric law are at most {gaps} apart.
{_finite(pool, reference)}{_censored(rows)}
![Quantiles of run lengths against the geometric law, and the distribution of delays](imaging.png)
"""


def _line(name: str, rows: Table) -> str:
    ert = int(rows[0]["ert"])
    lengths, delays = _column(rows, "mean_run_length"), _column(rows, "mean_delay")
    art, add = lengths.mean(), delays.mean()
    errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (lengths, delays)]
    windows = str(rows[0]["windows"]).replace(" ", ", ")
    return (
        f"| {name} | {windows} | {rows[0]['reference']} | {ert} | {art:.0f} ± {errors[0]:.0f} "
        f"| {abs(art / ert - 1):.1%} | {lengths.std(ddof=1) / ert:.0%} | {add:.1f} ± {errors[1]:.1f} "
        f"| {1 - add / art:.1%} |"
    ).replace("%", " %")


def _gap(quantiles: Table, ert: int) -> float:
    """Largest distance between the distribution functions, seen at the quantiles that were kept."""
    reached = -np.expm1(_column(quantiles, "run_length") * np.log1p(-1 / ert))
    return float(np.abs(reached - _column(quantiles, "level")).max())


def _finite(pool: int, reference: int) -> str:
    return f"""
The pool is finite, and its mean is not that of the law behind it. The squared distance between the means of pool and
reference goes as 1/N + 1/{pool}, {100 * reference / pool:.0f} % more than the 1/N that every detector has to live with.
"""


def _censored(rows: Table) -> str:
    runs, delays = (int(_column(rows, name).sum()) for name in ("censored", "censored_delays"))
    if not runs + delays:
        return ""
    return f"""
Pictures ran out before {runs} runs and {delays} delays had ended; these count with the length that they had.
"""
