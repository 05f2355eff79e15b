"""The commands as their users run them: in a shell, in pipes, and interrupted."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tocsin import Blocks, Detector, __version__
from tocsin._cli import app
from tocsin._cli.stopping import Stopper, stopper
from tocsin._compute.arrays import Float64Array
from tocsin._detector.quiet import run_quietly
from tocsin._experiments import provenance
from tocsin._experiments.catalogue import EXPERIMENTS, GROUPS

COMMAND = [sys.executable, "-c", "from tocsin._cli import main; main()"]
PATIENCE = 30.0
FIT = ("--ert", "300", "--window", "5,20", "--paths", "500", "--seed", "1")

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 2))
QUIET = 250
STREAM = np.concatenate([rng.normal(size=(QUIET, 2)), rng.normal(loc=1.5, size=(150, 2))])

arrow: Any = import_module("pyarrow")
parquet: Any = import_module("pyarrow.parquet")


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def csv(rows: Float64Array) -> str:
    """Rows as CSV with a header, to the last bit."""
    return "x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist())


def json_lines(rows: Float64Array) -> str:
    """Rows as JSON lines, to the last bit."""
    return "".join(json.dumps({"x": x, "y": y}) + "\n" for x, y in rows.tolist())


def ring(detector: Detector, rows: Float64Array) -> list[tuple[int, int]]:
    """What a watch should report, from the library: row and run length of the alarms."""
    outcomes = detector.update_many(rows)
    return [(int(i) + 1, int(outcomes.time[i])) for i in np.flatnonzero(outcomes.alarm)]


def alarms(output: str) -> list[tuple[int, int]]:
    """What a watch with --json reported: row and run length of the alarms."""
    events = [json.loads(line) for line in output.splitlines()]
    return [(event["row"], event["run_length"]) for event in events if event["event"] == "alarm"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector that `tocsin fit` made; not to be changed."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "reference.csv").write_text(csv(REFERENCE))
    result = tocsin("fit", folder / "reference.csv", "-o", folder / "fitted.tocsin", *FIT)
    assert result.exit_code == 0, result.output
    return folder / "fitted.tocsin"


@pytest.fixture
def file(fitted: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copy(fitted, tmp_path / "d.tocsin"))


# Help and errors


def test_version_and_help() -> None:
    """Every command explains itself and gives an example."""
    assert tocsin("--version").stdout == f"tocsin {__version__}\n"
    assert "tocsin demo" in tocsin("--help").stdout
    for name in ("fit", "watch", "check", "demo", "reproduce"):
        result = tocsin(name, "--help")
        assert result.exit_code == 0
        assert "Example" in result.stdout
        assert f"tocsin {name}" in result.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("fit r.csv --ert 100", "--output"),
        ("fit r.csv -o d.tocsin --ert many", "--ert"),
        ("fit r.csv -o d.tocsin --ert 100 --statistic best", "'mmd'"),
        ("fit r.csv -o d.tocsin --ert 1", "tocsin: --ert 1 is too small"),
        ("fit r.csv -o d.tocsin --ert 100 --window 8,x", "--window 8,x"),
        ("fit r.csv -o d.tocsin --ert 100 --window 200", "too small for a window"),
        ("fit r.csv -o d.tocsin --ert 100 --columns x,z", "no column 'z'"),
        ("fit r.csv -o d.tocsin --ert 100 --statistic mean --width 1", "--width is for mmd and lsdd"),
        ("fit r.csv -o d.tocsin --ert 100 --statistic lsdd --width 1,2", "takes one width"),
        ("fit r.csv -o d.tocsin --ert 100 --sampler bootstrap", "'blocks'"),
        ("fit r.csv -o d.tocsin --ert 100 --block-length 9", "--block-length 9 is for --sampler blocks"),
        (
            "fit r.csv -o d.tocsin --ert 100 --sampler blocks --block-length 0",
            "--block-length 0: must be a whole",
        ),
        ("fit r.csv -o d.tocsin --ert 100 --sampler blocks --block-length 40", "Collect 400 observations"),
        ("fit r.csv -o d.tocsin --ert 100 --groups z", "--groups z: there is no such column; there are x and y"),
        ("fit r.csv -o d.tocsin --ert 100 --guarantee 2", "--guarantee 2 must lie between 0.5 and 0.999"),
        ("fit r.csv -o d.tocsin --ert 100 --guarantee 0.9 --no-interval", "A guarantee needs --interval:"),
        ("fit r.csv -o d.tocsin --ert 100 --guarantee 0.9 --mode fixed", "choose --mode steady"),
        ("fit r.csv -o d.tocsin --ert 100 --device gpu", "--device gpu is unknown; choose 'cpu'"),
        ("fit r.csv -o d.tocsin --ert 100 --landmarks 90", "--landmarks 90 asks for a reference of 360 points"),
        ("fit r.csv -o r.csv --ert 100", "would overwrite the reference"),
        ("fit r.csv -o no/d.tocsin --ert 100", "Choose another folder"),
        ("fit r.csv -o . --ert 100", "it is a folder"),
        ("fit no.csv -o d.tocsin --ert 100", "No such file"),
        ("fit words.csv -o d.tocsin --ert 100 --kinds y=number", "cannot be taken for 'number'"),
        ("fit words.csv -o d.tocsin --ert 100 --kinds z=number", "--kinds names a column 'z'"),
        ("fit words.csv -o d.tocsin --ert 100 --columns x,z", "no column 'z'"),
        ("watch no.tocsin r.csv", "There is no file"),
        ("watch r.csv r.csv", "not a whole .tocsin file"),
        ("check r.csv", "not a whole .tocsin file"),
        ("check r.csv --columns x", "--columns chooses the columns of --stream"),
        ("check r.csv --plot r.txt", "must end in .png, .svg or .pdf"),
        ("check r.csv --plot no/r.png", "Choose another folder"),
        ("reproduce", "NAME"),
        ("reproduce table2", f"Nothing is called table2. Choose one of {', '.join([*EXPERIMENTS, *GROUPS])}."),
        ("reproduce problems --workers 0", "--workers one from 1 on"),
        ("reproduce problems --seed -1", "--seed is a whole number from 0 on"),
        ("reproduce problems --backend abacus", "--backend"),
        ("reproduce problems --draw-only", "There is no reproduced/problems.csv"),
        ("reproduce problems --quick -o r.csv", "Cannot keep results in r.csv/ledger.sqlite"),
        ("wotch", "watch"),
    ],
)
def test_trouble_is_short_and_has_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    """A line or two on standard error, no traceback, and no file."""
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text(csv(REFERENCE))
    Path("words.csv").write_text("x,y\n1,one\n2,two\n")
    result = tocsin(*command.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) <= 4
    assert isinstance(result.exception, SystemExit)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "words.csv"]


def test_fit_never_replaces_a_device(tmp_path: Path) -> None:
    """A file is replaced as a whole; a pipe or a device (/dev/null) must not be."""
    os.mkfifo(tmp_path / "pipe")
    result = tocsin("fit", "-", "-o", tmp_path / "pipe", "--ert", "100", stdin=csv(REFERENCE))
    assert result.exit_code == 2
    assert "it is a folder, a device or a pipe" in result.stderr
    assert (tmp_path / "pipe").is_fifo()


def test_the_library_does_not_import_the_command_line() -> None:
    """typer and rich are for the command line alone."""
    check = "import sys, tocsin; assert not {'typer', 'rich', 'tocsin._cli'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=PATIENCE)


# fit and check


def test_fit_is_what_the_library_does(fitted: Path) -> None:
    """The same thresholds, and a detector at its start."""
    table = [{"x": x, "y": y} for x, y in REFERENCE.tolist()]
    detector, saved = Detector(300, window=[5, 20], paths=500, seed=1).fit(table), Detector.load(fitted)
    np.testing.assert_array_equal(saved.thresholds_, detector.thresholds_)
    assert (saved.time, saved.alarm) == (0, None)


def test_fit_tells_what_is_promised(tmp_path: Path) -> None:
    """In words, and in JSON; default windows that the reference is too small for are named."""
    (tmp_path / "r.jsonl").write_text(json_lines(REFERENCE * [1, 50]))
    arguments = ("fit", tmp_path / "r.jsonl", "-o", tmp_path / "d.tocsin", "--ert", "400", "--paths", "300")
    words = " ".join(tocsin(*arguments).stdout.split())
    assert "one false alarm in 400 observations" in words
    assert "300 rows of 2 columns" in words
    assert "the latest 8 and 25 observations" in words
    assert "default windows left out: 100. A window needs 10 times as many reference points (there are 300)" in words
    assert "--window to choose yourself" in words
    assert "x (number) and y (number)" in words
    facts = json.loads(tocsin(*arguments, "--json", "--window", "8", "--columns", "y").stdout)
    assert facts["windows"] == [8]
    assert facts["names"] == ["y"]
    assert facts["notes"] == []
    assert facts["monte_carlo_error"] > 0


@pytest.mark.parametrize(
    "options",
    [
        ("--statistic", "lsdd", "--width", "1.5"),
        ("--statistic", "mean", "--start", "cold"),
        ("--width", "0.5,1", "--mode", "paper", "--paths", "500"),
        ("--mode", "fixed", "--paths", "500", "--workers", "1"),
        ("--error", "0.2"),
        ("--no-interval",),
        ("--sampler", "independent"),
        ("--sampler", "blocks", "--block-length", "20"),
        ("--guarantee", "0.8"),
        ("--device", "cpu", "--landmarks", "10"),
    ],
)
def test_fit_and_check_know_every_option(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Each makes a detector that `check` describes and `watch` can use."""
    file = tmp_path / "d.tocsin"
    result = tocsin("fit", "-", "-o", file, "--ert", "100", "--window", "6", *options, stdin=csv(REFERENCE))
    assert result.exit_code == 0, result.output
    checked = tocsin("check", file)
    assert checked.exit_code == 0
    # A fixed threshold promises nothing that an interval could be about.
    alone = {"fixed", "--no-interval"} & set(options)
    assert ("Monte Carlo error" if alone else "90% interval") in checked.stdout
    assert tocsin("watch", file, "-", stdin=csv(STREAM)).exit_code == 1


