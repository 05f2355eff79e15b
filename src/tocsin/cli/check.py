"""`tocsin check`: what a detector promises, and what the promise rests on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import common, describe
from tocsin.detector import Detector


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """Tell what a detector promises, and on what grounds.

    Shows the thresholds and how they were made (streams simulated, Monte Carlo error), what is watched (windows,
    channels, reference) and where in the stream the detector is. Reads FILE, changes nothing.

    \b
    Example:
      tocsin check machine.tocsin
    """
    detector = Detector.load(file)
    rows, columns = detector.reference_.shape
    if as_json:
        facts = describe.facts(detector, rows, columns)
        alarm = None if detector.alarm_ is None else describe.alarm_facts(detector.alarm_)
        state = {"run": detector.run_ + 1, "run_length": detector.time_, "alarm": alarm}
        typer.echo(json.dumps({"file": str(file), **facts, "state": state}))
        return
    reference = f"{describe.counted(rows, 'row')} of {describe.counted(columns, 'column')}"
    compared = detector.calibration_.compared
    if compared < rows:
        reference += f", {compared:,} of which new observations are compared with"
    out = common.console()
    out.print(f"{file}\n", markup=False)
    describe.print_table(
        out,
        [
            ("Promise", describe.promise(detector)),
            ("Precision", describe.precision(detector)),
            ("Thresholds", describe.thresholds(detector)),
            ("Calibration", describe.method(detector)),
            ("Windows", describe.windows(detector)),
            ("Channels", describe.channels(detector)),
            ("Reference", reference),
            ("Start", detector.start),
            ("Seed", str(detector.seed_)),
            ("Stream", describe.place(detector, detector.run_)),
        ],
    )
