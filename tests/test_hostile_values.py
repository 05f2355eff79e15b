"""Whatever is given for an observation, a reference or an option: it is taken in, or refused and nothing moves."""

from __future__ import annotations

import datetime
import decimal
import fractions
import sys
import warnings
from collections import namedtuple
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import LSDD, MMD, Custom, Detector, Independent, InputError, MeanShift, TocsinError
from tocsin._compute.arrays import Array
from tocsin.baselines import ScanB
from tocsin.representations import PCA

pd = pytest.importorskip("pandas")
pytestmark = [pytest.mark.usefixtures("quick_fits"), pytest.mark.filterwarnings("ignore")]

OPTIONS: dict[str, Any] = {
    "window": 5, "paths": 50, "interval": False, "seed": 1, "backend": "numba", "sampler": Independent(),
}  # fmt: skip
COUNT, WIDTH = 60, 3
TRIES = 1800

Point = namedtuple("Point", "a b c")


class TheirOwnError(Exception):
    """What a user's own class raises; it comes out as it is."""


class Hostile:
    """A value that fails in every way that a value can be looked at."""

    def _fails(self, *given: object, **options: object) -> Any:
        raise TheirOwnError

    __array__ = __len__ = __iter__ = __float__ = __repr__ = __str__ = __getitem__ = _fails


def nested(depth: int) -> object:
    """A list in a list in a list."""
    inner: object = 1.0
    for _ in range(depth):
        inner = [inner]
    return inner


def covered() -> object:
    """An observation with a mask over one of its numbers."""
    return np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])


def endless() -> list[object]:
    """A list that holds itself."""
    own: list[object] = []
    own.append(own)
    return own


EAST, WEST = (datetime.timezone(datetime.timedelta(hours=hours)) for hours in (14, -14))

CELLS: list[Callable[[], object]] = [
    lambda: None, lambda: float("nan"), lambda: float("inf"), lambda: pd.NA, lambda: pd.NaT, lambda: np.ma.masked,
    lambda: 1j, lambda: 10**400, lambda: -(10**400), lambda: "x", lambda: "", lambda: "\ud800", lambda: "a\0b",
    lambda: b"x", lambda: True, lambda: np.float32(1), lambda: np.longdouble(sys.float_info.max) * 10,
    lambda: decimal.Decimal("NaN"), lambda: decimal.Decimal("sNaN"), lambda: decimal.Decimal("1e400"),
    lambda: fractions.Fraction(10**400), lambda: fractions.Fraction(1, 3),
    lambda: datetime.datetime.max, lambda: datetime.datetime.min, lambda: datetime.datetime.max.replace(tzinfo=WEST),
    lambda: datetime.datetime.min.replace(tzinfo=EAST), lambda: datetime.date.max, lambda: datetime.time(1),
    lambda: datetime.timedelta.max, lambda: pd.Timestamp.max, lambda: pd.Timestamp.min,
    lambda: pd.Timestamp.max.tz_localize("UTC"), lambda: pd.Timestamp.min.tz_localize("UTC"), lambda: pd.Period("2020"),
    lambda: np.datetime64("NaT"), lambda: np.datetime64(2**62, "s"), lambda: np.timedelta64(1),
    lambda: "9999-12-31T23:59:59.999999-14:00", lambda: "0001-01-01T00:00:00+14:00", lambda: "99999-01-01",
    lambda: [1], dict, set, lambda: (1,), lambda: len, lambda: int, object, Hostile, lambda: nested(3000), endless,
    lambda: np.array(1.0), lambda: np.array([1.0]), lambda: np.array([1.0, 2.0]), lambda: np.array(None),
]  # fmt: skip
"""Values that a cell may hold, good ones among them."""

