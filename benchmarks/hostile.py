"""What Tocsin does with files, signals and streams that mean harm.

    python -m benchmarks.hostile [files] [saves] [signals] [streams] [--quick]

files: detectors, banks and states of fleets, altered in thousands of ways: they work, or are refused in words.
saves: processes that save a detector, killed at any moment: the file is one that was saved, whole.
signals: Ctrl-C at any moment of any call: a detector is as before the call or as after it.
streams: files that are rotated, cut and written in pieces while their watch is killed: against one uninterrupted watch.

All of them if none is named (an hour on two cores; --quick: minutes). Ends with status 1 if anything was lost, doubled
or torn, crashed, or raised an error that is not Tocsin's, or if a watch gave up that could have known.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import track

from benchmarks import hostile_saves, hostile_signals, hostile_streams, hostile_tries

Row = TypeVar("Row")

COLUMNS = (
    "tries", "worked", "clear errors", "raw errors", "crashed", "lost", "doubled", "torn", "gave up", "over memory",
)  # fmt: skip
BAD = COLUMNS[3:]


class Summary:
    """Rows of a table, one for each kind of attack."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, int]] = {}
        self.console = Console(stderr=True)

    def add(self, attack: str, **counts: int) -> None:
        """Some more tries of it; columns that are not named do not go with it."""
        row = self.rows.setdefault(attack, {})
        for column, count in counts.items():
            row[column.replace("_", " ")] = row.get(column.replace("_", " "), 0) + count

    def show(self) -> None:
        """As a table of Markdown."""
        print(f"| attack | {' | '.join(COLUMNS)} |\n|---|{'---|' * len(COLUMNS)}")
        for attack, row in self.rows.items():
            print(f"| {attack} | {' | '.join(str(row.get(column, '')) for column in COLUMNS)} |")

    @property
    def bad(self) -> bool:
        return any(row.get(column, 0) for row in self.rows.values() for column in BAD)


def files(summary: Summary, tries: int, seed: int) -> None:
    """By kind of file."""
    for kind, own in sorted(hostile_tries.attacked("benchmarks.hostile_files", tries, seed).items()):
        counts = {"tries": own.tries, "worked": own.worked, "clear_errors": own.clear, "raw_errors": own.raw}
        summary.add(f"files: {kind}", **counts, crashed=own.crashed, over_memory=own.over)
        for line in own.worst[:5]:
            summary.console.print(line)
        summary.console.print(f"{kind}: at most {own.grown / 2**20:.0f} MB")


def saves(summary: Summary, tries: int, seed: int) -> None:
    """A file that cannot be read counts as lost; one that was never saved, or a part that stays, as torn."""
    found = hostile_saves.saves(tries)
    summary.add("saves killed", tries=tries, lost=found.unreadable, torn=found.torn + found.left)


def signals(summary: Summary, tries: int, seed: int) -> None:
    """By what is called."""
    with tempfile.TemporaryDirectory() as folder:
        for name, verdict in _shown("signals", hostile_signals.verdicts(tries, Path(folder))):
            call = f"Ctrl-C in {name.split(' of ')[0]}"
            summary.add(call, tries=verdict.interrupted, torn=verdict.torn)
            if verdict.torn:
                summary.console.print(f"{name}: {verdict}")


def streams(summary: Summary, tries: int, seed: int) -> None:
    """By how the file is rotated; a watch that ends since it cannot know is right to do so where nobody could."""
    for scenario, own in _shown("streams", hostile_streams.tallies(tries)):
        unknowable = scenario in hostile_streams.UNKNOWABLE
        summary.add(
            f"watch, file {scenario}", tries=own.tries, clear_errors=own.refused if unknowable else 0,
            gave_up=0 if unknowable else own.refused, torn=own.different, worked=own.tries - own.refused,
            lost=own.rows_lost + own.alarms_lost, doubled=own.rows_doubled + own.alarms_doubled, crashed=own.crashed,
        )  # fmt: skip


def _shown(what: str, rows: Iterable[Row]) -> Iterable[Row]:
    return track(rows, what, console=Console(stderr=True), transient=True)


ATTACKS: dict[str, tuple[Callable[[Summary, int, int], None], int, int]] = {
    "files": (files, 10_000, 500),
    "saves": (saves, 200, 20),
    "signals": (signals, 20, 5),
    "streams": (streams, 10, 1),
}
"""And the tries of each, or, of signals and streams, of every call and scenario; those of --quick are last."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="attack", help=", ".join(ATTACKS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tries", type=int, help="instead of as many as usual")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if unknown := set(given.attacks) - set(ATTACKS):
        parser.error(f"there are no attacks {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    began, summary = time.perf_counter(), Summary()
    for name in given.attacks or ATTACKS:
        attack, tries, few = ATTACKS[name]
        attack(summary, given.tries or (few if given.quick else tries), given.seed)
    summary.show()
    print(f"\nseed {given.seed}, {time.perf_counter() - began:.0f} s")
    return int(summary.bad)


if __name__ == "__main__":
    sys.exit(main())
