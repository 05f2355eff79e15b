"""What reading costs: a stream watched from a Parquet file, and the same rows watched from memory; and peak memory.

The file is written first, row group by row group, from a seeded law. Blocks from the file and blocks from memory are
watched by turns, so that a machine that gets slower does so for both.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from tocsin import Detector, Independent
from tocsin._cli import reading
from tocsin._data.intake import Tabular
from tocsin._data.tables import Table

COLUMNS = 20
GROUP = 100_000
TURN = 50
"""Blocks watched in a turn."""


def table_of(rng: np.random.Generator, rows: int) -> pyarrow.Table:
    """Random rows, as an Arrow table."""
    return pyarrow.table({f"x{i}": rng.normal(size=rows) for i in range(COLUMNS)})


def write(path: Path, size: float) -> int:
    """A file of about so many gigabytes; its rows."""
    rows = int(size * 1e9 / (8 * COLUMNS))
    rng = np.random.default_rng(0)
    schema = table_of(rng, 1).schema
    with pyarrow.parquet.ParquetWriter(path, schema, use_dictionary=False, compression="snappy") as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(table_of(rng, min(GROUP, rows - start)))
    return rows


def main() -> None:
    """Print the ratio, and how memory grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--reference", type=int, default=1000)
    options = parser.parse_args()
    reference = table_of(np.random.default_rng(1), options.reference)
    detector = Detector(1e6, sampler=Independent(), interval=False, seed=0).fit(reference, progress=False)
    intake = detector.intake_
    assert isinstance(intake, Tabular)
    holds = {column.name: column.holds for column in intake.columns.columns}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.parquet"
        rows = write(path, options.gigabytes)
        print(f"{path.stat().st_size / 1e9:.2f} GB, {rows:,} rows of {COLUMNS} columns; {detector!r}")
        blocks = reading.read_blocks(str(path), reading.Selection(holds=holds))
        in_memory: list[Table] = [next(blocks) for _ in range(TURN)]
        detector.update_many(in_memory[0])
        before, seconds, watched = peak(), {"file": 0.0, "memory": 0.0}, {"file": 0, "memory": 0}
        more = True
        while more:
            began = time.perf_counter()
            more = False
            for i, block in enumerate(blocks, 1):
                detector.update_many(block)
                watched["file"] += len(block)
                if i == TURN:
                    more = True
                    break
            seconds["file"] += time.perf_counter() - began
            began = time.perf_counter()
            for block in in_memory:
                detector.update_many(block)
                watched["memory"] += len(block)
            seconds["memory"] += time.perf_counter() - began
        each = {source: 1e6 * seconds[source] / watched[source] for source in seconds}
        print(f"from the file {each['file']:.2f} us a row, from memory {each['memory']:.2f} us")
        print(
            f"reading adds {each['file'] / each['memory'] - 1:.1%}; memory grew by {peak() - before:.0f} MB meanwhile"
        )


def peak() -> float:
    """The most memory that was ever in use, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