def test_check_tells_thresholds_of_every_start(tmp_path: Path) -> None:
    """Warm, cold, and a single one: each with the observation that it is first used for."""
    for options, start in (("warm", "at observation 1: "), ("cold", "at observation 6: ")):
        tocsin(
            "fit", "-", "-o", tmp_path / "d", "--ert", "50", "--window", "6", "--start", options, stdin=csv(REFERENCE)
        )
        thresholds, words = Detector.load(tmp_path / "d").thresholds_, tocsin("check", tmp_path / "d").stdout
        assert f"{start}{thresholds[1 if options == 'warm' else 0]:.4g}, " in " ".join(words.split())
        assert f"from {6 if options == 'warm' else 12} on: {thresholds[-1]:.4g}" in " ".join(words.split())


def test_check_tells_all(file: Path) -> None:
    """The promise and its grounds, and the place in the stream; FILE is only read."""
    tocsin("watch", file, "-", "--save-state", "--once", stdin=csv(STREAM))
    before, expected = file.read_bytes(), Detector.load(file)
    assert expected.alarm is not None
    words = " ".join(tocsin("check", file).stdout.split())
    assert "one false alarm in 300 observations" in words
    assert f"from 20 on: {expected.calibration_.threshold:.4g}" in words
    assert "500 simulated streams" in words
    assert "300 rows of 2 columns" in words
    assert f"rang at observation {expected.alarm.time}" in words
    facts = json.loads(tocsin("check", file, "--json").stdout)
    assert facts["thresholds"] == expected.thresholds_.tolist()
    assert facts["state"]["alarm"]["run_length"] == expected.alarm.time
    assert file.read_bytes() == before


