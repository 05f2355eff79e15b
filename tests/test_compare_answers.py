"""`tocsin.compare`: what it finds, takes and gives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from compared import mixed, rows
from tocsin import Comparison, InputError, compare
from tocsin._compare.columns import ColumnScores
from tocsin._compare.pooling import pool
from tocsin._compare.splits import block_length, draw_splits
from tocsin._data.intake import Tabular

# What is found


def test_a_shift_of_one_column() -> None:
    """It is named, with its direction, and the verdict comes first."""
    rng = np.random.default_rng(13)
    second = rng.normal(size=(150, 4)) - [0, 0, 1, 0]
    answer = compare(rng.normal(size=(300, 4)), second, seed=3)
    assert answer.differs
    assert [(column.name, column.how) for column in answer.changed] == [("3", "lower")]
    lines = str(answer).splitlines()
    assert lines[0].startswith("They differ: chance alone would give a difference as large ")
    assert lines[1] == "Compared 300 rows of the reference with 150 rows."
    assert lines[3].startswith("  column 3  lower: median ")
    assert lines[4] == "Of the other 3 nothing can be said."


def test_a_change_between_columns() -> None:
    """Two columns that come to depend on each other, each as it was: found, and no column is blamed."""
    rng = np.random.default_rng(14)
    second = rng.normal(size=(300, 2))
    second[:, 1] = 0.9 * second[:, 0] + math.sqrt(1 - 0.81) * second[:, 1]
    answer = compare(rng.normal(size=(600, 2)), second, seed=3)
    assert answer.differs
    assert not answer.changed
    assert "No single column stands out" in str(answer)


def test_new_categories_gaps_and_times() -> None:
    """Each in one column of ten, in a quarter of the batch, is found and named."""
    rng = np.random.default_rng(15)
    changes: dict[str, tuple[Callable[[], object], str]] = {
        "state": (lambda: str(rng.choice(["on", "off", "on", "broken"])), ""),
        "x3": (lambda: None if rng.random() < 0.25 else float(rng.normal()), "missing more often"),
        "seen": (lambda: f"2024-03-07T{rng.integers(8, 18):02d}:00:00", ""),
    }
    for name, (change, how) in changes.items():
        answer = compare(rows(rng, 300), rows(rng, 100, **{name: change}), seed=4)
        assert answer.differs, name
        assert [(column.name, column.how) for column in answer.changed] == [(name, how)]


def test_a_column_that_was_empty_and_is_not() -> None:
    """And the other way round."""
    rng = np.random.default_rng(16)
    empty, full = rows(rng, 100, x0=lambda: None), rows(rng, 60)
    for first, second in ((empty, full), (full, empty)):
        assert compare(first, second, seed=5).changed[0].name == "x0"


def test_rows_that_are_all_alike() -> None:
    """Do not differ: no coin is thrown where there is nothing to settle."""
    assert all(compare([1.0] * 60, [1.0] * 40, ert=2, seed=i).rarity == 1 for i in range(20))
    assert compare([1.0] * 60, [2.0] * 40, seed=1).differs


# What it takes


def test_every_form_of_a_table() -> None:
    """The same answer, whatever holds the rows."""
    pandas, polars, arrow = map(import_module, ("pandas", "polars", "pyarrow"))
    rng = np.random.default_rng(17)
    first, second = mixed(rng, 60), mixed(rng, 30)
    wanted = compare(first, second, seed=6).to_dict()
    for form in (pandas.DataFrame, polars.DataFrame, arrow.Table.from_pylist):
        assert compare(form(first), form(second), seed=6).to_dict() == wanted
        assert compare(first, form(second), seed=6).to_dict() == wanted
    array = rng.normal(size=(80, 3))
    wanted = compare(array[:50], array[50:], seed=6).to_dict()
    assert compare(sparse.csr_array(array[:50]), sparse.csr_array(array[50:]), seed=6).to_dict() == wanted
    assert compare(array[:50].tolist(), array[50:].tolist(), seed=6).to_dict() == wanted
    texts = [" ".join(rng.choice(list("abcdefgh"), 6)) for _ in range(150)]
    others = [" ".join(rng.choice(list("uvwxyz"), 6)) for _ in range(40)]
    assert not compare(texts[:100], texts[100:], seed=6).differs
    assert compare(texts[:100], others, seed=6).differs


def test_kinds() -> None:
    """As a detector takes them."""
    rng = np.random.default_rng(18)
    first, second = ([{"id": int(i), "x": float(rng.normal())} for i in range(80)] for _ in range(2))
    second = [{**row, "id": row["id"] + 1000} for row in second]
    assert compare(first, second, seed=7).differs
    answer = compare(first, second, kinds={"id": "ignore"}, seed=7)
    assert not answer.differs
    assert [column.name for column in answer.columns] == ["x"]


def test_large_tables_are_thinned_evenly() -> None:
    """Half of the rows each, unless one has fewer; the answer says how many there were."""
    first, second = np.arange(1000.0), np.arange(200.0)
    pooled = pool(first, second, None, 600)
    assert (pooled.count, pooled.others, pooled.given) == (400, 200, (1000, 200))
    assert np.unique(np.diff(pooled.points[:400, 0])).tolist() == [2.0, 3.0]
    assert pool(first, first, None, 600).count == 300
    pandas = import_module("pandas")
    frame = pandas.DataFrame({"x": first, "y": "a"})
    assert pool(frame, frame.to_dict("records"), None, 600).others == 300
    first, second = np.random.default_rng(24).normal(size=(2, 49))
    answer = replace(compare(first, second, seed=8), reference_given=90_000, batch_given=100)
    assert "Compared 49 rows of the reference with 49 rows, of 90,000 and 100." in str(answer)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, 2.0], [1.0, 2.0]), {"ert": 1}, "ert=1: must be a number of comparisons between false verdicts"),
        (([1.0, 2.0], [1.0, 2.0]), {"ert": "often"}, "ert='often'"),
        (([1.0, 2.0], [1.0, 2.0]), {"ert": math.inf}, "from 2 up to 1e9"),
        (([1.0, 2.0], [1.0, 2.0]), {"seed": -1}, "seed=-1"),
        (([1.0, 2.0], [1.0]), {}, "The batch has 1 row; a comparison needs at least 2 of each"),
        (([1.0, 2.0], []), {}, "The batch has 0 rows"),
        (([], [1.0, 2.0]), {}, "The reference is empty"),
        ((3, [1.0, 2.0]), {}, "The reference is a int"),
        (([{"x": 1.0}] * 5, [{"y": 1.0}] * 5), {}, "lacks 'x', and has 'y' besides"),
        (([{"x": 1.0}] * 5, [{"x": "a"}] * 5), {}, "'x' holds strings such as 'a'; in the reference it held numbers"),
        (([{"x": 1.0}] * 5, []), {}, "The batch has 0 rows"),
        (([{"x": 1.0}] * 5, [{"x": 1.0}] * 5), {"kinds": {"z": "text"}}, "names a column 'z', and there is none"),
        (([[1.0, 2.0]] * 5, [[1.0]] * 5), {}, "has 1 column; the reference has 2"),
        (([object()] * 5, [object()] * 5), {}, "not numbers"),
        (
            (np.ones((5, 2)), [{"x": 1.0, "y": "a"}] * 5),
            {},
            r"The reference is an array \(ndarray\) and the batch a table \(list\) with the columns 'x', 'y'\. .*alike",
        ),
    ],
)
def test_what_is_refused(arguments: tuple[Any, Any], options: dict[str, Any], message: str) -> None:
    """With a reason."""
    with pytest.raises(InputError, match=message):
        compare(*arguments, **options)


# What it gives


def test_one_is_one() -> None:
    """Comparison, test, point: no more than one of each."""
    answer = replace(compare([1.0, 2.0, 3.0] * 9, [1.0, 2.0, 3.0] * 9, seed=1), differs=False)
    assert "once in 1 comparison (it takes" in str(replace(answer, rarity=1.0))
    assert "once in 1.2 comparisons (it takes" in str(replace(answer, rarity=1.2))


def test_an_answer() -> None:
    """Is frozen, told as JSON, and the same for the same seed; a fresh seed is kept."""
    rng = np.random.default_rng(19)
    first, second = mixed(rng, 60), mixed(rng, 30)
    answer = compare(first, second, seed=9)
    assert isinstance(answer, Comparison)
    assert json.loads(answer.to_json()) == answer.to_dict() == compare(first, second, seed=9).to_dict()
    assert answer.to_dict() == compare(first, second, seed=compare(first, second).seed and 9).to_dict()
    fresh = compare(first, second)
    assert compare(first, second, seed=fresh.seed).to_dict() == fresh.to_dict()
    with pytest.raises(FrozenInstanceError):
        answer.differs = True  # type: ignore[misc]
    assert len(repr(answer)) < 3000
    assert {column.name for column in answer.columns} == {"flow", "state", "kind", "level", "seen"}
    assert all(0 < column.p_value <= 1 for column in answer.columns)
    assert (answer.ert, answer.splits) == (100, 1000)


def test_a_figure(tmp_path: Path) -> None:
    """Of the columns that differ, or of the first few."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(20)
    for change in ({}, {"x1": lambda: float(rng.normal(2))}):
        compare(rows(rng, 100), rows(rng, 50, **change), seed=1).plot(tmp_path / "c.png")
        assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_column_scores_have_one_law() -> None:
    """A column of many features is measured as one of a single one is; the newly missing are no column."""
    rng = np.random.default_rng(21)
    pooled = pool(mixed(rng, 60), mixed(rng, 30), None, 1000)
    assert isinstance(pooled.intake, Tabular)
    found = ColumnScores(pooled, draw_splits(pooled, 1, 500, seed=1)).told(differ=False)
    assert len(found) == 5
    assert block_length(pooled, 1.0, 1) == 1
