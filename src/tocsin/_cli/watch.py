"""`tocsin watch`: a detector listens to a stream."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import IO, Annotated

import typer

from tocsin._cli import common, reading, streams
from tocsin._cli.actions import MOST_WAITING, TRIES, Actions
from tocsin._cli.following import follow as lines_of
from tocsin._cli.live import View
from tocsin._cli.stopping import Stopper, stopper
from tocsin._cli.telling import Report
from tocsin._common.errors import InputError
from tocsin._data.tables import Table
from tocsin._detector.detector import Detector

RANG = 1
"""Exit status when there was an alarm."""

GROWING = (".csv", ".jsonl", ".ndjson")
"""Files that can be followed."""

Stream = typer.Argument(
    metavar="STREAM",
    help="Rows to watch: .csv, .jsonl, .npy, .parquet, or - for standard input (CSV or JSON lines).",
)
Follow = typer.Option(
    "--follow",
    "-f",
    help="At the end of STREAM (.csv or .jsonl) wait for more lines, as tail -F does. A file "
    "that was rotated or cut back is read from its beginning.",
)
FromNow = typer.Option("--from-now", help="With --follow: leave out the rows that STREAM has already.")
Live = typer.Option(
    "--live/--plain",
    help="A picture that runs, or a line for each alarm. Default: a picture in a terminal, if rows come from --follow "
    "or a pipe.",
    show_default=False,
)
Alarms = typer.Option(metavar="FILE", help="Also append each alarm to FILE, as a line of JSON.")
OnAlarm = typer.Option(
    metavar="COMMAND|URL",
    help="For each alarm run a command in the shell, or POST it to an address that begins with http:// or https:// "
    f"({TRIES} tries). In the background, one at a time and in order; up to {MOST_WAITING} alarms wait, and further "
    "ones are dropped. Failures are told on standard error, and the watch goes on.",
)
Once = typer.Option("--once", help="Stop at the first alarm.")
SaveState = typer.Option(
    "--save-state", help="At the end write the detector back to FILE, so that the next watch goes on from there."
)
SaveEvery = typer.Option(
    metavar="ROWS",
    min=1,
    help="The same, and also after every so many rows: for watches without an end.",
)
Quiet = typer.Option("--quiet", "-q", help="Print nothing; the exit status tells.")
Json = typer.Option("--json", help="Alarms and the summary as lines of JSON.")


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    stream: Annotated[str, Stream],
    columns: Annotated[str | None, common.COLUMNS] = None,
    follow: Annotated[bool, Follow] = False,
    from_now: Annotated[bool, FromNow] = False,
    live: Annotated[bool | None, Live] = None,
    alarms: Annotated[Path | None, Alarms] = None,
    on_alarm: Annotated[str | None, OnAlarm] = None,
    once: Annotated[bool, Once] = False,
    save_state: Annotated[bool, SaveState] = False,
    save_every: Annotated[int | None, SaveEvery] = None,
    quiet: Annotated[bool, Quiet] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Watch a stream; ring when it is no longer like the reference.

    Every alarm is told as soon as its row is read, with when the change began and which columns changed, and a new run
    starts after it: a change that stays rings again. Of alarms that follow each other closely (within a twentieth of
    the expected run time) the first three are explained in words; --json and --alarms explain them all. Ctrl-C and
    SIGTERM end the watch between two rows, as the end of the stream would.

    Exit status: 0 quiet, 1 it rang, 2 trouble. A bad row is trouble: it ends the watch, and FILE stays as it was.

    \b
    Examples:
      tocsin watch machine.tocsin today.csv --save-state
      tocsin watch machine.tocsin log.csv --follow
      sensor | tocsin watch machine.tocsin - --json
      tocsin watch machine.tocsin log.csv -f --from-now --save-every 1000

    Alarms can be kept (--alarms) and can set something off (--on-alarm). Each is a JSON object with timestamp, row
    (the observation's number in this stream, from 1; times in the explanation count likewise), run_length, statistic,
    threshold, rarity, channel, text (a line to read), detector and stream, and the explanation. A webhook gets it as
    its body, a command on standard input; numbers and texts in it are also variables: TOCSIN_ROW, TOCSIN_TEXT and so
    on.

    \b
      tocsin watch machine.tocsin log.csv -f --alarms alarms.jsonl
      tocsin watch machine.tocsin log.csv -f --on-alarm 'logger "$TOCSIN_TEXT"'
      tocsin watch machine.tocsin log.csv -f --on-alarm https://hooks.example.org
    """
    detector = Detector.load(file)
    saves = save_state or save_every is not None
    if saves:
        common.must_be_writable(file)
    if alarms is not None and any(_same(alarms, other) for other in (file, stream)):
        raise InputError(f"--alarms {alarms} would be written into what is read. Choose another file.")
    if detector.alarm is not None:
        # The watch before ended at an alarm (--once); a new run follows an alarm.
        detector.reset()
    source, ert = reading.source_name(stream), detector.calibration_.ert
    report = Report(str(file), source, ert, common.console(), quiet=quiet, as_json=as_json)
    view = _view(report, live, arriving=follow or (stream == reading.STANDARD_INPUT and not sys.stdin.isatty()))
    blocks = _blocks(detector, file, stream, common.names(columns), follow=follow, from_now=from_now)
    with stopper() as stop, ExitStack() as at_the_end:
        if alarms is not None:
            report.log = at_the_end.enter_context(_appending(alarms))
        if on_alarm is not None:
            report.actions = Actions(on_alarm, report.tell)
            at_the_end.callback(_finish, report.actions, stop)
        saved = 0
        with view or nullcontext() as report.view:
            for block in stop.until_asked(blocks):
                _take_in(detector, block, report, once)
                if save_every is not None and report.rows - saved >= save_every:
                    detector.save(file)
                    saved = report.rows
                if once and report.alarms:
                    break
        if saves:
            detector.save(file)
        report.summary(interrupted=stop.asked, saved_to=file if saves else None)
    raise typer.Exit(RANG if report.alarms else 0)


