"""`tocsin check`: what a detector promises, what the promise rests on, and whether it is kept on a quiet stream."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tocsin._calibration.result import LEVEL
from tocsin._cli import common, describe, reading
from tocsin._cli.plot import quantile_plot
from tocsin._cli.streams import blocks
from tocsin._common.errors import InputError
from tocsin._common.wording import counted, rounded
from tocsin._detector.detector import Detector
from tocsin._detector.quiet import FEWEST_TIMES, SUSPICIOUS, QuietRun, run_quietly
from tocsin._plots.figures import require_matplotlib
from tocsin._plots.promise import draw_promise
from tocsin._power.result import Power
from tocsin._power.words import heading, lines, remarks

BROKEN = 1
"""Exit status when a quiet stream speaks against the promise."""

Stream = typer.Option(
    metavar="FILE",
    help="Quiet data that the fit has not seen: .csv, .jsonl, .npy, .parquet, or - for standard input. The detector "
    "runs over it, and its alarms are compared with the promise.",
)
Plot = typer.Option(
    metavar="FILE",
    help="Draw how rare each level of the statistic is, what was simulated and what is extrapolated, and the runs of "
    "--stream, to a .png, .svg or .pdf.",
)
Simulate = typer.Option(
    "--power",
    help="Simulate changes on the reference, and say which would be found, how soon, and which would not, if FILE does "
    "not hold that already.",
)
PlotPower = typer.Option(metavar="FILE", help="Draw that, a cell for each change of each column.")


@common.short_errors()
def command(
    file: Annotated[Path, common.FILE],
    stream: Annotated[str | None, Stream] = None,
    columns: Annotated[str | None, common.COLUMNS] = None,
    plot: Annotated[Path | None, Plot] = None,
    power: Annotated[bool, Simulate] = False,
    plot_power: Annotated[Path | None, PlotPower] = None,
    force: Annotated[bool, common.FORCE] = False,
    as_json: Annotated[bool, common.JSON] = False,
) -> None:
    """Tell what a detector promises, on what grounds, and whether it keeps to it.

    Shows the interval for the true expected run time and what makes it wide, the thresholds and how they were made,
    what is watched (windows, channels, reference), where in the stream the detector is, and which changes it would
    find, as 'tocsin fit' simulated them. With --stream it also runs
    over held-out quiet data and says whether the promise agrees with the alarms there: exit status 1 if it does not.
    Reads FILE, changes nothing.

    \b
    Examples:
      tocsin check machine.tocsin
      tocsin check machine.tocsin --stream quiet_week.csv --plot promise.png
    """
    for option, drawn in (("--plot", plot), ("--plot-power", plot_power)):
        if drawn is not None:
            require_matplotlib()
            common.must_be_free(drawn, force)
            if drawn.suffix not in (".png", ".svg", ".pdf"):
                raise InputError(f"{option} {drawn}: must end in .png, .svg or .pdf.")
    if columns is not None and stream is None:
        raise InputError("--columns chooses the columns of --stream; give both, or neither.")
    detector = Detector.load(file)
    if stream is not None and detector.calibration_.mode == "fixed":
        raise InputError(f"{file} was calibrated with 'fixed', which makes no promise for a stream to speak against.")
    if detector.power_ is None and (power or plot_power is not None):
        detector.power()
    facts, table = _facts(file, detector), _table(detector)
    run = None if stream is None else run_quietly(detector, blocks(detector, file, stream, common.names(columns)))
    if run is not None and run.tests == 0:
        raise InputError(f"{reading.source_name(stream or '')} is too short for a single test; give more rows.")
    if plot is not None:
        draw_promise(detector.calibration_, run, plot)
    if plot_power is not None and detector.power_ is not None:
        detector.power_.plot(plot_power)
    if as_json:
        typer.echo(json.dumps(facts | ({} if run is None else {"stream": _run_facts(run)})))
    else:
        out = common.console()
        out.print(f"{file}\n", markup=False)
        describe.print_table(out, table)
        if detector.power_ is not None:
            _print_power(out, detector.power_)
        if run is not None:
            out.print(f"\n{reading.source_name(stream or '')}\n", markup=False)
            describe.print_table(out, _run_table(run, detector))
            if run.alarms >= FEWEST_TIMES:
                out.print()
                out.print(quantile_plot(*run.quantiles()))
        figures = [str(own) for own in (plot, plot_power) if own is not None]
        if figures:
            out.print(f"\nDrawn to {describe.listed(figures)}.", markup=False)
    if run is not None and not run.consistent:
        raise typer.Exit(BROKEN)


def _print_power(out: Console, power: Power) -> None:
    """What it can see, kind by kind."""
    out.print(f"\n{heading(power)}\n" if power.trials else "", markup=False)
    describe.print_table(out, [(line.label, line.verdict) for line in lines(power)])
    out.print("".join(f"\n{sentence}" for sentence in remarks(power)), markup=False)


def _facts(file: Path, detector: Detector) -> dict[str, object]:
    alarm = None if detector.alarm is None else describe.alarm_facts(detector.alarm)
    state = {"run": detector.run + 1, "run_length": detector.time, "alarm": alarm}
    return {"file": str(file), **describe.facts(detector), "state": state}


def _table(detector: Detector) -> list[tuple[str, str]]:
    rows = len(detector.reference_)
    reference = f"{counted(rows, 'row')} of {counted(len(detector.intake_.names), 'column')}"
    compared = detector.calibration_.compared
    if compared < rows:
        reference += f", {compared:,} of which new observations are compared with"
    causes = describe.causes(detector)
    return [
        ("Promise", describe.promise(detector)),
        ("Precision", describe.precision(detector)),
        *([("", causes)] if causes else []),
        ("Sampling", describe.sampling(detector)),
        *describe.rehearsal(detector),
        ("Thresholds", describe.thresholds(detector)),
        ("Calibration", describe.method(detector)),
        ("Windows", describe.windows(detector)),
        ("Channels", describe.channels(detector)),
        ("Reference", reference),
        ("Columns", describe.columns(detector)),
        *describe.given(detector),
        ("Start", describe.start(detector)),
        ("Seed", str(detector.seed_)),
        ("Stream", describe.place(detector, detector.run)),
    ]


def _run_table(run: QuietRun, detector: Detector) -> list[tuple[str, str]]:
    low, high = run.observed()
    alarms = counted(run.alarms, "alarm")
    interval = f"{rounded(low)} or more" if math.isinf(high) else f"{rounded(low)}-{rounded(high)}"
    rehearsal = detector.calibration_.rehearsal
    made = counted(run.tests, "test" if rehearsal is None else "observation")
    table = [
        ("Seen", f"{alarms} in {made}, where the promise means {run.expected:.3g}"),
        (
            "Run time",
            f"{LEVEL:.0%} interval {interval} from these alarms alone; thresholds are set for "
            f"{describe.count(round(run.ert, 1))}",
        ),
    ]
    evenness = run.evenness
    if evenness is not None:
        table.append(("Evenness", f"alarms at a constant rate: p = {evenness:.2g}"))
    if run.consistent:
        verdict = f"consistent with the promise (p = {run.p_value:.2g})"
        if run.expected < FEWEST_TIMES:
            verdict += f"; but a stream of {rounded(20 * run.ert)} observations or more would say much more"
    elif run.p_value < SUSPICIOUS:
        more = run.alarms > run.expected
        verdict = f"NOT consistent with the promise (p = {run.p_value:.2g}): too {'many' if more else 'few'} alarms. "
        verdict += (
            "Either this stream differs from the reference, or its rows depend on each other more than the reference's"
            if more
            else "Either the reference has changes in it, or the stream is quieter than the reference was"
        )
        if more and rehearsal is not None and rehearsal.wandering:
            verdict += f". Besides, {rehearsal.wanders}"
    else:
        verdict = f"NOT consistent with the promise (p = {evenness:.2g}): alarms come in bursts, or at a changing rate"
    return [*table, ("Verdict", verdict)]


def _run_facts(run: QuietRun) -> dict[str, object]:
    low, high = run.observed()
    return {
        "tests": run.tests,
        "alarms": run.alarms,
        "expected_alarms": run.expected,
        "run_time_interval": describe.finite([low, high]),
        "run_lengths": run.run_lengths.tolist(),
        "p_value": run.p_value,
        "evenness": run.evenness,
        "consistent": run.consistent,
    }
