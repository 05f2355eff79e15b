"""`tocsin watch`: a detector listens to a stream."""

from __future__ import annotations

import sys
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tocsin._cli import common, describe, reading
from tocsin._cli.actions import COMMAND_TIMEOUT, TRIES, WAY, Actions
from tocsin._cli.bad_rows import MOST_IN_A_ROW, WORDS, BadRows
from tocsin._cli.data import Data
from tocsin._cli.keeping import EVERY, Keeper, Kept, locked
from tocsin._cli.ledger import Ledger
from tocsin._cli.live import View
from tocsin._cli.outbox import MOST, Outbox
from tocsin._cli.places import PlaceLostError
from tocsin._cli.reading import Block
from tocsin._cli.reading.lines import BadRow
from tocsin._cli.rows import Rows
from tocsin._cli.stopping import Stopper, stopper
from tocsin._cli.telling import Report
from tocsin._common.errors import InputError, TocsinError
from tocsin._common.wording import counted
from tocsin._detector.detector import Detector
from tocsin._explain.beside import Beside
from tocsin._explain.context_words import unseen_told
from tocsin._explain.judged import Judged
from tocsin._explain.rows import texts_of
from tocsin._report.gathering import apart
from tocsin._state.run import RECENT_WINDOWS

RANG = 1
"""Exit status when there was an alarm."""

