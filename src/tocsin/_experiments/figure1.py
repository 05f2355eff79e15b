"""The paper's Figure 1: a fixed threshold soon rings less often than it should, adaptive ones at a constant rate.

The statistic is the difference between the mean of the last W = 8 observations and the mean of the reference, 1000
points of N(0, 1). Both detectors are to ring at a tenth of their tests. What they do is counted on fresh streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tocsin._calibration.plan import PAPER_PATHS
from tocsin._compute.arrays import BoolArray, Float64Array
from tocsin._detector.base import altered
from tocsin._detector.detector import Detector
from tocsin._experiments.base import Experiment, Options, Perform, Result, Table, Tables, Unit, generator
from tocsin._plots.figures import COLOURS, PAGE, figure
from tocsin._samplers import Independent
from tocsin._statistics.mean_shift import MeanShift

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNT, WINDOW, ERT = 1000, 8, 10.0
TESTS = 2 * WINDOW

Calibration = Literal["fixed", "paper"]
CALIBRATIONS: dict[Calibration, str] = {"fixed": "one fixed threshold", "paper": "adaptive thresholds (CALM)"}

RUNS = 1000
REFERENCES, QUICK_REFERENCES = 200, 20
KNOWN_PATHS, QUICK_KNOWN_PATHS = 500_000, 100_000
"""A detector whose reference happens to have a low mean rings too often, by a tenth or so, at all tests alike; that
error is not the one shown here, and only many references average it out."""

EDGES = np.arange(-40, 29) * 0.05
"""Bins for the distance of the statistic from its threshold: no bin lies on both sides of it."""

LEAST = 0.004
"""Bins with a smaller part of the highest density are not drawn: single runs would make whiskers of them."""

SHOWN = (1, 2, 4, 8, 16)
"""Tests listed in the text."""


@dataclass(frozen=True)
class Detectors(Unit):
    """Both detectors on one reference, and what they do on the same fresh streams."""

    reference: int
    runs: int
    seed: int

    def run(self) -> Result:
        rng = generator(self.seed, "figure1", self.reference)
        reference = rng.standard_normal((COUNT, 1))
        streams = rng.standard_normal((self.runs, WINDOW - 1 + TESTS, 1))
        result: Result = {}
        for calibration in CALIBRATIONS:
            detector = Detector(
                ert=ERT,
                statistic=MeanShift(direction=[1.0]),
                window=WINDOW,
                sampler=Independent(),
                interval=False,
                mode=calibration,
                start="cold",
                paths=PAPER_PATHS,
                seed=int(rng.integers(2**32)),
            ).fit(reference, workers=1, progress=False)
            observed = watch(detector, streams)
            result |= {f"{calibration} {name}": values for name, values in observed.items()}
        return result


@dataclass(frozen=True)
class KnownLaw(Unit):
    """The same recursion on streams of N(0, 1), with no reference.

    Gives, at each test, the threshold that keeps the rate, and the rate of those who keep the W-th from then on.
    """

    paths: int
    seed: int

    def run(self) -> Result:
        steps = generator(self.seed, "known law").standard_normal((self.paths, WINDOW - 1 + TESTS))
        sums = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)
        means = (sums[:, WINDOW:] - sums[:, :-WINDOW]) / WINDOW
        adapting = keeping = means
        thresholds, rates, quiet = np.empty((3, TESTS))
        for test in range(TESTS):
            thresholds[test] = np.quantile(adapting[:, test], 1 - 1 / ERT)
            adapting = adapting[adapting[:, test] <= thresholds[test]]
            rings = keeping[:, test] > thresholds[min(test, WINDOW - 1)]
            rates[test], quiet[test] = rings.mean(), len(keeping)
            keeping = keeping[~rings]
        return {"thresholds": thresholds, "rates": rates, "quiet": quiet}


def watch(detector: Detector, streams: Float64Array) -> Result:
    """Per test: threshold, runs still quiet before it, alarms among them, and the density of their statistics."""
    statistics, thresholds = [], np.empty(0)
    for stream in streams:
        outcomes = altered(detector, resets=False).update_many(stream)
        statistics.append(outcomes.statistic[WINDOW - 1 :])
        thresholds = outcomes.threshold[WINDOW - 1 :]
        detector.reset()
    excess = np.array(statistics) - thresholds
    rang = excess > 0
    quiet: BoolArray = np.cumsum(rang, axis=1) - rang == 0
    counts = np.stack([np.histogram(excess[still, test], EDGES)[0] for test, still in enumerate(quiet.T)])
    return {
        "thresholds": thresholds,
        "quiet": quiet.sum(0),
        "alarms": (quiet & rang).sum(0),
        "densities": counts / (quiet.sum(0)[:, None] * np.diff(EDGES)),
    }


def measure(options: Options, perform: Perform) -> Tables:
    """Per test and calibration, averages over references; densities by distance from the threshold (low to high).

    rate, rate_error: false alarms among runs that were quiet so far, and its standard error, over references.
    rate_spread: standard deviation of one reference's own rate (without the noise of counting its runs).
    Rows of the 'known law' have the threshold that keeps the rate, and the rate of those who keep the W-th instead.
    """
    units = [Detectors(i, RUNS, options.seed) for i in range(QUICK_REFERENCES if options.quick else REFERENCES)]
    results = perform("figure 1", units)
    rates_table: Table = []
    densities_table: Table = []
    for calibration in CALIBRATIONS:
        thresholds, quiet, alarms, densities = (
            np.stack([result[f"{calibration} {name}"] for result in results])
            for name in ("thresholds", "quiet", "alarms", "densities")
        )
        rates = alarms / quiet
        counting = (rates * (1 - rates) / quiet).mean(0)
        spread = np.sqrt(np.maximum(rates.var(0, ddof=1) - counting, 0))
        for test in range(TESTS):
            rates_table.append(
                {
                    "calibration": calibration,
                    "test": test + 1,
                    "threshold": round(float(thresholds[:, test].mean()), 6),
                    "threshold_spread": round(float(thresholds[:, test].std(ddof=1)), 6),
                    "rate": round(float(rates[:, test].mean()), 6),
                    "rate_error": round(float(rates[:, test].std(ddof=1) / np.sqrt(len(rates))), 6),
                    "rate_spread": round(float(spread[test]), 6),
                    "quiet": int(quiet[:, test].sum()),
                    "references": len(units),
                }
            )
            densities_table += [
                {
                    "calibration": calibration,
                    "test": test + 1,
                    "low": round(float(low), 4),
                    "high": round(float(high), 4),
                    "density": round(float(density), 5),
                }
                for low, high, density in zip(EDGES, EDGES[1:], densities[:, test].mean(0), strict=False)
            ]
    known = KnownLaw(QUICK_KNOWN_PATHS if options.quick else KNOWN_PATHS, options.seed)
    rates_table += _known_rows(*perform("known law", [known]))
    return {"figure1": rates_table, "figure1-densities": densities_table}


def _known_rows(result: Result) -> Table:
    return [
        {
            "calibration": "known law",
            "test": test,
            "threshold": round(float(threshold), 6),
            "threshold_spread": 0.0,
            "rate": round(float(rate), 6),
            "rate_error": round(float(np.sqrt(rate * (1 - rate) / quiet)), 6),
            "rate_spread": 0.0,
            "quiet": int(quiet),
            "references": 0,
        }
        for test, (threshold, rate, quiet) in enumerate(
            zip(result["thresholds"], result["rates"], result["quiet"], strict=True), 1
        )
    ]


def draw(tables: Tables, folder: Path) -> str:
    """Above, the statistic among quiet runs, alarms in red; below, the rate of alarms. Left fixed, right adaptive."""
    with figure(folder, "figure1", PAGE, 4.2) as drawing:
        axes = drawing.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.6, 1))
        for column, (calibration, title) in enumerate(CALIBRATIONS.items()):
            rows = [row for row in tables["figure1"] if row["calibration"] == calibration]
            densities = [row for row in tables["figure1-densities"] if row["calibration"] == calibration]
            axes[0, column].set_title(title[0].upper() + title[1:])
            _draw_densities(axes[0, column], rows, densities)
            _draw_rates(axes[1, column], rows)
            axes[1, column].set_xlabel(f"test (the first is made at time $W = {WINDOW}$)")
        axes[0, 0].set_ylabel("statistic of runs still quiet")
        axes[1, 0].set_ylabel("false positive rate")
        drawing.align_ylabels()
        drawing.legend(
            *axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=1.4, fontsize=7.5
        )
    return _text(tables["figure1"])


def _draw_densities(ax: Axes, rows: Table, densities: Table) -> None:
    highest = max(float(row["density"]) for row in densities)
    for row in rows:
        test, threshold = int(row["test"]), float(row["threshold"])
        bins = [bin_ for bin_ in densities if bin_["test"] == test and float(bin_["density"]) > LEAST * highest]
        for above, colour, label in ((False, COLOURS[5], "quiet"), (True, COLOURS[1], "false alarm")):
            side = [bin_ for bin_ in bins if (float(bin_["low"]) >= 0) == above]
            heights = np.repeat(_column(side, "density"), 2) * 0.45 / highest
            levels = threshold + np.stack([_column(side, "low"), _column(side, "high")], axis=1).ravel()
            ax.fill_betweenx(
                levels, test - heights, test + heights, color=colour, linewidth=0, label=label if test == 1 else None
            )
    tests, thresholds = _column(rows, "test"), _column(rows, "threshold")
    ax.hlines(thresholds, tests - 0.5, tests + 0.5, color="black", linewidth=1.3, label="threshold")
    ax.set(ylim=(-1.25, 1.25))
    ax.set_axisbelow(True)


def _draw_rates(ax: Axes, rows: Table) -> None:
    ax.axhline(1 / ERT, color="black", linewidth=0.9, linestyle=(0, (4, 3)))
    ax.errorbar(
        _column(rows, "test"), _column(rows, "rate"), 2 * _column(rows, "rate_error"),
        color=COLOURS[1], marker="o", markersize=2.5, linestyle="none", elinewidth=0.9, capsize=2.5,
    )  # fmt: skip
    ax.set(ylim=(0, 0.135), xlim=(0.3, TESTS + 0.7), xticks=[1, *range(2, TESTS + 1, 2)])
    ax.annotate(rf"$\alpha = {1 / ERT:g}$", (TESTS + 0.5, 1 / ERT), (0, 9), textcoords="offset points", ha="right")


def _column(rows: Table, name: str) -> Float64Array:
    return np.array([row[name] for row in rows], dtype=np.float64)


def _text(table: Table) -> str:
    fixed, paper = ([row for row in table if row["calibration"] == calibration] for calibration in CALIBRATIONS)
    late = _column(fixed, "rate")[WINDOW:].mean()
    known = [row for row in table if row["calibration"] == "known law"]
    rates, known_rates, known_thresholds = (_column(paper, "rate"), _column(known, "rate"), _column(known, "threshold"))
    references = int(fixed[0]["references"])
    lines = "\n".join(_line(fixed[test - 1], paper[test - 1]) for test in SHOWN)
    return f"""## Figure 1: one threshold, and thresholds that adapt

