"""Explanations, as numbers: contributions against their definition; columns, onsets and examples where they are known.

Statistical tests fail falsely less than once in 10^6 runs with another seed; seeds are fixed and were not chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate

from tocsin._common.errors import InputError
from tocsin._compute.arrays import Array, Float64Array, Int64Array
from tocsin._experiments import alarms, changes, explanations, explanations_report
from tocsin._experiments.base import Row
from tocsin._explain import columns as column_module
from tocsin._explain import contributions
from tocsin._explain import onset as onset_module
from tocsin._explain.columns import ColumnTest, Rates, Scores, lengths
from tocsin._explain.contributions import column_contributions
from tocsin._explain.examples import find_examples
from tocsin._explain.kernel import exponents, gaussian
from tocsin._explain.onset import find_onset
from tocsin._statistics.base import Channel

RNG = np.random.default_rng(0)
EACH = np.arange(3)


# Contributions


def naive_parts(statistic: str, width: float, window: Float64Array, reference: Float64Array) -> Float64Array:
    """By the definition: the kernel's slope along each feature, while all differences grow; means over all pairs."""

    def mean(first: Float64Array, second: Float64Array, *, same: bool) -> Float64Array:
        pairs = [(x, y) for i, x in enumerate(first) for j, y in enumerate(second) if not (same and i == j)]
        return np.asarray(np.mean([slopes(x, y) for x, y in pairs], axis=0))

    def slopes(x: Float64Array, y: Float64Array) -> Float64Array:
        exponents = (x - y) ** 2 / (2 * width**2)
        grown, _ = integrate.quad(lambda part: np.exp(-part * exponents.sum()), 0, 1)
        return np.asarray(-exponents * grown)

    among, across = mean(reference, reference, same=True), mean(window, reference, same=False)
    if statistic == "MMD":
        return among + mean(window, window, same=True) - 2 * across
    return among - across if statistic == "less typical" else across - among


def naive_statistic(statistic: str, width: float, window: Float64Array, reference: Float64Array) -> float:
    kernel = gaussian(width)
    count, size = len(reference), len(window)
    among = (kernel(reference, reference).sum() - count) / (count * (count - 1))
    across = kernel(window, reference).mean()
    if statistic == "MMD":
        return float(among + (kernel(window, window).sum() - size) / (size * (size - 1)) - 2 * across)
    return float(among - across if statistic == "less typical" else across - among)


@pytest.mark.parametrize("statistic", ["MMD", "less typical", "more typical"])
def test_contributions_are_what_they_are_defined_to_be(statistic: str) -> None:
    """And their sum is the statistic."""
    reference, window = RNG.normal(size=(9, 3)) + 100, RNG.normal(size=(5, 3)) * 2 + 100
    found = column_contributions(Channel(statistic, 4, 1.3), window, reference, EACH)
    np.testing.assert_allclose(found.columns, naive_parts(statistic, 1.3, window[1:], reference), atol=1e-9)
    assert found.columns.sum() == pytest.approx(naive_statistic(statistic, 1.3, window[1:], reference), abs=1e-12)
    assert found.measure == Channel(statistic, 4, 1.3)
    assert np.isnan(found.low).all()


def test_contributions_add_up_to_the_detectors_own_value() -> None:
    """What they lack is spread."""
    reference, window = RNG.normal(size=(30, 3)), RNG.normal(size=(8, 3))
    own = column_contributions(Channel("MMD", 8, 1.0), window, reference, EACH)
    found = column_contributions(Channel("MMD", 8, 1.0), window, reference, EACH, total=0.7)
    assert found.columns.sum() == pytest.approx(0.7, abs=1e-14)
    assert (np.sign(found.columns - own.columns) == np.sign(0.7 - own.columns.sum())).all()


def test_a_columns_contribution_is_that_of_its_features() -> None:
    """Whatever their order."""
    reference, window = RNG.normal(size=(20, 4)), RNG.normal(size=(6, 4))
    single = column_contributions(Channel("MMD", 6, 1.0), window, reference, np.arange(4)).columns
    grouped = column_contributions(Channel("MMD", 6, 1.0), window, reference, np.array([1, 0, 1, 2])).columns
    np.testing.assert_allclose(grouped, [single[1], single[0] + single[2], single[3]])


