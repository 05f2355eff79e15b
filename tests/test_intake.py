"""Detectors on data as people hold it: the same outcomes in every form, and errors that change nothing."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from mixed_frames import NAMES, arrow, detector, equal, frame, pandas, polars, start
from tocsin import Detector
from tocsin._common.errors import InputError
from tocsin._data.intake import Tabular
from tocsin._detector.stepping import SHORTEST_PIECE
from tocsin._state.outcomes import Outcomes

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.fixture(scope="module")
def only_one(quick_fits: None) -> Detector:
    """A detector of mixed columns."""
    return detector(frame(200))


@pytest.fixture
def tabular(only_one: Detector) -> Detector:
    """The same, at the start of its first run."""
    start(only_one)
    return only_one


# Many observations, and one


BLOCKS: dict[str, Callable[[Any], Any]] = {
    "polars": lambda rows: polars.from_pandas(rows),
    "arrow": lambda rows: arrow.Table.from_pandas(rows),
    "record batch": lambda rows: arrow.RecordBatch.from_pandas(rows),
    "dicts": lambda rows: rows.to_dict("records"),
    "tuples": lambda rows: list(rows.itertuples(index=False, name=None)),
    "named tuples": lambda rows: list(rows.itertuples(index=False)),
    "lists": lambda rows: rows.astype(object).to_numpy().tolist(),
    "array of objects": lambda rows: rows.astype(object).to_numpy(),
    "another order": lambda rows: rows[list(reversed(NAMES))],
    "series": lambda rows: [row for _, row in rows.iterrows()],
    "nullable": lambda rows: rows.convert_dtypes(),
    "categorical": lambda rows: rows.astype({"state": "category"}),
}


@pytest.mark.parametrize("form", BLOCKS)
def test_a_block_is_the_same_in_every_form(tabular: Detector, form: str) -> None:
    """Whatever library, with names or in order."""
    start(tabular)
    wanted = tabular.update_many(frame(30, seed=1))
    start(tabular)
    equal(tabular.update_many(BLOCKS[form](frame(30, seed=1))), wanted)


Turned = namedtuple("Turned", list(reversed(NAMES)))  # type: ignore[misc]

ROWS: dict[str, Callable[[Any], Any]] = {
    "frame": lambda row: row.to_frame().T,
    "series": lambda row: row,
    "series in another order": lambda row: row[::-1],
    "dict": lambda row: row.to_dict(),
    "mapping": lambda row: MappingProxyType(row.to_dict()),
    "tuple": lambda row: tuple(row),
    "list": lambda row: list(row),
    "named tuple in another order": lambda row: Turned(**row.to_dict()),
    "array": lambda row: row.to_numpy(),
    "nested": lambda row: [list(row)],
    "polars frame": lambda row: polars.DataFrame([row.to_dict()]),
    "polars row": lambda row: polars.DataFrame([row.to_dict()]).row(0),
    "arrow table": lambda row: arrow.Table.from_pylist([row.to_dict()]),
    "python objects": lambda row: {
        **row.to_dict(),
        "seen": row["seen"].to_pydatetime(),
        "flow": np.float64(row["flow"]),
    },
}


@pytest.mark.parametrize("form", ROWS)
def test_one_observation_is_the_same_in_every_form(tabular: Detector, form: str) -> None:
    """One by one, in any form, as in one block."""
    data = frame(20, seed=2)
    start(tabular)
    wanted = tabular.update_many(data)
    start(tabular)
    for i, (_, row) in enumerate(data.iterrows()):
        assert tabular.update(ROWS[form](row)) == wanted[i]


@pytest.fixture(scope="module")
def numeric(quick_fits: None) -> Detector:
    """A detector of a table of numbers."""
    return detector(COLUMNS)


COLUMNS = pandas.DataFrame(np.random.default_rng(0).normal(size=(100, 3)), columns=[0, 1, 2])


def take(numeric: Detector, blocks: list[Any], forms: list[Callable[[int], Any]]) -> None:
    """In blocks and one by one, its own table in other forms is to it what it was."""
    start(numeric)
    wanted = numeric.update_many(COLUMNS[:10])
    for block in blocks:
        start(numeric)
        equal(numeric.update_many(block[:10]), wanted)
    for form in forms:
        start(numeric)
        assert [numeric.update(form(i)) for i in range(10)] == list(wanted)


def test_rows_of_numbers_have_more_forms(numeric: Detector) -> None:
    """Arrays, sparse rows and Series without names, on a table of numbers."""
    assert isinstance(numeric.intake_, Tabular)
    assert numeric.intake_.names == ("0", "1", "2")
    numbers = COLUMNS.to_numpy()
    take(
        numeric,
        [numbers, sparse.csr_array(numbers), COLUMNS[[2, 0, 1]]],
        [
            lambda i: numbers[i],
            lambda i: numbers[i : i + 1],
            lambda i: sparse.csr_array(numbers)[[i]],
            lambda i: pandas.Series(numbers[i]),
            lambda i: COLUMNS.iloc[i][[2, 1, 0]],
            lambda i: dict(enumerate(numbers[i])),
            lambda i: polars.Series(numbers[i]),
        ],
    )


def test_rows_of_numbers_may_be_tensors(numeric: Detector) -> None:
    """With a graph, too."""
    torch = pytest.importorskip("torch")
    numbers = COLUMNS.to_numpy()
    take(
        numeric,
        [torch.tensor(numbers, requires_grad=True)],
        [lambda i: torch.tensor(numbers[i], requires_grad=True)],
    )


def test_a_column_by_itself() -> None:
    """A Series and a list of strings are tables of one column; in the stream its name does not matter."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["leak", "noise", "dust", "heat", "valve", "pump"], 4)) for _ in range(120)]
    fitted = detector(pandas.Series(texts, name="note"))
    start(fitted)
    wanted = fitted.update_many(texts[:10])
    for block in (pandas.Series(texts[:10]), polars.Series("x", texts[:10]), pandas.DataFrame({"note": texts[:10]})):
        start(fitted)
        equal(fitted.update_many(block), wanted)
    start(fitted)
    assert [fitted.update(text) for text in texts[:10]] == list(wanted)
    numbers = detector(pandas.Series(rng.normal(size=100), name=0))
    assert numbers.intake_.names == ("0",)
    first = numbers.update(0.25)
    start(numbers)
    assert numbers.update(pandas.Series([0.25], index=[pandas.Timestamp("2024-01-01")])) == first