WHOLES: list[Callable[[], object]] = [
    covered, lambda: [covered()],
    lambda: (i for i in range(3)), lambda: {1.0, 2.0, 3.0}, lambda: frozenset([1]), lambda: range(3),
    lambda: memoryview(b"abc"), lambda: bytearray(b"abc"), lambda: [[1, 2], [3]], lambda: np.zeros(3, [("a", float)]),
    lambda: np.array([1, 2, 3], "M8[s]"), lambda: np.array([1, 2, 3], "m8[s]"), lambda: np.array([1j, 2, 3]),
    lambda: np.array(["a", "b", "c"]), lambda: pd.Series([1.0, 2.0, 3.0]),
    lambda: pd.Series(["x"] * 3, dtype="category"),
    lambda: pd.DataFrame(), lambda: pd.DataFrame({"a": []}), lambda: pd.DataFrame(np.ones((1, 3)), columns=list("aab")),
    lambda: pd.DataFrame(np.ones((2, 3)), columns=list("abc")), lambda: pd.DataFrame({"a": [pd.NA], "b": ["u"]}),
    lambda: pd.Series([pd.Timestamp.max.tz_localize("UTC")] * 3), lambda: Point(1, 2, 3), lambda: Point("a", None, 1j),
    lambda: {1: 1, 2: 2, 3: 3}, lambda: {1: 1, "b": 2, None: 3}, lambda: {"a\0": 1.0, "\ud800": 2.0, "c": 3.0},
    lambda: np, lambda: np.ones((1, 1, 3)), lambda: np.ones((0, 3)), lambda: np.ones((3, 0)), list, dict,
    lambda: "text",
    *CELLS,
]  # fmt: skip
"""Values that may be given for an observation or a block."""


def any_of(rng: np.random.Generator) -> tuple[str, object]:
    """Something that may be given for an observation, a block or a reference, and how it was made."""

    def one(of: list[Callable[[], object]]) -> tuple[int, object]:
        which = int(rng.integers(len(of)))
        return which, of[which]()

    kind = rng.choice(["whole", "list", "row", "objects", "record", "records", "frame", "texts"])
    if kind in ("whole", "list"):
        which, value = one(WHOLES)
        return f"{kind} {which}", value if kind == "whole" else [value] * int(rng.integers(1, 4))
    which, cell = one(CELLS)
    column = "abc"[rng.integers(3)]
    record: dict[str, object] = {"a": 0.1, "b": "u", "c": datetime.datetime(2020, 1, 1), column: cell}
    made: object = {"record": record, "records": [record, record], "row": [1.0, cell, 2.0], "texts": ["a", cell]}.get(
        kind
    )
    if kind == "objects":
        array = np.ones((2, WIDTH), dtype=object)
        array[:, 1] = [cell] * 2 if not isinstance(cell, Hostile | list | tuple | np.ndarray) else None
        made = array
    elif kind == "frame":
        series = pd.Series([None, None], dtype=object)
        series[0] = None if isinstance(cell, Hostile | list | tuple | dict | set | np.ndarray) else cell
        made = pd.DataFrame({"a": series, "b": ["u", "v"], "c": [pd.NaT, pd.NaT]})
    return f"{kind} {which} in {column}", made


def doubled(X: Any) -> Array:
    """A representation of a user's."""
    try:
        return np.asarray(X, dtype=np.float64) * 2
    except Exception as error:
        raise TheirOwnError from error


def same_letter(X: Any, Y: Any) -> Array:
    """A kernel of a user's, on anything."""
    return np.array([[1.0 if type(x) is type(y) else 0.5 for y in Y] for x in X]).reshape(len(X), len(Y))


def table(rng: np.random.Generator) -> Any:
    times = pd.date_range("2020", periods=COUNT, freq="h")[rng.permutation(COUNT)]
    return pd.DataFrame({"a": rng.normal(size=COUNT), "b": rng.choice(["u", "v"], COUNT), "c": times})


DETECTORS: dict[str, Callable[[np.random.Generator], Detector]] = {
    "rows": lambda rng: Detector(50, **OPTIONS).fit(rng.normal(size=(COUNT, WIDTH))),
    "table": lambda rng: Detector(50, **OPTIONS).fit(table(rng)),
    "numbers": lambda rng: Detector(50, **OPTIONS).fit(pd.DataFrame(rng.normal(size=(COUNT, 3)), columns=list("abc"))),
    "texts": lambda rng: Detector(50, **OPTIONS).fit([f"a text, {i}" for i in rng.permutation(COUNT)]),
    "represented": lambda rng: Detector(50, preprocess=doubled, **OPTIONS).fit(rng.normal(size=(COUNT, WIDTH))),
    "several": lambda rng: Detector(50, [LSDD(), MeanShift()], **OPTIONS).fit(rng.normal(size=(COUNT, WIDTH))),
}


