"""alibi-detect's online MMD on real quiet streams: false alarms beside those promised.

    python -m benchmarks.peer_streams FOLDER    # as for `tocsin reproduce streams`; half an hour on one core

Forty recordings of the sets that targets were set for, cut as in that experiment; ERT 500, and nothing else told.
Columns are scaled by the reference, which is kind to it, as it has one kernel width for all. After an alarm its state
is reset and it goes on with the next row. Writes docs/results/streams/peer.csv, which the page quotes; what is in it
already is not measured again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.speed import HERE, peer_python
from tocsin._compute.arrays import Float64Array
from tocsin._experiments import provenance, recordings
from tocsin._experiments.base import Row, Table
from tocsin._experiments.laboratory import read_table, write_table
from tocsin._experiments.recorded_sets import SOURCES
from tocsin._experiments.recordings import Recording
from tocsin._experiments.stream_methods import DEFAULT

ERT, WINDOW = 500, 25
PLACES = {
    "Tennessee Eastman": 6,
    "3W wells": 8,
    "SMAP and MSL": 8,
    "hydraulic rig": 3,
    "IMS bearings": 1,
    "C-MAPSS": 3,
    "NAB": 8,
    "Daphnet": 1,
    "SMD": 2,
}
"""Recordings of each set, spread evenly over its names."""

BOOTSTRAPS, FEWER, LONG = 5000, 2000, 1000
"""Of references, and of those with more rows than the last: its fit takes minutes for them."""

TABLE = HERE.parent / "docs" / "results" / "streams" / "peer.csv"


def main() -> None:
    """Watch them one by one, and write the table after each."""
    folder = recordings.find(Path(sys.argv[1]))
    rows: Table = read_table(TABLE) if TABLE.exists() else []
    done = {(row["set"], row["recording"]) for row in rows}
    for name, count in PLACES.items():
        found = list(recordings.read(folder, name).values())
        for place in np.linspace(0, len(found) - 1, min(count, len(found))).astype(int):
            if (name, found[place].name) in done:
                continue
            rows.append(watched(name, found[place], SOURCES[name].digest(folder)))
            write_table(TABLE, rows)
            print(
                {key: rows[-1][key] for key in ("set", "recording", "reference", "rows", "alarms", "seconds")},
                flush=True,
            )


def watched(source: str, recording: Recording, digest: str) -> Row:
    """A recording, and what the peer did there."""
    reference, stream = scaled(recording)
    options = {
        "ert": ERT,
        "window": min(WINDOW, len(reference) // 4),
        "bootstraps": BOOTSTRAPS if len(reference) <= LONG else FEWER,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "recording.npz"
        np.savez(file, reference=reference, stream=stream)
        found = asked(file, json.dumps(options))
    return {
        "set": source,
        "recording": recording.name,
        "reference": len(reference),
        "columns": reference.shape[1],
        **options,
        "rows": len(stream) if recording.counted else 0,
        "alarms": found["alarms"] if recording.counted else 0,
        "seconds": round(found["fit"], 1),
        "digest": digest,
        "machine": provenance.machine(),
        "measured": time.strftime("%Y-%m-%d"),
    }


def told(peer: Table, streams: Table) -> str:
    """False alarms by set, beside those of the default on the same recordings at the same ERT."""
    own = {(row["set"], row["recording"]): row for row in streams if row["method"] == DEFAULT and row["ert"] == ERT}
    lines = [
        "| set | recordings | rows | promised | alibi-detect | Tocsin | seconds of its fits, median |",
        "|---|---|---|---|---|---|---|",
    ]
    groups = {name: [row for row in peer if row["set"] == name] for name in PLACES}
    for name, rows in {**groups, "all": peer}.items():
        if not rows:
            continue
        watched, seconds = sum(int(row["rows"]) for row in rows), np.median([float(row["seconds"]) for row in rows])
        ours = sum(int(own[row["set"], row["recording"]]["alarms"]) for row in rows)
        theirs = sum(int(row["alarms"]) for row in rows)
        lines.append(
            f"| {name} | {len(rows)} | {watched:,} | {watched / ERT:.1f} | {theirs} | {ours} | {seconds:.0f} |"
        )
    fewer = sum(int(row["bootstraps"]) < BOOTSTRAPS for row in peer)
    lines += ["", f"With {BOOTSTRAPS:,} bootstraps; {FEWER:,} on {fewer} references of more than {LONG:,} rows."]
    return "\n".join(lines)


def scaled(recording: Recording) -> tuple[Float64Array, Float64Array]:
    """Reference and stream, relative to the mean and in deviations of the reference."""
    reference, stream = recording.reference.to_numpy(), recording.stream.to_numpy()
    mean, deviation = reference.mean(0), reference.std(0)
    return (reference - mean) / deviation, (stream - mean) / deviation


def asked(file: Path, options: str) -> dict[str, float]:
    """What the peer says of a recording, in its own environment."""
    # Its fit frees thousands of large blocks, which the allocator would otherwise keep: ten gigabytes of them.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000", "OMP_NUM_THREADS": "1"}
    command = [str(peer_python()), str(HERE / "peer.py"), str(file), options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