Difference of means, W = {WINDOW}, N = {COUNT} reference points of N(0, 1), {PAPER_PATHS:,} simulated paths, and a
promise of one false alarm in {ERT:g} tests. Rates were counted on {int(fixed[0]["quiet"]):,} fresh streams: the part of
those quiet so far that ring at a test. A fixed threshold rings at {float(fixed[0]["rate"]):.3f} of the first tests, as
it should, at {float(fixed[1]["rate"]):.3f} of the second, and in the end at {late:.3f}, once in {1 / late:.0f} tests.
Adaptive thresholds ring at {rates[:WINDOW].min():.3f} to {rates[:WINDOW].max():.3f} of the first {WINDOW} tests and, on
average, at {rates[WINDOW:].mean():.3f} of the next {TESTS - WINDOW}. The paper keeps the {WINDOW}th threshold from
there on. That is nearly right: even where N(0, 1) is known, and no reference is needed, thresholds that keep the rate
fall a little further, from {known_thresholds[WINDOW - 1]:.3f} at test {WINDOW} to {known_thresholds[-1]:.3f} at test
{TESTS}, and the {WINDOW}th, if kept, rings at {known_rates[WINDOW:].mean():.3f} of the tests after it.

All numbers are averages over {references} references. One reference alone has an error of its own: its mean is off by
about 0.03, and the rate of its detector by {_column(paper, "rate_spread").mean():.3f} (standard deviation over
references), at all tests in the same direction. Errors below, and the bars in the figure (twice as long to either
side), include it. Densities are drawn by distance from each reference's own threshold, so that the red areas are the
rates.

| test | fixed: threshold | rate | adaptive: threshold | rate |
|-----:|-----------------:|-----:|-------------------:|-----:|
{lines}

![The statistic among quiet runs, thresholds, and false positive rates at each test](figure1.png)
"""


def _line(*rows: dict[str, str | int | float]) -> str:
    cells = [
        f"{float(row['threshold']):.3f} | {float(row['rate']):.4f} ± {float(row['rate_error']):.4f}" for row in rows
    ]
    return f"| {rows[0]['test']} | {' | '.join(cells)} |"


FIGURE1 = Experiment(
    "false positive rates of a fixed threshold and of adaptive ones",
    ("figure1", "figure1-densities"),
    measure,
    draw,
)
