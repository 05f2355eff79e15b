"""Table 1 and the figures of the comparison say what the runs say: against numbers worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tocsin._experiments import comparison
from tocsin._experiments.base import Experiment, Options, Result, Row, Table, Tables, Unit
from tocsin._experiments.comparison import BASELINE, ERTS, LAWS, PROMISED, Cell, Configuration, cells, problems_of
from tocsin._experiments.comparison_figures import CALIBRATION, POWER, QQ, smooth_geometric_quantiles
from tocsin._experiments.laboratory import read_table, write_table
from tocsin._experiments.laws import PROBLEMS
from tocsin._experiments.methods import METHODS
from tocsin._experiments.table1 import TABLE1

RUNS = 100
DEVIATIONS: dict[str, dict[str, tuple[float, ...]]] = {
    "B-statistic": {"Gaussian": (0.3, 0.1, -0.1, -0.3), "square": (0.4, 0.2, -0.2, -0.4)},
    "LSDD-Inc": {"Gaussian": (0.2, 0.2, 0.2, 0.2), "square": (0.1, 0.1, 0.1, 0.1)},
}
"""ART / ERT - 1 at the four ERTs; 0 for other methods."""

SPREAD = 0.1
"""The two configurations of every method are off by as much to either side."""

NOISE = 0.05
"""Standard error of their ARTs, relative to the ERT."""

DELAYS = {PROMISED: (0.1, 0.2, 0.3, 0.4), BASELINE: (0.05, 0.15, 0.25, 0.35)}
"""Delays on D1 to D4, relative to the ART, averaged over ERTs."""

WOBBLE = (-0.02, -0.01, 0.01, 0.02)
"""Added at the four ERTs."""


def deviations(method: str, law: str) -> tuple[float, ...]:
    """ART / ERT - 1."""
    return DEVIATIONS.get(method, {}).get(law, (0.0,) * 4)


def rows(method: str, law: str, configured_to: str) -> Table:
    """What would have been measured."""
    table: Table = []
    reference = (METHODS[method].baseline or method) if configured_to == BASELINE else method
    for ert, deviation, wobble in zip(ERTS, deviations(reference, law), WOBBLE, strict=True):
        art = ert * (1 + deviation)
        for number, side in enumerate((-1, 1)):
            quiet = configured_to == PROMISED
            row: Row = {"method": method, "law": law, "ert": ert, "configured to": configured_to}
            row |= {"target": ert if quiet else art, "configuration": number, "runs": RUNS}
            row["quiet"] = art + side * SPREAD * ert if quiet else math.nan
            for problem, delay in zip(PROBLEMS, DELAYS[configured_to], strict=True):
                mine = problem in problems_of(law)
                row[problem] = (delay + wobble) * art + side if mine else math.nan
            row["quiet deviation"] = NOISE * ert * RUNS**0.5 if quiet else math.nan
            table.append(row)
    return table


def quantiles(method: str, law: str) -> Table:
    """Exactly geometric, but for the B-statistic, whose quantiles are all half a mean longer."""
    longer = 0.5 if method == "B-statistic" else 0.0
    probabilities = np.array([0.001, 0.5, 0.9, 0.99, 0.999])
    return [
        {"method": method, "law": law, "ert": ert, "mean": float(ert), "runs": 1000,
         "probability": float(probability), "length": float(length) + longer * ert}
        for ert in ERTS
        for probability, length in zip(probabilities, smooth_geometric_quantiles(probabilities, ert), strict=True)
    ]  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Both tables of the comparison, from files."""
    table = [row for method in METHODS for law in LAWS for row in rows(method, law, PROMISED)]
    table += [
        row for name, each in METHODS.items() if each.baseline for law in LAWS for row in rows(name, law, BASELINE)
    ]
    write_table(tmp_path / "comparison.csv", table)
    write_table(tmp_path / "quantiles.csv", [row for m in METHODS for law in LAWS for row in quantiles(m, law)])
    return {name: read_table(tmp_path / f"{name}.csv") for name in ("comparison", "quantiles")}


# One cell


def cell(quiet: tuple[float, float], noise: tuple[float, float] = (3.0, 4.0)) -> Cell:
    """Two configurations at an ERT of 100."""
    return Cell(100.0, np.array(quiet), np.array(noise), {"D1": np.array([10.0, 30.0])})


def test_a_cell() -> None:
    """|ART - ERT| / ERT of the average and of each; their spread, less the noise of measuring; (ART - ADD) / ART."""
    found = cell((90.0, 130.0))
    assert found.art == 110
    assert found.miscalibration == pytest.approx(0.1)
    assert found.single == pytest.approx([0.1, 0.3])
    # The variance of 90 and 130 is 800, that of measuring them (3^2 + 4^2) / 2.
    assert found.spread == pytest.approx(787.5**0.5 / 100)
    assert found.reduction("D1") == pytest.approx(1 - 20 / 110)


