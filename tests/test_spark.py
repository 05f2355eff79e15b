"""Keyed streams in Spark: the alarms of a sequential run, whatever the batches, the order of rows and what fails."""

from __future__ import annotations

import importlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import contexts
from tocsin import MMD, Detector, Independent, InputError, MissingExtraError, NotFittedError, StorageError, Views
from tocsin._streams.fleet import Fleet, FleetAlarm

spark = pytest.importorskip("tocsin.integrations.spark", exc_type=MissingExtraError)
bundles, sessions, shipping = (
    importlib.import_module(f"tocsin._integrations.spark.{name}") for name in ("bundles", "sessions", "shipping")
)
sql = pytest.importorskip("pyspark.sql.functions")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

try:
    sessions.java_must_do()
except InputError as reason:
    pytest.skip(f"Spark cannot run here. {reason}", allow_module_level=True)

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

WIDTH, KEYS, ROWS, FILES = 3, 7, 360, 3
SCHEMA = "machine string, seq long, fresh boolean, x array<double>"
OPTIONS: dict[str, Any] = {"key": "machine", "order": "seq", "columns": "x", "reset": "fresh", "buckets": 3}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executor's own disk."""
    return tmp_path_factory.mktemp("local")


@pytest.fixture(scope="module")
def session(local: Path) -> Iterator[SparkSession]:
    """One for all tests: to start it takes seconds."""
    settings = {
        "spark.local.dir": str(local),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
    }
    if (left := importlib.import_module("pyspark.sql").SparkSession.getActiveSession()) is not None:
        left.stop()  # that of a page which ran in this process, and has folders of its own
    made = spark.session("tests", "local[2]", settings)
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


def detector_of(seed: int, **options: Any) -> Detector:
    """A small detector that is fitted soon, and rings often enough to tell runs apart."""
    reference = np.random.default_rng(seed).normal(size=(200, WIDTH))
    return Detector(100, window=10, seed=seed, interval=False, paths=1000, **options).fit(reference, progress=False)


@pytest.fixture(scope="module")
def detector() -> Detector:
    """For all keys."""
    return detector_of(1)


@pytest.fixture(scope="module")
def rows() -> Any:
    """A table of all that may come: changes, resets, a row with a NaN, a short one, none, no key, no order."""
    rng = np.random.default_rng(2)
    key = rng.integers(0, KEYS, ROWS)
    x = rng.normal(size=(ROWS, WIDTH)) + np.where((key == 2) & (np.arange(ROWS) > ROWS / 2), 2.0, 0.0)[:, None]
    x[5, 1] = np.nan
    lists: list[Any] = x.tolist()
    lists[130], lists[140] = lists[130][:2], None
    names: list[Any] = [f"machine/{k}" for k in key]
    orders: list[Any] = list(range(ROWS))
    names[150], orders[260] = None, None
    fresh = rng.random(ROWS) < 0.05
    kinds = {"machine": pa.string(), "seq": pa.int64(), "fresh": pa.bool_(), "x": pa.list_(pa.float64())}
    return pa.table([names, orders, fresh, lists], schema=pa.schema(kinds))


def piece(rows: Any, number: int) -> Any:
    """The rows of one file, in any order."""
    size = ROWS // FILES
    shuffled = np.random.default_rng(number).permutation(size) + number * size
    return rows.take(pa.array(shuffled))


def write(rows: Any, folder: Path, name: str) -> None:
    """A file that a stream finds after those with smaller names."""
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / f"{name}.parquet")
    os.utime(folder / f"{name}.parquet", (10**9 + int(name), 10**9 + int(name)))


def source(session: SparkSession, folder: Path, schema: str = SCHEMA) -> DataFrame:
    """A stream of one file after the other."""
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run(answer: DataFrame, place: Path, sink: Callable[[DataFrame, int], None] | None = None) -> None:
    """Until all that is there has been watched."""
    writer = answer.writeStream.foreachBatch(sink or spark.to_folders(place / "alarms", place / "refused"))
    query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()


