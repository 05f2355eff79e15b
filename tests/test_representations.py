"""Representations: what is accepted as `preprocess`, what is checked, and what a file can hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from representing import IMAGES, ROWS, kept_in_a_file, notes
from tocsin import representations
from tocsin._common.errors import InputError, StorageError
from tocsin._compute.arrays import Float64Array
from tocsin._data.representations import adapt, batches, restore
from tocsin.representations import PCA

# Any callable


def test_a_function() -> None:
    """Called in batches; its rows are put together."""
    sizes = []

    def halves(batch: Float64Array) -> Float64Array:
        sizes.append(len(batch))
        return batch[:, :2] / 2

    represent = adapt(halves, batch_size=25)
    assert np.array_equal(represent(ROWS), ROWS[:, :2] / 2)
    assert sizes == [25, 25, 10, 1, 1]  # the last two to see whether an observation alone gets the same row
    represent(ROWS)
    assert sizes[5:] == [25, 25, 10]
    assert represent.width == 2
    assert repr(represent) == "<Representation: the function test_a_function.halves, rows of 2>"
    assert not represent.needs_fitting
    assert not represent.storable
    assert represent.fit(ROWS) is represent


def test_numbers_become_a_column() -> None:
    """One number per observation is a row of one."""
    assert adapt(lambda batch: [len(text) for text in batch])(["a", "bcd"]).tolist() == [[1.0], [3.0]]


def test_nothing_is_called_for_nothing() -> None:
    """An empty batch has no rows, and the width that is known."""

    def fails(batch: Any) -> Any:
        raise AssertionError

    assert adapt(fails)([]).shape == (0, 0)
    represent = adapt(lambda batch: batch)
    represent(ROWS)
    assert represent(ROWS[:0]).shape == (0, 5)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda batch: batch[:-1], "59 rows for 60 observations"),
        (lambda batch: 3.0, "a single number for 60"),
        (lambda batch: batch[:, :, None], "Flatten"),
        (lambda batch: batch[:, :0], "nothing to compare"),
        (lambda batch: batch.astype(str), "encode them as numbers"),
        (lambda batch: [[1.0]] * 59 + [[1.0, 2.0]], "differ in shape"),
        (lambda batch: np.where(batch == ROWS[3, 1], np.nan, batch), "nan in row 4, column 2"),
    ],
)
def test_what_a_function_may_not_give(function: Any, message: str) -> None:
    """Each with its reason and remedy."""
    with pytest.raises(InputError, match=message):
        adapt(function)(ROWS)


@pytest.mark.parametrize(
    "function",
    [
        lambda batch: batch - batch.mean(0),
        lambda batch: batch + np.random.default_rng().normal(size=batch.shape),
    ],
    ids=["means of the batch", "random numbers"],
)
def test_a_row_depends_on_its_observation_alone(function: Any) -> None:
    """Otherwise a stream that comes row by row would differ from one that comes in blocks."""
    with pytest.raises(InputError, match="may depend on nothing else"):
        adapt(function)(ROWS)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_is_not_dependence(scale: float) -> None:
    """Networks give slightly different rows for batches of different sizes."""
    represent = adapt(lambda batch: np.float32(scale * batch * (1 + 1e-6 * len(batch))))
    assert represent(ROWS).shape == (60, 5)


def test_rows_keep_their_width() -> None:
    """From batch to batch, and from call to call; a call that fails changes nothing."""
    represent = adapt(lambda batch: batch)
    represent(ROWS)
    with pytest.raises(InputError, match="rows of 4 and of 5 numbers"):
        represent(ROWS[:, :4])
    assert represent.width == 5
    with pytest.raises(InputError, match="rows of 1 and of 2 numbers"):
        adapt(lambda batch: np.zeros((len(batch), 1 + len(batch) // 40)), batch_size=40)(ROWS)


def test_errors_say_which_step_failed() -> None:
    """The function's own error, with a note."""

    def broken(batch: Any) -> Any:
        raise KeyError("colour")

    with pytest.raises(KeyError, match="colour") as caught:
        adapt([lambda batch: batch, broken])(ROWS)
    assert "Raised while calling the preprocess step: the function test_errors_say_which_step_failed.broken." in notes(
        caught.value
    )


@pytest.mark.parametrize("batch", ["text", b"bytes", {"a": 1}, {1.0, 2.0}, 3, iter([1]), np.float64(1)])
def test_a_batch_is_a_sequence(batch: Any) -> None:
    """Not a single observation."""
    with pytest.raises(InputError, match="put a single observation into a list"):
        adapt(lambda batch: batch)(batch)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "is a int; it must be a function"),
        ("model.pt", "not the path of an ONNX file"),
        (PCA, r"is a class; give an object: PCA\(...\)"),
        ([], "is a list"),
        (type("Model", (), {"predict": None})(), "preprocess=model.predict"),
    ],
)
def test_what_is_no_preprocess_step(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        adapt(given)


def test_batch_size_is_checked() -> None:
    with pytest.raises(InputError, match=r"batch_size=0\): must be a whole number"):
        adapt(lambda batch: batch, batch_size=0)


def test_adapting_twice() -> None:
    """A representation is one already."""
    represent = adapt(PCA(2))
    assert adapt(represent) is represent
    assert adapt(represent, batch_size=3).batch_size == 3


# One observation at a time


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_one_row_of_a_frame(library: str) -> None:
    """A function that was given frames is given frames."""
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "yy", "zzz"]})
    represent = adapt(lambda batch: np.column_stack([batch["a"], [len(text) for text in batch["b"]]]))
    assert represent(frame).tolist() == [[1, 1], [2, 2], [3, 3]]
    assert represent.one({"a": 5.0, "b": "four"}).tolist() == [[5, 4]]
    assert represent.one(frame[2:3]).tolist() == [[3, 3]]
    if library == "pandas":
        assert represent.one(frame.iloc[1]).tolist() == [[2, 2]]
    with pytest.raises(InputError, match="give its values by column"):
        represent.one([5.0, "four"])