def test_errors_of_either_sign_cancel_in_the_average_alone() -> None:
    """The paper's miscalibration is that of the mean over configurations; one too long and one too short hide it."""
    found = cell((70.0, 130.0))
    assert found.miscalibration == 0
    assert found.single == pytest.approx([0.3, 0.3])


def test_a_spread_below_its_noise_is_none() -> None:
    """Rather than the root of a negative number."""
    assert cell((99.0, 101.0)).spread == 0


def test_without_quiet_runs_the_art_is_the_one_configured_to() -> None:
    """As for detectors that are fitted to what their baselines achieved."""
    found = cell((math.nan, math.nan))
    assert found.art == 100
    assert found.reduction("D1") == pytest.approx(0.8)


def test_cells_are_found_in_the_table(tables: Tables) -> None:
    """A cell for each method, target, law and ERT, with the delays of the law's own problems."""
    found = cells(tables["comparison"])
    assert len(found) == (len(METHODS) + 2) * len(LAWS) * len(ERTS)
    here = found["B-statistic", PROMISED, "square", 256]
    assert here.quiet == pytest.approx([256 * 1.1, 256 * 1.3])
    assert here.noise == pytest.approx([256 * NOISE] * 2)
    assert list(here.delays) == ["D3", "D4"]
    assert here.delays["D4"] == pytest.approx([0.39 * 256 * 1.2 - 1, 0.39 * 256 * 1.2 + 1])
    assert found["CALM-MMD", BASELINE, "Gaussian", 128].art == pytest.approx(128 * 1.3)


# The table


def test_table_1(tables: Tables, tmp_path: Path) -> None:
    """Its rows, by hand.

    B-statistic on the Gaussian: deviations of 0.3, 0.1, -0.1 and -0.3 make 0.2 on average. Its configurations are off
    by (0.2, 0.4), (0, 0.2), (0.2, 0) and (0.4, 0.2): means 0.3, 0.1, 0.1, 0.3, and 95th percentiles 0.39, 0.19, 0.19,
    0.39. Their spread is sqrt(2 0.1^2 - 0.05^2) = 0.132. Reductions are 1 - delay / ART; CALM methods show those of
    detectors configured to their baseline's ART.
    """
    lines = TABLE1.draw(tables, tmp_path).splitlines()
    header = "| method | miscal. D1 & D2 | miscal. D3 & D4 | D1 | D2 | D3 | D4 |"
    assert lines.count(header) == 2
    for line in (
        "B-statistic | 0.200 (0.253) | 0.300 (0.201) | 0.900 (0.951) | 0.800 (0.910) | 0.700 (0.903) | 0.600 (0.562)",
        "CALM-MMD | 0.000 (0.010) | 0.000 (0.010) | 0.950 (0.951) | 0.850 (0.909) | 0.750 (0.903) | 0.650 (0.560)",
        "LSDD-Inc | 0.200 (0.202) | 0.100 (0.187) | 0.900 (0.936) | 0.800 (0.866) | 0.700 (0.888) | 0.600 (0.522)",
        "CALM-LSDD | 0.000 (0.010) | 0.000 (0.014) | 0.950 (0.950) | 0.850 (0.921) | 0.750 (0.933) | 0.650 (0.700)",
        "B-statistic | 0.200 | 0.300 | 0.900 | 0.800 | 0.700 | 0.600",
        "CALM-MMD | 0.000 | 0.000 | 0.900 | 0.800 | 0.700 | 0.600",
        "default family | 0.000 | 0.000 | 0.900 | 0.800 | 0.700 | 0.600",
        "B-statistic | 0.200 | 0.290 | 0.132 | 0.300 | 0.390 | 0.132",
        "steady MMD | 0.100 | 0.100 | 0.132 | 0.100 | 0.100 | 0.132",
    ):
        assert lines.count(f"| {line} |") == 1, line
    words = " ".join(lines)
    assert "2 configurations x 100 runs, averaged over ERTs of 128, 256, 512, 1024" in words
    # |N(0, 1)| has mean 0.8 and 95th percentile 1.96.
    assert "a perfect detector would show 0.080 and 0.196" in words
    assert "nan" not in words


# The figures


@pytest.mark.parametrize("mean", [1.5, 4.0, 1000.0])
def test_geometric_quantiles(mean: float) -> None:
    """P(T <= k) = 1 - (1 - 1 / mean)^k: at that probability the quantile is k."""
    lengths = np.arange(1, 20)
    probabilities = np.array([1 - (1 - 1 / mean) ** int(length) for length in lengths])
    assert smooth_geometric_quantiles(probabilities, mean) == pytest.approx(lengths)