def told(session: SparkSession, folder: Path) -> list[dict[str, Any]]:
    """What a sink holds, in a fixed order."""
    if not folder.exists():
        return []
    found = [row.asDict() for row in session.read.parquet(str(folder)).drop("batch").collect()]
    return in_order(found)


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By key, then by order."""
    return sorted(found, key=lambda row: (row["key"] or "", -1 if row["order"] is None else row["order"]))


def sequential(fleets: list[Fleet], rows: Any) -> tuple[list[FleetAlarm], dict[tuple[str, int], str]]:
    """Alarms and refused rows of one fleet after the other, a third of the rows each or all, one row at a time."""
    states: dict[str, bytes] = {}
    alarms, refused = list[FleetAlarm](), dict[tuple[str, int], str]()
    for place, row in enumerate(rows.to_pylist()):
        key, order, values = row["machine"], row["seq"], row["x"]
        if key is None or order is None:
            continue
        fleet = fleets[place * len(fleets) // len(rows)]
        fits = values is not None and len(values) == WIDTH
        batch = np.array([values if fits else [np.nan] * WIDTH])
        step = fleet.step([key], [states.get(key)], batch, np.array([0]), np.array([order]), np.array([row["fresh"]]))
        states[key] = step.states[0]
        alarms += step.alarms
        if step.refused:
            refused[key, order] = step.refused[0].reason
    return alarms, refused


def same(found: list[dict[str, Any]], expected: list[FleetAlarm]) -> bool:
    """Whether these are the same alarms, to the last bit."""
    names = ("key", "order", "count", "run", "time", "statistic", "threshold", "rarity")
    rows = [(*(row[name] for name in names), row["channel"]) for row in found]
    wanted = [(*(getattr(alarm, name) for name in names), str(alarm.channel)) for alarm in expected]
    return bool(wanted) and rows == sorted(wanted)


@pytest.fixture(scope="module")
def watched(session: SparkSession, detector: Detector, rows: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream that failed after its sink had written batch 1, before that was committed, and was started again."""
    place = tmp_path_factory.mktemp("watched")
    for number in range(FILES):
        write(piece(rows, number), place / "in", str(number))
    write_twice = spark.to_folders(place / "alarms", place / "refused")

    def failing(answer: DataFrame, batch: int) -> None:
        write_twice(answer, batch)
        if batch == 1:
            raise RuntimeError("the sink fails after its write")

    with pytest.raises(Exception, match="the sink fails"):
        run(spark.watch(source(session, place / "in"), detector, explain=True, **OPTIONS), place, failing)
    run(spark.watch(source(session, place / "in"), detector, explain=True, **OPTIONS), place)
    return place


def test_alarms_are_those_of_a_sequential_run(
    session: SparkSession, watched: Path, detector: Detector, rows: Any
) -> None:
    """None lost and none doubled, though rows come in any order and one batch was watched twice."""
    expected, _ = sequential([Fleet(detector)], rows)
    assert len({alarm.run for alarm in expected}) > 2
    assert same(told(session, watched / "alarms"), expected)
    assert (watched / "alarms" / "batch=1").exists()