Stream = typer.Argument(
    metavar="STREAM",
    help="Rows to watch: .csv, .jsonl, .npy, .parquet, or - for standard input (CSV or JSON lines).",
)
Follow = typer.Option(
    "--follow",
    "-f",
    help="At the end of STREAM (.csv or .jsonl) wait for more lines, as tail -F does. Of a file that was rotated the "
    "rest is read, then those that had its name in between, and then the one that has it now.",
)
FromNow = typer.Option(
    "--from-now",
    help="With --follow, for the first watch of STREAM: leave out the rows that it has already. Where FILE says up to "
    "where it was watched, it goes on from there, also with this; if that place cannot be found again, from now on.",
)
Reread = typer.Option(
    "--reread", help="Read STREAM from its beginning, although FILE says that it was watched before, and up to where."
)
BadRowsOption = typer.Option(
    "--bad-rows",
    metavar="stop|skip|FILE",
    help="What to do with rows that cannot be taken in: end the watch, leave them out, or keep them in FILE, as lines "
    f"of JSON with the reason. {MOST_IN_A_ROW} of them in a row always end it. Only with stop may a quoted field of "
    "CSV span lines; else each line is a row, so that a quote too many takes no others with it. Default: stop; with "
    "--follow they are kept beside the detector, in NAME.bad.jsonl.",
)
Timeout = typer.Option(
    metavar="SECONDS", min=0.001, help="How long a command of --on-alarm may take before it is ended."
)
ExitZero = typer.Option("--exit-zero", help="End with status 0 also if it rang, for supervisors that restart.")
Live = typer.Option(
    "--live/--plain",
    help="A picture that runs, or a line for each alarm. Default: a picture in a terminal, if rows come from --follow "
    "or a pipe.",
    show_default=False,
)
Alarms = typer.Option(metavar="FILE", help="Also append each alarm to FILE, as a line of JSON.")
OnAlarm = typer.Option(
    metavar="COMMAND|URL",
    help="For each alarm run a command in the shell, or POST it to an address that begins with http:// or https://, "
    "in the background, one at a time and in order. What fails (a status that is not 0, an answer that is not 2xx, a "
    f"timeout) is tried {TRIES} times, told on standard error, and tried again before each later alarm and, with "
    f"--save-state, by the next watch: it may be done twice. Up to {MOST:,} alarms wait.",
)
Once = typer.Option("--once", help="Stop at the first alarm.")
SaveState = typer.Option(
    "--save-state",
    help="At the end write the detector back to FILE, with its place in STREAM: the next watch goes on from there, "
    f"with the rows that are new. With --follow also at the beginning, at each alarm, and every {EVERY:g} s while rows "
    "come.",
)
SaveEvery = typer.Option(
    metavar="ROWS",
    min=1,
    help="The same, and also at the beginning, at each alarm and after every so many rows: for watches without an end.",
)
Quiet = typer.Option("--quiet", "-q", help="Print nothing; the exit status tells.")
Json = typer.Option("--json", help="Alarms and the summary as lines of JSON.")


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    stream: Annotated[str, Stream],
    columns: Annotated[str | None, common.COLUMNS] = None,
    keep: Annotated[str | None, common.KEEP] = None,
    follow: Annotated[bool, Follow] = False,
    from_now: Annotated[bool, FromNow] = False,
    live: Annotated[bool | None, Live] = None,
    reread: Annotated[bool, Reread] = False,
    bad_rows: Annotated[str | None, BadRowsOption] = None,
    alarms: Annotated[Path | None, Alarms] = None,
    on_alarm: Annotated[str | None, OnAlarm] = None,
    timeout: Annotated[float, Timeout] = COMMAND_TIMEOUT,
    once: Annotated[bool, Once] = False,
    save_state: Annotated[bool, SaveState] = False,
    save_every: Annotated[int | None, SaveEvery] = None,
    exit_zero: Annotated[bool, ExitZero] = False,
    quiet: Annotated[bool, Quiet] = False,
    as_json: Annotated[bool, Json] = False,
) -> None:
    """Watch a stream; ring when it is no longer like the reference.

    Every alarm is told as soon as its row is read, with when the change began and which columns changed, and a new run
    starts after it: a change that stays rings again (with views: as long as it exceeds what it has shown). Of alarms
    that follow each other closely (within a twentieth of the expected run time) the first three are explained in words;
    --json and --alarms explain them all. Ctrl-C, SIGTERM and SIGHUP end the watch between two rows, as the end of the
    stream would.

    A state that was saved knows which rows of which file it has seen, also after a rotation or kill -9, so that none is
    taken in twice or left out. Where that cannot be known (a file that was cut back and has grown again, without a copy
    beside it; files that had the name in between and are compressed or gone) the watch ends with status 3; --reread and
    --from-now say what to do instead. Not seen are rows that were cut off within 0.2 s of being written, and a file
    that is moved to another folder within seconds of taking the name: let rotated files stay beside STREAM, under names
    that begin with its own, until the watch has read them. Alarms that were not told when it was killed are told by the
    next watch, perhaps twice, with the same id.

    \b
    Exit status:
      0  quiet (with --exit-zero: or it rang)
      1  it rang
      2  trouble: bad rows, files that cannot be read or written
      3  rows may have been lost, and which are new cannot be known

    \b
    Examples:
      tocsin watch machine.tocsin today.csv --save-state
      tocsin watch machine.tocsin log.csv --follow
      sensor | tocsin watch machine.tocsin - --json
      tocsin watch machine.tocsin log.csv -f --from-now --save-every 1000

    Observations are counted from 1, as they are taken in: headers, blank lines and bad rows are none. Where the stream
    has a column of times, even one that is not watched, alarms are told with it; --keep adds other columns.

    Alarms can be kept (--alarms) and can set something off (--on-alarm). Each is a JSON object with id, timestamp (when
    it was told), row (the observation's number; times in the explanation count likewise), line (where it is in the
    file, as editors count), when (its time in the data), kept (columns of --keep), run_length, statistic, threshold,
    rarity, channel, text (a line to read), detector and stream, and the explanation. A webhook gets it as its body, a
    command on standard input; numbers and texts in it are also variables: TOCSIN_ROW, TOCSIN_TEXT and so on.

    \b
      tocsin watch machine.tocsin log.csv -f --alarms alarms.jsonl
      tocsin watch machine.tocsin log.csv -f --on-alarm 'logger "$TOCSIN_TEXT"'
      tocsin watch machine.tocsin log.csv -f --on-alarm https://hooks.example.org
    """
    saves = save_state or save_every is not None
    if saves:
        common.must_be_writable(file)
    policy = bad_rows or (str(file.with_suffix(".bad.jsonl")) if follow else "stop")
    for option, written in (("--alarms", alarms), ("--bad-rows", None if policy in WORDS else Path(policy))):
        if written is not None and any(_same(written, other) for other in (file, stream)):
            raise InputError(f"{option} {written} would be written into what is read. Choose another file.")
    _must_make_sense(stream, follow=follow, from_now=from_now, reread=reread)
    with ExitStack() as at_the_end:
        if saves:
            at_the_end.enter_context(locked(file))
        detector, kept = Detector.load(file), Kept(file)
        if detector.alarm is not None:
            # The watch before ended at an alarm (--once); a new run follows an alarm.
            detector.reset()
        source, ert = reading.source_name(stream), detector.calibration_.ert
        seen = describe.power(detector)
        report = Report(
            str(file), source, ert, apart(detector), common.console(), quiet=quiet, as_json=as_json, power=seen
        )
        arriving = follow or (stream == reading.STANDARD_INPUT and sys.stdin is not None and not sys.stdin.isatty())
        view = _view(report, live, arriving=arriving)
        bad = BadRows(policy, source, report.tell)
        at_the_end.callback(bad.close)
        if bad_rows is not None:
            bad.open()
        place = None if reread else kept.place_of(stream)
        rows = Rows(stream, place, bad, report.tell, follow=follow, from_now=from_now)
        at_the_end.callback(rows.close)
        report.before = rows.before
        report.judged = Judged(RECENT_WINDOWS * detector.windows_[-1])
        report.lacking = partial(unseen_told, intake=detector.intake_)
        report.data = None if quiet else Data(detector, rows.before)
        kept_columns = common.names(keep) or []
        report.beside = Beside(
            kept_columns,
            [] if columns else texts_of(detector.intake_),
            most=RECENT_WINDOWS * detector.windows_[-1],
            before=rows.before,
        )
        if alarms is not None:
            report.log = Ledger(alarms, "--alarms", once=saves)
            at_the_end.callback(report.log.close)
        ways = {"output": not quiet, "file": alarms is not None, WAY: on_alarm is not None}
        report.outbox = Outbox([way for way, wanted in ways.items() if wanted], kept.waiting)
        stop = at_the_end.enter_context(stopper())
        if on_alarm is not None:
            report.actions = Actions(on_alarm, report.tell, report.outbox, timeout)
            at_the_end.callback(_finish, report.actions, stop)
        keeper = Keeper(kept, detector, rows, report, save_every)
        as_it_goes = saves and (follow or save_every is not None)
        if as_it_goes:
            report.keep = keeper.try_to_keep
            keeper.try_to_keep()
        if report.before:
            report.tell(
                f"tocsin: {source} was watched up to observation {report.before:,}; what comes after is watched now."
            )
        if left := detector.learning:
            report.tell(
                f"tocsin: the level of {source} is learnt from its next {counted(left, 'observation')}; until then it "
                "is compared with all recordings of the reference together."
            )
        blocks = rows.blocks(detector, file, common.names(columns), kept_columns)
        try:
            with view or nullcontext() as report.view:
                report.tell_what_waits()
                for block in stop.until_asked(blocks):
                    _take_in(detector, block, report, rows, bad, once)
                    if as_it_goes:
                        keeper.keep_if_due()
                    if (once and report.alarms) or (report.unheard and not report.others_listen and not saves):
                        break
                else:
                    rows.ended = not stop.asked
        except TocsinError as error:
            if as_it_goes:
                _finish(report.actions, stop)  # what has had its effect need not wait in the file
                if rows.begun or isinstance(error, PlaceLostError):
                    keeper.try_to_keep()
                else:
                    keeper.undo()  # it was another stream, of other columns perhaps
            raise
        report.tell_again()
        if saves:
            _finish(report.actions, stop)
            keeper.keep()
        report.summary(interrupted=stop.asked, saved_to=file if saves else None, bad_rows=bad.count, kept_in=bad.file)
        _finish(report.actions, stop)
        report.leave(saved=saves)
    raise typer.Exit(RANG if report.alarms and not exit_zero else 0)