@pytest.mark.parametrize(
    ("name", "experiment", "told"),
    [
        (
            "calibration",
            CALIBRATION,
            "B-statistic -40.0% to +40.0%; CALM-MMD +0.0% to +0.0%; LSDD-Inc +10.0% to +20.0%",
        ),
        ("qq", QQ, "averaged over laws and ERTs: B-statistic 0.500; CALM-MMD 0.000; LSDD-Inc 0.000"),
        ("power", POWER, "How much shorter a run becomes"),
    ],
    ids=["calibration", "qq", "power"],
)
def test_figures_are_drawn_from_the_tables(
    tables: Tables, tmp_path: Path, name: str, experiment: Experiment, told: str
) -> None:
    """As PNG and SVG, with every method in the SVG, and with words that quote the right numbers."""
    text = experiment.draw(tables, tmp_path)
    assert f"]({name}.png)" in text
    assert told in text
    assert "nan" not in text
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / f"{name}.svg").read_text()
    assert "</svg>" in drawing
    assert all(f">{method}<" in drawing for method in METHODS)


# Measuring


def lengths_of(unit: Configuration) -> Result:
    """Made-up runs: methods that are off by their number in tenths, and delays that are a tenth of the ERT."""
    place = list(METHODS).index(unit.method)
    targets = np.array(unit.erts)[:, None] * np.array([0.5, 1.5])
    result = {problem: np.rint(targets / 10).astype(np.int32) for problem in problems_of(unit.law)}
    if unit.quiet:
        result["quiet"] = np.rint(targets * (1 + place / 10)).astype(np.int32)
    return result


def test_the_paper_s_methods_are_measured_again_at_what_their_baselines_achieved() -> None:
    """In a second round, without quiet runs; the tables have a row for every configuration of both rounds."""
    rounds: list[list[Configuration]] = []

    def perform(what: str, units: Sequence[Unit]) -> list[Result]:
        rounds.append([unit for unit in units if isinstance(unit, Configuration)])
        return [lengths_of(unit) for unit in rounds[-1]]

    tables = comparison.measure(Options(seed=5, quick=True), perform)
    first, second = rounds
    configurations = comparison.QUICK_CONFIGURATIONS
    assert len(first) == len(METHODS) * len(LAWS) * configurations == len({unit.key for unit in first})
    assert {unit.erts for unit in first} == {ERTS}
    assert {(unit.seed, unit.runs, unit.quiet) for unit in first} == {(5, comparison.QUICK_RUNS, True)}
    assert {unit.quiet for unit in second} == {False}
    assert {(unit.method, unit.law) for unit in second} == {(m, law) for m in ("CALM-MMD", "CALM-LSDD") for law in LAWS}
    achieved = {"CALM-MMD": (128, 256, 512, 1024), "CALM-LSDD": (153.5, 307, 614.5, 1229)}
    for unit in second:
        assert unit.erts == pytest.approx(achieved[unit.method], rel=0.005)

    found = cells(tables["comparison"])
    assert len(tables["comparison"]) == (len(METHODS) + 2) * len(LAWS) * len(ERTS) * configurations
    for (method, configured_to, law, ert), here in found.items():
        place = list(METHODS).index(method)
        assert len(here.quiet) == configurations
        if configured_to == PROMISED:
            assert here.target == ert
            assert here.art == pytest.approx(ert * (1 + place / 10), rel=0.005)
        else:
            assert here.art == here.target == pytest.approx(achieved[method][ERTS.index(ert)], rel=0.005)
        for problem in problems_of(law):
            assert here.delays[problem].mean() == pytest.approx(here.target / 10, rel=0.05)
    by_quantile = tables["quantiles"]
    assert len(by_quantile) == len(METHODS) * len(LAWS) * len(ERTS) * len(comparison.PROBABILITIES)
    assert {row["runs"] for row in by_quantile} == {2 * configurations}


@pytest.mark.parametrize("quiet", [True, False])
def test_a_configuration(quiet: bool) -> None:
    """Whole numbers of observations, from 1 on: as many runs of each kind and ERT as asked for, the same each time."""
    unit = Configuration("B-statistic", "square", (128.0, 300.5), number=1, runs=15, quiet=quiet, seed=0)
    found, again = unit.run(), unit.run()
    assert sorted(found) == ["D3", "D4"] + ["quiet"] * quiet
    for name, lengths in found.items():
        assert lengths.shape == (2, 15)
        assert lengths.dtype == np.int32
        assert lengths.min() >= 1
        np.testing.assert_array_equal(lengths, again[name])
    if quiet:
        assert found["D3"].mean() < found["quiet"].mean()
    other = Configuration("B-statistic", "square", (128.0, 300.5), number=2, runs=15, quiet=quiet, seed=0)
    assert (other.run()["D4"] != found["D4"]).any()