@pytest.mark.parametrize("baseline", [None, 12])
def test_streams_with_a_memory(session: SparkSession, rows: Any, tmp_path: Path, baseline: int | None) -> None:
    """Views go through the store by changes, as windows do; each key may have a level of its own."""
    reference = np.random.default_rng(3).normal(size=(300, WIDTH))
    for t in range(1, len(reference)):
        reference[t] += 0.6 * reference[t - 1]
    detector = Detector(40, Views(), window=(2, 5), baseline=baseline, paths=6, seed=1)
    detector.fit(reference, groups=None if baseline is None else np.arange(300) // 60, progress=False)
    for number in range(FILES):
        write(piece(rows, number), tmp_path / "in", str(number))
    run(spark.watch(source(session, tmp_path / "in"), detector, **OPTIONS), tmp_path)
    expected, _ = sequential([Fleet(detector)], rows)
    assert same(told(session, tmp_path / "alarms"), expected)


def test_rows_of_unseen_contexts_are_dead_letters(session: SparkSession) -> None:
    """The others are watched as they are by a fleet."""
    detector, rows = contexts.fitted(statistic=MMD()), contexts.strange(contexts.records(2, 60))
    rows = [{"customer": None} | row for row in rows + contexts.records(3, 60, up=3.0)]
    told_apart = [{"machine": "a", "seq": k, **row} for k, row in enumerate(rows)]
    answer = spark.history(session.createDataFrame(pd.DataFrame(told_apart)), detector, key="machine", order="seq")
    letters = in_order([row.asDict() for row in spark.refused(answer).collect()])
    assert [(row["order"], row["reason"]) for row in letters] == [(k, "unseen") for k in contexts.STRANGE]
    step = Fleet(detector).step(["a"], [None], rows, np.zeros(120, np.int64), np.arange(120))
    assert same(in_order([row.asDict() for row in spark.alarms(answer).collect()]), step.alarms)


def test_alarms_carry_explanations(session: SparkSession, watched: Path) -> None:
    """As JSON, of the alarm beside it."""
    for row in told(session, watched / "alarms"):
        explained = json.loads(row["explanation"])
        assert explained["statistic"] == row["statistic"]
        assert explained["time"] == row["time"]


def test_poisoned_rows_are_dead_letters(session: SparkSession, watched: Path, rows: Any) -> None:
    """With the reason and their values; all others were taken in."""
    letters = told(session, watched / "refused")
    assert {row["reason"] for row in letters} == {"bad"}
    assert sorted((row["order"] is None, row["order"]) for row in letters) == [
        *((False, order) for order in (5, 130, 140, 150)),
        (True, None),
    ]
    by_order = {row["order"]: row for row in letters}
    assert "2 numbers" in by_order[130]["message"]
    assert "no numbers" in by_order[140]["message"]
    assert "no key" in by_order[150]["message"]
    assert "no order" in by_order[None]["message"]
    values = rows.to_pylist()
    assert json.loads(by_order[130]["row"]) == {"x": values[130]["x"], "fresh": values[130]["fresh"]}
    again = session.createDataFrame(letters).select(sql.from_json("row", "x array<double>").alias("v"), "order")
    mended = {row["order"]: row["v"]["x"] for row in again.collect()}
    assert np.isnan(mended[5][1])
    assert mended[5][0] == values[5]["x"][0]


def test_states_come_from_the_store_where_copies_are_lost(
    session: SparkSession, local: Path, detector: Detector, rows: Any, tmp_path: Path
) -> None:
    """Written as changes by small micro-batches, and copied to where Spark has files of its own."""
    size = 20
    for begin, end in ((0, 5), (5, 8)):
        for number in range(begin, end):
            write(rows.slice(number * size, size), tmp_path / "in", str(number))
        run(spark.watch(source(session, tmp_path / "in"), detector, **OPTIONS), tmp_path)
        copies = list(local.glob("blockmgr-*/tocsin-*"))
        assert len(copies) >= OPTIONS["buckets"]
        for copy in copies:
            copy.unlink()
    expected, _ = sequential([Fleet(detector)], rows.slice(0, 8 * size))
    assert same(told(session, tmp_path / "alarms"), expected)


def test_history_equals_stream(session: SparkSession, watched: Path, detector: Detector, rows: Any) -> None:
    """From disk, in other buckets, the same is told."""
    frame = session.read.schema(SCHEMA).parquet(str(watched / "in"))
    answer = spark.history(frame, detector, **{**OPTIONS, "buckets": 5}).cache()
    alarms = in_order([row.asDict() for row in spark.alarms(answer).collect()])
    assert same(alarms, sequential([Fleet(detector)], rows)[0])
    letters = in_order([row.asDict() for row in spark.refused(answer).collect()])
    assert letters == told(session, watched / "refused")


def test_rules_reach_the_keys(session: SparkSession, watched: Path, detector: Detector, rows: Any) -> None:
    """The promise for all keys, the rest after an alarm, orders without gaps."""
    frame = session.read.schema(SCHEMA).parquet(str(watched / "in"))
    rules: dict[str, Any] = {"rest": None, "ert": 20.0, "for_all": KEYS}
    found = [row.asDict() for row in spark.history(frame, detector, **OPTIONS, **rules).collect()]
    expected, refused = sequential([Fleet(detector, **rules)], rows)
    assert same(in_order([row for row in found if row["kind"] == "alarm"]), expected)
    letters = {(row["key"], row["order"]): row["reason"] for row in found if row["kind"] == "refused"}
    assert {place: reason for place, reason in letters.items() if None not in place} == refused
    with_gaps = spark.history(frame, detector, gapless=True, **OPTIONS).collect()
    assert {row["reason"] for row in with_gaps} >= {"gap"}


def test_a_new_calibration_rolls_in(session: SparkSession, detector: Detector, rows: Any, tmp_path: Path) -> None:
    """Windows are carried over; a stranger's states are refused; so is another number of buckets."""
    other = detector_of(3)
    write(piece(rows, 0), tmp_path / "in", "0")
    run(spark.watch(source(session, tmp_path / "in"), detector, **OPTIONS), tmp_path)
    write(piece(rows, 1), tmp_path / "in", "1")
    with pytest.raises(Exception, match="another detector"):
        run(spark.watch(source(session, tmp_path / "in"), other, **OPTIONS), tmp_path)
    with pytest.raises(Exception, match="the checkpoint was begun with 3"):
        run(spark.watch(source(session, tmp_path / "in"), detector, **{**OPTIONS, "buckets": 4}), tmp_path)
    run(spark.watch(source(session, tmp_path / "in"), other, before=[detector], **OPTIONS), tmp_path)
    third = ROWS // FILES
    expected, _ = sequential([Fleet(detector), Fleet(other, before=[detector])], rows.slice(0, 2 * third))
    assert same(told(session, tmp_path / "alarms"), expected)


def test_tables_keep_names_and_kinds(session: SparkSession, tmp_path: Path) -> None:
    """Categories, whole numbers with gaps, odd names and times: what a detector was fitted to is what it gets."""
    rng = np.random.default_rng(4)

    def table(count: int, shift: float = 0.0) -> Any:
        load = pd.array(rng.integers(0, 9, count), dtype="Int64")
        load[rng.random(count) < 0.1] = pd.NA
        mode = rng.choice(["idle", "busy"], count)
        return pd.DataFrame({"the load": load, "_mode": mode, "a.b": rng.normal(size=count) + shift})

    detector = Detector(100, window=10, seed=1, interval=False, paths=1000).fit(table(200), progress=False)
    frame = table(60, 3.0)
    frame["when"] = pd.date_range("2026-01-01", periods=60, freq="s", tz="UTC").as_unit("us")
    frame["id"] = np.arange(60) % 2
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    write(arrow.take(pa.array(rng.permutation(60))), tmp_path / "in", "0")
    schema = "`the load` long, _mode string, `a.b` double, when timestamp, id long"
    run(spark.watch(source(session, tmp_path / "in", schema), detector, key="id", order="when"), tmp_path)
    micros = frame["when"].astype("int64").to_numpy()
    step = Fleet(detector).step(["0", "1"], [None, None], frame.drop(columns=["when", "id"]), frame["id"], micros)
    assert same(told(session, tmp_path / "alarms"), step.alarms)
    assert told(session, tmp_path / "refused") == []


def test_functions_of_the_user_travel(session: SparkSession) -> None:
    """A detector that no file can hold reaches the workers all the same."""
    rng = np.random.default_rng(5)
    texts = ["".join(rng.choice(list("ab"), 8)) for _ in range(230)]

    def count_letters(batch: Any) -> Any:
        return np.array([[text.count("a"), text.count("b") + len(text)] for text in batch], dtype=float)

    detector = Detector(100, window=10, seed=1, interval=False, paths=1000, preprocess=count_letters)
    detector.fit(texts[:200], progress=False)
    changed = [text + "bbbb" for text in texts[200:]]
    frame = session.createDataFrame([("k", i, text) for i, text in enumerate(changed)], "k string, i long, t string")
    found = [
        row.asDict() for row in spark.alarms(spark.history(frame, detector, key="k", order="i", columns="t")).collect()
    ]
    step = Fleet(detector).step(["k"], [None], changed, np.zeros(30, int), np.arange(30))
    assert same(in_order(found), step.alarms)


def test_a_detector_for_each_key(session: SparkSession, tmp_path: Path) -> None:
    """Fitted side by side, each watches its own key; keys without one are refused, those with few points reported."""
    rng = np.random.default_rng(6)
    names, columns = ["a/1", "b", "few"], ["x", "y"]
    sizes = {"a/1": 120, "b": 120, "few": 3}
    reference = pd.concat(
        pd.DataFrame(rng.normal(10 * i, size=(sizes[name], 2)), columns=columns).assign(
            k=name, i=np.arange(sizes[name])
        )
        for i, name in enumerate(names)
    )
    frame = session.createDataFrame(reference.sample(frac=1, random_state=1))
    template = Detector(100, window=10, seed=1, interval=False, paths=500, sampler=Independent())
    report = spark.fit(frame, template, key="k", order="i", columns=columns, folder=tmp_path / "fits")
    found = {row["key"]: row for row in report.collect()}
    assert {name: row["points"] for name, row in found.items()} == sizes
    assert found["few"]["file"] is None
    assert "3" in found["few"]["problem"]
    alone = Detector.load(found["b"]["file"])
    assert found["b"]["threshold"] == alone.calibration_.threshold
    own = reference[reference.k == "b"][columns]
    assert np.array_equal(alone.reference_, Detector(**alone.get_params()).fit(own, progress=False).reference_)
    assert alone.seed_ != Detector.load(found["a/1"]["file"]).seed_
    stream = pd.concat(
        pd.DataFrame(rng.normal(10 * i, size=(30, 2)), columns=columns).assign(k=name, i=np.arange(30))
        for i, name in enumerate(["a/1", "b", "few"])
    )
    stream.loc[stream.k == "b", "x"] += 3
    answer = spark.history(session.createDataFrame(stream), tmp_path / "fits", key="k", order="i", buckets=2)
    rows = [row.asDict() for row in answer.collect()]
    alarms = list[FleetAlarm]()
    for name in ("a/1", "b"):
        fleet = Fleet(Detector.load(shipping.file_of(tmp_path / "fits", name)))
        part = stream[stream.k == name]
        alarms += fleet.step([name], [None], part[columns], np.zeros(30, int), part.i).alarms
    assert same(in_order([row for row in rows if row["kind"] == "alarm"]), alarms)
    assert {row["key"] for row in rows if row["kind"] == "refused"} == {"few"}
    assert {row["reason"] for row in rows if row["kind"] == "refused"} == {"no detector"}


def test_the_page_runs_as_it_stands(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first example finds the machine that changed."""
    page = (Path(__file__).parents[1] / "docs" / "spark.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(page.split("```python\n")[1].split("```")[0], {})
    assert "|machine 3|20" in capsys.readouterr().out


def test_bundles_are_read_as_written() -> None:
    """Keys of any script, empty states, none at all."""
    for states in ({}, {"": b"", "ключ": b"\0\1", "k": bytes(1000)}):
        assert bundles.unbundled(bundles.bundled(states, 7), 7) == states
    assert bundles.unbundled(None, 7) == {}
    with pytest.raises(StorageError, match="buckets=8"):
        bundles.unbundled(bundles.bundled({}, 7), 8)
    with pytest.raises(StorageError, match="not written by this version"):
        bundles.unbundled(b"something else", 7)


def test_files_of_keys_differ() -> None:
    """Whatever is in a key, its file is in the folder, and no other key's."""
    keys = ["a", "A", "a/b", "a%2Fb", "../a", ".", "", "x" * 1000, "x" * 1001]
    files = [shipping.file_of("/fits", key) for key in keys]
    assert len(set(files)) == len(keys)
    assert all(file.parent == Path("/fits") and len(file.name) < 255 for file in files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"key": "engine"},
            "no column 'engine'; its columns are 'machine', 'seq', 'fresh', 'x', 'a', 'b', 'c', 'when'",
        ),
        ({"key": "x"}, "array<double>; keys must be values"),
        ({"order": "a"}, "order='a' is of type double; it must be a whole number or a timestamp"),
        ({"order": "when"}, "order='when' is of type date"),
        ({"columns": ["a", "b"]}, "2 columns .* rows of 3 numbers"),
        ({"columns": ["a", "b", "machine"]}, "'machine' is of type string"),
        ({"columns": []}, "No column is left"),
        ({"reset": "seq"}, "reset='seq' is of type bigint"),
        ({"buckets": 0}, "buckets=0"),
        ({"rest": -1}, "rest=-1"),
        ({"for_all": 0}, "for_all=0 must be a whole number"),
    ],
)
def test_errors_name_value_and_remedy(
    session: SparkSession, detector: Detector, change: dict[str, Any], message: str
) -> None:
    """Before anything runs."""
    frame = session.createDataFrame([], SCHEMA + ", a double, b double, c double, when date")
    options = {"key": "machine", "order": "seq", "columns": ["a", "b", "c"], **change}
    with pytest.raises(InputError, match=message):
        spark.history(frame, detector, **options)


