"""Views against their definitions, and compiled against readable: rows, channels, running scales, worlds, alarms."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import naive_views as naive
from tocsin import Detector, Views
from tocsin import _compute as compute
from tocsin._calibration import rehearsal, worlds
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.base import altered, fitted_of
from tocsin._statistics import view_model
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.view_model import FLOOR, LAGS, LEAST_SIZE, MOST_COLUMNS, RIDGE, SOFT, Model, Spans
from tocsin._statistics.views import ViewsLive

NUMBA, NUMPY = (compute.load(backend, "cpu") for backend in ("numba", "numpy"))
both = pytest.mark.parametrize("functions", [NUMBA, NUMPY], ids=["numba", "numpy"])


def remembering(count: int, columns: int, seed: int = 0, memory: float = 0.6) -> Float64Array:
    """Rows of an autoregression, every column on a scale of its own."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, columns))
    for t in range(1, count):
        rows[t] += memory * rows[t - 1]
    return rows * np.geomspace(0.01, 100, columns) + np.linspace(-1000, 1000, columns)


def fit(reference: Float64Array, **options: Any) -> Detector:
    return Detector(statistic=Views(), **{"ert": 60, "paths": 6, "seed": 1, **options}).fit(reference)


def views_of(detector: Detector) -> ViewsLive:
    (live,) = fitted_of(detector).live.members
    assert isinstance(live, ViewsLive)
    return live


def learnt(points: Float64Array, edges: Int64Array, windows: tuple[int, ...]) -> Model:
    return Model.learn(points, edges, Spans.of(windows, int(np.diff(edges).max())), NUMBA)


# The definitions

SHAPES = {
    "one column": (100, 1, (0, 100), (5, 10)),
    "short": (60, 2, (0, 60), (3, 6)),
    "one window": (90, 2, (0, 90), (7,)),
    "five columns": (200, 5, (0, 200), (5, 20)),
    "groups": (220, 2, (0, 90, 92, 95, 220), (2, 4, 9)),
}
shapes = pytest.mark.parametrize(("count", "columns", "ends", "windows"), SHAPES.values(), ids=SHAPES)


