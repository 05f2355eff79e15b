"""What is lost or doubled when parts of a Spark stream die: nothing, if this ends with status 0.

    python -m benchmarks.faults [--times 20] [--only NAME ...]

Every try is a stream of its own, whose rows come in any order within a file and some of which are poisoned (a NaN, a
number too few, no order). Its alarms and dead letters, as the sink of `to_folders` holds them in the end,
are compared with those of one sequential pass without Spark.

    disorder   nothing else happens
    replay     the last commits are taken back, so that batches are watched again
    written    the driver is killed (SIGKILL) after the sink's write and before the commit
    driver     the driver is killed at a random moment
    worker     Python workers are killed at random moments
    copies     the executor's copies of states are cut, bent, lost or put back at random moments
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin import Detector
from tocsin._streams.fleet import Fleet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Name = tuple[object, ...]
"""What tells a row of the sink from the others."""

KEYS, FILES, ROWS, WIDTH = 12, 12, 150, 3
POISONED = 4
"""Rows of each kind of poison in a stream."""

COLUMNS = ["key", "order", "count", "run", "time", "statistic", "threshold", "rarity"]
GRACE = 300
"""Seconds that a driver may take."""


@dataclass
class Verdict:
    """Of all tries of a fault: what should be in the sink and is not, is there more than once, or is something else."""

    tries: int = 0
    struck: int = 0
    rows: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0

    def add(self, expected: dict[Name, object], found: list[tuple[Name, object]]) -> None:
        """Compare what is named alike."""
        times = Counter(name for name, _ in found)
        self.rows += len(expected)
        self.lost += len(expected.keys() - times.keys())
        self.doubled += sum(count - 1 for count in times.values())
        self.different += sum(name not in expected or expected[name] != value for name, value in found)

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.doubled or self.different)


class Stream:
    """A stream in a folder of its own, and what should be told of it."""

    def __init__(self, folder: Path, detector: Detector, seed: int) -> None:
        self.folder, self.rng = folder, np.random.default_rng([seed, 1])
        rng = np.random.default_rng(seed)
        size = FILES * ROWS
        key = rng.integers(0, KEYS, size)
        begins = rng.integers(size // 4, 2 * size, KEYS)
        x = rng.normal(size=(size, WIDTH)) + np.where(np.arange(size) >= begins[key], 1.5, 0.0)[:, None]
        nan, short, nowhere = rng.permutation(size)[: 3 * POISONED].reshape(3, POISONED)
        x[nan, 1] = np.nan
        rows: list[list[float]] = x.tolist()
        for i in short:
            rows[i] = rows[i][:-1]
        names = [f"key {k}" for k in key]
        orders = [None if i in nowhere else i for i in range(size)]
        good = np.setdiff1d(np.arange(size), np.concatenate([nan, short, nowhere]))
        step = Fleet(detector).step(
            [f"key {k}" for k in range(KEYS)], [None] * KEYS, x[good], key[good], good.astype(np.int64)
        )
        self.alarms: dict[Name, object] = {
            (alarm.key, alarm.count): (*(getattr(alarm, name) for name in COLUMNS), str(alarm.channel))
            for alarm in step.alarms
        }
        self.letters: dict[Name, object] = {(names[i], int(i), None): "bad" for i in (*nan, *short)}
        self.letters |= {(names[i], None, str(rows[i])): "bad" for i in nowhere}
        table = pa.table({"key": names, "seq": pa.array(orders, pa.int64()), "x": rows})
        (folder / "in").mkdir(parents=True)
        for number in range(FILES):
            place = rng.permutation(ROWS) + number * ROWS
            file = folder / "in" / f"{number}.parquet"
            pq.write_table(table.take(pa.array(place)), file)
            os.utime(file, (10**9 + number, 10**9 + number))

    def judge(self, verdict: Verdict) -> None:
        """Compare the sink with what should be there."""
        verdict.tries += 1
        alarms = _rows(self.folder / "alarms")
        verdict.add(
            self.alarms,
            [((row["key"], row["count"]), (*(row[name] for name in COLUMNS), row["channel"])) for row in alarms],
        )
        letters = _rows(self.folder / "refused")
        verdict.add(self.letters, [(_letter(row), row["reason"]) for row in letters])


def _letter(row: dict[str, object]) -> Name:
    """A name for a dead letter: its order, or its values where it has none."""
    if row["order"] is not None:
        return row["key"], row["order"], None
    return row["key"], None, str(row["row"]).removeprefix('{"x": ').removesuffix("}")


def _rows(folder: Path) -> list[dict[str, object]]:
    return [row for file in folder.glob("batch=*/*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]


# The driver


def drive(folder: Path, kill_after: int | None = None) -> None:
    """Watch a stream to its end; or until its sink has written this batch, and then die with all that it started."""
    from tocsin.integrations import spark

    session = spark.session(
        "faults",
        "local[2,4]",
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.local.dir": str(folder / "local"),
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.ui.showConsoleProgress": "false",
        },
    )
    session.sparkContext.setLogLevel("OFF")
    frame = session.readStream.schema("key string, seq long, x array<double>").option("maxFilesPerTrigger", 1)
    answer = spark.watch(
        frame.parquet(str(folder / "in")),
        folder.parent / "detector.tocsin",
        key="key",
        order="seq",
        columns="x",
        buckets=5,
    )
    sink = spark.to_folders(folder / "alarms", folder / "refused")

    def write(batch_answer: DataFrame, batch: int) -> None:
        sink(batch_answer, batch)
        if batch == kill_after:
            os.killpg(0, signal.SIGKILL)

    query = answer.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def started(folder: Path, kill_after: int | None = None) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own."""
    after = [] if kill_after is None else ["--kill-after", str(kill_after)]
    command = [sys.executable, "-m", "benchmarks.faults", "--drive", str(folder), *after]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finished(folder: Path) -> None:
    """Let a driver run to the end."""
    status = started(folder).wait(GRACE)
    if status:
        raise SystemExit(
            f"A driver that was left alone ended with status {status}: python -m benchmarks.faults --drive {folder}"
        )