def test_the_wrong_kind_of_frame(session: SparkSession, detector: Detector, tmp_path: Path) -> None:
    """Streaming where it must not be, and the other way round; no frame at all; detectors that cannot be used."""
    still, streaming = session.createDataFrame([], SCHEMA), source(session, tmp_path)
    options: dict[str, Any] = {"key": "machine", "order": "seq", "columns": "x"}
    with pytest.raises(InputError, match=r"not streaming, and watch is for frames that are\. Use .*history"):
        spark.watch(still, detector, **options)
    with pytest.raises(InputError, match=r"is streaming, and history is for frames that are not\. Use .*watch"):
        spark.history(streaming, detector, **options)
    with pytest.raises(InputError, match=r"is streaming, and fit"):
        spark.fit(streaming, detector, key="machine", order="seq", folder=tmp_path)
    with pytest.raises(InputError, match=r"got a .*Table"):
        spark.watch(pa.table({}), detector, **options)
    with pytest.raises(InputError, match=r"holds no \.tocsin files"):
        spark.watch(streaming, tmp_path, **options)
    with pytest.raises(InputError, match="all be folders"):
        spark.watch(streaming, detector, before=[tmp_path], **options)
    with pytest.raises(NotFittedError):
        spark.watch(streaming, Detector(100), **options)