def test_equal_points_and_absurd_ones_contribute_numbers() -> None:
    """A kernel of 1, and one of 0."""
    reference = np.repeat(RNG.normal(size=(4, 3)), 5, axis=0)
    window = np.concatenate([reference[:3], np.full((1, 3), 1e300)])
    found = column_contributions(Channel("MMD", 4, 1.0), window, reference, EACH)
    assert np.isfinite(found.columns).all()
    assert found.columns.sum() == pytest.approx(naive_statistic("MMD", 1.0, window, reference), abs=1e-12)


def test_a_large_reference_is_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same result."""
    reference, window = RNG.normal(size=(50, 3)), RNG.normal(size=(6, 3))
    whole = column_contributions(Channel("less typical", 6, 1.0), window, reference, EACH).columns
    monkeypatch.setattr(contributions, "PIECE", 7)
    np.testing.assert_allclose(
        column_contributions(Channel("less typical", 6, 1.0), window, reference, EACH).columns, whole, atol=1e-14
    )


def test_of_a_large_reference_some_pairs_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum is the detector's own all the same, and columns are right on average over the choices of points.

    Means of 300 choices, within 5 of their standard errors: false once in 10^6; a third of a choice's spread is seen.
    """
    reference, window = RNG.normal(size=(60, 3)), RNG.normal(size=(6, 3)) + np.array([2, 0, 0])
    channel = Channel("MMD", 6, 1.0)
    exact = column_contributions(channel, window, reference, EACH)
    monkeypatch.setattr(contributions, "PAIRED", 40)
    total = float(exact.columns.sum())
    choices = [column_contributions(channel, window, reference, EACH, total=total, seed=s) for s in range(300)]
    np.testing.assert_allclose([found.columns.sum() for found in choices], total, rtol=0, atol=1e-14)
    columns = np.array([found.columns for found in choices])
    error = columns.std(0) / np.sqrt(len(columns))
    assert (error > 0).all()
    assert (np.abs(columns.mean(0) - exact.columns) < 5 * error).all()


def test_parts_of_a_difference_of_means() -> None:
    """Squares, or signed."""
    reference, window = RNG.normal(size=(40, 3)), RNG.normal(size=(6, 3))
    weights = np.array([1.0, 2.0, 0.5])
    difference = weights * (window.mean(0) - reference.mean(0))
    channel = Channel("MeanShift", 6)
    squares = column_contributions(channel, window, reference, EACH, weights=weights)
    np.testing.assert_allclose(squares.columns, difference**2)
    signed = column_contributions(channel, window, reference, EACH, weights=weights, signed=True)
    np.testing.assert_allclose(signed.columns, difference)
    with pytest.raises(InputError, match="weights"):
        column_contributions(channel, window, reference, EACH)


@pytest.mark.parametrize("channel", [Channel("LSDD", 6), Channel("MMD", 6), Channel("mine", 6)])
def test_statistics_without_parts_say_what_stands_in(channel: Channel) -> None:
    """The MMD at the median width, whatever the detector's own value."""
    reference, window = RNG.normal(size=(40, 3)), RNG.normal(size=(6, 3))
    found = column_contributions(channel, window, reference, EACH, total=99.0)
    assert found.measure.statistic == "MMD"
    assert found.measure.width is not None
    expected = naive_statistic("MMD", found.measure.width, window, reference)
    assert found.columns.sum() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("channel", [Channel("MMD", 5, 1.0), Channel("MeanShift", 5)])