def test_lists_of_strings_find_a_change_of_subject() -> None:
    """No kernel of one's own is needed for texts."""
    rng = np.random.default_rng(0)
    before, after = ["leak", "noise", "dust", "heat", "valve"], ["invoice", "payment", "refund", "account"]
    fitted = detector([" ".join(rng.choice(before, 5)) for _ in range(150)])
    assert fitted.intake_.names == ("text",)
    outcomes = fitted.update_until_alarm([" ".join(rng.choice(after, 5)) for _ in range(20)])
    assert outcomes.alarm[-1]
    assert len(outcomes) < 8


# Consistency


def test_update_update_many_and_update_until_alarm_agree(tabular: Detector) -> None:
    """Bit for bit, alarms and what follows them included."""
    stream = pandas.concat([frame(150, seed=3), frame(60, seed=4, shift=4.0)])
    start(tabular)
    many = tabular.update_many(stream)
    assert many.alarm.any()
    start(tabular)
    singles = []
    for record in stream.to_dict("records"):
        singles.append(tabular.update(record))
        if singles[-1].alarm:
            tabular.reset()
    assert singles == list(many)
    start(tabular)
    pieces, rest = [], stream
    while len(rest):
        pieces.append(tabular.update_until_alarm(rest))
        rest = rest[len(pieces[-1]) :]
        if pieces[-1].alarm.any():
            assert pieces[-1].alarm[-1]
            tabular.reset()
    equal(Outcomes.join(pieces), many)


def test_update_until_alarm_takes_no_more_than_it_says(tabular: Detector) -> None:
    """After an alarm the state is that of repeated updates up to it."""
    stream = frame(100, seed=5, shift=3.0)
    start(tabular)
    outcomes = tabular.update_until_alarm(stream)
    assert 0 < len(outcomes) < 100
    assert (tabular.time, tabular.alarm is None) == (len(outcomes), False)
    following = tabular.update_many(frame(5, seed=6))
    start(tabular)
    for record in stream[: len(outcomes)].to_dict("records"):
        tabular.update(record)
    equal(tabular.update_many(frame(5, seed=6)), following)
    start(tabular)
    assert len(tabular.update_until_alarm(stream[:0])) == 0


def test_a_saved_detector_goes_on_bit_for_bit(tabular: Detector, tmp_path: Path) -> None:
    """In the midst of a stream, with its columns and their kinds."""
    start(tabular)
    tabular.update_many(frame(30, seed=7))
    tabular.save(tmp_path / "mixed.tocsin")
    loaded = Detector.load(tmp_path / "mixed.tocsin")
    assert loaded.intake_ == tabular.intake_
    equal(loaded.update_many(frame(40, seed=8)), tabular.update_many(frame(40, seed=8)))
    last = {**frame(1, seed=9).to_dict("records")[0], "level": None}
    assert loaded.update(last) == tabular.update(last)