# What a fit is told of streams with a memory, and what it then tells


def remembering(rows: int, seed: int) -> Float64Array:
    """Two columns that depend on the row before."""
    x = np.random.default_rng(seed).normal(size=(rows, 2))
    for t in range(1, rows):
        x[t] += 0.7 * x[t - 1]
    return x


def fit_facts(folder: Path, *options: object, stdin: str) -> dict[str, Any]:
    """What `tocsin fit --json` tells."""
    basics = ("fit", "-", "-o", folder / "d.tocsin", "--ert", "200", "--window", "5", "--paths", "2000", "--seed", "1")
    result = tocsin(*basics, "--json", *options, stdin=stdin)
    assert result.exit_code == 0, result.output
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def test_samplers_by_name(tmp_path: Path) -> None:
    """'auto' looks at the rows and says what it saw, in the words of the command line; the others do as they say."""
    rows = csv(remembering(1000, 0))
    auto, blocks, single = (
        fit_facts(tmp_path, "--statistic", "mmd", "--sampler", name, stdin=rows)
        for name in ("auto", "blocks", "independent")
    )
    assert auto["block"] == blocks["block"] > 1
    assert auto["thresholds"] == blocks["thresholds"]
    assert auto["dependence"] == single["dependence"] == 0.01
    assert (single["block"], single["guard"]) == (1, 0)
    assert blocks["notes"] == []
    assert f"blocks of {auto['block']} observations (--sampler blocks)" in auto["notes"][0]
    assert "or give --sampler independent" in auto["notes"][0]
    assert "Give --sampler blocks, or --sampler auto;" in single["notes"][0]
    given = fit_facts(tmp_path, "--sampler", "blocks", "--block-length", "33", stdin=rows)
    assert given["block"] == 33
    assert "blocks of 33 rows" in tocsin("check", tmp_path / "d.tocsin").stdout


