"""Features of columns: every kind is on the same scale, and what is missing or new is told apart."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from small_tables import HOUR, LIBRARIES, NOON, mixed, of, rows, table
from tocsin import Detector, Independent
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables.column import APART, DIRECTIONS, KNEE, MOST_CORNERS, RARE, Column


def test_missing_values_are_corners_of_their_own() -> None:
    """At a squared distance of 2 or more from every value; new ones where the reference has none share a feature."""
    data = mixed(200)
    columns = of(data)
    known = columns.encode(table(LIBRARIES["records"](data)))
    assert known.shape == (200, columns.width)
    assert not known[:, -1].any()
    for name in columns.names:
        gone = rows(columns, **{own: [None] if own == name else values[:1] for own, values in data.items()})
        mine = columns.owners == columns.names.index(name)
        had_gaps = columns.columns[columns.names.index(name)].missing > 0
        mine[-1] = not had_gaps
        there = known[[value is not None for value in data[name]]]
        assert ((there - gone)[:, mine] ** 2).sum(1).min() >= 2 - 1e-12, name
        assert (gone[0, -1] > 0) is not had_gaps


def test_values_that_go_missing_in_several_columns_add_up() -> None:
    """Each adds its own squared distance to the feature that they share."""
    columns = of({"x": [1.0, 2.0] * 5, "word": ["a", "b"] * 5, "flag": [True, False] * 5})
    (row,) = rows(columns, x=[None], word=[None], flag=[None])
    np.testing.assert_allclose(row, [0.0] * (columns.width - 1) + [np.sqrt(APART**2 + 2)])


def test_common_categories_have_corners_and_new_ones_share_one() -> None:
    """If all were seen often enough; one that was not is enough for directions instead."""
    words = ["a"] * 20 + ["b"] * RARE
    columns = of({"x": words}, {"x": "category"})
    assert columns.columns[0].values == ("a", "b")
    assert columns.columns[0].corners
    unseen, other, a, b = rows(columns, x=["never", "neither", "a", "b"])
    np.testing.assert_array_equal(unseen, other)
    assert ((a - b) ** 2).sum() == ((a - unseen) ** 2).sum() == 2
    assert not of({"x": [*words, *["c"] * (RARE - 1)]}, {"x": "category"}).columns[0].corners


def test_what_the_reference_never_shows_is_not_lost_among_many_columns() -> None:
    """A first gap, and a new category where none is rare, count for a quarter of the columns; rare ones do not."""
    data: dict[str, list[Any]] = {f"x{i}": [1.0, 2.0] * 10 for i in range(13)}
    columns = of({**data, "full": ["a", "b"] * 10, "rare": ["a"] * 18 + ["b", "c"], "gaps": [None, 1.0] * 10})
    usual: dict[str, Any] = {name: [1.0] for name in columns.names} | {"full": ["a"], "rare": ["a"]}
    (row,) = rows(columns, **usual)
    for change, squared in (
        ({"x0": [None]}, 4 * APART**2),
        ({"full": [None]}, 4 + 1),
        ({"full": ["new"]}, 4 + 1),
        ({"rare": ["new"]}, 2 - 2 * float(Column.direction("a") @ Column.direction("new"))),
        ({"gaps": [None]}, APART**2),
    ):
        (other,) = rows(columns, **{**usual, **change})
        # A number that goes missing leaves its own place as well.
        assert squared - 1e-9 < ((row - other) ** 2).sum() < squared + 1


def test_many_categories_and_rare_ones_have_directions() -> None:
    """Features do not grow with the names that there are, and a name never seen is as far from others as they are."""
    many = [f"w{i}" for i in range(MOST_CORNERS + 1) for _ in range(10)]
    for words in (many, ["a"] * 300 + ["b"] * (len(many) - 301) + ["c"]):
        columns = of({"x": words})
        (learned,) = columns.columns
        assert learned.kind == "category"
        assert not learned.corners
        assert learned.width == DIRECTIONS
        names = [*sorted(set(words)), "new", "another"]
        encoded = rows(columns, x=names)
        squares = [((x - y) ** 2).sum() for i, x in enumerate(encoded) for y in encoded[:i]]
        assert np.mean(squares) == pytest.approx(2, abs=0.2)
        assert min(squares) > 0.5
        decoded = [record["x"] for record in columns.decode(encoded)]
        assert decoded == [*names[:-2], "other", "other"]


@pytest.mark.long
def test_a_column_of_many_equal_categories_keeps_the_promise() -> None:
    """A hundred of them, ten times each: which of them the reference has most of is chance, and must not matter.

    Corners for the commonest of a reference, and one for all others, rang fifteen times too often here. Of 20,000 rows
    at one alarm in 500, 40 are expected; over references of this size their number varies by a fifth, and by its own
    root: more than 90 would be five standard deviations off.
    """
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(100)]
    reference, stream = (rng.choice(words, count).tolist() for count in (1000, 20_000))
    detector = Detector(500, sampler=Independent(), interval=False, seed=1).fit(reference, progress=False)
    assert detector.update_many(stream).alarm.sum() < 90


def test_numbers_as_categories() -> None:
    """1 and 1.0 are the same name, in whatever way they come."""
    columns = of({"x": [1, 2] * 10}, {"x": "category"})
    assert set(columns.columns[0].values) == {"1", "2"}
    first, second, other = rows(columns, x=[1.0, 2, 1.5])
    assert ((first - second) ** 2).sum() == ((first - other) ** 2).sum() == 2
    large = of({"x": [10**15 + 1, 10**15 + 2] * 10}, {"x": "category"})
    assert len(large.columns[0].values) == 2


@pytest.mark.parametrize(
    "values",
    [
        np.full(100, 3.7),
        np.array([0.0] * 80 + [5.0] * 20),
        np.array([0.0] * 99 + [1e200]),
        np.array([0.1 + 0.2] * 40 + [0.3] * 35 + [1.0] * 25),
        np.random.default_rng(0).standard_cauchy(100) * 1e150,
        np.random.default_rng(0).normal(size=100) * 1e-300,
    ],
    ids=["constant", "quartiles equal", "one wild", "rounding", "huge", "tiny"],
)
def test_numbers_of_awkward_spread(values: Float64Array) -> None:
    """Features are finite and of moderate size, and so are those of the wildest stream; the order is kept."""
    columns = of({"x": values.tolist()})
    known = rows(columns, x=values.tolist())
    assert np.isfinite(known).all()
    assert known.var(0).max() <= 2 + 1e-9
    wild = rows(columns, x=sorted([-1.7e308, -1e300, -1.0, columns.columns[0].centre, 1.0, 1e300, 1.7e308]))[:, 0]
    assert np.isfinite(wild).all()
    assert (np.diff(wild) >= 0).all()
    assert np.abs(wild).max() < 1000


def test_far_numbers_are_drawn_in() -> None:
    """Up to the knee a number is its distance from the median in spreads; a hundred spreads are not thirty knees."""
    columns = of({"x": np.random.default_rng(0).normal(7, 3, 4000).tolist()})
    (learned,) = columns.columns
    assert abs(learned.centre - 7) < 0.3
    assert abs(learned.spread - 3) < 0.3
    near, far = rows(columns, x=[learned.centre + KNEE * learned.spread, learned.centre + 100 * learned.spread])[:, 0]
    assert near == pytest.approx(KNEE)
    assert KNEE < far < 3 * KNEE


def test_a_number_at_the_median_is_not_missing() -> None:
    """Though it is 0 spreads away from it, and another column of its row has a gap where the reference has none."""
    columns = of({"x": [1, 2, 2, 2, 3] * 4, "gaps": [None, 1.0, 2.0, 3.0, 4.0] * 4, "word": ["a", "b"] * 10})
    record = {"x": 2, "gaps": 2.5, "word": None}
    encoded = columns.encode(table([record]))
    (shown,) = columns.decode(encoded)
    assert shown == {"x": 2.0, "gaps": 2.5, "word": None}
    quick = columns.encode_record(record)
    assert quick is not None
    assert quick.tobytes() == encoded.tobytes()
    assert (encoded[0, :-1] ** 2).sum() == 0


def test_a_median_of_zero_is_shown_as_it_is() -> None:
    columns = of({"x": [-1, 0, 0, 0, 1] * 4})
    assert columns.decode(columns.encode(table([{"x": 0}]))) == [{"x": 0.0}]


def test_a_clock_is_not_watched() -> None:
    """Times that never go back say when rows came; if they do, or if it is said so, they are data."""
    clock = [NOON + 5 * i * HOUR for i in range(20)]
    data: dict[str, list[Any]] = {"x": [1.0, 2.0] * 10, "when": clock}
    columns = of(data)
    assert (columns.names, columns.ignored) == (("x",), ("when",))
    assert columns.encode(table([{"x": 1.0, "when": NOON}])).shape == columns.encode(table([{"x": 1.0}])).shape
    assert of(data, {"when": "time"}).names == ("x", "when")
    assert of({**data, "when": [None, *clock[1:]]}).names == ("x",)
    assert of({**data, "when": clock[::-1]}).names == ("x", "when")
    with pytest.raises(InputError, match="no columns to watch besides 'when', which only says when rows came"):
        of({"when": clock})


def test_times_lie_on_circles() -> None:
    """Midnight is near midnight, Sunday near Monday, and a week later is the same."""
    columns = of({"x": [NOON + 5 * i * HOUR for i in range(200)]}, {"x": "time"})
    late = datetime.datetime(2024, 3, 10, 23, 59, 59)  # a Sunday
    hours = datetime.timedelta(hours=1)
    sunday, monday, week_later, noon = rows(
        columns, x=[late, late + hours / 3600, late + 168 * hours, late + 12 * hours]
    )
    assert ((sunday - monday) ** 2).sum() < 1e-6
    np.testing.assert_allclose(sunday, week_later, atol=1e-9)
    assert ((sunday - noon) ** 2).sum() > 1.5


def test_a_column_without_values_in_the_reference_may_get_some() -> None:
    """Of any kind: that is a change, to be found and not refused."""
    columns = of({"x": [None] * 10, "y": [1.0, 2.0] * 5})
    gap, *others = rows(columns, x=[None, 3.0], y=[1.0, 1.0])
    for other in (*others, *rows(columns, x=["a"], y=[1.0]), *rows(columns, x=[NOON], y=[1.0])):
        assert ((gap - other) ** 2).sum() == 2


SCALES: dict[str, tuple[Callable[[np.random.Generator, int], Any], float, float]] = {
    "normal": (lambda rng, n: rng.normal(1e6, 1e3, n), 1.6, 2.4),
    "uniform": (lambda rng, n: rng.random(n), 1.0, 2.4),
    "heavy-tailed": (lambda rng, n: rng.standard_cauchy(n), 1.0, 4.3),
    "skewed": (lambda rng, n: rng.lognormal(0, 2, n), 1.0, 4.3),
    "three quarters zero": (lambda rng, n: rng.exponential(size=n) * (rng.random(n) < 0.26), 1.0, 4.3),
    "two far modes": (lambda rng, n: rng.normal(1000.0 * (rng.random(n) < 0.2), 1.0), 1.0, 4.3),
    "counts": (lambda rng, n: rng.poisson(0.3, n), 1.0, 4.3),
    "one in five missing": (lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)), 1.6, 2.6),
    "eight categories": (lambda rng, n: rng.choice(list("abcdefgh"), n), 1.6, 2.0),
    "times": (lambda rng, n: [NOON + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**7, n)], 1.6, 2.4),
    "texts": (lambda rng, n: ["".join(rng.choice(list("abcdefgh "), 30)) for _ in range(n)], 1.6, 2.1),
}


@pytest.mark.parametrize("law", SCALES)
def test_every_kind_of_column_is_on_the_same_scale(law: str) -> None:
    """Squared distances of random rows average about 2: no column drowns the others, and none is lost among them."""
    make, least, most = SCALES[law]
    rng = np.random.default_rng(0)
    data = {"x": list(make(rng, 2000))}
    known = rows(of(data), **data)
    average = ((known - known[rng.permutation(2000)]) ** 2).sum(1).mean()
    assert least < average < most