def saved(detector: Detector, folder: Path) -> bytes:
    detector.save(folder / "saved.tocsin")
    return (folder / "saved.tocsin").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("kind", DETECTORS)
def test_observations(kind: str, tmp_path: Path) -> None:
    """What is refused leaves the detector as it was, to the last bit."""
    rng = np.random.default_rng(0)
    detector = DETECTORS[kind](rng)
    refused, before = 0, saved(detector, tmp_path)
    for number in range(TRIES // len(DETECTORS)):
        made, given = any_of(np.random.default_rng(number))
        method = ("update", "update_many", "update_until_alarm")[number % 3]
        try:
            getattr(detector, method)(given)
            before = saved(detector, tmp_path)
        except (TocsinError, TheirOwnError):
            refused += 1
            assert saved(detector, tmp_path) == before, made
        except Exception as error:
            pytest.fail(f"{method} of {made}: {type(error).__name__}: {error}")
    assert refused > TRIES // len(DETECTORS) // 4


@pytest.mark.long
def test_references() -> None:
    refused = 0
    for number in range(400):
        made, given = any_of(np.random.default_rng(1000 + number))
        many = isinstance(given, list) and given and number % 2
        try:
            Detector(50, **OPTIONS).fit(given * COUNT if many else given)  # type: ignore[operator]
        except (TocsinError, TheirOwnError):
            refused += 1
        except Exception as error:
            pytest.fail(f"fit to {made}: {type(error).__name__}: {error}")
    assert refused > 200


@pytest.mark.parametrize("value", [10**400, -1, 1j, "x", [1, [2]], {}, np.array([1, 2]), object()], ids=type)
@pytest.mark.parametrize("name", ["ert", "window", "paths", "error", "sampler", "mode", "start", "kinds", "backend"])
def test_options(name: str, value: object) -> None:
    options = {"ert": 50, **OPTIONS, name: value}
    if name == "kinds" and isinstance(value, dict):
        return  # says nothing
    with pytest.raises(InputError):
        Detector(**options).fit(np.random.default_rng(0).normal(size=(COUNT, 2)))


# Masks


def masked() -> Any:
    rows = np.ma.masked_array(np.random.default_rng(0).normal(size=(COUNT, 2)), np.zeros((COUNT, 2), bool))
    rows[3, 1] = np.ma.masked
    return rows


def test_what_a_mask_covers_is_no_data() -> None:
    rows = masked()
    for reference in (rows, list(rows)):
        with pytest.raises(InputError, match="reference holds nan in row 4, column 2"):
            Detector(50, **OPTIONS).fit(reference)
    detector = Detector(50, **OPTIONS).fit(rows.data)
    for block in (rows, list(rows)):
        with pytest.raises(InputError, match="block holds nan in row 4, column 2"):
            detector.update_many(block)
    with pytest.raises(InputError, match="observation holds nan in column 2"):
        detector.update(rows[3])
    with pytest.raises(InputError, match="observation holds nan in column 1"):
        detector.update([np.ma.masked, 1.0])
    with pytest.raises(InputError, match="nan in row 4, column 2"):
        ScanB(100, window=5, seed=1).fit(rows)


def test_masks_of_nothing_change_nothing() -> None:
    rows = np.random.default_rng(0).normal(size=(COUNT, 2))
    one, other = (Detector(50, **OPTIONS).fit(each) for each in (rows, np.ma.masked_array(rows)))
    np.testing.assert_array_equal(
        one.update_many(rows).statistic, other.update_many(np.ma.masked_array(rows)).statistic
    )


def test_in_tables_masks_are_gaps() -> None:
    rows = masked()
    detector = Detector(50, **OPTIONS).fit(pd.DataFrame(rows.data, columns=["a", "b"]))
    a = float(rows[3, 0])
    expected = copy(detector).update({"a": a, "b": None})
    for given in (rows[3], {"a": a, "b": np.ma.masked}):
        assert copy(detector).update(given) == expected
    several = copy(detector).update_many(rows)
    as_nan = copy(detector).update_many(np.where(np.ma.getmaskarray(rows), np.nan, rows.data))
    np.testing.assert_array_equal(several.statistic, as_nan.statistic)


STEPS = {"one": PCA(1), "a function": lambda rows: np.asarray(rows) * 1.0, "two": [PCA(2), PCA(1)]}


@pytest.mark.parametrize("preprocess", STEPS.values(), ids=STEPS)
def test_steps_are_given_gaps_for_masks(preprocess: Any) -> None:
    """What is under a mask is no data for them either."""
    rows = masked()
    for reference in (rows, list(rows)):
        with pytest.raises(InputError, match=r"nan|not finite"):
            Detector(50, preprocess=preprocess, preprocess_share=0.9, **OPTIONS).fit(reference)
    detector = Detector(50, preprocess=preprocess, **OPTIONS).fit(rows.data)
    for block in (rows, list(rows)):
        with pytest.raises(InputError, match="gave nan in row 4"):
            detector.update_many(block)
    for x in (rows[3], [1.0, np.ma.masked]):
        with pytest.raises(InputError, match="gave nan in row 1"):
            detector.update(x)
    other = copy(detector).update_many(np.ma.masked_array(rows.data))
    np.testing.assert_array_equal(other.statistic, detector.update_many(rows.data).statistic)


def test_large_numbers_are_taken_without_a_word() -> None:
    """Their squares are none of the user's."""
    detector = Detector(50, **OPTIONS).fit(masked().data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.update([1e200, 0.0])
        detector.update_many([[1e200, 1e307], [1.0, 2.0]])


# Functions of a user's


@pytest.mark.parametrize("given", [None, "x", 1j, [1, 2], object(), 10**400, float("nan")], ids=type)
def test_functions_that_give_no_numbers(given: object, tmp_path: Path) -> None:
    """At the fit, and later, when nothing may move."""
    rng = np.random.default_rng(0)
    rows, answers = rng.normal(size=(COUNT, 2)), {"late": True}

    def distance(X: Array, Y: Array) -> Any:
        return given if answers["late"] else float(np.abs(X.mean(0) - Y.mean(0)).max())

    def kernel(X: Array, Y: Array) -> Any:
        return given if answers["late"] else np.exp(-np.abs(X[:, None] - Y[None]).sum(-1))

    for statistic in (Custom(distance), MMD(kernel)):
        answers["late"] = True
        detector = Detector(20, statistic, window=3, interval=False, seed=1, backend="numba", sampler=Independent())
        with pytest.raises(InputError, match="returned"):
            detector.fit(rows)
        answers["late"] = False
        detector.fit(rows)
        detector.update(rows[0])
        before = saved(detector, tmp_path)
        answers["late"] = True
        with pytest.raises(InputError, match="returned"):
            detector.update(rows[1])
        with pytest.raises(InputError, match="returned"):
            detector.update_many(rows[:9])
        assert saved(detector, tmp_path) == before


def test_a_preprocess_that_raises_is_named() -> None:
    detector = DETECTORS["represented"](np.random.default_rng(0))
    with pytest.raises(TheirOwnError) as caught:
        detector.update(["a", "b", "c"])
    assert any("preprocess step: the function doubled" in note for note in caught.value.__notes__)


# Names and times


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "", "a\nb", "x" * 1000])
def test_names_of_columns_are_kept(name: str, tmp_path: Path) -> None:
    records: list[dict[str, object]] = [{name: float(value)} for value in np.random.default_rng(0).normal(size=COUNT)]
    detector = Detector(50, **OPTIONS).fit(records)
    detector.save(tmp_path / "names.tocsin")
    again = Detector.load(tmp_path / "names.tocsin")
    assert again.intake_.names == (name,)
    assert again.update(records[0]) == detector.update(records[0])


def test_the_ends_of_time() -> None:
    """A clock that another zone has no date for is still a time."""
    detector = DETECTORS["table"](np.random.default_rng(0))
    for time in (datetime.datetime.max.replace(tzinfo=WEST), datetime.datetime.min.replace(tzinfo=EAST)):
        plain = time.replace(tzinfo=None)
        ahead = time.utcoffset() or datetime.timedelta()
        week = datetime.timedelta(days=7) * (1 if plain.year < 5000 else -1)
        shifted = plain + week - ahead  # the same hour of the week
        outcomes = [copy(detector).update({"a": 0.0, "b": "u", "c": each}) for each in (time, shifted)]
        assert outcomes[0].statistic == pytest.approx(outcomes[1].statistic, rel=1e-5)