def test_groups_are_a_column_that_is_not_watched(tmp_path: Path) -> None:
    """Wherever it stands, and whether or not other columns are chosen."""
    rows, run = remembering(1000, 0), np.repeat(np.arange(10), 100)
    lines = ["run,x,y", *(f"{g},{x!r},{y!r}" for g, (x, y) in zip(run, rows.tolist(), strict=True))]
    facts = fit_facts(tmp_path, "--groups", "run", "--sampler", "blocks", stdin="\n".join([*lines, ""]))
    assert facts["names"] == ["x", "y"]
    saved = Detector.load(tmp_path / "d.tocsin")
    table, blocks = [{"x": x, "y": y} for x, y in rows], Blocks()
    expected = Detector(200, window=5, sampler=blocks, paths=2000, seed=1).fit(table, groups=run)
    np.testing.assert_array_equal(saved.thresholds_, expected.thresholds_)
    chosen = fit_facts(
        tmp_path, "--groups", "run", "--columns", "y", "--sampler", "blocks", stdin="\n".join([*lines, ""])
    )
    assert chosen["names"] == ["y"]
    # Its number, and one feature for values that are newly missing.
    assert Detector.load(tmp_path / "d.tocsin").reference_.shape == (1000, 2)


def test_a_guarantee_is_told(tmp_path: Path) -> None:
    """In the promise, and by how much thresholds are raised for it."""
    plain = fit_facts(tmp_path, stdin=csv(REFERENCE))
    facts = fit_facts(tmp_path, "--guarantee", "0.9", stdin=csv(REFERENCE))
    assert (plain["guarantee"], facts["guarantee"]) == (None, 0.9)
    assert plain["nominal_ert"] == plain["ert"] == facts["ert"] == 200
    assert facts["nominal_ert"] > 200
    assert facts["thresholds"][-1] > plain["thresholds"][-1]
    words = " ".join(tocsin("check", tmp_path / "d.tocsin").stdout.split())
    assert "one false alarm in 200 observations or more, with a probability of 0.9 over reference sets" in words


def test_no_interval_is_told_if_none_is_asked_for(tmp_path: Path) -> None:
    """The thresholds are the same."""
    plain = fit_facts(tmp_path, stdin=csv(REFERENCE))
    facts = fit_facts(tmp_path, "--no-interval", stdin=csv(REFERENCE))
    assert (facts["interval"], facts["errors"], facts["points_to_halve"]) == (None, None, None)
    low, high = plain["interval"]
    assert low < 200 < high
    assert set(plain["errors"]) >= {"simulation", "law", "reference", "tail"}
    assert facts["thresholds"] == plain["thresholds"]


# check --stream

HELD_OUT = np.random.default_rng(3).normal(size=(3000, 2))


def test_check_on_a_quiet_stream(fitted: Path, tmp_path: Path) -> None:
    """What the library sees, a status of 0, and FILE as it was."""
    before = fitted.read_bytes()
    (tmp_path / "quiet.csv").write_text(csv(HELD_OUT))
    result = tocsin("check", fitted, "--stream", tmp_path / "quiet.csv")
    assert result.exit_code == 0, result.output
    expected = run_quietly(Detector.load(fitted), [HELD_OUT])
    words = " ".join(result.stdout.split())
    assert f"{expected.alarms} alarms in 3,000 tests, where the promise means 10" in words
    assert "consistent with the promise" in words
    assert "NOT consistent" not in words
    once = tocsin("check", fitted, "--stream", "-", stdin=csv(HELD_OUT[:1])).stdout
    assert "0 alarms in 1 test, where" in " ".join(once.split())
    facts = json.loads(tocsin("check", fitted, "--stream", "-", "--json", stdin=csv(HELD_OUT)).stdout)
    assert facts["ert"] == 300
    assert facts["stream"] == {
        "tests": 3000,
        "alarms": expected.alarms,
        "expected_alarms": 10.0,
        "run_time_interval": list(expected.observed()),
        "run_lengths": expected.run_lengths.tolist(),
        "p_value": expected.p_value,
        "evenness": expected.evenness,
        "consistent": True,
    }
    assert fitted.read_bytes() == before


def test_check_on_a_stream_that_is_not_quiet(fitted: Path) -> None:
    """A status of 1, what is wrong, and the runs against the law that they should have."""
    result = tocsin("check", fitted, "--stream", "-", stdin=csv(HELD_OUT + 1.0))
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert "NOT consistent with the promise" in words
    assert "too many alarms" in words
    assert "geometric run lengths" in words
    facts = json.loads(tocsin("check", fitted, "--stream", "-", "--json", stdin=csv(HELD_OUT + 1.0)).stdout)
    assert facts["stream"]["consistent"] is False
    assert facts["stream"]["p_value"] < 0.001