# The faults: each strikes a stream, lets it come to its end, and returns how often it struck


def disorder(stream: Stream) -> int:
    """Rows in any order, and poison, which all streams have."""
    drive(stream.folder)
    return 1


def replay(stream: Stream) -> int:
    """Take back the last commits, so that batches are replayed over the states of before."""
    drive(stream.folder)
    batches = int(stream.rng.integers(1, 3))
    for batch in range(FILES - batches, FILES):
        for name in (f"{batch}", f".{batch}.crc"):
            (stream.folder / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    drive(stream.folder)
    return batches


def written(stream: Stream) -> int:
    """The driver dies after the sink's write."""
    for batch in sorted(stream.rng.permutation(FILES)[:2]):
        driver = started(stream.folder, int(batch))
        if driver.wait(GRACE) != -signal.SIGKILL:
            raise SystemExit(f"The driver should have died after batch {batch}, and did not.")
    finished(stream.folder)
    return 2


def driver(stream: Stream) -> int:
    """The driver dies at a random moment after its query has begun."""
    kills, startup = 0, 0.0
    for _ in range(2):
        process, begun = started(stream.folder), time.monotonic()
        while not startup and process.poll() is None:
            time.sleep(0.05)
            if (stream.folder / "checkpoint" / "offsets" / "0").exists():
                startup = time.monotonic() - begun
        time.sleep(max(begun + startup - time.monotonic(), 0) + stream.rng.uniform(0, 12))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    finished(stream.folder)
    return kills


def worker(stream: Stream) -> int:
    """Python workers die at random moments; Spark tries their tasks again, up to four times."""
    kills, process = 0, started(stream.folder)
    while process.poll() is None:
        time.sleep(stream.rng.uniform(0.2, 1.5))
        workers = _workers(process.pid)
        if workers:
            try:
                os.kill(workers[stream.rng.integers(len(workers))], signal.SIGKILL)
                kills += 1
            except ProcessLookupError:
                pass
    finished(stream.folder)
    return kills


def copies(stream: Stream) -> int:
    """Copies of states are spoiled at random moments, for as long as the stream goes on."""
    spoiled, process, seen = 0, started(stream.folder), list[tuple[Path, bytes]]()
    while process.poll() is None:
        time.sleep(stream.rng.uniform(0, 0.1))
        files = [file for file in (stream.folder / "local").glob("blockmgr-*/tocsin-*") if not file.suffix]
        if not files:
            continue
        file = files[stream.rng.integers(len(files))]
        with suppress(FileNotFoundError):
            content = file.read_bytes()
            seen.append((file, content))
            other, earlier = seen[stream.rng.integers(len(seen))]
            ways = [b"", content[:-5], content[:50] + bytes(1) + content[51:], earlier]
            (file if stream.rng.random() < 0.5 else other).write_bytes(ways[stream.rng.integers(len(ways))])
            spoiled += 1
    finished(stream.folder)
    return spoiled


def _workers(driver_id: int) -> list[int]:
    """Python workers of a driver: children of the daemon that Spark has started for it."""
    parents, daemons = dict[int, int](), set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if os.getsid(int(process.name)) == driver_id and b"pyspark.daemon" in (process / "cmdline").read_bytes():
                daemons.add(int(process.name))
        except OSError:  # it has ended
            continue
    return [own for own in daemons if parents[own] in daemons]


FAULTS: dict[str, Callable[[Stream], int]] = {
    "disorder": disorder,
    "replay": replay,
    "written": written,
    "driver": driver,
    "worker": worker,
    "copies": copies,
}


def main() -> None:
    """Try every fault many times, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20, help="tries of each fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kill-after", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        drive(options.drive, options.kill_after)
        return
    reference = np.random.default_rng(0).normal(size=(300, WIDTH))
    detector = Detector(200, window=20, seed=1, interval=False).fit(reference, progress=False)
    verdicts = {name: Verdict() for name in options.only}
    with tempfile.TemporaryDirectory() as place:
        detector.save(Path(place, "detector.tocsin"))
        for attempt in range(options.times):
            for number, (name, verdict) in enumerate(verdicts.items()):
                stream = Stream(Path(place, f"{name}-{attempt}"), detector, options.seed + attempt * 10 + number)
                verdict.struck += FAULTS[name](stream)
                stream.judge(verdict)
                print(f"{name} {attempt + 1}: {verdict}", file=sys.stderr, flush=True)
    print("| fault | tries | strikes | alarms and dead letters | lost | doubled | different |")
    print("|---|---|---|---|---|---|---|")
    for name, v in verdicts.items():
        print(f"| {name} | {v.tries} | {v.struck} | {v.rows} | {v.lost} | {v.doubled} | {v.different} |")
    sys.exit(not all(verdict.clean for verdict in verdicts.values()))


if __name__ == "__main__":
    main()