def _take_in(detector: Detector, block: Block, report: Report, rows: Rows, bad: BadRows, once: bool) -> None:
    """Watch these rows; a new run follows each alarm, except where one is enough."""
    table, position = block.table, 0
    while position < len(table):
        begun, taken = position, report.rows
        try:
            if len(table) == 1:
                report.saw_one(detector.update(table), block.aside)  # several times as fast for a single row
                position = 1
            else:
                outcomes = detector.update_until_alarm(table[position:])
                report.saw(outcomes, block.aside[position : position + len(outcomes)])
                position += len(outcomes)
        except InputError as error:
            position = _one_by_one(detector, block, position, error, report, rows, bad)
        else:
            bad.good()
        if report.data is not None:
            report.data.add(block.table[begun : begun + report.rows - taken])  # the last may be a bad one
        rows.mark = block.marks[position - 1]
        if detector.alarm is not None:
            report.alarm(detector.alarm, detector.run, detector.explain, block.number(position - 1))
            if once:
                return
            detector.reset()


def _one_by_one(
    detector: Detector, block: Block, position: int, error: InputError, report: Report, rows: Rows, bad: BadRows
) -> int:
    """Rows up to the one that the detector refuses, or to an alarm; how many of the block are done then."""
    while position < len(block.table):
        try:
            report.saw_one(detector.update(block.table[position : position + 1]), block.aside[position : position + 1])
        except InputError as own:
            bad(BadRow(*block.line(position), own, block.marks[position]))
            return position + 1
        bad.good()
        position += 1
        rows.mark = block.marks[position - 1]
        if detector.alarm is not None:
            return position
    raise error


def _must_make_sense(stream: str, *, follow: bool, from_now: bool, reread: bool) -> None:
    if from_now and not follow:
        raise InputError("--from-now leaves out rows of a file that grows; give --follow too.")
    if from_now and reread:
        raise InputError("--reread takes in the rows that are there, and --from-now leaves them out; give one of them.")
    if follow and stream == reading.STANDARD_INPUT:
        raise InputError("--follow is for files that grow; rows from standard input are always taken as they arrive.")
    if follow and Path(stream).suffix.lower() not in reading.GROWING:
        raise InputError(
            f"Cannot follow {stream}: its name must end in one of {', '.join(reading.GROWING)}, since only text can be "
            "read while it is written. Watch it without --follow."
        )


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


def _finish(actions: Actions | None, stop: Stopper) -> None:
    if actions is None or actions.finished:
        return
    with suppress(KeyboardInterrupt), stop.waiting():
        actions.finish()
