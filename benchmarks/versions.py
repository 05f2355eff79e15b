"""This version beside an earlier one, by turns: is it as fast, and does it give the same, bit for bit?

    python -m benchmarks.versions REVISION [--turns 7] [--fits]

Both run `benchmarks.workloads` in processes of their own, each with what it has compiled so far, and a first fit with
nothing compiled. Processor time, since machines are shared; read the ratios of medians. Ends with status 1 if a result
differs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).resolve().parent.parent


class Answer(TypedDict):
    """What one run of the workloads prints."""

    times: dict[str, float]
    digests: dict[str, str]


def main() -> None:
    """Run both by turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="the version to compare with, as git names it")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--fits", action="store_true", help="default fits alone, of 1000 and of 10 000 points")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.revision, "src"], cwd=HERE, check=True, capture_output=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
        earlier, present = Path(folder) / "src", HERE / "src"
        for source in (earlier, present):
            answer(source, *(["first"] if options.fits else []))  # compiles
        alone = ["fits"] if options.fits else []
        answers = [(answer(earlier, *alone), answer(present, *alone)) for _ in range(options.turns)]
        contacts = 0 if options.fits else options.turns
        first = [(first_contact(earlier), first_contact(present)) for _ in range(contacts)]
    print(f"| processor time, median of {options.turns} | {options.revision} | now | ratio |\n|---|---|---|---|")
    for turns in (first, answers) if first else (answers,):
        for name in turns[0][0]["times"]:
            before, now = (statistics.median(turn[i]["times"][name] for turn in turns) for i in (0, 1))
            print(f"| {name} | {before * 1e3:.1f} ms | {now * 1e3:.1f} ms | {now / before:.2f} |")
    digests = [each["digests"] for turn in answers for each in turn]
    different = [name for name in digests[0] if len({own[name] for own in digests}) > 1]
    if options.fits:
        return
    print(f"\n{len(digests[0]) - len(different)} of {len(digests[0])} results are the same, bit for bit.")
    if different:
        print("Not the same: " + "; ".join(different))
        sys.exit(1)


def first_contact(source: Path) -> Answer:
    """A first fit on a machine that has compiled nothing yet."""
    with tempfile.TemporaryDirectory() as empty:
        return answer(source, "first", NUMBA_CACHE_DIR=empty)


def answer(source: Path, *arguments: str, **variables: str) -> Answer:
    """Of the version in this folder."""
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{HERE}", **variables}
    command = [sys.executable, "-m", "benchmarks.workloads", *arguments]
    done = subprocess.run(command, cwd=source.parent, env=environment, check=True, capture_output=True, text=True)
    answered: Answer = json.loads(done.stdout)
    return answered


if __name__ == "__main__":
    main()