def test_check_on_a_stream_without_alarms(fitted: Path) -> None:
    """No upper end to the run time; so few rows say little, and that is said."""
    facts = json.loads(tocsin("check", fitted, "--stream", "-", "--json", stdin=csv(HELD_OUT[:20])).stdout)
    assert facts["stream"]["alarms"] == 0
    assert facts["stream"]["run_time_interval"][1] is None
    words = " ".join(tocsin("check", fitted, "--stream", "-", stdin=csv(HELD_OUT[:20])).stdout.split())
    assert "a stream of 6,000 observations or more would say much more" in words


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize(
    "stream", [None, HELD_OUT, HELD_OUT[:20], HELD_OUT + 1.0], ids=["none", "quiet", "short", "loud"]
)
def test_check_draws(fitted: Path, tmp_path: Path, suffix: str, stream: Float64Array | None) -> None:
    """The promise, and the runs of a stream beside it if there is one; whatever the verdict."""
    plot = tmp_path / f"promise{suffix}"
    options: tuple[object, ...] = () if stream is None else ("--stream", "-")
    result = tocsin("check", fitted, "--plot", plot, *options, stdin=None if stream is None else csv(stream))
    assert result.exit_code == (1 if stream is not None and stream.mean() > 0.5 else 0)
    assert f"Drawn to {plot}." in "".join(result.stdout.splitlines())
    head = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert plot.read_bytes().startswith(head)
    assert [path.name for path in tmp_path.iterdir()] == [plot.name]


def test_check_draws_what_is_extrapolated(tmp_path: Path) -> None:
    """A threshold beyond all that was simulated is in the picture too."""
    Detector(1e6, window=5, paths=500, seed=0).fit(REFERENCE).save(tmp_path / "d.tocsin")
    result = tocsin("check", tmp_path / "d.tocsin", "--plot", tmp_path / "promise.svg")
    assert result.exit_code == 0
    assert "extrapolated from alarms once in" in " ".join(result.stdout.split())
    assert (tmp_path / "promise.svg").stat().st_size > 5000