def test_states_need_rocksdb(session: SparkSession, detector: Detector, tmp_path: Path) -> None:
    """Said before the query starts, with the line that helps."""
    assert session.conf.get(sessions.PROVIDER) == sessions.ROCKSDB
    session.conf.set(sessions.PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(InputError, match=r"HDFSBackedStateStoreProvider.*\n.*spark.conf.set"):
            spark.watch(source(session, tmp_path), detector, key="machine", order="seq", columns="x")
    finally:
        session.conf.set(sessions.PROVIDER, sessions.ROCKSDB)


def test_workers_with_another_python(
    session: SparkSession, detector: Detector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found out by asking one, where its path is not the driver's."""
    frame = session.createDataFrame([], SCHEMA)
    monkeypatch.setattr(sys, "executable", "/elsewhere/python")
    spark.history(frame, detector, key="machine", order="seq", columns="x")  # another path to the same Python will do
    monkeypatch.setattr("tocsin.__version__", "9.9")
    with pytest.raises(InputError, match=r"Tocsin 9\.9\): they must have the same .* PYSPARK_PYTHON"):
        spark.history(frame, detector, key="machine", order="seq", columns="x")


def test_a_session_has_a_partition_for_each_core(session: SparkSession) -> None:
    """Unless it is told otherwise."""
    name = "spark.sql.shuffle.partitions"
    assert session.conf.get(name) == "2"
    try:
        assert spark.session(settings={name: "3"}).conf.get(name) == "3"
    finally:
        session.conf.set(name, "2")


def test_java_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None, too old, and where it was looked for."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"holds no bin/java.*Install Java 17"):
        spark.session()
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(InputError, match=r"1\.8\.0_392.*needs Java 17"):
        spark.session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no java on the PATH"):
        spark.session()


def test_the_extra_is_named(
    session: SparkSession, detector: Detector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where Spark is missing, and where something is that Spark needs and does not bring along."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(MissingExtraError, match=r"'protobuf': pip install 'tocsin\[spark\]'"):
        spark.watch(source(session, tmp_path), detector, **OPTIONS)
    script = "import sys; sys.modules['pyspark'] = None; import tocsin.integrations.spark"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "tocsin.integrations.spark needs the package 'pyspark': pip install 'tocsin[spark]'" in ended.stderr
