"""Figures of the comparison: ERT against ART, run lengths against the geometric law, and power."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Experiment, Tables
from tocsin._experiments.comparison import BASELINE, ERTS, LAWS, PROMISED, Cells, cells, measure, problems_of
from tocsin._experiments.laws import PROBLEMS
from tocsin._experiments.methods import METHODS
from tocsin._plots.figures import COLOURS, PAGE, figure

STYLES: dict[str, dict[str, str | float]] = {
    "B-statistic": {"color": COLOURS[1], "marker": "o", "linestyle": "--"},
    "CALM-MMD": {"color": COLOURS[1], "marker": "s"},
    "LSDD-Inc": {"color": COLOURS[0], "marker": "o", "linestyle": "--"},
    "CALM-LSDD": {"color": COLOURS[0], "marker": "s"},
    "steady MMD": {"color": COLOURS[4], "marker": "^"},
    "default family": {"color": COLOURS[2], "marker": "D", "linewidth": 1.8},
}
"""One colour per statistic; baselines dashed, the paper's methods as squares, ours as triangles and diamonds."""


def draw_calibration(tables: Tables, folder: Path) -> str:
    """ART against ERT, with the miscalibration beneath."""
    found = cells(tables["comparison"])
    with figure(folder, "calibration", PAGE, 4.3) as drawing:
        axes = drawing.subplots(2, len(LAWS), sharex=True, sharey="row", height_ratios=(3, 2))
        for column, law in enumerate(LAWS):
            upper, lower = axes[:, column]
            upper.plot(ERTS, ERTS, color="0.6", linewidth=0.8, zorder=0)
            lower.axhline(0, color="0.6", linewidth=0.8, zorder=0)
            for method, style in STYLES.items():
                here = [found[method, PROMISED, law, ert] for ert in ERTS]
                upper.plot(ERTS, [cell.art for cell in here], label=method, **style)
                lower.plot(ERTS, [cell.art / cell.target - 1 for cell in here], **style)
            upper.set_title(f"{law} before the change ({' & '.join(problems_of(law))})")
            upper.set(xscale="log", yscale="log", xticks=ERTS, xticklabels=ERTS, yticks=ERTS, yticklabels=ERTS)
            upper.minorticks_off()
            lower.minorticks_off()
            lower.set(xlabel="expected run time (ERT)")
            lower.yaxis.set_major_formatter(lambda value, _: f"{value:+.0%}")
        axes[0, 0].set(ylabel="average run time (ART)")
        axes[1, 0].set(ylabel="(ART - ERT) / ERT")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(STYLES))
    worst = {method: _largest_deviation(found, method) for method in METHODS}
    told = "; ".join(f"{method} {low:+.1%} to {high:+.1%}" for method, (low, high) in worst.items())
    return (
        "# Calibration\n\n![ART against ERT](calibration.png)\n\n"
        f"Deviation of the ART from the ERT, over laws and ERTs: {told}.\n"
    )


def _largest_deviation(found: Cells, method: str) -> tuple[float, float]:
    here = [found[method, PROMISED, law, ert] for law in LAWS for ert in ERTS]
    deviations = [cell.art / cell.target - 1 for cell in here]
    return min(deviations), max(deviations)


