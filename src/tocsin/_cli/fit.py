"""`tocsin fit`: a reference becomes a detector in a file."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from tocsin._calibration.plan import Mode, Precision
from tocsin._cli import choosing, common, describe, reading
from tocsin._common.errors import InputError, ReferenceWarning, TocsinError
from tocsin._common.wording import counted
from tocsin._compute import Backend
from tocsin._compute.arrays import Array
from tocsin._data import validation
from tocsin._data.tables import OTHERS, Kind, Table
from tocsin._detector.detector import Detector
from tocsin._detector.options import BY_ITSELF
from tocsin._samplers import Blocks, Independent, Sampler
from tocsin._state import Start
from tocsin._statistics import LSDD, MMD, Landmarks, MeanShift, Views
from tocsin._statistics.base import Statistic
from tocsin._statistics.kernels import Gaussian

StatisticName = Literal["auto", "mmd", "lsdd", "mean", "views"]
SamplerName = Literal["auto", "independent", "blocks"]

Reference = typer.Argument(
    metavar="REFERENCE",
    help="Rows from a time when all was well: .csv, .jsonl, .npy, .npz, .parquet, .feather, or - for standard input.",
)
Output = typer.Option("--output", "-o", metavar="FILE", help="The .tocsin file to write.")
Ert = typer.Option(
    metavar="N",
    help="Expected run time: observations between false alarms, on average over reference sets. Without it, three are "
    "offered, with what each would find.",
    show_default=False,
)
Window = typer.Option(
    metavar="W,...",
    help="How many of the latest observations to compare with the reference: one number, or several to use together. "
    "Default: 8,25,100, without those that the reference is too small for; of views 5,25, or fewer.",
)
Measure = typer.Option(
    help="What measures the difference between window and reference. 'auto': mmd, or views (each column by itself, in "
    "the forms in which it is quiet) where rows depend on those before them."
)
Width = typer.Option(
    metavar="X,...",
    help="Kernel widths (mmd: one or several; lsdd: one). Default: from the median distance between rows.",
)
LandmarkCount = typer.Option(
    "--landmarks",
    metavar="N",
    help="For big references (mmd): compare with this many landmarks that stand for all rows, such as 1000.",
)
Calibrate = typer.Option(help="How thresholds are made; 'paper' and 'fixed' are there to compare with.")
Draw = typer.Option(
    help="How null streams are drawn: row by row, or in blocks that keep the stream's memory. 'auto' tests whether "
    "rows depend on those before them; if so, blocks are drawn, or views rehearse (see --statistic)."
)
BlockLength = typer.Option(metavar="N", help="Rows in a block. Default: chosen from the reference.")
Groups = typer.Option(
    metavar="COLUMN",
    help="A column with the name or number of the recording, session or machine that a row is from: blocks never cross "
    "from one to the next. It is not watched itself.",
)
Baseline = typer.Option(
    metavar="N",
    help="Rows from which the level and spread of a stream are learnt, before it is watched relative to them: for "
    "machines, patients or days that each have a level of their own. Needs --groups, to learn what they differ by.",
)
Kinds = typer.Option(
    metavar="COLUMN=KIND,...",
    help="Kinds of columns that are not what they seem: number, category, time (of day and week), elapsed (a time as a "
    "number), text, ignore.",
)
Given = typer.Option(
    metavar="COLUMN,...",
    help="Columns that say what is normal: the hour, the load, the kind of customer. The others are watched relative "
    "to what these let expect; they themselves are not watched. A column of times gives hour, weekday and season. "
    "'auto': such a column, if there is one and it helps.",
)
Guarantee = typer.Option(
    metavar="P", help="Raise thresholds so that the true run time is --ert or more with this probability, such as 0.9."
)
Interval = typer.Option(help="Estimate how far the true run time may be from --ert, for this reference.")
Begin = typer.Option(
    help="'warm' tests from the first observation on, 'cold' once the widest window is full, as views always do."
)
Error = typer.Option(
    metavar="X",
    help="Monte Carlo error of the false alarm rate to calibrate to, such as 0.01. 'auto': small beside what the size "
    "of the reference does to it.",
)
Paths = typer.Option(metavar="N", help="Streams to simulate. Default: as many as --error asks for.")
Seed = typer.Option(metavar="N", help="Whole number for reproducible thresholds. Default: a fresh one, kept in FILE.")
Power = typer.Option(
    "--power/--no-power",
    help="Simulate changes on the reference, and say which would be found, how soon, and which would not.",
)
Workers = typer.Option(metavar="N", help="Threads; their number changes nothing in the result. Default: all cores.")


@common.short_errors()
def command(
    reference: Annotated[str, Reference],
    output: Annotated[Path, Output],
    ert: Annotated[float | None, Ert] = None,
    window: Annotated[str | None, Window] = None,
    statistic: Annotated[StatisticName, Measure] = "auto",
    width: Annotated[str | None, Width] = None,
    landmarks: Annotated[int | None, LandmarkCount] = None,
    columns: Annotated[str | None, common.COLUMNS] = None,
    mode: Annotated[Mode, Calibrate] = "steady",
    sampler: Annotated[SamplerName, Draw] = "auto",
    block_length: Annotated[int | None, BlockLength] = None,
    kinds: Annotated[str | None, Kinds] = None,
    groups: Annotated[str | None, Groups] = None,
    given: Annotated[str | None, Given] = None,
    baseline: Annotated[int | None, Baseline] = None,
    guarantee: Annotated[float | None, Guarantee] = None,
    interval: Annotated[bool, Interval] = True,
    start: Annotated[Start, Begin] = "warm",
    error: Annotated[str, Error] = "auto",
    paths: Annotated[int | None, Paths] = None,
    seed: Annotated[int | None, Seed] = None,
    power: Annotated[bool, Power] = True,
    workers: Annotated[int | None, Workers] = None,
    cluster: Annotated[str | None, common.CLUSTER] = None,
    backend: Annotated[Backend, common.BACKEND] = "auto",
    device: Annotated[str | None, common.DEVICE] = None,
    force: Annotated[bool, common.FORCE] = False,
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """Learn what normal looks like, and set the thresholds.

    The reference is a sample of rows from a time when all was well, in the order in which they came: a thousand or
    more, if you can, and many more if rows depend on those before them. Tocsin simulates what would happen if nothing
    ever changed, and sets the thresholds so that it then rings once in --ert observations. FILE then holds all that
    'tocsin watch' needs.

    Then changes are simulated on the reference (a column moves, gets noisy, stops, goes missing, ...): what would be
    found, within how many rows, and what would not. 'tocsin check' shows all of it.

    \b
    Examples:
      tocsin fit reference.csv -o machine.tocsin --ert 5000 --columns flow,pressure
      tocsin fit runs.csv -o machine.tocsin --ert 1e6 --groups run --guarantee 0.9
      tocsin fit shop.csv -o shop.tocsin --ert 5000 --given hour,customer
      tocsin fit pumps.csv -o pump.tocsin --ert 5000 --groups pump --baseline 50
      tocsin fit reference.csv -o machine.tocsin --ert 5000 --error 0.005 --cluster tcp://host:8786
    """
    began = time.perf_counter()
    common.must_be_writable(output)
    if output.exists() and reference != reading.STANDARD_INPUT and output.samefile(reference):
        raise InputError(f"-o {output} would overwrite the reference; choose another file, such as machine.tocsin.")
    if output.exists() and not force:
        _must_be_unused(output)
    detector = Detector(
        choosing.TRIED if ert is None else ert,
        _statistic(statistic, common.numbers("--width", width, float, "a number"), landmarks),
        window=common.numbers("--window", window, int, "a whole number"),
        sampler=_sampler(sampler, block_length),
        guarantee=guarantee,
        interval=interval,
        kinds=kinds_of(common.names(columns), kinds),
        given=BY_ITSELF if given == BY_ITSELF else common.names(given),
        mode=mode,
        start=start,
        error=_precision(error),
        paths=paths,
        baseline=baseline,
        seed=seed,
        backend=backend,
        device=device,
    )
    table, labels = _read(reference, common.names(columns), groups, None if given == BY_ITSELF else common.names(given))
    if ert is None:
        chosen = choosing.choose(detector, table, labels, workers, asks=not as_json)
        detector.set_params(ert=chosen)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ReferenceWarning)
        detector.fit(table, groups=labels, workers=workers, cluster=cluster)
    if power:
        detector.power(workers=workers)
    if device != "cpu":
        detector.set_params(backend="auto", device=None)  # so that the file can be read on other machines
    detector.save(output)
    notes = [*common.warned(caught), *_notes(detector, len(table))]
    if as_json:
        typer.echo(json.dumps({"file": str(output), **describe.facts(detector), "notes": notes}))
        return
    size = f"{counted(len(table), 'row')} of {counted(len(detector.intake_.names), 'column')}"
    seconds = time.perf_counter() - began
    out = common.console()
    out.print(f"Fitted to {size} from {reading.source_name(reference)} in {seconds:.1f} s.\n", markup=False)
    describe.print_table(
        out,
        [
            ("Promise", describe.promise(detector)),
            ("Columns", describe.columns(detector)),
            *describe.given(detector),
            ("Windows", describe.windows(detector)),
            ("Channels", describe.channels(detector)),
            ("Precision", describe.precision(detector)),
            ("Sampling", describe.sampling(detector)),
            *describe.rehearsal(detector),
            *(("Power" if k == 0 else "", sentence) for k, sentence in enumerate(describe.power(detector))),
            ("Seed", str(detector.seed_)),
            *(("Note", note) for note in notes),
        ],
    )
    out.print(f"\nWritten to {output}. Next: tocsin watch {output} STREAM", markup=False)


def _read(
    reference: str, columns: list[str] | None, groups: str | None, given: list[str] | None
) -> tuple[Table, Array | None]:
    """The reference, and the groups of its rows."""
    besides = [*(given or []), *([groups] if groups else [])]
    wanted = None if columns is None else list(dict.fromkeys([*columns, *besides]))
    table = reading.read_whole(reference, wanted)
    if groups is None:
        return table, None
    if groups not in table.names:
        raise InputError(f"--groups {groups}: there is no such column; there are {describe.listed(table.names)}.")
    return table.without([groups]), table.columns[groups].as_strings()


def kinds_of(columns: list[str] | None, kinds: str | None) -> dict[str, Kind] | None:
    """The kinds that are given; columns that are not chosen are ignored, in the stream too."""
    chosen: dict[str, Kind] = {}
    if columns is not None:
        chosen = {**dict.fromkeys(columns, "auto"), OTHERS: "ignore"}
    for part in common.names(kinds) or []:
        name, _, kind = part.partition("=")
        chosen[name.strip()] = cast(Kind, kind.strip())  # the fit refuses those that are none
    return chosen or None


def _precision(given: str) -> Precision:
    try:
        return "auto" if given == "auto" else float(given)
    except ValueError:
        raise InputError(f"--error {given} is not a number; give one such as 0.01, or 'auto'.") from None


def _sampler(name: SamplerName, length: int | None) -> Sampler | Literal["auto"]:
    if length is not None and name != "blocks":
        raise InputError(f"--block-length {length} is for --sampler blocks; add it, or leave the length out.")
    if name == "auto":
        return "auto"
    return Independent() if name == "independent" else Blocks(length)


def _must_be_unused(file: Path) -> None:
    """Refuse to write over a detector that has watched, whose place in its stream would be lost, and over all else."""
    try:
        before = Detector.load(file)
    except TocsinError:
        raise InputError(
            f"{file} is there already, and is no detector that can be read. Name another file, or give --force."
        ) from None
    if before.run or before.time:
        raise InputError(
            f"{file} holds a detector that has watched a stream, and its place there would be lost. Name another file, "
            "or give --force."
        )


def _statistic(name: StatisticName, widths: list[float] | None, landmarks: int | None) -> Statistic | None:
    if name == "auto" and widths is None and landmarks is None:
        return None
    if name in ("auto", "mmd"):
        approximation = None if landmarks is None else Landmarks(landmarks)
        return MMD(None if widths is None else Gaussian(width=widths), approximation)
    if landmarks is not None:
        raise InputError(
            f"--landmarks {landmarks} is for mmd; the others cost as little on big references as on small."
        )
    if name == "lsdd":
        if widths is not None and len(widths) > 1:
            raise InputError(f"--width {widths}: lsdd takes one width. Give one, or --statistic mmd.")
        return LSDD() if widths is None else LSDD(width=widths[0])
    if widths is not None:
        raise InputError("--width is for mmd and lsdd; the others have no kernel. Leave it out.")
    return MeanShift() if name == "mean" else Views()


def _notes(detector: Detector, count: int) -> Iterator[str]:
    """What the user should know about this reference."""
    widest, kept = detector.windows_[-1], len(detector.reference_)
    if kept < count:
        what = "centres" if isinstance(detector.statistic, LSDD) else "landmarks"
        yield f"{count - kept:,} of {count:,} rows are {what}, and no longer part of the reference"
    if count < _wanted(widest):
        yield (
            f"a window of {widest} on {count:,} reference rows loosens the promise: the true rate of false alarms can "
            f"differ much from one in {describe.count(detector.ert)}. {_wanted(widest):,} rows or more are better."
        )


def _wanted(window: int) -> int:
    """Reference rows that a window asks for."""
    return validation.POINTS_PER_WINDOW * window
