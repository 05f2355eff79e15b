"""Many keys through Spark, and through the same detector in one process: events a second, and where time goes.

    python -m benchmarks.scale [--keys 100000] [--per-key 10] [--width 8] [--window 100] [--buckets 200]

Every batch has `per-key` observations of every key, in a Parquet file of its own that both read. The first four batches
are left out of the figures: in them Java compiles, and states are made.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tocsin import Detector
from tocsin._integrations.spark.keyed import ANSWER, Answer, Keyed
from tocsin._integrations.spark.observations import layout_for, rows_of, spread
from tocsin._integrations.spark.shipping import Rules, Shared
from tocsin._integrations.spark.streams import BUCKETS, Watching
from tocsin._streams.fleet import Fleet
from tocsin.integrations import spark

WARM_UP = 4
NOISE = np.random.default_rng(0).bytes(900_000)
"""What states are made of where there is no detector: no more compressible than theirs. It travels with the code, of
which Spark makes a broadcast if it is larger, that `transformWithState` does not find."""


@dataclass(frozen=True)
class Size:
    """Of the workload."""

    keys: int
    per_key: int
    width: int
    batches: int

    @property
    def events(self) -> int:
        """In a batch."""
        return self.keys * self.per_key

    @property
    def names(self) -> list[str]:
        """Of the columns of observations."""
        return [f"x{i}" for i in range(self.width)]


def write(size: Size, folder: Path) -> None:
    """A file for each batch: all keys by turns, as a source that serves many machines has them."""
    rng = np.random.default_rng(0)
    keys = pa.array([f"machine-{i:06d}" for i in range(size.keys)])
    for batch in range(size.batches):
        place = np.concatenate([rng.permutation(size.keys) for _ in range(size.per_key)])
        order = np.repeat(np.arange(size.per_key), size.keys) + batch * size.per_key
        values = rng.normal(size=(size.width, size.events))
        columns = {"machine": keys.take(pa.array(place)), "order": order, **dict(zip(size.names, values, strict=True))}
        file = folder / f"{batch:03d}.parquet"
        pq.write_table(pa.table(columns), file, row_group_size=-(-size.events // 8))
        os.utime(file, (10**9 + batch, 10**9 + batch))


def alone(detector: Detector, size: Size, folder: Path) -> tuple[float, float, int]:
    """Events a second in one process, reading of files included; processor seconds of each; bytes of a state."""
    fleet, states = Fleet(detector), dict[str, bytes]()
    seconds, spent = list[float](), list[float]()
    for file in sorted(folder.glob("*.parquet")):
        begun, used = time.perf_counter(), time.process_time()
        table = pq.read_table(file)
        encoded = table["machine"].combine_chunks().dictionary_encode()
        keys, owner = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
        rows = np.column_stack([table[name].to_numpy() for name in size.names])
        step = fleet.step(keys, [states.get(key) for key in keys], rows, owner, table["order"].to_numpy())
        states = dict(zip(keys, step.states, strict=True))
        seconds.append(time.perf_counter() - begun)
        spent.append(time.process_time() - used)
    state = sum(map(len, states.values())) // len(states)
    events = size.events * len(seconds[WARM_UP:])
    return events / sum(seconds[WARM_UP:]), sum(spent[WARM_UP:]) / events, state


@dataclass(frozen=True)
class Idle(Keyed):
    """Reads rows, and makes states and changes of these sizes without looking at them."""

    state: int = 0
    change: int = 0

    def step(
        self, bundles: Sequence[bytes], states: dict[str, bytes], changes: dict[str, bytes] | None = None
    ) -> list[Answer]:
        """Nothing to tell."""
        keys = rows_of(bundles)["key"].unique().to_pylist()
        if self.state:
            starts = np.random.default_rng(len(states)).integers(0, len(NOISE) - self.state, len(keys)).tolist()
            states.update({key: NOISE[start : start + self.state] for key, start in zip(keys, starts, strict=True)})
            assert changes is not None
            changes.update({key: states[key][: self.change] for key in keys})
        return []


@dataclass(frozen=True)
class Passed:
    """What a stream took, after the first batches.

    java, python: processor seconds.  operators: what Spark tells of those with states, in the last batch.
    """

    seconds: list[float]
    java: float
    python: float
    events: int
    operators: list[dict[str, float]]

    @property
    def rate(self) -> float:
        """Events a second."""
        return self.events / sum(self.seconds)

    def __str__(self) -> str:
        cost = f"{1e6 * self.java / self.events:.1f} us of Java and {1e6 * self.python / self.events:.1f} us of Python"
        return f"{self.rate:,.0f} events/s; an event takes {cost} (seconds a batch: {self.seconds})"


def through_spark(answer: DataFrame, size: Size, checkpoint: Path) -> Passed:
    """Run a stream to its end."""
    query = (
        answer.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    warm: dict[str, float] | None = None
    while query.isActive:
        time.sleep(0.1)
        if warm is None and len(query.recentProgress) >= WARM_UP:
            warm = processor_seconds()
    query.awaitTermination()
    cost = processor_seconds()
    warm = warm or cost
    reports = [report for report in (json.loads(each.json) for each in query.recentProgress) if report["numInputRows"]]
    seconds = [report["durationMs"]["triggerExecution"] / 1000 for report in reports][WARM_UP:]
    java, python = (cost[kind] - warm[kind] for kind in ("java", "python"))
    return Passed(seconds, java, python, size.events * len(seconds), reports[-1]["stateOperators"])


def processor_seconds() -> dict[str, float]:
    """Of the Java and Python processes that this one has started, directly or not."""
    parents, spent = dict[int, int](), dict[int, tuple[str, float]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        fields = rest.split()
        own = int(stat.parent.name)
        parents[own] = int(fields[1])
        ticks = sum(int(fields[i]) for i in (11, 12, 13, 14))
        spent[own] = ("java" if name.startswith("java") else "python", ticks / os.sysconf("SC_CLK_TCK"))
    total = {"java": 0.0, "python": 0.0}
    for own, (kind, seconds) in spent.items():
        above = parents[own]
        while above not in (0, 1, os.getpid()):
            above = parents.get(above, 0)
        if above == os.getpid():
            total[kind] += seconds
    return total


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--per-key", type=int, default=10)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--reference", type=int, default=1000)
    parser.add_argument("--window", type=int, help="instead of the default family")
    parser.add_argument(
        "--batches", type=int, default=24, help="as many as it takes until all states are written whole"
    )
    parser.add_argument("--buckets", type=int, default=BUCKETS)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--setting", action="append", default=[], help="of Spark, as name=value; may be repeated")
    parser.add_argument("--parts", action="store_true", help="also without the detector, without states, without both")
    parser.add_argument("--folder", help="for files and checkpoints")
    options = parser.parse_args()
    size = Size(options.keys, options.per_key, options.width, options.batches)
    reference = np.random.default_rng(1).normal(size=(options.reference, size.width))
    detector = Detector(1e6, window=options.window, seed=1, interval=False).fit(reference, progress=False)
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        compare(detector, size, options, Path(place))


def compare(detector: Detector, size: Size, options: argparse.Namespace, place: Path) -> None:
    """Both, by the same files."""
    files = place / "in"
    files.mkdir()
    write(size, files)
    print(f"{size.keys:,} keys, {size.events:,} events a batch, {size.width} columns, windows {detector.windows_}")
    rate, cost, state = alone(detector, size, files)
    print(
        f"one process: {rate:,.0f} events/s; an event takes {1e6 * cost:.1f} us; {state:,} bytes a state",
        flush=True,
    )
    session = spark.session(
        "scale",
        f"local[{options.cores}]",
        {
            "spark.sql.shuffle.partitions": str(options.cores),
            "spark.ui.enabled": "false",
            "spark.driver.memory": "6g",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.showConsoleProgress": "false",
            **dict(setting.split("=", 1) for setting in options.setting),
        },
    )
    session.sparkContext.setLogLevel("ERROR")
    schema = "machine string, order long, " + ", ".join(f"{name} double" for name in size.names)

    frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(files))
    answer = spark.watch(frame, detector, key="machine", order="order", buckets=options.buckets)
    passed = through_spark(answer, size, place / "whole")
    print(f"Spark, {options.cores} cores, {options.buckets} buckets: {passed}", flush=True)
    after, cost, _ = alone(detector, size, files)
    print(f"one process, once more: {after:,.0f} events/s; an event takes {1e6 * cost:.1f} us")
    ratio, commit = 2 * passed.rate / (rate + after), passed.operators[0]["commitTimeMs"]
    print(f"  Spark has {ratio:.0%} of the rate of one process; the last commit took {commit} ms", flush=True)
    if not options.parts:
        return
    nobody = Shared("", (), Rules())
    layout = layout_for(frame, detector, key="machine", order="order", columns=None)
    change = min(state, state * size.per_key // max(detector.windows_) + 100)
    bundles = spread(frame, layout, key="machine", order="order", buckets=options.buckets)
    for name, part in {
        "reading and sorting into buckets": bundles,
        "without states and detector": bundles.groupBy("bucket").transformWithStateInPandas(
            Watching(Idle(nobody, layout), options.buckets), ANSWER, "Append", "None"
        ),
        "without the detector": bundles.groupBy("bucket").transformWithStateInPandas(
            Watching(Idle(nobody, layout, state, change), options.buckets), ANSWER, "Append", "None"
        ),
    }.items():
        print(f"  {name}: {through_spark(part, size, place / name.replace(' ', '-'))}", flush=True)


if __name__ == "__main__":
    main()
