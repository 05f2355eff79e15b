"""The paper's appendix on window-sharing bias: null windows drawn from the reference, with and without replacement.

The law to be known is that of D(X, Y), where X are N - W of the N reference points and Y are W new observations. A
bootstrap takes Y from the reference as well. With replacement, points of Y are in X too, or twice in Y, and pairs that
are alike for that reason alone bias D; without replacement, X and Y have no point in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tocsin._compute.arrays import Float64Array
from tocsin._experiments.base import Experiment, Options, Perform, Result, Table, Tables, Unit, generator
from tocsin._experiments.resampling import ESTIMATORS, SAMPLINGS, Reference, Sampling
from tocsin._plots.figures import COLOURS, PAGE, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNT, WINDOW = 1000, 25
DIMENSIONS, QUICK_DIMENSIONS = (1, 2, 4, 8, 16, 32, 64, 128), (1, 4, 16, 64)
DENSITY_DIMENSIONS = (1, 8, 32, 128)
SAMPLES, QUICK_SAMPLES = 25_000, 5_000
REFERENCES, QUICK_REFERENCES = 5, 1

BLOCK = 50
"""Samples taken at once: their windows' similarities to the whole reference fit a processor's cache, or nearly."""

BINS = 40

TAILS = (0.1, 0.01)
"""Rates of alarms, by the bootstrap, of the thresholds that are tried on the target."""


@dataclass(frozen=True)
class Comparison(Unit):
    """Target and bootstrap, by both samplings and both estimators, on one reference set of N(0, I)."""

    dimension: int
    reference: int
    samples: int
    seed: int

    def run(self) -> Result:
        from scipy import stats  # slow to import, and needed here alone

        rng = generator(self.seed, "window sharing", self.dimension, self.reference)
        points = rng.standard_normal((COUNT + 2 * WINDOW, self.dimension))
        reference = Reference.prepare(points[:COUNT], points[COUNT:], WINDOW, rng)
        pairs = np.stack([self._pair(reference, sampling, rng) for sampling in SAMPLINGS.values()])
        shown = pairs[:, :, ESTIMATORS.index("MMD")]
        edges = np.linspace(np.quantile(shown, 0.0005), np.quantile(shown, 0.998), BINS + 1)
        histograms = [[np.histogram(values, edges)[0] for values in pair] for pair in shown]
        return {
            "distances": stats.ks_2samp(pairs[:, 0], pairs[:, 1], axis=-1, method="asymp").statistic,
            "exceeded": np.array([[exceeded(*both) for both in zip(*pair, strict=True)] for pair in pairs]),
            "edges": edges,
            "densities": np.array(histograms) / (self.samples * np.diff(edges)),
        }

    def _pair(self, reference: Reference, sampling: Sampling, rng: np.random.Generator) -> Float64Array:
        """(target and bootstrap, estimators, samples)."""
        target, bootstrap = [], []
        for begin in range(0, self.samples, BLOCK):
            n = min(BLOCK, self.samples - begin)
            counts, _ = sampling(rng, COUNT, WINDOW, n)
            target.append(reference.fresh(counts, rng.standard_normal((n, WINDOW, self.dimension))))
            bootstrap.append(reference.drawn(*sampling(rng, COUNT, WINDOW, n)))
        return np.stack([np.concatenate(target, axis=1), np.concatenate(bootstrap, axis=1)])


def exceeded(target: Float64Array, bootstrap: Float64Array) -> list[float]:
    """How often the target is above the thresholds that the bootstrap exceeds at the rates TAILS."""
    return [float((target > np.quantile(bootstrap, 1 - tail)).mean()) for tail in TAILS]


def measure(options: Options, perform: Perform) -> Tables:
    """Distances by estimator, sampling, dimension and reference set; densities of MMD for the first of these sets."""
    dimensions, references, samples = (
        (QUICK_DIMENSIONS, QUICK_REFERENCES, QUICK_SAMPLES) if options.quick else (DIMENSIONS, REFERENCES, SAMPLES)
    )
    units = [Comparison(d, i, samples, options.seed) for d in dimensions for i in range(references)]
    distances: Table = []
    densities: Table = []
    for unit, result in zip(units, perform("window sharing", units), strict=True):
        for row, sampling in enumerate(SAMPLINGS):
            for column, estimator in enumerate(ESTIMATORS):
                distances.append(
                    {
                        "estimator": estimator,
                        "sampling": sampling,
                        "dimension": unit.dimension,
                        "reference": unit.reference,
                        "samples": samples,
                        "distance": round(float(result["distances"][row, column]), 6),
                        **{
                            f"exceeds_{tail:g}": float(result["exceeded"][row, column, i])
                            for i, tail in enumerate(TAILS)
                        },
                    }
                )
        if unit.reference == 0 and (options.quick or unit.dimension in DENSITY_DIMENSIONS):
            densities += _density_rows(unit.dimension, result)
    return {"window-sharing": distances, "window-sharing-densities": densities}


def _density_rows(dimension: int, result: Result) -> Table:
    return [
        {
            "dimension": dimension,
            "sampling": sampling,
            "sample": sample,
            "low": float(f"{low:.6g}"),
            "high": float(f"{high:.6g}"),
            "density": float(f"{density:.5g}"),
        }
        for sampling, pair in zip(SAMPLINGS, result["densities"], strict=True)
        for sample, values in zip(("target", "bootstrap"), pair, strict=True)
        for low, high, density in zip(result["edges"], result["edges"][1:], values, strict=False)
    ]


def draw(tables: Tables, folder: Path) -> str:
    """Left, distances by dimension; right, densities of MMD, a column per dimension and a row per sampling."""
    distances, densities = tables["window-sharing"], tables["window-sharing-densities"]
    dimensions = sorted({int(row["dimension"]) for row in densities})
    with figure(folder, "window-sharing", PAGE, 3.0) as drawing:
        left, right = drawing.subfigures(1, 2, squeeze=False, width_ratios=(1, 1.65))[0]
        ax = left.subplots()
        _draw_distances(ax, distances)
        left.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, handlelength=2.6)
        axes = right.subplots(len(SAMPLINGS), len(dimensions), sharex="col", squeeze=False)
        for column, dimension in enumerate(dimensions):
            axes[0, column].set_title(f"$d = {dimension}$")
            axes[1, column].set_xlabel("1000 MMD$^2$")
            for row, sampling in enumerate(SAMPLINGS):
                here = [r for r in densities if r["dimension"] == dimension and r["sampling"] == sampling]
                _draw_densities(axes[row, column], here)
        for row, sampling in enumerate(SAMPLINGS):
            axes[row, 0].set_ylabel(f"{sampling}\nreplacement")
        right.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return _text(distances)


def _draw_distances(ax: Axes, table: Table) -> None:
    dimensions = np.unique([int(row["dimension"]) for row in table])
    for estimator, colour, marker, aside in zip(ESTIMATORS, COLOURS, "os", (0.95, 1.05), strict=False):
        for sampling, style in zip(SAMPLINGS, ("-", (0, (4, 2))), strict=True):
            mean, spread = _over_references(table, estimator, sampling, "distance")
            ax.errorbar(
                dimensions * aside, mean, spread, label=f"{estimator}, {sampling}", color=colour, marker=marker,
                linestyle=style, elinewidth=0.8, markerfacecolor=colour if sampling == "with" else "white",
            )  # fmt: skip
    mean_floor, high_floor = noise_floor(int(table[0]["samples"]))
    ax.axhline(mean_floor, color="#606060", linewidth=0.8, linestyle=":")
    ax.axhspan(0, high_floor, color="#606060", alpha=0.15, linewidth=0)
    ax.text(2**0.5, mean_floor / 3, "noise", ha="center", va="center", fontsize=6.5, color="#404040")
    ax.set_xscale("log", base=2)
    ax.set(xlabel="dimension $d$", ylabel="KS distance of bootstrap and target", ylim=(0, None))
    ax.set_xticks(dimensions, [str(dimension) for dimension in dimensions])


def _draw_densities(ax: Axes, rows: Table) -> None:
    for sample, colour in (("target", "#606060"), ("bootstrap", COLOURS[1])):
        bins = [row for row in rows if row["sample"] == sample]
        edges = [1000 * float(row["low"]) for row in bins] + [1000 * float(bins[-1]["high"])]
        heights = [float(row["density"]) for row in bins]
        if sample == "target":
            ax.stairs(heights, edges, fill=True, color=colour, alpha=0.35, linewidth=0, label=sample)
        else:
            ax.stairs(heights, edges, color=colour, linewidth=1, label=sample)
    ax.set(yticks=[], ylim=(0, None))
    ax.locator_params(axis="x", nbins=3)


def noise_floor(samples: int) -> tuple[float, float]:
    """KS distance of two samples of the same law: its mean, and what 95 % of such pairs stay below.

    For n and n samples it is sqrt(2 / n) K, where Kolmogorov's K has mean sqrt(pi / 2) ln 2, and P(K > x) is
    2 exp(-2 x^2) but for terms that do not matter there.
    """
    return float(np.sqrt(np.pi / samples) * np.log(2)), float(np.sqrt(np.log(2 / 0.05) / samples))


def _over_references(table: Table, estimator: str, sampling: str, name: str) -> tuple[Float64Array, Float64Array]:
    """Per dimension, mean and standard deviation over reference sets (0 for a single one)."""
    rows = [row for row in table if row["estimator"] == estimator and row["sampling"] == sampling]
    dimensions = np.unique([int(row["dimension"]) for row in rows])
    values = np.array([[float(row[name]) for row in rows if row["dimension"] == d] for d in dimensions])
    spread = values.std(1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
    return values.mean(1), spread


def _text(table: Table) -> str:
    dimensions = np.unique([int(row["dimension"]) for row in table])
    references, samples = len({row["reference"] for row in table}), int(table[0]["samples"])
    kinds = [(estimator, sampling) for estimator in ESTIMATORS for sampling in SAMPLINGS]
    means, spreads = zip(*(_over_references(table, *kind, "distance") for kind in kinds), strict=True)
    highest, last = int(dimensions[-1]), {kind: mean[-1] for kind, mean in zip(kinds, means, strict=True)}
    distances = [
        [
            str(dimension),
            *(
                f"{mean[i]:.3f}" + f" ± {spread[i]:.3f}" * (references > 1)
                for mean, spread in zip(means, spreads, strict=True)
            ),
        ]
        for i, dimension in enumerate(dimensions)
    ]
    tails = [
        [f"{tail:g}", *(f"{_over_references(table, *kind, f'exceeds_{tail:g}')[0][-1]:.4f}" for kind in kinds)]
        for tail in TAILS
    ]
    titles = [f"{estimator}, {sampling}" for estimator, sampling in kinds]
    mean_floor, high_floor = noise_floor(samples)
    return f"""## Window-sharing bias