def test_kinds_are_saved(tmp_path: Path) -> None:
    """What is ignored in the reference is ignored in the stream, after loading too."""
    data = frame(100).assign(odd=[[1]] * 100)
    fitted = detector(data, kinds={"note": "ignore", "odd": "ignore", "seen": "elapsed", "state": "text"})
    fitted.save(tmp_path / "kinds.tocsin")
    loaded = Detector.load(tmp_path / "kinds.tocsin")
    assert loaded.kinds == fitted.kinds
    assert isinstance(loaded.intake_, Tabular)
    assert [column.kind for column in loaded.intake_.columns.columns] == [
        "number",
        "text",
        "category",
        "number",
        "elapsed",
    ]
    equal(loaded.update_many(data[:9].drop(columns="odd")), fitted.update_many(data[:9]))
    assert loaded.update(data.iloc[10].to_dict()) == fitted.update(data.iloc[10].drop("note"))


# Bad input


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {own: value for own, value in record.items() if own != name}


BAD_ROWS: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (
        lambda row: without(row, "flow"),
        "Row 1 .* lacks 'flow'; rows must have the columns of the reference.*by None",
    ),
    (lambda row: {**row, "more": 1}, "the table has 'more' besides. Rename, add or drop"),
    (lambda row: {**without(row, "flow"), "Flow": 1.0}, "Row 1 .* lacks 'flow', and has 'Flow' besides"),
    (lambda row: {**row, "flow": "1.5"}, "'flow' holds strings such as '1.5'; in the reference it held numbers"),
    (lambda row: {**row, "flow": True}, "'flow' holds truth values such as 'true'; .*held numbers"),
    (lambda row: {**row, "open": 1}, "'open' holds numbers such as '1'; .*held truth values"),
    (lambda row: {**row, "state": 3}, "'state' holds numbers such as '3'; .*held strings"),
    (lambda row: {**row, "seen": "2024-01-32"}, "'seen' holds strings such as '2024-01-32'; .*held times"),
    (lambda row: {**row, "flow": np.inf}, "Row 1 .*, column 'flow' holds inf; numbers must be finite"),
    (lambda row: {**row, "flow": [1]}, r"'flow' holds a list such as '\[1\]'"),
    (lambda row: {**row, "flow": 10**400}, "'flow' holds a number of more than 300 digits"),
    (lambda row: list(row.values())[:-1], "has 5 values; the reference has 6 columns, and it must have as many"),
    (lambda row: {}, "lacks 'flow', 'state', 'open', 'seen', 'note'"),
    (lambda row: None, "has 1 value; the reference has 6 columns"),
    (lambda row: "text", "has 1 value; the reference has 6 columns"),
    (lambda row: np.ones(6), "'state' holds numbers such as '1'; in the reference it held strings"),
    (lambda row: np.ones((2, 6)), "has 2 values; .*For several observations use update_many"),
    (lambda row: frame(2), "update takes one observation, and got 2 rows; use update_many"),
    (lambda row: polars.LazyFrame([row]), "LazyFrame is not a table in memory; collect it"),
    (lambda row: pandas.Series(row).rename({"flow": "Flow"}), "lacks 'flow', and has 'Flow' besides"),
]

BAD_BLOCKS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda rows: rows.drop(columns="flow"), "the table lacks 'flow'. Rename, add or drop"),
    (lambda rows: rows.assign(more=1), "the table has 'more' besides"),
    (lambda rows: rows.rename(columns={"flow": "Flow"}), "lacks 'flow' and has 'Flow' besides"),
    (lambda rows: rows.astype({"flow": str}), "'flow' holds strings such as .*; in the reference it held numbers"),
    (lambda rows: rows.replace({"flow": {rows["flow"].iloc[7]: np.inf}}), "Row 8 .*, column 'flow' holds inf"),
    (lambda rows: [*rows.to_dict("records"), {"flow": 1.0}], "Row 11 .* lacks 'state', 'open', 'seen', 'note'"),
    (
        lambda rows: [*rows.to_dict("records"), 5],
        "Row 11 .* is a int such as '5', and other rows are of type dict",
    ),
    (lambda rows: [list(row)[:-1] for row in rows.itertuples(index=False)], r"shape \(10, 5\); the reference has 6"),
    (lambda rows: [[1, 2], [3]], r"shape \(2,\); the reference has 6 columns"),
    (lambda rows: rows.iloc[0].to_dict(), r"shape \(\); .*For a single observation use update"),
    (lambda rows: 3, r"shape \(\); the reference has 6 columns"),
    (lambda rows: polars.from_pandas(rows).lazy(), "LazyFrame is not a table in memory"),
    (lambda rows: pandas.concat([rows, rows[["flow"]]], axis=1), "same name"),
]


