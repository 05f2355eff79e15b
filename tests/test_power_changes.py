"""Changes that power cards try do what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from powering import KINDS, independent, made, records, scene
from tocsin import MMD, Detector
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Columns, as_table
from tocsin._detector.base import fitted_of
from tocsin._power.changes import MEAN_OF, Cells, Change, running_mean, together

pytestmark = pytest.mark.usefixtures("quick_fits")


def test_changes_of_arrays() -> None:
    """In units of the column's spread, and nothing else is touched."""
    rows = independent(400, 3) * [1.0, 10.0, 0.1] + [0.0, 5.0, -5.0]
    detector = Detector(100, MMD(), window=10, seed=1, paths=200).fit(rows, progress=False)
    cells = Cells(detector.intake_, rows)
    here = scene(rows[:50], rows[50:90], rows[90:130])
    quartiles = np.diff(np.percentile(rows, [25, 75], axis=0), axis=0)[0] / 1.349
    assert np.allclose(cells.spread, quartiles)

    def moved(kind: Any, size: float | None = None, column: int | None = 1) -> Float64Array:
        found: Float64Array = cells.changed([Change(kind, column, size)], here)
        if column is not None:
            assert (np.delete(found, column, 1) == np.delete(here.after, column, 1)).all()
        return found

    assert np.allclose(moved("higher", 3.0)[:, 1] - here.after[:, 1], 3 * quartiles[1])
    assert np.allclose(moved("lower", 1.0)[:, 1] - here.after[:, 1], -quartiles[1])
    assert np.allclose(moved("wider", 2.0)[:, 1].std(), 2 * here.after[:, 1].std())
    assert np.allclose(moved("narrower", 0.5)[:, 1].std(), 0.5 * here.after[:, 1].std())
    assert (moved("stuck")[:, 1] == rows[49, 1]).all()
    assert (moved("stuck", column=None) == rows[49]).all()
    assert (moved("uncoupled")[:, 1] == rows[90:130, 1]).all()
    assert np.allclose(moved("shifted", 0.5, None) - here.after, 0.5 * quartiles * [1, -1, 1])
    assert cells.amount(Change("higher", 1, 3.0)) == pytest.approx(3 * quartiles[1])


def test_changes_of_a_column_are_made_together_as_one_by_one() -> None:
    """One after the other, in the order that is asked for; and never so many that they take much memory."""
    for name in ("table", "views of a table", "mmd"):
        detector = made(name)
        cells, rows = Cells(detector.intake_, fitted_of(detector).reference), fitted_of(detector).reference
        assert isinstance(rows, np.ndarray)
        here = scene(rows[:50], rows[50:90], rows[90:130], ordered=name != "mmd")
        for changes in [*(list(cells.changes(j)) for j in range(len(cells.names))), list(cells.of_all())]:
            for order in (changes, changes[::-1]):
                alone = [cells.changed([change], here) for change in order]
                assert np.array_equal(cells.changed(order, here), np.concatenate(alone))
            for numbers, most in ((1, len(changes)), (10**6, 4), (10**9, 1)):
                parts = list(together([*changes, Change("stuck", 99)], numbers))
                assert [own for part in parts for own in part] == [*changes, Change("stuck", 99)]
                assert max(map(len, parts)) == min(most, len(changes))
                assert all(len({own.column for own in part}) == 1 for part in parts)


def test_noise_leaves_a_level_that_wanders_alone() -> None:
    """In order, it is about a running mean."""
    x = np.arange(200.0)[:, None]
    x[::2] += 1
    cells = Cells(Detector(100, MMD(), window=5, seed=1, paths=200).fit(x, progress=False).intake_, x)
    wider = cells.changed([Change("wider", 0, 2.0)], scene(x[:60], x[60:120], x[:60], ordered=True))[:, 0]
    inner = slice(0, 58 - MEAN_OF // 2)  # at its end there is less to take a mean of
    assert np.allclose((np.diff(wider) - 1)[inner], 2 * (np.diff(x[60:120, 0]) - 1)[inner], atol=0.1)
    assert np.abs(wider - x[60:120, 0])[inner].max() < 1
    assert running_mean(np.array([1.0, np.nan, 3.0])).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("kind", ["number", "gap", "unseen"])
def test_changes_of_tables_are_what_their_values_are_encoded_as(kind: str) -> None:
    """A number, a gap, and a category never seen, put into features: the same as into the table, encoded then."""
    given = records(200)
    learnt = as_table(given)
    assert learnt is not None
    columns = Columns.learn(learnt, KINDS)
    rows, some = columns.encode(learnt), np.arange(200) % 3 == 0
    for i, name in enumerate(columns.names):
        own, changed = columns.columns[i], [dict(row) for row in given]
        if kind == "number" and own.kind == "number":
            found = columns.with_numbers(rows, i, columns.numbers(rows, i) + 7.0)
            for row in changed:
                row[name] = None if row[name] is None else row[name] + 7.0
        elif kind == "gap":
            found = columns.with_gaps(rows, i, some)
            for row, gone in zip(changed, some, strict=True):
                row[name] = None if gone else row[name]
        elif kind == "unseen" and own.kind == "category":
            found = columns.with_unseen(rows, i, some)
            for row, here in zip(changed, some, strict=True):
                row[name] = "(a name that no stream has)" if here else row[name]
        else:
            continue
        expected = as_table(changed)
        assert expected is not None
        assert np.allclose(found, columns.encode(expected), rtol=1e-9, atol=1e-12), name


def test_what_is_tried_depends_on_what_a_column_holds() -> None:
    """Categories never seen are for categories, what cannot be lost is not lost, and one value cannot stop."""
    detector = made("table")
    cells = Cells(detector.intake_, detector.reference_)
    tried = {name: {change.kind for change in cells.changes(j)} for j, name in enumerate(cells.names)}
    moves = {"higher", "lower", "wider", "narrower", "stuck", "missing"}
    assert tried["flow"] == moves | {"uncoupled"}
    assert tried["gaps"] == moves | {"uncoupled"}
    assert tried["colour"] == {"stuck", "missing", "unseen"}
    assert tried["when"] == tried["note"] == {"stuck", "missing"}
    assert tried["still"] == {"other value", "missing"}
    assert "other texts in note" in str(detector.power(progress=False))