def test_one_row_of_an_arrow_table() -> None:
    arrow = pytest.importorskip("pyarrow")
    represent = adapt(lambda table: np.asarray(table.column("a")), batch_size=2)
    assert represent(arrow.table({"a": [1.0, 2.0, 3.0]})).tolist() == [[1], [2], [3]]
    assert represent.one({"a": 4.0}).tolist() == [[4]]


def test_one_array_and_one_object() -> None:
    """Before any batch was seen, and after."""
    image = adapt(lambda batch: batch.reshape(len(batch), -1))
    assert image.one(IMAGES[0]).shape == (1, 42)
    assert np.array_equal(image(IMAGES)[1:2], image.one(IMAGES[1]))
    text = adapt(lambda batch: [len(x) for x in batch])
    assert text.one("abc").tolist() == [[3]]


@pytest.mark.parametrize("form", ["array", "list", "pandas", "polars", "pyarrow", "sparse", "tensor"])
def test_batches_of_every_form(form: str) -> None:
    """Known by name, cut into pieces and picked from, and a single one put together, as the same kind of thing."""
    libraries = {"array": "numpy", "list": "numpy", "sparse": "scipy.sparse", "tensor": "torch"}
    library = pytest.importorskip(libraries.get(form, form))
    columns = {"a": ROWS[:, 0], "b": ROWS[:, 1]}
    make: dict[str, Any] = {
        "array": lambda: ROWS,
        "list": lambda: list(ROWS),
        "pyarrow": lambda: library.table(columns),
        "sparse": lambda: library.coo_array(ROWS),
        "tensor": lambda: library.tensor(ROWS),
    }
    batch = make.get(form, lambda: library.DataFrame(columns))()
    assert batches.form_of(batch) == form
    assert batches.count_of(batch) == 60
    piece, picked = batches.piece_of(batch, 10, 12), batches.rows_at(batch, np.array([3, 1, 2]))
    for part, places in ((piece, [10, 11]), (picked, [3, 1, 2])):
        assert batches.form_of(part) == form
        values = library.Table.to_pandas(part) if form == "pyarrow" else part
        assert np.array_equal(batches.numbers(values)[:, :2], ROWS[places, :2])
    single = {"a": 1.0, "b": 2.0} if form in batches.FRAMES else ROWS[0]
    assert batches.form_of(batches.batch_of_one(single, form)) == form
    assert batches.count_of(batches.batch_of_one(single, form)) == 1


def test_sparse_rows() -> None:
    """In and out."""
    sparse = pytest.importorskip("scipy.sparse")
    represent = adapt(lambda batch: batch * 2, batch_size=7)
    assert np.array_equal(represent(sparse.coo_array(ROWS)), 2 * ROWS)
    assert np.array_equal(represent.one(sparse.csr_array(ROWS[:1])), 2 * ROWS[:1])
    assert np.array_equal(represent.one(ROWS[0]), 2 * ROWS[:1])


# Files


def test_what_no_file_can_hold_is_given_again(tmp_path: Path) -> None:
    """Fitted; the width is checked as before."""
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler()
    fitted = adapt(scaler).fit(ROWS)
    rows = fitted(ROWS)
    parts = fitted.parts()
    with pytest.raises(StorageError, match=r"no file can hold \(StandardScaler\)"):
        kept_in_a_file(fitted, tmp_path)
    with pytest.raises(InputError, match="is not fitted, and the detector's was"):
        restore(parts, scaler)
    again = restore(parts, fitted.step.transformer)  # type: ignore[attr-defined]
    assert np.array_equal(again(ROWS), rows)
    with pytest.raises(InputError, match="rows of 2 and of 5"):
        restore(parts, lambda batch: batch[:, :2])(ROWS)
    with pytest.raises(InputError, match="the file holds its own"):
        restore(adapt(PCA(1)).fit(ROWS).parts(), scaler)


def test_a_damaged_file_is_refused() -> None:
    """Whatever its step has lost, or holds in the place of something else."""
    parts = adapt(PCA(1)).fit(ROWS).parts()
    whole = parts["step"]
    assert whole is not None
    for damaged in ({**whole, "mean": "long ago"}, {"axes": whole["axes"], "explained": whole["explained"]}):
        parts["step"] = damaged
        with pytest.raises(StorageError, match=r"The mean of .* ndarray was written: .* Restore it from a copy"):
            restore(parts)


# The package


def test_public_names() -> None:
    """Sorted, there, and documented."""
    for name in representations.__all__:
        assert (getattr(representations, name).__doc__ or "").partition("\n")[0].endswith("."), name