def test_null_ranges_are_those_of_windows_from_the_reference(channel: Channel) -> None:
    """Nine in ten of the contributions of other such windows are within; no point is compared with itself."""
    reference = RNG.normal(size=(400, 3))
    rang = RNG.integers(0, 400, (100, 9)).astype(np.int32)
    weights = np.ones(3)
    found = column_contributions(channel, reference[:5], reference, EACH, rang=rang, weights=weights)
    others = [
        column_contributions(channel, RNG.normal(size=(5, 3)), reference, EACH, weights=weights).columns
        for _ in range(100)
    ]
    within = np.mean((found.low <= others) & (others <= found.high))
    # 300 contributions, of which those of a window depend on each other: 0.9 within 4.9 standard errors of 100.
    assert within == pytest.approx(0.9, abs=4.9 * np.sqrt(0.09 / 100))
    alone = column_contributions(
        channel, reference[:5], reference, EACH, rang=rang[:, :1].repeat(9, 1), weights=weights
    )
    assert np.isfinite(alone.low).all()


def test_distances_lose_no_digits() -> None:
    """Neither of points far from 0, nor of a point far from all others."""
    rows = RNG.normal(size=(6, 3))
    plain = ((rows[:, None] - rows) ** 2).sum(2) / 8
    np.testing.assert_allclose(exponents(rows, rows, 2.0), plain, atol=1e-14)
    np.testing.assert_allclose(exponents(rows + 1e6, rows + 1e6, 2.0), plain, atol=1e-8)
    far = np.concatenate([rows, [[1e12, 0, 0]]])
    np.testing.assert_allclose(exponents(far, rows, 2.0)[:6], plain, atol=1e-14)


# Columns


