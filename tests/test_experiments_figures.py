"""Figure 1, the window-sharing experiment and the picture of the problems: fast sums against naive ones, and claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import naive
from tocsin._experiments import figure1, window_sharing
from tocsin._experiments.base import Experiment, Options, Result, Table, Tables, Unit, generator
from tocsin._experiments.figure1 import FIGURE1
from tocsin._experiments.laboratory import read_table, write_table
from tocsin._experiments.problems import PROBLEMS_FIGURE
from tocsin._experiments.resampling import ESTIMATORS, SAMPLINGS, Reference
from tocsin._experiments.window_sharing import WINDOW_SHARING, noise_floor
from tocsin._statistics.lsdd import bumps_products, choose_regularisation

# Of the independent references that an experiment draws, one in a hundred looks dependent.
pytestmark = pytest.mark.filterwarnings("ignore::tocsin.DependenceWarning")

QUICK = Options(seed=0, quick=True)
COUNT, WINDOW, DIMENSION, SAMPLES = 12, 4, 2, 30


def _at_once(what: str, units: Sequence[Unit]) -> list[Result]:
    return [unit.run() for unit in units]


def _through_files(experiment: Experiment, tables: Tables, folder: Path) -> Tables:
    assert set(tables) == set(experiment.tables)
    for name, table in tables.items():
        write_table(folder / f"{name}.csv", table)
    return {name: read_table(folder / f"{name}.csv") for name in experiment.tables}


def _assert_drawn(text: str, name: str, folder: Path) -> None:
    assert f"]({name}.png)" in text
    assert "nan" not in text
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / f"{name}.svg").read_text()


# Window sharing


@pytest.fixture(scope="module")
def reference() -> Reference:
    points = generator(1, "tiny").standard_normal((COUNT + 6, DIMENSION))
    return Reference.prepare(points[:COUNT], points[COUNT:], WINDOW, np.random.default_rng(2))


def _naive_estimates(reference: Reference, X: naive.Floats, Y: naive.Floats) -> list[float]:
    centres, width = reference.bumps.centres, naive.median_distance(reference.points)
    bumps = naive.bumps(reference.points, centres, width)
    regularisation = choose_regularisation(bumps, bumps_products(centres, width), WINDOW, np.random.default_rng(2))
    kernel = naive.gaussian(width)
    return [naive.mmd(X, Y, kernel), naive.lsdd(X, Y, centres, width, regularisation)]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_estimates_agree_with_their_definitions(reference: Reference, sampling: str) -> None:
    rng = np.random.default_rng(3)
    counts, chosen = SAMPLINGS[sampling](rng, COUNT, WINDOW, SAMPLES)
    windows = rng.standard_normal((SAMPLES, WINDOW, DIMENSION))
    drawn, fresh = reference.drawn(counts, chosen), reference.fresh(counts, windows)
    assert drawn.shape == fresh.shape == (len(ESTIMATORS), SAMPLES)
    for i in range(SAMPLES):
        X = np.repeat(reference.points, counts[i].astype(int), axis=0)
        assert len(X) == COUNT - WINDOW
        own, new = reference.points[chosen[i]], windows[i]
        np.testing.assert_allclose(drawn[:, i], _naive_estimates(reference, X, own), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(fresh[:, i], _naive_estimates(reference, X, new), rtol=1e-5, atol=1e-6)


def test_only_sampling_with_replacement_repeats_and_shares_points() -> None:
    for name, sampling in SAMPLINGS.items():
        counts, chosen = sampling(np.random.default_rng(4), COUNT, WINDOW, SAMPLES)
        shared = np.take_along_axis(counts, chosen, axis=1)
        repeated = [len(set(window)) < WINDOW for window in chosen.tolist()]
        assert (counts.sum(1) == COUNT - WINDOW).all()
        assert (counts.max() > 1) == any(repeated) == bool(shared.any()) == (name == "with")


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_point_is_drawn_equally_often(sampling: str) -> None:
    """Fails falsely at a rate below 1e-6 (24 means, 6.5 standard errors); sees a difference of 6 %."""
    samples = 40_000
    counts, chosen = SAMPLINGS[sampling](np.random.default_rng(5), COUNT, WINDOW, samples)
    in_window = np.stack([(chosen == point).sum(1) for point in range(COUNT)], axis=1)
    for times, expected in ((counts, COUNT - WINDOW), (in_window, WINDOW)):
        error = times.std(0) / np.sqrt(samples)
        assert (np.abs(times.mean(0) - expected / COUNT) < 6.5 * error).all()


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_the_bootstrap_of_mmd_has_mean_zero(reference: Reference, sampling: str) -> None:
    """All three sums then have the same mean. Fails falsely at a rate of 1e-7 (5.3 standard errors, normal)."""
    counts, chosen = SAMPLINGS[sampling](np.random.default_rng(6), COUNT, WINDOW, 40_000)
    mmd = reference.drawn(counts, chosen)[ESTIMATORS.index("MMD")]
    assert abs(mmd.mean()) < 5.3 * mmd.std() / np.sqrt(len(mmd))


def test_noise_floor_is_that_of_two_samples_of_one_law() -> None:
    """Fails falsely at a rate below 1e-6 (5.3 standard errors, normal); finite samples are nearer by up to 1 / n."""
    n, pairs = 1000, 3000
    rng = np.random.default_rng(7)
    distances = np.array([stats.ks_2samp(*rng.random((2, n)), method="asymp").statistic for _ in range(pairs)])
    mean, high = noise_floor(n)
    assert abs(distances.mean() - mean) < 5.3 * distances.std() / np.sqrt(pairs) + 1 / n
    assert abs((distances > high).mean() - 0.05) < 5.3 * np.sqrt(0.05 * 0.95 / pairs)


def test_window_sharing_is_drawn_from_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_sharing, "QUICK_SAMPLES", 400)
    tables = WINDOW_SHARING.measure(QUICK, _at_once)
    densities = tables["window-sharing-densities"]
    mass = sum(float(row["density"]) * (float(row["high"]) - float(row["low"])) for row in densities)
    curves = len(window_sharing.QUICK_DIMENSIONS) * len(SAMPLINGS) * 2
    assert mass == pytest.approx(curves, rel=0.01)
    text = WINDOW_SHARING.draw(_through_files(WINDOW_SHARING, tables, tmp_path), tmp_path)
    _assert_drawn(text, "window-sharing", tmp_path)


# Figure 1


@pytest.fixture(scope="module")
def rates() -> Tables:
    return FIGURE1.measure(QUICK, _at_once)


def _of(table: Table, calibration: str, name: str) -> naive.Floats:
    return np.array([row[name] for row in table if row["calibration"] == calibration], dtype=np.float64)


@pytest.mark.long
def test_a_fixed_threshold_soon_rings_less_often_and_adaptive_ones_at_a_constant_rate(rates: Tables) -> None:
    """Fails falsely at a rate of 2e-6: 16 tests at 5.3 standard errors, normal. Sees an error of a third of alpha.

    An error of the reference's mean, 1 / sqrt(N), moves the rate of the first test by the density at its threshold,
    0.1755 sqrt(W), times as much; the rates of later tests it moves less.
    """
    table, alpha = rates["figure1"], 1 / figure1.ERT
    references = figure1.QUICK_REFERENCES
    fixed, adaptive = _of(table, "fixed", "rate"), _of(table, "paper", "rate")
    density_at_threshold = 0.1755 * np.sqrt(figure1.WINDOW)
    own = density_at_threshold / np.sqrt(figure1.COUNT)
    counting = alpha * (1 - alpha) / (figure1.RUNS * (1 - alpha) ** np.arange(figure1.TESTS))
    bounds = 5.3 * np.sqrt((own**2 + counting) / references)
    assert bounds.max() < alpha / 3
    assert (np.abs(adaptive - alpha) < bounds).all()
    assert abs(fixed[0] - alpha) < bounds[0]
    assert (fixed[1:] < alpha / 2).all()
    thresholds = _of(table, "paper", "threshold")
    assert (np.diff(thresholds[: figure1.WINDOW]) < 0).all()
    assert (thresholds[figure1.WINDOW - 1 :] == thresholds[-1]).all()
    assert len(set(_of(table, "fixed", "threshold"))) == 1


@pytest.mark.long
def test_thresholds_agree_with_those_of_the_known_law(rates: Tables) -> None:
    """Fails falsely at a rate below 1e-6: the bound is six standard errors of the difference of means.

    A reference's thresholds are off by 0.010 (its standard deviation is, by 2.2 %) and by 0.004 (for want of paths);
    those of the known law by 0.002.
    """
    first = slice(figure1.WINDOW)
    known, paper = (_of(rates["figure1"], name, "threshold")[first] for name in ("known law", "paper"))
    assert np.abs(known - paper).max() < 6 * np.sqrt((0.010**2 + 0.004**2) / figure1.QUICK_REFERENCES + 0.002**2)


@pytest.mark.long
def test_red_areas_are_the_rates(rates: Tables) -> None:
    for calibration in figure1.CALIBRATIONS:
        rows = [row for row in rates["figure1-densities"] if row["calibration"] == calibration]
        for test, rate in enumerate(_of(rates["figure1"], calibration, "rate"), 1):
            here = [row for row in rows if row["test"] == test]
            masses = [float(row["density"]) * (float(row["high"]) - float(row["low"])) for row in here]
            above = [mass for mass, row in zip(masses, here, strict=True) if float(row["low"]) >= 0]
            assert sum(masses) == pytest.approx(1, abs=1e-3)
            assert sum(above) == pytest.approx(rate, abs=1e-3)


@pytest.mark.long
def test_figure_1_is_drawn_from_its_files(rates: Tables, tmp_path: Path) -> None:
    _assert_drawn(FIGURE1.draw(_through_files(FIGURE1, rates, tmp_path), tmp_path), "figure1", tmp_path)


# Problems


def test_problems_are_drawn_from_their_file(tmp_path: Path) -> None:
    tables = PROBLEMS_FIGURE.measure(QUICK, _at_once)
    hollow = [row for row in tables["problems"] if row["problem"] == "D4" and row["law"] == "q"]
    assert len(hollow) == 200
    assert all(max(abs(float(row["x"])), abs(float(row["y"]))) >= 0.5 for row in hollow)
    text = PROBLEMS_FIGURE.draw(_through_files(PROBLEMS_FIGURE, tables, tmp_path), tmp_path)
    _assert_drawn(text, "problems", tmp_path)