@pytest.mark.parametrize(("change", "message"), BAD_ROWS)
def test_a_bad_observation_changes_nothing(
    tabular: Detector, tmp_path: Path, change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    """The error says what, why and what to do; the file before and after is the same."""
    tabular.update_many(frame(5, seed=1))
    tabular.save(tmp_path / "before")
    with pytest.raises(InputError, match=message):
        tabular.update(change(frame(1, seed=2).to_dict("records")[0]))
    tabular.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.parametrize(("change", "message"), BAD_BLOCKS)
def test_a_bad_block_changes_nothing(
    tabular: Detector, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    """In every way of taking blocks in."""
    tabular.update_many(frame(5, seed=1))
    tabular.save(tmp_path / "before")
    block = change(frame(10, seed=2))
    with pytest.raises(InputError, match=message):
        tabular.update_many(block)
    with pytest.raises(InputError):
        tabular.update_until_alarm(block)
    tabular.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_a_bad_row_late_in_a_block_changes_nothing(tabular: Detector, tmp_path: Path) -> None:
    """Though what comes before it was taken in by then."""
    quiet = 0
    for seed in range(20):
        stream = frame(200, seed=seed)
        start(tabular)
        quiet = len(tabular.update_until_alarm(stream)) - 1
        if quiet > SHORTEST_PIECE:
            break
    assert quiet > SHORTEST_PIECE
    stream.loc[quiet, "flow"] = np.inf
    start(tabular)
    tabular.save(tmp_path / "before")
    for take in (tabular.update_until_alarm, tabular.update_many):
        with pytest.raises(InputError, match="column 'flow' holds inf"):
            take(stream)
    tabular.save(tmp_path / "after")
    assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda: frame(0), "The reference is empty; it must hold observations from the time when all was well"),
        (lambda: pandas.DataFrame(index=range(50)), "The reference is empty"),
        (lambda: [{}] * 50, "The reference is empty"),
        (lambda: pandas.DataFrame({"x": [1.0] * 50}), "All reference points are equal"),
        (lambda: pandas.DataFrame({"x": [None] * 50}), "All reference points are equal"),
        (
            lambda: pandas.DataFrame({"x": [0.0, np.inf] * 25}),
            "Row 2 .*, column 'x' holds inf; numbers must be finite",
        ),
        (lambda: frame(10), "A reference of 10 points is too small"),
        (lambda: frame(50).assign(odd=[[1]] * 50), r"'odd' holds a list such as '\[1\]'.*leave it out"),
        (lambda: np.where(np.eye(50) > 0, np.nan, 1.0), "holds nan in row 1, column 1 .*Drop or fill"),
        (lambda: polars.LazyFrame({"x": [1.0] * 50}), "LazyFrame is not a table in memory; collect it"),
    ],
)
def test_references_that_are_refused(reference: Callable[[], Any], message: str) -> None:
    """And the detector is not fitted."""
    made = Detector(100, window=8, paths=100, interval=False, seed=1)
    with pytest.raises(InputError, match=message):
        made.fit(reference())
    assert made._fitted is None


def test_an_empty_block_is_quiet(tabular: Detector) -> None:
    """In every form; but its columns must be right."""
    blocks: list[Any] = [
        frame(0),
        polars.from_pandas(frame(0)),
        [],
        np.empty((0, 6)),
        arrow.Table.from_pandas(frame(0)),
    ]
    for block in blocks:
        assert len(tabular.update_many(block)) == 0
    with pytest.raises(InputError, match="lacks 'flow'"):
        tabular.update_many(frame(0).drop(columns="flow"))


def test_records_may_lack_what_the_reference_sometimes_lacks(tabular: Detector) -> None:
    """One by one as in a block, whatever the block holds besides."""
    records = [without(record, "level") if i % 2 else record for i, record in enumerate(frame(8).to_dict("records"))]
    start(tabular)
    wanted = tabular.update_many(records)
    start(tabular)
    assert [tabular.update(record) for record in records] == list(wanted)
    start(tabular)
    equal(tabular.update_many([{**record, "level": record.get("level")} for record in records]), wanted)