def test_rates_of_normal_and_of_rare_values() -> None:
    """m^2 / 2; and the binomial's divergence."""
    normal = np.random.default_rng(1).normal(size=(20_000, 1))
    means = np.linspace(-1.5, 1.5, 7)
    np.testing.assert_allclose(Rates(normal)(means[:, None], np.array([0]))[:, 0], means**2 / 2, atol=0.03)
    rare = np.zeros((1000, 1))
    rare[:20] = 1
    p, q = 0.02, np.array([0.0, 0.02, 0.1, 0.5, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.where(q > 0, q * np.log(q / p), 0) + np.where(q < 1, (1 - q) * np.log((1 - q) / (1 - p)), 0)
    np.testing.assert_allclose(Rates(rare)(q[:, None], np.array([0]))[:, 0], divergence, rtol=0.05, atol=1e-3)


def test_scores_are_ranks() -> None:
    """Standard normal for any law without ties; capped beyond the reference."""
    sample = np.exp(np.random.default_rng(2).normal(size=(999, 1)))
    scores = Scores(sample)
    own = scores(sample)
    assert abs(own.mean()) < 1e-9
    assert own.std() == pytest.approx(1, abs=0.02)
    np.testing.assert_array_equal(np.argsort(own[:, 0]), np.argsort(sample[:, 0]))
    assert scores(np.array([[1e9]])) == scores(np.array([[1e300]]))


def test_lengths_begin_with_all_and_end_with_the_longest() -> None:
    assert lengths(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert lengths(1).tolist() == [1]
    assert lengths(100)[-1] == 100
    assert (np.diff(lengths(100)) > 0).all()
    assert len(lengths(1000)) < 40


@pytest.fixture(scope="module")
def normal_test() -> tuple[ColumnTest, Float64Array]:
    """Five normal columns; null windows drawn at random."""
    rng = np.random.default_rng(3)
    reference = rng.normal(size=(2000, 5))
    return ColumnTest(reference, np.arange(5), rng.integers(0, 2000, (400, 50)).astype(np.int32)), reference


@pytest.mark.parametrize(
    ("how", "change"),
    [
        ("higher", lambda x: x + 1.5),
        ("lower", lambda x: x - 1.5),
        ("wider", lambda x: x * 3),
        ("narrower", lambda x: x / 10),
    ],
)
def test_a_column_that_changed_is_named(normal_test: tuple[ColumnTest, Float64Array], how: str, change: Any) -> None:
    """It alone, and how; though the change is younger than the window."""
    rows = np.random.default_rng(4).normal(size=(80, 5))
    rows[-20:, 3] = change(rows[-20:, 3])
    found = normal_test[0](rows)
    assert found.order[0] == 3
    assert found.changed.tolist() == [3]
    assert found.how[3] == how
    assert found.features[3] == 3


def test_columns_that_only_lost_their_correlation_are_not_reported() -> None:
    """Each on its own is as before."""
    rng = np.random.default_rng(5)
    reference = changes.pump(0.95)(rng, 1000)
    test = ColumnTest(reference, np.arange(2), rng.integers(0, 1000, (400, 100)).astype(np.int32))
    assert not len(test(changes.pump(0.0)(rng, 100)).changed)


def test_reports_without_a_change_are_as_rare_as_stated(normal_test: tuple[ColumnTest, Float64Array]) -> None:
    """1000 windows against 400 null ones: within 4.9 standard errors of 5 %. It would see a rate of 12 %."""
    test, _ = normal_test
    rng = np.random.default_rng(6)
    reported = np.mean([len(test(rng.normal(size=(50, 5))).changed) > 0 for _ in range(1000)])
    assert reported <= 0.05 + 4.9 * np.sqrt(0.05 * 0.95 * (1 / 1000 + 1 / 400))


def test_columns_of_several_features() -> None:
    """A category that becomes common, and a value never seen before, are those of their columns."""
    rng = np.random.default_rng(7)
    reference = changes.table(rng, 2000)
    rang = rng.integers(0, 2000, (300, 50)).astype(np.int32)
    test = ColumnTest(reference, changes.TABLE_COLUMNS, rang)
    rows = changes.table(rng, 50)
    rows[-25:, 2:6] = np.eye(4)[rng.choice(4, 25, p=[0.1, 0.1, 0.1, 0.7])]
    found = test(rows)
    assert found.changed[0] == 2
    assert (found.features[2], found.how[2]) == (5, "higher")
    rows = changes.table(rng, 50)
    rows[-10:, 11] = 1.0
    found = test(rows)
    assert found.changed[0] == 6
    assert len(found.evidence) == len(found.p_values) == 8


def test_without_null_windows_nothing_is_reported(normal_test: tuple[ColumnTest, Float64Array]) -> None:
    """There is nothing to judge by."""
    _, reference = normal_test
    found = ColumnTest(reference, np.arange(5), np.empty((0, 50), np.int32))(reference[:50] + 5)
    assert (found.p_values == 1).all()
    assert not len(found.changed)


def test_many_features_have_fewer_null_windows(
    normal_test: tuple[ColumnTest, Float64Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that an explanation does not take long."""
    _, reference = normal_test
    monkeypatch.setattr(column_module, "NULL_FEATURES", 5 * 60)
    monkeypatch.setattr(column_module, "FEWEST_NULL", 10)
    test = ColumnTest(reference, np.arange(5), np.arange(100 * 20, dtype=np.int32).reshape(100, 20))
    assert test(reference[:20] + 5).p_values.min() == pytest.approx(1 / 61)


# Onsets


def shifted(seed: int, count: int, began: int, shift: float = 3.0) -> tuple[Float64Array, Float64Array]:
    """A reference, and recent rows that move at a place."""
    rng = np.random.default_rng(seed)
    reference, recent = rng.normal(size=(300, 2)), rng.normal(size=(count, 2))
    recent[began:] += shift
    return reference, recent


def test_the_onset_of_a_clear_change() -> None:
    """To within two observations, and the same each time."""
    reference, recent = shifted(8, 60, 48)
    found = find_onset(recent, reference, gaussian(2.0), 25)
    assert abs(found.estimate - 48) <= 2
    assert found.low <= 48 <= found.high
    assert found.probabilities.sum() == pytest.approx(1)
    assert found.low > 0
    again = find_onset(recent, reference, gaussian(2.0), 25)
    np.testing.assert_array_equal(found.probabilities, again.probabilities)


def test_intervals_hold_the_onset() -> None:
    """40 changes by one standard deviation: 24 or more, of which a coverage of 0.9 falls short once in 10^6 times.

    A coverage of 0.3 would.
    """
    held = 0
    for seed in range(40):
        reference, recent = shifted(seed, 80, 60, 1.0)
        found = find_onset(recent, reference, gaussian(2.0), 25)
        held += found.low <= 60 <= found.high
    assert held >= 24


def test_a_change_that_may_be_older_than_what_is_remembered() -> None:
    """Its onset is at the first observation, or before."""
    reference, recent = shifted(9, 30, 0)
    found = find_onset(recent, reference, gaussian(2.0), 25)
    assert found.low == found.estimate == 0
    one = find_onset(recent[:1], reference, gaussian(2.0), 25)
    assert (one.low, one.estimate, one.high) == (0, 0, 0)


def test_no_onset_comes_after_the_alarm() -> None:
    """Though something else may change later."""
    reference, recent = shifted(10, 60, 50)
    found = find_onset(recent, reference, gaussian(2.0), 25, after=20)
    assert (found.probabilities[40:] == 0).all()
    assert found.high < 40


def test_objects_are_compared_by_their_kernel_alone() -> None:
    """A list of objects has the onset of the rows that its kernel makes of them."""
    reference, recent = shifted(11, 40, 30)

    def kernel(first: Any, second: Any) -> Array:
        return np.asarray(gaussian(2.0)(*(np.array([point["at"] for point in points]) for points in (first, second))))

    now, before = ([{"at": row} for row in rows] for rows in (recent, reference))
    found = find_onset(now, before, kernel, 25)
    assert found.estimate == find_onset(recent, reference, gaussian(2.0), 25).estimate
    typical = find_examples(now, before, kernel, found.probabilities)
    assert typical.recent.min() >= 28


def test_a_large_reference_costs_no_more() -> None:
    """Only so many of its points are compared."""
    asked = []

    def kernel(first: Float64Array, second: Float64Array) -> Array:
        asked.append(len(first) * len(second))
        return gaussian(2.0)(first, second)

    rng = np.random.default_rng(12)
    find_onset(rng.normal(size=(50, 2)), rng.normal(size=(20_000, 2)), kernel, 25)
    assert sum(asked) <= (50 + onset_module.LANDMARKS + onset_module.HELD) * onset_module.LANDMARKS


def test_a_kernel_that_cannot_tell_says_little() -> None:
    """All places are possible, short delays a little more than long ones."""
    found = find_onset(np.zeros((20, 1)), np.zeros((50, 1)), gaussian(1.0), 10)
    assert np.isfinite(found.probabilities).all()
    assert found.probabilities.max() < 0.5


@pytest.mark.parametrize(("coefficient", "memory"), [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)])
def test_the_memory_of_an_autoregression(coefficient: float, memory: float) -> None:
    """(1 + c) / (1 - c) observations tell as much as one."""
    noise = np.random.default_rng(13).normal(size=(20_000, 1))
    values = np.zeros_like(noise)
    for t in range(1, len(values)):
        values[t] = coefficient * values[t - 1] + noise[t]
    assert onset_module._memory(values)[0] == pytest.approx(memory, rel=0.2)


def test_a_memory_widens_the_interval() -> None:
    """The evidence counts for less."""
    rng = np.random.default_rng(14)
    values = np.zeros((2200, 2))
    for t in range(1, len(values)):
        values[t] = 0.8 * values[t - 1] + rng.normal(size=2)
    recent = values[2000:] + np.where(np.arange(200) >= 150, 4.0, 0.0)[:, None]
    plain, wary = (find_onset(recent, values[:2000], gaussian(2.5), 50, ordered=ordered) for ordered in (False, True))
    assert wary.probabilities.max() < plain.probabilities.max()


# Examples


def test_examples_are_of_what_is_new_and_of_what_is_gone() -> None:
    """Two clusters, of which one moves elsewhere."""
    rng = np.random.default_rng(15)
    cluster = rng.random(400) < 0.5
    reference = rng.normal(size=(400, 2)) * 0.3 + np.where(cluster, 5.0, 0.0)[:, None]
    recent = rng.normal(size=(40, 2)) * 0.3
    recent[20::2] -= 5.0
    probabilities = np.eye(40)[20]
    found = find_examples(recent, reference, gaussian(1.0), probabilities, count=4)
    assert len(found.recent) == len(found.reference) == 4
    assert (found.recent >= 20).all()
    assert (recent[found.recent].mean(1) < -3).all()
    assert (reference[found.reference].mean(1) > 3).all()


def test_examples_are_no_copies_of_each_other() -> None:
    """Of equal ones, one is shown."""
    rng = np.random.default_rng(16)
    recent = np.concatenate([rng.normal(size=(10, 2)), np.repeat([[6.0, 6.0]], 6, axis=0), [[6.5, 6.0], [6.0, 7.0]]])
    found = find_examples(recent, rng.normal(size=(100, 2)), gaussian(1.0), np.eye(18)[10], count=3)
    assert len(np.unique(recent[found.recent], axis=0)) == 3


def test_a_single_observation_is_its_own_example() -> None:
    """And where all are equal, one of them is."""
    found = find_examples(np.full((1, 1), 9.0), np.zeros((20, 1)), gaussian(1.0), np.ones(1))
    assert found.recent.tolist() == [0]
    assert len(found.reference) == 1


# The experiment


def test_alarms_know_when_the_change_was(quick_fits: None) -> None:
    """A change that cannot be missed."""
    rng = np.random.default_rng(17)
    law = changes.normal(2)
    detector = explanations.fitted(law, rng, 10)
    found, share = alarms.alarms_after_changes(detector, law, changes.moved(law, 8.0), rng, 5, later=3)
    assert share > 0.9
    assert len(found) == 5
    for alarm in found:
        assert alarm.recent.shape == (20, 2)
        assert alarm.later.shape == (3, 2)
        assert alarm.recent[alarm.onset :].min() > 2
        assert alarm.recent[: alarm.onset].max() < 6
        assert alarm.delay <= 6
    quiet = alarms.false_alarms(detector, law, rng, 3)
    assert all(alarm.recent.shape == (20, 2) for alarm in quiet)


def test_pieces_of_the_experiment(quick_fits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gives what its table holds, and the tables can be read."""
    monkeypatch.setattr(explanations, "ERT", 100)
    monkeypatch.setattr(explanations, "ERROR", 0.2)
    onsets = explanations.Onsets("D1", 25, 3, 0, 0).run()
    assert onsets["rows"].shape == (3, 4)
    moves = explanations.Moves("normal", 1, 4.0, 2, 0, 0).run()
    assert moves["rows"].shape == (2, len(explanations.MOVE_COLUMNS))
    assert explanations.Unmoved("table", False, 3, 0, 0).run()["reported"].shape == (3,)
    assert explanations.Unmoved("pump", True, 2, 0, 0).run()["reported"].shape == (2,)


def test_the_report_counts(tmp_path: Any) -> None:
    """Rows made by hand, in which the answers are known."""
    onset: Row = {"change": "D1", "window": 100, "default": 1, "number": 0, "found": 1.0, "delay": 20}
    onsets = [onset | {"error": error, "low": error - 2, "high": error + 2} for error in (-3, 1, 2, 0)]
    move: Row = {"law": "normal", "columns": 3, "shift": 1.0, **dict.fromkeys(explanations.MOVE_COLUMNS, 1.0)}
    moves = [move | {"number": 0, "found": 1.0, "all_ahead": ahead} for ahead in (0.0, 1.0)]
    unmoved: list[Row] = [{"law": "t4", "number": i, "alarms": 50, "reported": i + 1} for i in range(2)]
    text = explanations_report.draw({"onsets": onsets, "moves": moves, "unmoved": unmoved}, tmp_path)
    assert "| D1 | default | 4 | 100% | 20 | 1.5 | 75% (30-95) | 5 |" in text
    assert "| normal | 3 | 1 | 2 | 1 | 100% (34-100) | 50% (9-91) |" in text
    assert "| t4 | 2 | 100 | 3.0% (1.0-8.5) |" in text


def test_groups_may_come_in_any_order(normal_test: tuple[ColumnTest, Float64Array]) -> None:
    """Evidence is by column, not by feature."""
    _, reference = normal_test
    groups: Int64Array = np.array([4, 3, 2, 1, 0])
    rows = np.random.default_rng(18).normal(size=(50, 5))
    rows[-20:, 0] += 2
    found = ColumnTest(reference, groups, np.arange(5000, dtype=np.int32).reshape(100, 50) % 2000)(rows)
    assert found.order[0] == 4
    assert found.features[4] == 0