@shapes
def test_what_is_learnt_of_columns(count: int, columns: int, ends: tuple[int, ...], windows: tuple[int, ...]) -> None:
    """Centres, spreads, what foresees a column, and the spread of each view."""
    points = remembering(count, columns)
    points[count // 2, 0] += 1e4 * points[:, 0].std()
    model = learnt(points, np.array(ends), windows)
    rows = np.empty_like(points)
    for j in range(columns):
        centre, spread = naive.centre_and_spread(
            points[:, j].tolist(), view_model.INTERQUARTILE, view_model.LEAST_QUARTILES
        )
        np.testing.assert_allclose([model.centre[j], model.spread[j]], [centre, spread], rtol=1e-12)
        rows[:, j] = [naive.softened((x - centre) / spread, SOFT) for x in points[:, j]]
        weights = naive.foreseeing(rows[:, j], ends, LAGS, RIDGE)
        np.testing.assert_allclose(model.lags[:, j], weights, rtol=1e-9, atol=1e-12)
        sizes = naive.sizes_of(rows[:, j], weights, ends, LEAST_SIZE)
        np.testing.assert_allclose(model.sizes[:, j], [sizes[view] for view in view_model.VIEWS], rtol=1e-9)
    assert model.chosen.tolist() == list(range(columns))


def test_many_columns_are_watched_along_their_principal_directions() -> None:
    """Uncorrelated, and of unit spread, in the order of what they explain; constant columns have no part in them."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((150, MOST_COLUMNS + 6)) @ rng.standard_normal((MOST_COLUMNS + 6, MOST_COLUMNS + 6))
    points[:, 4] = 7.0
    model = learnt(points, np.array([0, 150]), (3, 6))
    assert model.chosen.tolist() == [j for j in range(MOST_COLUMNS + 6) if j != 4]
    rows = np.array([naive.softened(x, SOFT) for x in ((points[:, model.chosen] - model.centre) / model.spread).flat])
    rows = rows.reshape(150, -1)
    values, vectors = np.linalg.eigh(np.cov(rows.T, ddof=0))
    strongest = np.argsort(values)[::-1][:MOST_COLUMNS]
    expected = vectors[:, strongest] / np.sqrt(values[strongest])
    expected *= np.sign((expected * model.axes).sum(0))
    np.testing.assert_allclose(model.axes, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    assert model.width == MOST_COLUMNS
    owners = np.arange(len(points[0]))
    assert model.column_names(tuple(map(str, owners)), owners)[:2] == ["direction 1", "direction 2"]
    halves = model.column_names(("a", "b"), (owners >= len(owners) - 1).astype(np.int64))
    assert halves[0] == "direction 1 (mostly a)"


def test_few_directions_of_many_columns() -> None:
    """Copies of a few columns lie along as many directions."""
    points = np.tile(remembering(120, 3), (1, MOST_COLUMNS // 2))
    model = learnt(points, np.array([0, 120]), (3, 6))
    assert model.axes.shape == (points.shape[1], 3)


@both
def test_rows_along_directions(functions: compute.Functions) -> None:
    """Columns in units of their spread, along axes, softened."""
    rng = np.random.default_rng(1)
    points, axes = rng.normal(size=(9, 5)) * 40, rng.normal(size=(3, 2))
    centre, spread, chosen = rng.normal(size=3), rng.uniform(0.5, 2, 3), np.array([0, 2, 4])
    along = (points[:, chosen] - centre) / spread @ axes
    expected = [[naive.softened(x, SOFT) for x in row] for row in along]
    np.testing.assert_allclose(functions.view_rows(points, centre, spread, chosen, axes, SOFT), expected, rtol=1e-12)


@both
@shapes
def test_channels(
    count: int, columns: int, ends: tuple[int, ...], windows: tuple[int, ...], functions: compute.Functions
) -> None:
    """Means of the four views over every window, and log spreads of two, named as they are ordered."""
    points = remembering(count, columns)
    model = learnt(points, np.array(ends), windows)
    rows = model.rows(points, functions)[ends[-2] :]
    sight = naive.Sight(rows, model.lags, model.sizes, model.spans.base, model.spans.gap, windows, FLOOR)
    got = model.channels(rows, functions)
    np.testing.assert_allclose(got, sight.channels(), rtol=1e-9, atol=1e-11)
    assert len(got) == len(rows) - model.spans.history
    names = tuple("abcdefgh"[:columns])
    found = model.channel_names(names, np.arange(columns))
    assert [(names.index(str(c.column)), c.view, c.window, c.statistic) for c in found] == sight.names
    assert model.channels(rows[: model.spans.history], functions).shape == (0, got.shape[1])


@both
def test_running_scales(functions: compute.Functions) -> None:
    """Which rows ring, and where scales end: they hear of every row late, and of alarms at once."""
    rng = np.random.default_rng(5)
    squares = ((rng.standard_t(4, (400, 3)) * [1, 2, 0.5]) ** 2).astype(np.float32)
    deviations = np.sqrt(squares.astype(np.float64))
    level, memory, attack, cap, silent, early, fade = 2.5, 40.0, 3.0, 1.5, 6, 0.4, 20.0
    for born in (0, 3, 100, 400):
        scale = np.array([1.0, 1.5, 4.0])
        listener = naive.Listener(scale.tolist(), level, memory, attack, cap, silent, 0.0, fade)
        rang = functions.view_follow(squares, born, scale, level, memory, attack, cap, silent, early, fade)
        expected = []
        for t, row in enumerate(deviations):
            if t == born:
                listener.begin()
                listener.early = early
            heard = listener.hear(row.tolist())
            expected.append(heard is not None and listener.rang)
        assert rang.tolist() == expected
        assert sum(expected) > 3
        np.testing.assert_allclose(scale, listener.scale, rtol=1e-12)


# A detector at work

DETECTORS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "one column": (100, 1, {}),
    "five columns": (150, 5, {}),
    "short": (60, 2, {"window": 4}),
    "many columns": (100, MOST_COLUMNS + 3, {"window": (3, 5)}),
}


@pytest.mark.parametrize(("count", "columns", "options"), DETECTORS.values(), ids=DETECTORS)
def test_outcomes(count: int, columns: int, options: dict[str, Any]) -> None:
    """What a detector says of a stream, with a level that moves, spreads that grow, and rows beyond all measure."""
    reference, stream = remembering(count, columns), remembering(150, columns, seed=1)
    stream[60:80, 0] += 8 * reference[:, 0].std()
    stream[100] = 1e200
    stream[120:] += np.random.default_rng(2).standard_normal(stream[120:].shape) * 5 * reference.std(0)
    detector = fit(reference, **options)
    live, threshold = views_of(detector), detector.calibration_.threshold
    outcomes = detector.update_many(stream)

    model, pace, widest = live.model, live.pace, detector.windows_[-1]
    points = np.concatenate([reference[-len(live.past) :], stream])
    np.testing.assert_array_equal(live.past, reference[-len(live.past) :])
    own = np.clip((points[:, model.chosen] - model.centre) / model.spread, -1e150, 1e150)
    along = own @ model.axes if model.axes.size else own
    # Rows are kept to 2^-16 of a spread, and to 2^-8 in a baseline; scales in float32.
    rows = np.array([[naive.kept(naive.softened(x, SOFT), 2**-16, 127) for x in row] for row in along])
    spans, grains = model.spans, (2**-16, 2**-8)
    sight = naive.Sight(rows, model.lags, model.sizes, spans.base, spans.gap, detector.windows_, FLOOR, grains)
    deviations = (sight.channels() - live.middle) / live.unit
    assert len(deviations) == 1 + len(stream), "the last row of the reference has whole windows behind it"

    listener = naive.Listener(
        live.scale.astype(np.float32).tolist(), threshold, pace.memory, pace.attack, pace.cap, widest, pace.early,
        pace.fade, lambda scale: float(np.float32(scale)),
    )  # fmt: skip
    # Nothing is to be learnt of what came before the last row of the reference: scales stay as they are.
    listener.squares = [[] for _ in range(widest - 1)] + [(deviations[0] ** 2).tolist()]
    listener.begin()
    time, run, rings = 0, 0, False
    for t, row in enumerate(deviations[1:]):
        time, run = (1, run + 1) if rings else (time + 1, run)
        heard = listener.hear(row.tolist())
        rings = heard is not None and listener.rang
        outcome = outcomes[t]
        assert (outcome.time, outcome.alarm) == (time, rings)
        if heard is None:
            assert outcome.channel is None
            assert np.isnan(outcome.statistic)
        else:
            np.testing.assert_allclose(outcome.statistic, heard[0], rtol=1e-7)
            assert outcome.channel is not None
            column, view, window, kind = sight.names[heard[1]]
            found = (outcome.channel.view, outcome.channel.window, outcome.channel.statistic)
            assert found == (view, window, kind)
            assert outcome.channel.column == model.column_names(*_columns(detector))[column]
    assert detector.run == run
    assert run > 1
    np.testing.assert_allclose(detector._run.windows[0]["scale"][0], listener.scale, rtol=1e-7)


def _columns(detector: Detector) -> tuple[tuple[str, ...], Int64Array]:
    intake = fitted_of(detector).intake
    return intake.names, intake.owners


@pytest.mark.parametrize("columns", [1, 4, MOST_COLUMNS + 3])
def test_twins_at_work(columns: int) -> None:
    """NumPy's outcomes are Numba's, to the rounding of sums, through alarms, resets and rows beyond all measure."""
    reference, stream = remembering(90, columns), remembering(200, columns, seed=4)
    stream[50:70] += 6 * reference.std(0)
    stream[120, 0], stream[140, -1] = -1e300, 1e20
    detector = fit(reference, window=(2, 5))
    fitted = fitted_of(detector)
    live = copy.copy(views_of(detector))
    object.__setattr__(live, "compute", NUMPY)
    twin = altered(detector, live=LiveFamily([live]), functions=NUMPY)
    assert fitted.live.at_once
    assert not LiveFamily([live]).at_once
    for each in (detector, twin):
        each.reset()
    got, expected = (each.update_many(stream) for each in (twin, detector))
    assert got.alarm.tolist() == expected.alarm.tolist()
    assert got.alarm.sum() > 1
    np.testing.assert_allclose(got.statistic, expected.statistic, rtol=1e-9)
    heard = ~np.isnan(expected.statistic)
    assert (got.loudest[heard] == expected.loudest[heard]).mean() > 0.99
    assert got.time.tolist() == expected.time.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_twins(seed: int) -> None:
    """Every hot function of views, in shapes drawn at random."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 6)), int(rng.integers(40, 90))
    windows = np.sort(rng.choice(np.arange(2, 12), int(rng.integers(1, 4)), replace=False)).astype(np.int64)
    base, gap = int(rng.integers(3, 12)), int(rng.integers(1, 6))
    rows, lags = rng.normal(size=(n, d)) * 3, rng.normal(size=(1 + LAGS, d)) / 3
    sizes = rng.uniform(0.1, 2, (4, d))
    seen = [each.view_channels(rows, lags, sizes, base, gap, windows, FLOOR) for each in (NUMBA, NUMPY)]
    np.testing.assert_allclose(seen[0], seen[1], rtol=1e-10, atol=1e-12)
    assert len(seen[0]) == max(n - base - gap - int(windows[-1]) + 1, 0)
    weights = rng.uniform(-0.3, 0.3, (int(rng.integers(1, 5)), d))
    made = [each.autoregress(rows, weights) for each in (NUMBA, NUMPY)]
    np.testing.assert_allclose(made[0], made[1], rtol=1e-12)
    points, chosen = rng.normal(size=(n, d + 2)) * 100, np.arange(1, d + 1)
    axes = rng.normal(size=(d, 2)) if seed % 2 else view_model.NO_AXES
    centre, spread = rng.normal(size=d), rng.uniform(0.1, 2, d)
    told = [each.view_rows(points, centre, spread, chosen, axes, SOFT) for each in (NUMBA, NUMPY)]
    np.testing.assert_allclose(told[0], told[1], rtol=1e-12, atol=1e-13)
    squares = (seen[0].astype(np.float32) * 2) ** 2
    scales = [np.ones(squares.shape[1]) for _ in range(2)]
    rang = [
        each.view_follow(squares, n // 3, scale, 1.5, 30.0, 3.0, 1.5, int(windows[-1]), 0.3, 15.0)
        for each, scale in zip((NUMBA, NUMPY), scales, strict=True)
    ]
    assert rang[0].tolist() == rang[1].tolist()
    np.testing.assert_allclose(scales[0], scales[1], rtol=1e-12)


@both
def test_an_autoregression(functions: compute.Functions) -> None:
    """Rows of the past count as far as there are any, and what was given is left as it was."""
    errors, weights = np.ones((5, 2)), np.array([[0.5, 0.0], [0.25, 1.0]])
    expected = [[1.0, 1.0], [1.5, 1.0], [2.0, 2.0], [2.375, 2.0], [2.6875, 3.0]]
    assert functions.autoregress(errors, weights).tolist() == expected
    assert (errors == 1).all()


# Rehearsal and worlds


def constants() -> dict[str, float]:
    """Of the rehearsal, as they are now."""
    names = {"start": "START", "doubt": "DOUBT", "usual": "USUAL", "seldom": "SELDOM", "largest": "LARGEST"}
    return {name: getattr(rehearsal, own) for name, own in names.items()} | {"least": rehearsal.LEAST_UNIT}


@pytest.mark.parametrize("count", [12, 37, 80, 300])
def test_misses_and_units(count: int) -> None:
    """Of every channel, from stretches that follow each other to the end: quiet, wandering, still, with an outlier."""
    rng = np.random.default_rng(count)
    channels = np.column_stack(
        [rng.normal(size=count), np.cumsum(rng.normal(size=count)), np.zeros(count), rng.normal(size=count)]
    )
    channels[-2, 3] = 1000.0
    edges = rehearsal.stretches(count)
    assert edges[0] >= 1
    assert edges[-1] == count
    assert (np.diff(edges) > 0).all()
    got = rehearsal.misses(channels)
    units = rehearsal.units(got, count, 5)
    for c in range(4):
        expected = naive.missed(channels[:, c].tolist(), edges.tolist())
        for own, stretch in zip(expected, got, strict=True):
            np.testing.assert_allclose(stretch[:, c], own, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(units[c], naive.unit(expected, count, 5, **constants()), rtol=1e-9)


@pytest.mark.parametrize("edges", [(0, 240), (0, 100, 240), (0, 7, 120, 240)])
def test_the_autoregression_of_a_world(edges: tuple[int, ...]) -> None:
    """Weights by Yule and Walker, the order by Akaike's corrected criterion, and what they leave unforeseen."""
    rows = remembering(240, 3)
    rows[:, 1] = np.random.default_rng(7).normal(size=240)
    rows = (rows - rows.mean(0)) / rows.std(0)
    world = worlds.World.of(rows, np.array(edges))
    longest = min(worlds.LONGEST_ORDER, 240 // worlds.ROWS_PER_LAG)
    expected = [naive.autoregression(rows[:, j].tolist(), edges, longest) for j in range(3)]
    assert max(map(len, expected)) == len(world.weights) > 0
    weights = np.zeros_like(world.weights)
    for j, own in enumerate(expected):
        weights[: len(own), j] = own
    np.testing.assert_allclose(world.weights, weights, rtol=1e-8, atol=1e-10)
    left = naive.unforeseen(rows, edges, weights)
    assert left.shape == world.errors.shape
    shape = [(own - own.mean(0)) / own.std(0) for own in (left, world.errors)]
    np.testing.assert_allclose(shape[0], shape[1], rtol=1e-7, atol=1e-9)
    assert (world.errors.std(0) >= left.std(0) * (1 - 1e-12)).all(), "weights that were fitted leave too little"


def test_what_worlds_draw() -> None:
    """Rows with the memory and the spread of the reference; in the same order for the same seed.

    The lag-1 correlation of 20000 rows is off by 0.006 in one standard deviation; 0.05 is eight of them (1e-15).
    """
    rows = remembering(1500, 2)
    rows = (rows - rows.mean(0)) / rows.std(0)
    world = worlds.World.of(rows, np.array([0, 1500]))
    drawn = world.draw(np.random.default_rng(1), 20_000, NUMBA)
    again = world.draw(np.random.default_rng(1), 20_000, NUMPY)
    np.testing.assert_allclose(drawn, again, rtol=1e-9, atol=1e-12)
    for j in range(2):
        own = [np.corrcoef(each[1:, j], each[:-1, j])[0, 1] for each in (rows, drawn)]
        assert abs(own[0] - own[1]) < 0.05
    np.testing.assert_allclose(drawn.std(0), 1.0, atol=0.1)
    assert np.abs(drawn.mean(0)).max() < 0.15


# A fit


@pytest.mark.parametrize("groups", [None, np.repeat([0, 1, 2], [80, 5, 75])])
def test_deviations_are_from_the_mean_of_the_reference(groups: Int64Array | None) -> None:
    """Of every channel, over the rows that have one in their group."""
    reference = remembering(160, 2)
    detector = Detector(60, Views(), paths=6, seed=1).fit(reference, groups=groups)
    live, ends = views_of(detector), [0, 160] if groups is None else [0, 80, 85, 160]
    model, windows = live.model, detector.windows_
    rows = model.rows(reference, NUMPY)
    seen = [
        naive.Sight(rows[a:b], model.lags, model.sizes, model.spans.base, model.spans.gap, windows, FLOOR).channels()
        for a, b in pairwise(ends)
    ]
    np.testing.assert_allclose(live.middle, np.concatenate(seen).mean(0), rtol=1e-9, atol=1e-11)
    assert (live.unit > 0).all()


@pytest.mark.parametrize("guarantee", [None, 0.9])
def test_the_threshold_is_as_rare_as_was_asked_for(guarantee: float | None) -> None:
    """By the curve that rarities are read off, between whose points both are interpolated."""
    for ert in (60.0, 300.0, 5000.0):
        calibration = fit(remembering(200, 2), ert=ert, guarantee=guarantee).calibration_
        assert calibration.curve is not None
        assert calibration.curve.rarity(calibration.threshold) == pytest.approx(calibration.nominal, rel=0.01)
        assert calibration.nominal > ert if guarantee else calibration.nominal == ert


def test_worlds_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """From each other and from those of another seed."""
    drawn: list[float] = []
    draw = worlds.World.draw

    def kept(world: worlds.World, *given: Any) -> Float64Array:
        rows = draw(world, *given)
        drawn.append(float(rows[-1, 0]))
        return rows

    monkeypatch.setattr(worlds.World, "draw", kept)
    for seed in (1, 1, 2):
        fit(remembering(100, 1), seed=seed)
    assert len(drawn) == 18
    assert sorted(drawn[:6]) == sorted(drawn[6:12])
    assert len(set(drawn)) == 12