def test_check_asks_for_matplotlib_first(fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the stream is read."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = tocsin("check", fitted, "--plot", tmp_path / "a.png")
    assert result.exit_code == 2
    assert "pip install 'tocsin[plot]'" in result.stderr


def test_streams_that_cannot_be_checked(fitted: Path, tmp_path: Path) -> None:
    """Other columns, too few rows, a row that is none, and a detector that promises nothing."""
    wide = "time,x,y\n" + "".join(f"{i},{x!r},{y!r}\n" for i, (x, y) in enumerate(HELD_OUT.tolist()))
    result = tocsin("check", fitted, "--stream", "-", stdin=wide)
    assert result.exit_code == 2
    assert "standard input has 'time' besides" in result.stderr
    assert tocsin("check", fitted, "--stream", "-", "--columns", "x,y", stdin=wide).exit_code == 0
    cold = tmp_path / "cold.tocsin"
    tocsin("fit", "-", "-o", cold, "--start", "cold", *FIT, stdin=csv(REFERENCE))
    for file, text, message in (
        (cold, csv(HELD_OUT[:19]), "standard input is too short for a single test; give more rows"),
        (fitted, csv(HELD_OUT) + "inf,1\n", "column 'x' holds inf"),
    ):
        result = tocsin("check", file, "--stream", "-", stdin=text)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    assert tocsin("check", cold, "--stream", "-", stdin=csv(HELD_OUT[:20])).exit_code == 0
    fixed = tmp_path / "fixed.tocsin"
    tocsin("fit", "-", "-o", fixed, "--mode", "fixed", *FIT, stdin=csv(REFERENCE))
    result = tocsin("check", fixed, "--stream", "-", stdin=csv(HELD_OUT))
    assert result.exit_code == 2
    assert "makes no promise" in result.stderr


# watch


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npy", "parquet", "csv from -", "jsonl from -"])
def test_every_format_rings_as_the_library_does(fitted: Path, tmp_path: Path, kind: str) -> None:
    """The same alarms at the same rows, a status of 1, and FILE as it was."""
    suffix, before = kind.split()[0], fitted.read_bytes()
    path, text = tmp_path / f"stream.{suffix}", json_lines(STREAM) if suffix == "jsonl" else csv(STREAM)
    if suffix == "npy":
        np.save(path, STREAM)
    elif suffix == "parquet":
        parquet.write_table(arrow.table({"x": STREAM[:, 0], "y": STREAM[:, 1]}), path)
    else:
        path.write_text(text)
    source, stdin = ("-", text) if kind.endswith("-") else (path, None)
    expected = ring(Detector.load(fitted), STREAM)
    assert len(expected) > 3
    result = tocsin("watch", fitted, source, "--json", stdin=stdin)
    assert alarms(result.stdout) == expected
    assert all(json.loads(line)["rarity"] > 100 for line in result.stdout.splitlines()[:-1])
    assert json.loads(result.stdout.splitlines()[-1]) == {
        "event": "summary",
        "rows": len(STREAM),
        "alarms": len(expected),
        "expected_false_alarms": len(STREAM) / 300,
        "bad_rows": 0,
        "interrupted": False,
        "state_saved": False,
        "data": [],
    }
    assert (result.exit_code, result.stderr) == (1, "")
    assert fitted.read_bytes() == before


def test_words_and_silence(fitted: Path) -> None:
    """An alarm is a line that begins with ALARM; --quiet leaves the status only; a quiet stream has status 0."""
    rang = ring(Detector.load(fitted), STREAM)
    row, length = rang[0]
    lines = tocsin("watch", fitted, "-", stdin=csv(STREAM)).stdout.splitlines()
    assert lines[0].startswith(f"ALARM at observation {row}: run length {length}, statistic ")
    assert ", window " in lines[0]
    assert "; by chance once in " in lines[0]
    assert sum(line.startswith("ALARM ") for line in lines) == len(rang)
    assert lines[-1].startswith(f"400 observations: {len(rang)} alarms, where chance alone would give 1.3 on average")
    silent = tocsin("watch", fitted, "-", "--quiet", stdin=csv(STREAM))
    assert (silent.output, silent.exit_code) == ("", 1)
    quiet = tocsin("watch", fitted, "-", stdin=csv(STREAM[: row - 1]))
    assert quiet.exit_code == 0
    assert quiet.stdout.startswith(f"{row - 1} observations: 0 alarms")
    assert tocsin("watch", fitted, "-", stdin="").exit_code == 0


def test_a_watch_in_pieces_is_one_watch(file: Path, tmp_path: Path) -> None:
    """With --save-state the next watch goes on exactly where the last stopped, alarms of --once included."""
    expected, whole = Detector.load(file), ring(Detector.load(file), STREAM)
    found, done = [], 0
    for stop in (whole[0][0] - 3, QUIET + 20, QUIET + 21, len(STREAM)):
        np.save(tmp_path / "piece.npy", STREAM[done:stop])
        result = tocsin("watch", file, tmp_path / "piece.npy", "--json", "--save-state")
        found += [(done + row, length) for row, length in alarms(result.stdout)]
        done = stop
    assert found == whole
    ring(expected, STREAM)
    assert ring(Detector.load(file), STREAM) == ring(expected, STREAM)


def test_once_stops_at_the_alarm(file: Path) -> None:
    """Rows after the alarm are not taken in; the next watch starts a new run, as an uninterrupted one would."""
    whole, rows, found = ring(Detector.load(file), STREAM), STREAM, []
    while True:
        result = tocsin("watch", file, "-", "--json", "--once", "--save-state", stdin=csv(rows))
        found += [(len(STREAM) - len(rows) + row, length) for row, length in alarms(result.stdout)]
        rows = rows[json.loads(result.stdout.splitlines()[-1])["rows"] :]
        if result.exit_code == 0:
            break
        assert (Detector.load(file).alarm or pytest.fail("it rang")).time == found[-1][1]
    assert found == whole
    assert len(rows) == 0


@pytest.mark.parametrize("source", ["file", "-"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("-inf,1\n", "column 'x' holds -inf"),
        ("1,2,3\n", "has 3 fields"),
        ("one,2\n", "column 'x' holds 'one'; the reference has numbers there"),
    ],
)
def test_a_bad_row_ends_the_watch(file: Path, tmp_path: Path, source: str, bad: str, message: str) -> None:
    """Alarms before it are told, its row is named, the status is 2, and nothing is saved."""
    before, position = file.read_bytes(), QUIET + 100
    text = csv(STREAM[:position]) + bad + csv(STREAM[position:]).partition("\n")[2]
    (tmp_path / "stream.csv").write_text(text)
    path, stdin = (tmp_path / "stream.csv", None) if source == "file" else ("-", text)
    result = tocsin("watch", file, path, "--json", "--save-state", stdin=stdin)
    assert result.exit_code == 2
    assert f"line {position + 2}" in result.stderr
    assert message in result.stderr
    assert alarms(result.stdout) == ring(Detector.load(file), STREAM[:position])
    assert file.read_bytes() == before


def test_wrong_columns_and_their_cure(fitted: Path) -> None:
    """A stream with more columns than the reference is refused, and --columns picks the right ones."""
    text = "time,x,y\n" + "".join(f"{i},{x!r},{y!r}\n" for i, (x, y) in enumerate(STREAM.tolist()))
    result = tocsin("watch", fitted, "-", stdin=text)
    assert result.exit_code == 2
    assert "standard input has 'time' besides. Choose them with --columns" in result.stderr
    chosen = tocsin("watch", fitted, "-", "--columns", "x,y", "--json", stdin=text)
    assert alarms(chosen.stdout) == ring(Detector.load(fitted), STREAM)


def test_a_truncated_file_is_refused(file: Path) -> None:
    """Half a detector is no detector."""
    file.write_bytes(file.read_bytes()[:-100])
    for arguments in (("watch", file, "-"), ("check", file)):
        result = tocsin(*arguments, stdin=csv(STREAM))
        assert result.exit_code == 2
        assert "damaged" in result.stderr


# reproduce


def test_reproduce_names_everything_that_it_knows() -> None:
    """With a word on each."""
    lines = [line.split(maxsplit=1) for line in tocsin("reproduce", "--help").stdout.splitlines()]
    for name, experiment in EXPERIMENTS.items():
        assert [name, experiment.summary] in lines


def test_reproduce_writes_tables_figures_and_words(tmp_path: Path) -> None:
    """All of them into one folder, which also keeps the work; and again from the table alone, without measuring."""
    folder = tmp_path / "new" / "folder"
    result = tocsin("reproduce", "problems", "--quick", "--workers", "1", "-o", folder)
    assert result.exit_code == 0, result.output
    made = [f"problems.{kind}" for kind in ("csv", "md", "png", "svg")]
    assert sorted(path.name for path in folder.iterdir()) == ["ledger.sqlite", *made]
    words = "".join(result.stdout.split())
    assert "ProblemsD1toD4" in words
    assert f"Written:{','.join(str(folder / name) for name in made)}." in words
    text = (folder / "problems.md").read_text()
    assert text.startswith("## Problems D1 to D4\n\n200 points of each law.")

    picture = (folder / "problems.png").read_bytes()
    for name in ("ledger.sqlite", "problems.png", "problems.md"):
        (folder / name).unlink()
    again = tocsin("reproduce", "problems", "--draw-only", "--json", "-o", folder)
    assert again.exit_code == 0, again.output
    facts = json.loads(again.stdout)
    assert facts.pop("seconds") > 0
    assert facts == {"name": "problems", "files": [str(folder / name) for name in made], "text": text}
    assert (folder / "problems.png").read_bytes() == picture
    assert sorted(path.name for path in folder.iterdir()) == made


def test_reproduce_goes_on_from_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that an earlier version did is told; --fresh does it again, and another seed gives other points."""
    arguments = ("reproduce", "problems", "--quick", "--workers", "1", "-o", tmp_path)
    monkeypatch.setattr(provenance, "commit", lambda: "older")
    assert "several versions" not in tocsin(*arguments).stdout
    table = (tmp_path / "problems.csv").read_text()
    assert ",older," in table
    monkeypatch.setattr(provenance, "commit", lambda: "newer")
    database = sqlite3.connect(tmp_path / "ledger.sqlite")
    with database:
        database.execute("DELETE FROM done WHERE rowid = 1")
    database.close()
    assert "several versions of the code (newer, older)" in " ".join(tocsin(*arguments).stdout.split())
    assert (tmp_path / "problems.csv").read_text() == table.replace(",older,", ',"newer, older",')
    tocsin(*arguments, "--fresh")
    assert (tmp_path / "problems.csv").read_text() == table.replace(",older,", ",newer,")
    tocsin(*arguments, "--seed", "1")
    assert (tmp_path / "problems.csv").read_text() != table


def test_reproduce_asks_for_matplotlib_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told at once, and nothing is made."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = tocsin("reproduce", "problems", "-o", tmp_path / "folder")
    assert result.exit_code == 2
    assert "pip install 'tocsin[plot]'" in result.stderr
    assert not (tmp_path / "folder").exists()


# Processes


def line_of(pipe: IO[str]) -> str:
    """The next line, within the time that a process may take."""
    assert select.select([pipe], [], [], PATIENCE)[0], "no line came"
    return pipe.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_alarm_is_printed_as_soon_as_its_row_arrives(file: Path, number: signal.Signals) -> None:
    """Row by row through a pipe that stays open; then a signal ends the watch, with a summary and the state saved."""
    expected = ring(Detector.load(file), STREAM)
    command = [*COMMAND, "watch", str(file), "-", "--json", "--save-state"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = csv(STREAM).splitlines(keepends=True)
        process.stdin.write(lines[0])
        sent = 0
        for row, length in expected[:3]:
            process.stdin.writelines(lines[sent + 1 : row])
            process.stdin.flush()
            assert not select.select([process.stdout], [], [], 0.2)[0], "it rang too early"
            process.stdin.write(lines[row])
            process.stdin.flush()
            assert alarms(line_of(process.stdout)) == [(row, length)]
            sent = row
        process.send_signal(number)
        summary = json.loads(line_of(process.stdout))
        assert process.wait(PATIENCE) == 1
        process.stdin.close()
    assert (summary["rows"], summary["alarms"]) == (sent, 3)
    assert summary["interrupted"]
    assert summary["state_saved"]
    rest = [(row - sent, length) for row, length in expected[3:]]
    assert ring(Detector.load(file), STREAM[sent:]) == rest


def test_a_signal_just_before_the_waiting_begins() -> None:
    """Nothing would interrupt the waiting for the next row then, which may never come."""

    class Signalled(Stopper):
        @contextmanager
        def waiting(self) -> Iterator[None]:
            self.ask(signal.SIGTERM, None)
            with super().waiting():
                yield

    rows = iter(["a row that should not be asked for"])
    assert list(Signalled().until_asked(rows)) == []
    assert list(rows)


def test_a_reader_that_leaves_gets_no_traceback(fitted: Path, tmp_path: Path) -> None:
    """`tocsin watch ... | head -1` and the like."""
    np.save(tmp_path / "long.npy", np.tile(STREAM, (200, 1)))
    command = [*COMMAND, "watch", str(fitted), str(tmp_path / "long.npy")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line_of(process.stdout)
        process.stdout.close()
        assert process.stderr.read() == ""


def test_demo_where_characters_are_missing(tmp_path: Path) -> None:
    """It tells its story without a terminal, and without Unicode."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [*COMMAND, "demo"], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=True
    )
    words = " ".join(result.stdout.split())
    assert "one false alarm in 5,000 observations" in words
    assert "after the change (MMD, window" in words
    assert "the change began at about observation " in words
    assert "neither stands out: the change lies between them" in words
    assert "detector = tocsin.Detector(ert=5000).fit(reference)" in words
    assert result.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_the_commands_that_the_demo_names_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its data as files, a detector from them, and a watch that rings."""
    monkeypatch.chdir(tmp_path)
    assert tocsin("demo", "--files", ".").exit_code == 0
    assert tocsin("fit", "reference.csv", "-o", "pump.tocsin", "--ert", "5000", "--paths", "300").exit_code == 0
    assert tocsin("watch", "pump.tocsin", "stream.csv").exit_code == 1
    assert tocsin("report", "pump.tocsin", "stream.csv", "-o", "report.html").exit_code == 1


def test_a_link_in_the_way_of_the_demo(tmp_path: Path) -> None:
    """One that leads nowhere would be written through, and one to a file is no free name."""
    (tmp_path / "other").mkdir()
    (tmp_path / "quiet.csv").symlink_to("other/chosen.csv")
    for force in ([], ["--force"]):
        result = tocsin("demo", "--files", tmp_path, *force)
        assert result.exit_code == 2
        assert "it is a link to other/chosen.csv, which is not there" in result.stderr
    (tmp_path / "other" / "chosen.csv").write_text("mine")
    assert "is there already" in tocsin("demo", "--files", tmp_path).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "quiet.csv"]
    assert (tmp_path / "other" / "chosen.csv").read_text() == "mine"


# Stopping


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_is_lost_comes_again() -> None:
    """Python drops what is raised in a destructor: the wait ends a little later all the same."""

    class Dropping:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    def items() -> Iterator[int]:
        yield 1
        del [Dropping()][0]
        time.sleep(20)
        yield 2

    alarm = signal.getsignal(signal.SIGALRM)
    with stopper() as stop:
        assert list(stop.until_asked(items())) == [1]
    assert signal.getsignal(signal.SIGALRM) is alarm
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_signal_stops_between_items() -> None:
    """While an item is worked on, the work is finished first; while waiting, the wait ends; then all is as before."""

    def items() -> Iterator[int]:
        yield 1
        yield 2
        signal.raise_signal(signal.SIGINT)
        yield 3

    handler = signal.getsignal(signal.SIGINT)
    with stopper() as stop:
        assert list(stop.until_asked(items())) == [1, 2]
        assert stop.asked
    done = []
    with stopper() as stop:
        for item in stop.until_asked(range(10)):
            signal.raise_signal(signal.SIGTERM)
            done.append(item)
    assert done == [0]
    assert signal.getsignal(signal.SIGINT) is handler