def _take_in(detector: Detector, rows: Table, report: Report, once: bool) -> None:
    """Watch these rows; a new run follows each alarm, except where one is enough."""
    position = 0
    while position < len(rows):
        if len(rows) == 1:
            report.saw_one(detector.update(rows))  # several times as fast for a single row
            position = 1
        else:
            outcomes = detector.update_until_alarm(rows[position:])
            report.saw(outcomes)
            position += len(outcomes)
        if detector.alarm is not None:
            report.alarm(detector.alarm, detector.explain)
            if once:
                return
            detector.reset()


def _blocks(
    detector: Detector, file: Path, stream: str, columns: list[str] | None, *, follow: bool, from_now: bool
) -> Iterator[Table]:
    if not follow:
        if from_now:
            raise InputError("--from-now leaves out rows of a file that grows; give --follow too.")
        size = 1 if stream == reading.STANDARD_INPUT else reading.BLOCK
        return streams.blocks(detector, file, stream, columns, size)
    if stream == reading.STANDARD_INPUT:
        raise InputError("--follow is for files that grow; rows from standard input are always taken as they arrive.")
    if Path(stream).suffix.lower() not in GROWING:
        raise InputError(
            f"Cannot follow {stream}: its name must end in one of {', '.join(GROWING)}, since only text can be read "
            "while it is written. Watch it without --follow."
        )
    return streams.blocks(detector, file, stream, columns, 1, lines_of(stream, from_now=from_now))


def _view(report: Report, wanted: bool | None, *, arriving: bool) -> View | None:
    """A running picture, if it is wanted or, where nothing is said, if it can be shown."""
    out = report.out
    possible = out.is_terminal and not out.is_dumb_terminal and not out.options.ascii_only
    if wanted and (report.quiet or report.as_json):
        raise InputError("--live shows a picture, which leaves no room for --quiet or --json. Perhaps --alarms helps.")
    if wanted and not possible:
        raise InputError("--live needs a terminal that can move its cursor and show Unicode. Leave it out.")
    if wanted or (wanted is None and arriving and possible and not report.quiet and not report.as_json):
        return View(out, f"{report.detector} watches {report.stream}", report.ert)
    return None


def _same(alarms: Path, other: Path | str) -> bool:
    return alarms.resolve() == Path(other).resolve()


def _appending(file: Path) -> IO[str]:
    try:
        return file.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write --alarms {file}: {error.strerror or error}.") from error


def _finish(actions: Actions, stop: Stopper) -> None:
    with suppress(KeyboardInterrupt), stop.waiting():
        actions.finish()
