"""Detectors of arrays, tensors and sparse rows, and with functions of the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixed_frames import detector, equal, frame, pandas, polars, start
from tocsin import MMD, Custom, Detector
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import Objects, Rows

pytestmark = pytest.mark.usefixtures("quick_fits")


# Arrays, tensors, sparse rows


NUMBERS = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
NUMBERS[NUMBERS < 0.5] = 0


@pytest.fixture(scope="module")
def expected(quick_fits: None) -> Detector:
    """A detector of an array that is mostly zeros."""
    return detector(NUMBERS)


def same(expected: Detector, make: Callable[[Any], Any]) -> None:
    """The same detector and the same outcomes of what a function makes of arrays."""
    start(expected)
    wanted = expected.update_many(NUMBERS[:10])
    fitted = detector(make(NUMBERS))
    assert fitted.intake_ == Rows(3)
    np.testing.assert_array_equal(fitted.thresholds_, expected.thresholds_)
    start(fitted)
    equal(fitted.update_many(make(NUMBERS[:10])), wanted)
    start(fitted)
    assert [fitted.update(make(NUMBERS[i : i + 1])) for i in range(10)] == list(wanted)


@pytest.mark.parametrize(
    "make", [sparse.csr_array, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix, sparse.lil_array]
)
def test_sparse_rows_are_arrays(make: Callable[[Any], Any], expected: Detector) -> None:
    """Of any make."""
    same(expected, make)


def test_wide_sparse_rows_are_refused() -> None:
    """As arrays they would not fit."""
    with pytest.raises(InputError, match=r"shape \(100000, 100000\) has 1e\+10 entries, .*truncated SVD"):
        detector(sparse.csr_array((100_000, 100_000)))


def test_tensors_are_arrays(expected: Detector) -> None:
    """With a graph, and of other precisions."""
    torch = pytest.importorskip("torch")
    same(expected, lambda rows: torch.tensor(rows, requires_grad=True))
    same(expected, lambda rows: torch.tensor(rows).double())
    half = torch.tensor(NUMBERS).bfloat16()
    start(expected)
    assert np.isfinite(expected.update_many(half).statistic).all()
    assert np.isfinite(expected.update(half[0]).statistic)


@pytest.mark.parametrize("bad", [{"a": 1.0}, [np.nan, 1.0], "text", [1.0], [None, 1.0]])
def test_rows_of_numbers_refuse_what_is_none(bad: Any, tmp_path: Path) -> None:
    """Gaps, names and words are for tables."""
    fitted = detector(np.random.default_rng(0).normal(size=(60, 2)))
    fitted.save(tmp_path / "before")
    with pytest.raises(InputError, match="must"):
        fitted.update(bad)
    fitted.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


# Functions of the user's


def alike(X: list[Any], Y: list[Any]) -> Float64Array:
    """A kernel of the words or keys and values that two objects share."""

    def parts(x: Any) -> set[str]:
        return set(map(str, x.items() if isinstance(x, dict) else str(x).split()))

    return np.array([[len(parts(x) & parts(y)) / 4 for y in Y] for x in X])


def near(X: Any, Y: Any) -> Float64Array:
    """A kernel of rows of numbers."""
    assert np.asarray(X).dtype == np.float64
    squares: Float64Array = ((np.asarray(X)[:, None] - np.asarray(Y)[None]) ** 2).sum(2)
    return np.exp(-squares)


SMALL = {"window": 4, "paths": 60}


def test_a_kernel_of_strings() -> None:
    """From a list or from a Series, which are the same."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["a", "b", "c", "d", "e"], 3)) for _ in range(40)]
    expected = detector(texts, MMD(kernel=alike), **SMALL)
    wanted = expected.update_many(texts[:5])
    for make in (pandas.Series, polars.Series):
        fitted = detector(make(texts), MMD(kernel=alike), **SMALL)
        assert fitted.intake_ == Objects()
        assert list(fitted.reference_) == texts
        equal(fitted.update_many(make(texts[:5])), wanted)
        start(fitted)
        assert [fitted.update(text) for text in texts[:5]] == list(wanted)


def test_a_kernel_of_records() -> None:
    """It gets dicts: from frames, from lists of dicts, from one row of a frame."""
    data = frame(40)[["state", "open", "level"]]
    fitted = detector(data, MMD(kernel=alike), **SMALL)
    assert fitted.intake_ == Objects()
    assert set(map(type, fitted.reference_)) == {dict}
    first = fitted.reference_[0]
    assert type(first["open"]) is bool
    for one in (data[:1], data.iloc[0], data[:1].to_dict("records")[0], polars.from_pandas(data[:1])):
        start(fitted)
        fitted.update(one)
        latest = fitted.recent[-1]
        assert latest["state"] == data["state"].iloc[0]
        assert latest["open"] == data["open"].iloc[0]
    start(fitted)
    wanted = fitted.update_many(data[:5])
    start(fitted)
    equal(fitted.update_many(data[["level", "open", "state"]][:5]), wanted)
    assert (
        detector([{"a": i % 7, "b": i % 3} for i in range(40)], MMD(alike), sampler="auto", **SMALL).intake_
        == Objects()
    )


def test_a_kernel_of_numbers_gets_arrays_in_the_order_of_the_reference() -> None:
    """From a frame of numbers too, whose names are remembered."""
    numbers = np.random.default_rng(0).normal(size=(40, 3))
    data = pandas.DataFrame(numbers, columns=list("abc"))
    for statistic in (MMD(kernel=near), Custom(lambda X, Y: float(near(X, Y).mean()))):
        fitted = detector(data, statistic, **SMALL)
        assert fitted.intake_ == Rows(3, ("a", "b", "c"))
        assert fitted.intake_.names == ("a", "b", "c")
        start(fitted)
        wanted = fitted.update_many(numbers[:5])
        for block in (data[:5], data[["c", "a", "b"]][:5], data[:5].to_dict("records"), polars.from_pandas(data[:5])):
            start(fitted)
            equal(fitted.update_many(block), wanted)
        start(fitted)
        assert [fitted.update(row[["b", "a", "c"]]) for _, row in data[:5].iterrows()] == list(wanted)
        start(fitted)
        assert [fitted.update(record) for record in data[["b", "c", "a"]][:5].to_dict("records")] == list(wanted)
        with pytest.raises(InputError, match="lacks 'c' and has 'z' besides"):
            fitted.update_many(data.rename(columns={"c": "z"}))
        with pytest.raises(InputError, match="'a' holds strings such as 'x'; in the reference it held numbers"):
            fitted.update({"a": "x", "b": 1.0, "c": 2.0})
        with pytest.raises(InputError, match="holds nan in row 1, column 2"):
            fitted.update_many(data.assign(b=np.nan))


def test_kinds_are_for_tables_that_are_compared_column_by_column() -> None:
    """Not for arrays, and not where a function of the user's compares rows."""
    with pytest.raises(InputError, match="a function of yours does that here"):
        detector(frame(60), MMD(kernel=alike), kinds={"flow": "number"})
    with pytest.raises(InputError, match=r"the reference is a ndarray\. Leave it out, or give a data frame"):
        detector(np.ones((60, 2)), kinds={"x": "number"})