def draw_qq(tables: Tables, folder: Path) -> str:
    """Quantiles of run lengths against those of the geometric law with the same mean."""
    groups: dict[tuple[str, str, int], list[tuple[float, float, float]]] = {}
    for row in tables["quantiles"]:
        key = str(row["method"]), str(row["law"]), int(row["ert"])
        groups.setdefault(key, []).append((float(row["probability"]), float(row["length"]), float(row["mean"])))
    colours = dict(zip(ERTS, (COLOURS[5], COLOURS[0], COLOURS[2], COLOURS[1]), strict=True))
    distances: dict[str, list[float]] = {method: [] for method in METHODS}
    runs = int(tables["quantiles"][0]["runs"])
    with figure(folder, "qq", PAGE, 4.4) as drawing:
        axes = drawing.subplots(2, 3, sharex=True, sharey=True)
        for panel, method in zip(axes.flat, METHODS, strict=True):
            panel.plot([0, 12], [0, 12], color="0.6", linewidth=0.8, zorder=0)
            for law, line in zip(LAWS, ("-", ":"), strict=True):
                for ert in ERTS:
                    probability, length, mean = _resolved(groups[method, law, ert], runs)
                    theory = smooth_geometric_quantiles(probability, mean[0])
                    panel.plot(
                        theory / mean, length / mean, line, color=colours[ert], label=f"{law}, ERT {ert}", linewidth=1.1
                    )
                    distances[method].append(float(np.abs(length - theory)[probability <= 0.99].max() / mean[0]))
            panel.set_title(method)
            panel.set(xlim=(0, 11), ylim=(0, 11), aspect="equal", xticks=(0, 5, 10), yticks=(0, 5, 10))
        drawing.supxlabel("geometric quantile / ART", fontsize=8)
        drawing.supylabel("run length quantile / ART", fontsize=8)
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center")
    told = "; ".join(f"{method} {np.mean(values):.3f}" for method, values in distances.items())
    return (
        "# Run lengths against the geometric law\n\n![Q-Q plots](qq.png)\n\n"
        f"{runs} runs without a change each; the geometric law has the runs' own mean, so a wrong mean is not held "
        "against a detector twice. Largest distance between quantiles up to the 99th percentile, in units of the ART, "
        f"averaged over laws and ERTs: {told}. Chance alone makes for about {9.4 / np.sqrt(runs):.3f}, and pooling "
        "detectors whose rates differ for more.\n"
    )


def _resolved(points: list[tuple[float, float, float]], runs: int) -> Float64Array:
    """Probability, length and mean, up to the last quantile that so many runs can tell."""
    columns = np.array(points).T
    return columns[:, columns[0] <= 1 - 1 / runs]


def smooth_geometric_quantiles(probability: Float64Array, mean: float) -> Float64Array:
    """Of the geometric law on 1, 2, ... with this mean, interpolated between whole numbers.

    >>> smooth_geometric_quantiles(np.array([0.5]), 2.0)
    array([1.])
    """
    return np.asarray(np.log1p(-probability) / np.log1p(-1 / mean))


def draw_power(tables: Tables, folder: Path) -> str:
    """ART against reduction on every problem."""
    found = cells(tables["comparison"])
    with figure(folder, "power", PAGE, 4.6) as drawing:
        axes = drawing.subplots(2, 2, sharex=True)
        for panel, problem in zip(axes.flat, PROBLEMS, strict=True):
            law = next(law for law in LAWS if problem in problems_of(law))
            for method, style in STYLES.items():
                configured_to = BASELINE if METHODS[method].baseline else PROMISED
                here = [found[method, configured_to, law, ert] for ert in ERTS]
                panel.plot([c.art for c in here], [c.reduction(problem) for c in here], label=method, **style)
            panel.set_title(problem)
            panel.set(xscale="log", xticks=ERTS, xticklabels=ERTS)
            panel.minorticks_off()
        for panel in axes[1]:
            panel.set(xlabel="average run time (ART)")
        for panel in axes[:, 0]:
            panel.set(ylabel="(ART - ADD) / ART")
        drawing.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(STYLES))
    return (
        "# Power\n\n![ART against reduction](power.png)\n\nHow much shorter a run becomes when there is a change. The "
        "CALM detectors are configured to the ARTs that their baselines achieved, ours to the promised ERTs.\n"
    )


CALIBRATION = Experiment(
    "ERT against ART, with the miscalibration beneath", ("comparison", "quantiles"), measure, draw_calibration
)
QQ = Experiment("Q-Q plots of run lengths against the geometric law", ("comparison", "quantiles"), measure, draw_qq)
POWER = Experiment("ART against reduction in run time on D1 to D4", ("comparison", "quantiles"), measure, draw_power)
