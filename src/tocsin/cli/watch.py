"""`tocsin watch`: a detector listens to a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from tocsin import reading
from tocsin.cli import common, describe
from tocsin.cli.stopping import stopper
from tocsin.compute.arrays import Float64Array
from tocsin.detector import Detector
from tocsin.outcomes import Outcome

RANG = 1
"""Exit status when there was an alarm."""

Stream = typer.Argument(
    metavar="STREAM",
    help="Rows to watch: .csv, .jsonl, .npy, .parquet, or - for standard input (CSV or JSON lines).",
)
SaveState = typer.Option(
    "--save-state", help="At the end write the detector back to FILE, so that the next watch goes on from there."
)
Once = typer.Option("--once", help="Stop at the first alarm.")
Quiet = typer.Option("--quiet", "-q", help="Print nothing; the exit status tells.")


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    stream: Annotated[str, Stream],
    columns: Annotated[str | None, common.COLUMNS] = None,
    save_state: Annotated[bool, SaveState] = False,
    once: Annotated[bool, Once] = False,
    quiet: Annotated[bool, Quiet] = False,
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """Watch a stream; ring when it is no longer like the reference.

    Every alarm is a line, printed as soon as its row is read, and a new run starts after it. Standard input is taken
    line by line, as it arrives. Ctrl-C and SIGTERM end the watch between two rows, as the end of the stream would.

    Exit status: 0 quiet, 1 it rang, 2 trouble. A bad row is trouble: it ends the watch, and FILE stays as it was.

    \b
    Examples:
      tocsin watch machine.tocsin today.csv --save-state
      tail -f log.csv | tocsin watch machine.tocsin - --json
    """
    detector = Detector.load(file)
    if save_state:
        common.must_be_writable(file)
    if detector.alarm_ is not None:
        # The watch before ended at an alarm (--once); a new run follows an alarm.
        detector.reset()
    report = Report(detector.calibration_.ert, quiet=quiet, as_json=as_json)
    size = 1 if stream == reading.STANDARD_INPUT else reading.BLOCK
    blocks = reading.read_blocks(stream, common.names(columns), size)
    with stopper() as stop:
        for block in stop.until_asked(_row_by_row(blocks) if once else blocks):
            common.same_columns(detector, block, file, stream)
            for position, outcome in _alarms(detector, block.rows, once):
                report.alarm(report.rows + position + 1, outcome)
            report.rows += len(block.rows)
            if once and report.alarms:
                break
        if save_state:
            detector.save(file)
        report.summary(interrupted=stop.asked, saved_to=file if save_state else None)
    raise typer.Exit(RANG if report.alarms else 0)


def _row_by_row(blocks: Iterator[reading.Block]) -> Iterator[reading.Block]:
    for block in blocks:
        for row in block.rows:
            yield reading.Block(block.columns, row[None])


def _alarms(detector: Detector, rows: Float64Array, once: bool) -> Iterator[tuple[int, Outcome]]:
    """The alarms among these rows, and where; a new run follows each, except where one is enough."""
    if len(rows) == 1:
        outcome = detector.update(rows[0])
        if outcome.alarm:
            yield 0, outcome
            if not once:
                detector.reset()
        return
    outcomes = detector.update_many(rows, reset_on_alarm=True)
    for position in np.flatnonzero(outcomes.alarm):
        yield int(position), outcomes[int(position)]


@dataclass
class Report:
    """What was seen, told as it happens."""

    ert: float
    quiet: bool
    as_json: bool
    out: Console = field(default_factory=common.console)
    rows: int = 0
    alarms: int = 0

    def alarm(self, row: int, outcome: Outcome) -> None:
        """An alarm, at this row of the stream."""
        self.alarms += 1
        if self.as_json:
            self._print(json.dumps({"event": "alarm", "row": row, **describe.alarm_facts(outcome)}))
            return
        values = f"statistic {outcome.statistic:.5g} > threshold {outcome.threshold:.5g} ({outcome.channel})"
        rarity = f"; by chance once in {describe.rounded(outcome.rarity)} rows"
        self._print(Text.assemble(("ALARM", "bold red"), f" at row {row}: run length {outcome.time}, {values}{rarity}"))

    def summary(self, *, interrupted: bool, saved_to: Path | None) -> None:
        """All of it, at the end."""
        chance = self.rows / self.ert
        if self.as_json:
            facts = {"rows": self.rows, "alarms": self.alarms, "expected_false_alarms": chance}
            state = {"interrupted": interrupted, "state_saved": saved_to is not None}
            self._print(json.dumps({"event": "summary", **facts, **state}))
            return
        stopped = "Stopped after " if interrupted else ""
        shown = f"{chance:.2g}" if chance < 10 else f"{chance:,.0f}"
        self._print(
            f"{stopped}{describe.counted(self.rows, 'row')}: {describe.counted(self.alarms, 'alarm')}, where chance "
            f"alone would give {shown} on average (one in {describe.count(self.ert)})."
        )
        if saved_to is not None:
            self._print(f"State saved to {saved_to}: the next watch goes on from here.")

    def _print(self, line: str | Text) -> None:
        if not self.quiet:
            self.out.print(line, markup=False, soft_wrap=True)
