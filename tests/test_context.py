"""What is expected given a context: functions, shrinkage, left out stretches, and how near the truth they come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import CubicSpline

from contexts import CUSTOMERS, EXTRA, GIVEN, Record, numbers, records
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.context import basis
from tocsin._data.context.basis import Surrounding, summed
from tocsin._data.context.expectation import FOLDS, folds_of
from tocsin._data.context.ridge import NONE, SHRINKAGES, UNSHRUNKEN, Functions, Ridge
from tocsin._data.contextual import Contextual, Taken, learn_given
from tocsin._data.tables import Values
from tocsin._experiments.context_laws import CONTEXT_LAWS, WATCHED, as_table, drawn


def intake(rows: list[Record]) -> Contextual:
    found = learn_given(rows, None, None, GIVEN).intake
    assert isinstance(found, Contextual)
    return found


def spline(count: int, seed: int = 0) -> tuple[Surrounding, Float64Array]:
    x = np.random.default_rng(seed).gamma(2.0, size=count)
    return Surrounding.learn("x", Values.of_numbers(x), "auto"), x


# Functions of a context


def test_functions_of_a_number_are_natural_cubic_splines_of_its_knots() -> None:
    own, x = spline(500)
    assert len(own.knots) == basis.KNOTS
    rows = np.column_stack(own.terms(Values.of_numbers(x)))
    at_knots = np.column_stack(own.terms(Values.of_numbers(own.knots)))
    assert rows.shape[1] == basis.KNOTS - 1  # all but the constant
    np.testing.assert_allclose(CubicSpline(own.knots, at_knots, bc_type="natural")(x), rows, atol=1e-8)


def test_bends_vary_less_the_more_they_bend_and_say_nothing_of_slopes() -> None:
    own, x = spline(800)
    slope, bends = own.terms(Values.of_numbers(x))
    np.testing.assert_allclose([slope.mean(), slope.std()], [0, 1], atol=1e-9)
    np.testing.assert_allclose(bends.T @ np.column_stack([np.ones_like(x), x]) / len(x), 0, atol=1e-8)
    spreads = bends.std(0)
    assert spreads[0] == pytest.approx(1)
    assert (np.diff(spreads) < 0).all()


def test_few_whole_numbers_and_strings_are_levels_and_times_are_cycles() -> None:
    whole = Surrounding.learn("gear", Values.of_numbers(np.arange(40.0) % 5), "auto")
    assert whole.kind == "category"
    assert Surrounding.learn("gear", Values.of_numbers(np.arange(40.0) % 5), "number").kind == "number"
    assert Surrounding.learn("share", Values.of_numbers(np.arange(40.0) % 5 / 8), "auto").kind == "number"
    weeks = Values.of_numbers(np.arange(24 * 29) * 3600.0, "times")
    times = Surrounding.learn("time", weeks, "auto")
    assert times.cycles == ("day", "week")
    hours, days = times.terms(weeks)
    assert hours.shape == (len(weeks), 2 * basis.HARMONICS["day"])
    np.testing.assert_allclose(hours[:24], hours[24:48], atol=1e-9)
    assert days[0].argmax() == 3  # 1970 began on a Thursday
    assert days.sum(1).tolist() == [1.0] * len(weeks)
    assert times.told(14 * 3600.0) == "14:00 on a Thursday"


def test_what_the_reference_has_the_like_of() -> None:
    own = Surrounding.learn("load", Values.of_numbers(np.linspace(0, 10, 101)), "auto")
    seen = own.known(Values.of_numbers(np.array([-0.6, -0.4, 5, 10.4, 10.6, np.nan])))
    assert seen.tolist() == [False, True, True, True, False, False]
    word = Surrounding.learn("customer", Values.of_words(["new", "old", None]), "auto")
    assert word.known(Values.of_words(["old", "never", None])).tolist() == [True, False, False]


# Shrinkage


def oracle(rows: Float64Array, wanted: Float64Array, shrinkage: Float64Array) -> Float64Array:
    """Ridge regression as ordinary least squares with a row more for each function."""
    more = np.vstack([rows, np.diag(np.sqrt(shrinkage))])
    found: Float64Array = np.linalg.lstsq(more, np.concatenate([wanted, np.zeros(len(shrinkage))]), rcond=None)[0]
    return found


def problem() -> tuple[Functions, Float64Array]:
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.ones(200), rng.normal(size=(200, 5))])
    wanted = rows @ np.array([1.0, 1.0, -1.0, 0.0, 0.0, 0.0]) + rng.normal(size=200)
    return Functions(rows, np.arange(200) * 4 // 200, [slice(0, 1), slice(1, 3), slice(3, 6)], 2), wanted


def test_weights_are_those_of_ridge_regression_also_without_each_stretch() -> None:
    functions, wanted = problem()
    chosen = Ridge(functions, wanted).choose()
    assert chosen.shrinkages[0] != NONE  # the first term matters
    assert chosen.shrinkages[1] == NONE  # and the second does not
    assert chosen.places.tolist() == [0, 1, 2]
    shrinkage = 200 * np.array([UNSHRUNKEN, *[SHRINKAGES[chosen.shrinkages[0]]] * 2])
    rows = functions.rows[:, :3]
    np.testing.assert_allclose(chosen.weights, oracle(rows, wanted, shrinkage), atol=1e-6)
    np.testing.assert_allclose(chosen.inverse, np.linalg.inv(rows.T @ rows + np.diag(shrinkage)), atol=1e-9)
    errors = 0.0
    for k in range(4):
        own = functions.folds == k
        weights = oracle(rows[~own], wanted[~own], shrinkage)
        np.testing.assert_allclose(chosen.fold_weights[k], weights, atol=1e-6)
        errors += float(((wanted[own] - rows[own] @ weights) ** 2).sum())
    means = np.array([wanted[functions.folds != k].mean() for k in range(4)])
    alone = ((wanted - means[functions.folds]) ** 2).sum()
    assert chosen.explained == pytest.approx(1 - errors / alone, abs=1e-6)


def test_the_shrinkage_is_the_best_for_stretches_left_out_of_those_around_it() -> None:
    functions, wanted = problem()
    chosen = Ridge(functions, wanted).choose()
    rows, best = functions.rows[:, :3], chosen.shrinkages[0]

    def left_out(place: int) -> float:
        total = 0.0
        for k in range(4):
            own = functions.folds == k
            weights = oracle(rows[~own], wanted[~own], 200 * np.array([UNSHRUNKEN, *[SHRINKAGES[place]] * 2]))
            total += float(((wanted[own] - rows[own] @ weights) ** 2).sum())
        return total

    near = [k for k in (best - 1, best + 1) if 0 <= k < len(SHRINKAGES)]
    assert all(left_out(best) <= left_out(k) + 1e-9 for k in near)


@pytest.mark.parametrize(("edges", "wanted"), [([0, 100], 10), ([0, 30, 100], 10), ([0, *range(7, 98, 7), 100], 10)])
def test_stretches_are_contiguous_and_groups_stay_whole_where_there_are_enough(edges: list[int], wanted: int) -> None:
    folds = folds_of(np.array(edges))
    assert len(np.unique(folds)) == wanted == FOLDS
    assert (np.diff(folds) >= 0).all()
    if len(edges) > FOLDS:
        assert all(len(set(folds[a:b].tolist())) == 1 for a, b in pairwise(edges))


def test_sums_are_the_same_to_the_last_bit_for_a_row_alone() -> None:
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(50, 30)), rng.normal(size=(30, 4))
    every = summed(rows, weights)
    np.testing.assert_allclose(every, rows @ weights)
    assert all(np.array_equal(summed(row[None], weights)[0], own) for row, own in zip(rows, every, strict=True))


def mixed(seed: int, count: int) -> list[Record]:
    """Rows with a context of every kind, of which levels, numbers with gaps, and truth values are watched."""
    rng, rows = np.random.default_rng(seed), records(seed, count)
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    for k, row in enumerate(rows):
        row["when"] = begin + timedelta(days=2 * k, minutes=int(rng.integers(1440)))
        row["gear"], row["night"], row["flat"] = int(rng.integers(5)), bool(rng.random() < 0.5), 3.5
        hour, weekend = row["when"].hour, row["when"].weekday() > 4
        row["x"] += np.sin(hour / 24 * 2 * np.pi) * (3 if weekend else 1) + row["gear"] ** 2
        row["y"] = None if rng.random() < 0.2 + 0.3 * row["night"] else row["y"] * np.exp(row["load"])
        row["note"] = f"{k} things"
        row["open"] = bool(rng.random() < 0.3 + 0.4 * row["night"])
    return rows


@pytest.fixture(scope="module")
def of_all_kinds() -> Contextual:
    given = ["when", "load", "customer", "gear", "night", "flat"]
    learned = learn_given(mixed(0, 1200), None, {"flat": "number", "note": "ignore"}, given)
    assert isinstance(learned.intake, Contextual)
    return learned.intake


def test_what_is_expected_is_the_sum_of_functions(of_all_kinds: Contextual) -> None:
    """Compiled, of functions of every kind, as NumPy has it law by law."""
    known, rows = of_all_kinds, mixed(1, 300)
    table = known.table(rows)
    assert table is not None
    own = known.expectation
    context = own.design.held(table)
    there = np.flatnonzero(own.design.known(context))
    functions, numbers = own.design.rows(context[there]), own.numbers(table[there])
    taken = known.taken(rows)
    assert taken.known.sum() == len(there) > 200
    pairs = own.design.places[own.design.first_pair :]
    assert {law.what for law in own.laws} == {"value", "level", "gap"}
    assert any(pair.start <= place < pair.stop for pair in pairs for law in own.laws for place in law.places)
    expected, spread = taken.beside[there, : len(own.laws)], taken.beside[there, len(own.laws) : 2 * len(own.laws)]
    encoded = known.columns
    for k, law in enumerate(own.laws):
        told = functions[:, law.places] @ law.weights
        around = law.scale * np.exp(np.clip(functions[:, law.spread_places] @ law.spread_weights, law.low, law.high))
        if law.what != "value":
            share = np.clip(told, 0.01, 0.99)
            around = np.sqrt(share * (1 - share))
        unsure = law.scale**2 * ((functions[:, law.places] @ law.half) ** 2).sum(1)
        np.testing.assert_allclose(expected[:, k], told, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(spread[:, k], np.sqrt(around**2 + unsure), rtol=1e-9)
        residuals = (numbers[:, k] - told) / spread[:, k]
        filled = np.nan_to_num(residuals, nan=0.0)  # a gap is told by a number of its own
        np.testing.assert_allclose(encoded.numbers(taken.points[there], k), filled, rtol=1e-6, atol=1e-6)


def told_of(take: Callable[[object], Taken], rows: object) -> Taken | str:
    """Rows taken in, or why they are refused."""
    try:
        return take(rows)
    except InputError as error:
        return str(error)


def test_a_record_is_read_as_a_table_of_one_row_is(of_all_kinds: Contextual) -> None:
    """To the last bit; what takes a closer look gets one, and what cannot be is refused in the same words."""
    known, rows = of_all_kinds, mixed(2, 40)
    assert known.reading.quick
    own: list[tuple[str, list[Any]]] = [
        ("load", [None, np.nan, 0, -0.0, 99.0, np.inf, "1", True, np.float32(1), Decimal("0.5"), 10**400]),
        ("gear", [None, np.nan, 1.0, -0.0, 0.5, 7, 1e300, -np.inf, "2", np.int64(3), np.True_]),
        ("customer", [None, np.nan, "old", "never", 3, np.str_("new")]),
        ("night", [None, True, np.True_, 1, "true", 0.5]),
        ("when", [None, pd.NaT, pd.Timestamp("2021-03-04 05:06:07"), "2021-03-04T05:06", "soon", 3.0, rows[0]["when"]]),
        ("flat", [3.5, 3, 4.0, None]),
        ("x", [None, np.nan, 1e308, -1e308, np.inf, "3", True, 7]),
        ("y", [None, np.nan, np.float64(2), -np.inf, 10**400]),
        ("kind", ["red", "blue", "green", None, np.nan, 2, np.str_("red"), "(something else)"]),
        ("open", [True, False, None, "true", 1.0, np.False_]),
        ("besides", [1]),
    ]
    tried = rows + [row | {name: value} for name, values in own for value, row in zip(values, rows, strict=False)]
    tried += [{name: value for name, value in rows[0].items() if name != lacking} for lacking in rows[0]]
    quick = 0
    for row in tried:
        one, many = told_of(known.taken_one, row), told_of(known.taken, [row])
        assert type(one) is type(many)
        if isinstance(one, Taken) and isinstance(many, Taken):
            assert np.array_equal(one.points, many.points, equal_nan=True)
            assert np.array_equal(one.beside, many.beside, equal_nan=True)
            quick += row.keys() - {"note"} == known.fields.keys() and known.reading.one(row) is not None
        else:
            assert one == many
    assert quick > len(rows) + 20


# How near the truth


@pytest.mark.parametrize("law", [name for name in CONTEXT_LAWS if name != "nothing"])
def test_what_is_expected_is_near_the_truth(law: str) -> None:
    """With 3000 rows, expected values of noise of spread 1 have errors of sqrt(functions / rows), 0.1 at most; spreads
    are known to a tenth. Bounds are three times that."""
    rng = np.random.default_rng(4)
    context, values = drawn(law, rng, 3000, 0.0)
    learned = learn_given(as_table(context, values), None, None, list(context))
    assert isinstance(learned.intake, Contextual)
    expectation = learned.intake.expectation
    truth = CONTEXT_LAWS[law](rng, 500, 0.0)
    held = expectation.design.held(as_table(truth.context, truth.expected))
    known = np.flatnonzero(expectation.design.known(held))
    expected, spread = expectation.of(held[known])
    assert np.sqrt(np.mean((expected[:, 0] - truth.expected[known]) ** 2)) < 0.3
    assert np.sqrt(np.mean(np.log(spread[:, 0] / truth.spread[known]) ** 2)) < 0.3
    assert expectation.laws[0].explained > 0.6
    assert expectation.laws[0].column == WATCHED


def test_residuals_of_the_reference_are_those_of_rows_to_come() -> None:
    """Of 120 rows and some five functions: in rows that were learned from spreads are 4 % smaller than in new ones, and
    in stretches left out they are as in new rows. Spreads of 12 references of 120 are known to 2 %: five of those."""
    ratios = []
    for seed in range(12):
        learned = learn_given(records(seed, 120), None, None, GIVEN)
        known = learned.intake
        assert isinstance(known, Contextual)
        place = int(np.flatnonzero(known.owners == known.names.index("x"))[0])
        fresh, again = (known.many(records(own, count))[:, place] for own, count in ((100 + seed, 2000), (seed, 120)))
        spread = fresh[~np.isnan(fresh)].std()
        ratios.append((learned.points[:, place].std() / spread, again.std() / spread))
    left_out, learned_from = np.mean(ratios, axis=0)
    assert left_out == pytest.approx(1, abs=0.1)
    assert learned_from < left_out - 0.02


def test_a_context_that_means_nothing_is_left_out() -> None:
    """A term enters that lessens errors by more than a standard error: by chance one in six does, of two to four."""
    nothing = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        learned = learn_given(as_table(*drawn("nothing", rng, 500, 0.7)), None, None, ["load"])
        assert isinstance(learned.intake, Contextual)
        nothing += len(learned.intake.expectation.laws[0].places) == 1
        assert learned.intake.expectation.laws[0].explained < 0.1
    assert nothing >= 5


def test_a_level_with_few_rows_is_expected_to_be_like_the_others() -> None:
    rows = records(0, 400)
    for row in rows[:3]:
        row["customer"] = "rare"
        row["x"] = 2 * row["load"] + 8
    known = intake(rows)
    table = known.table([{**rows[0], "load": 0.0, "customer": word} for word in (*CUSTOMERS, "rare")])
    assert table is not None
    expected, spread = known.expectation.of(known.expectation.design.held(table))
    np.testing.assert_allclose(expected[:3, 0], EXTRA, atol=0.5)
    assert 0.3 < expected[3, 0] < 8  # of three rows that say 8
    assert spread[3, 0] > 1.05 * spread[:3, 0].max()  # and it is not well known


def test_categories_and_gaps_have_expectations_too() -> None:
    rows = records(0, 600)
    rng = np.random.default_rng(1)
    for row in rows:
        if rng.random() < 0.4 * (row["load"] > 0):
            row["y"] = None
    known = intake(rows)
    assert known.names == ("x", "y", "y missing", "kind: blue", "kind: never seen")
    explained = {law.name: law.explained for law in known.expectation.laws}
    assert explained["kind: blue"] > 0.2
    assert explained["y missing"] > 0.1
    points = known.many([{**rows[0], "kind": "green"}, rows[0]])
    features = known.columns.features_of(known.names.index("kind: never seen"))
    assert points[0, features.start] == 1
    assert abs(points[1, features.start]) < 1e-9


def test_residuals_have_no_place_for_what_the_context_explains() -> None:
    """Correlations of 4000 residuals with what they were made of: five standard deviations are 0.08."""
    known, rows = intake(records(0, 2000)), records(9, 4000)
    points = known.many(rows)
    seen = ~np.isnan(points[:, 0])
    x = points[seen, int(np.flatnonzero(known.owners == 0)[0])]
    for context in (numbers(rows, "load"), np.array([row["customer"] == "old" for row in rows], float)):
        assert abs(np.corrcoef(x, context[seen])[0, 1]) < 0.08 + 0.05  # and what 2000 rows do not tell
    assert abs(np.corrcoef(numbers(rows, "x"), numbers(rows, "load"))[0, 1]) > 0.6


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(20), 20)])
def test_a_reference_in_groups_is_learned_from_and_kept_in_order(groups: Int64Array | None) -> None:
    own: dict[str, Any] = {} if groups is None else {"groups": groups}
    learned = learn_given(records(0, 400), own.get("groups"), None, GIVEN)
    assert learned.edges.tolist() == ([0, 400] if groups is None else list(range(0, 401, 20)))
    assert learned.rows.tolist() == list(range(400))


def test_rows_without_a_context_leave_the_reference() -> None:
    rows = records(0, 400)
    for k in (5, 17):
        rows[k]["load"] = None
    learned = learn_given(rows, None, None, GIVEN)
    assert learned.rows.tolist() == [k for k in range(400) if k not in (5, 17)]
    assert len(learned.points) == 398