How far a bootstrap's law of D is from the one it stands for: {samples:,} samples of each, N = {COUNT} points of
N(0, I), W = {WINDOW}, {references} reference set{"s" * (references > 1)} per dimension (LSDD has {2 * WINDOW} further
points as centres). With replacement the distance grows with the dimension, to {last["MMD", "with"]:.3f} for MMD and
{last["LSDD", "with"]:.3f} for LSDD in {highest} dimensions. Without replacement it is
{last["MMD", "without"]:.3f} and {last["LSDD", "without"]:.3f} there. Two samples of one and the same law are
{mean_floor:.4f} apart on average (dotted), and 95 % of such pairs less than {high_floor:.4f} (grey). What is above that
without replacement comes from the reference itself, which is a sample of N(0, I) and differs from one to the next; no
way of resampling can remove it.

Kolmogorov-Smirnov distance (mean ± standard deviation over reference sets):

{_markdown(["dimension", *titles], distances)}

What the bias does to a threshold depends on how rare an alarm is to be. Points that are in both windows make D smaller,
but points that are twice in the same window make it larger; in the far tail, which windows with such twins reach most
easily, the two may cancel. How often the target is above a threshold that the bootstrap exceeds at a given rate, in
{highest} dimensions:

{_markdown(["rate", *titles], tails)}

![Distances of bootstrap and target by dimension, and densities of both, for one reference set](window-sharing.png)
"""


def _markdown(titles: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [titles, ["---:"] * len(titles), *rows])


WINDOW_SHARING = Experiment(
    "bias of bootstraps with and without replacement (appendix)",
    ("window-sharing", "window-sharing-densities"),
    measure,
    draw,
)
