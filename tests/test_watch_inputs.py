"""`tocsin watch` and what it is given: standard input in every state, odd files, and a second watch of a stream."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from tocsin import Detector
from tocsin._cli import app, keeping
from tocsin._cli.cleaning import CONTROL
from tocsin._cli.keeping import Kept
from tocsin._compute.arrays import Float64Array
from waiting import instead_of_waiting

PATIENCE = 60.0
LOST = 3
NAMES = ["x\x1b[31m\x07\x08_", "y\x9b2J\x7f\u202e\x0c_"]
"""Of columns, by someone who means harm to a terminal."""

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 2))
QUIET = 60
STREAM = np.concatenate([rng.normal(size=(QUIET, 2)), rng.normal(loc=2, size=(40, 2))])


def csv(rows: Float64Array, header: str = "x,y\n") -> str:
    """Rows as CSV, to the last bit."""
    return header + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist())


def tocsin(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def watched(*arguments: object, stdin: str | None = None) -> tuple[list[int], dict[str, Any]]:
    """The rows that rang, and the summary."""
    result = tocsin("watch", *arguments, "--json", stdin=stdin)
    *alarms, summary = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == bool(alarms), result.stderr
    return [alarm["row"] for alarm in alarms], summary


def ringing(file: Path, rows: Float64Array = STREAM) -> list[int]:
    """Rows that ring, as the library has them."""
    return [int(i) + 1 for i in np.flatnonzero(Detector.load(file).update_many(rows).alarm)]


def state(file: Path, *pieces: Float64Array) -> tuple[int, int]:
    """Runs and the latest one's length, after these rows."""
    detector = Detector.load(file)
    for piece in pieces:
        detector.update_many(piece)
    return detector.run, detector.time


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector of columns x and y; not to be changed."""
    file = tmp_path_factory.mktemp("fitted") / "d.tocsin"
    reference = pd.DataFrame(REFERENCE, columns=["x", "y"])
    Detector(300, window=[5, 20], paths=500, seed=1).fit(reference, progress=False).save(file)
    return file


@pytest.fixture(scope="module")
def one_column(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of a single column without a name; not to be changed."""
    file = tmp_path_factory.mktemp("fitted") / "one.tocsin"
    Detector(300, window=5, paths=500, seed=1).fit(REFERENCE[:, 0], progress=False).save(file)
    return file


@pytest.fixture
def file(fitted: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copy(fitted, tmp_path / "d.tocsin"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A stream."""
    return tmp_path / "log.csv"


def append(log: Path, text: str) -> None:
    """As whoever writes it does."""
    with log.open("a") as out:
        out.write(text)


# Standard input


def test_an_end_in_mid_number(file: Path) -> None:
    """Of a pipe, whose writer may have died over it: it is told, and not taken in."""
    result = tocsin("watch", file, "-", "--json", "--save-state", stdin=csv(STREAM[:3]) + "50,2")
    assert (result.exit_code, "line 5, '50,2', never ended, and is not taken in" in result.stderr) == (0, True)
    summary = json.loads(result.stdout)
    assert (summary["rows"], summary["bad_rows"]) == (3, 1)
    assert Detector.load(file).time == 3


@pytest.mark.parametrize("command", ["report", "compare", "check", "fit"])
def test_an_end_in_mid_number_of_a_table(file: Path, log: Path, tmp_path: Path, command: str) -> None:
    """It is told and left out whoever reads it, from a pipe; a file that ends so is whole."""
    rows = {"report": STREAM, "check": STREAM[:5], "compare": STREAM, "fit": REFERENCE}[command]
    text, page = csv(rows) + "50,2", tmp_path / "page.html"
    arguments = {
        "report": ("report", file, "-", "-o", page, "--force"),
        "check": ("check", file, "--stream", "-"),
        "compare": ("compare", log, "-"),
        "fit": ("fit", "-", "-o", tmp_path / "new.tocsin", "--ert", "100", "--window", "5", "--force", "--no-interval"),
    }[command]
    log.write_text(csv(REFERENCE))
    told = f"tocsin: standard input, line {len(rows) + 2}, '50,2', never ended, and is not taken in. If it is whole, "
    piped, whole = tocsin(*arguments, stdin=text), tocsin(*arguments, stdin=csv(rows))
    assert piped.stderr.startswith(told)
    assert (piped.exit_code, page.exists()) == (whole.exit_code, command == "report")
    assert piped.stderr.partition("\n")[2] == whole.stderr
    if command == "compare":
        assert piped.stdout == whole.stdout
        path = tmp_path / "whole.csv"
        path.write_text(text)
        named = [sys.executable, "-m", "tocsin", *map(str, arguments)]
        with path.open() as opened:
            redirected = subprocess.run(named, stdin=opened, capture_output=True, text=True, check=False)
        assert (redirected.stdout, redirected.stderr) == (tocsin("compare", log, path).stdout, "")
        assert redirected.stdout != whole.stdout


def test_json_shows_that_it_is_whole(file: Path) -> None:
    """A last object needs no newline; half of one is no row."""
    rows = '{"x": 1, "y": 2}\n{"x": 1, "y": 2}'
    assert watched(file, "-", stdin=rows)[1]["rows"] == 2
    summary = watched(file, "-", stdin=rows[:-1])[1]
    assert (summary["rows"], summary["bad_rows"]) == (1, 1)


def test_standard_input_that_is_closed(file: Path) -> None:
    """A line that says so."""
    command = ["sh", "-c", '"$0" -m tocsin watch "$1" - <&-', sys.executable, str(file)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    told = "tocsin: Standard input is closed; pipe rows into it, or name a file.\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", told)


@pytest.mark.parametrize("content", ["a,b\n", "x,z\n", "x\n", "x,y,z\n", "\0" * 70_000, "\0\n" * 500, "x,\0\n"])
def test_what_is_refused_before_any_row(file: Path, log: Path, content: str) -> None:
    """Names that are not the reference's, and what is no text, from a file and from a pipe, before a row comes."""
    log.write_text(content)
    before = file.read_bytes()
    for result in (
        tocsin("watch", file, log, "--save-state"),
        tocsin("watch", file, "-", "--save-state", stdin=content if content.endswith("\n") else content + "\n"),
    ):
        assert (result.exit_code, result.stdout) == (2, "")
        assert (result.stderr.startswith("tocsin: "), result.stderr.count("\n")) == (True, 1)
    assert file.read_bytes() == before


@pytest.mark.parametrize("size", [100, 100_000, 1 << 20])
def test_nuls_are_not_the_name_of_an_only_column(one_column: Path, log: Path, size: int) -> None:
    """A file with room that nobody has written to is no stream in which nothing happens."""
    log.write_bytes(bytes(size))
    result = tocsin("watch", one_column, log)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr) < 500


@pytest.mark.parametrize("content", ["", "\n\n", "x,y\n"])
def test_no_rows_at_all(file: Path, log: Path, content: str) -> None:
    """Nothing is wrong; what comes later is taken in by the next watch."""
    log.write_text(content)
    assert watched(file, "-", stdin=content)[1]["rows"] == 0
    assert watched(file, log, "--save-state")[1]["rows"] == 0
    append(log, csv(STREAM, header="" if "x" in content else "x,y\n"))
    expected = ringing(file)
    rows, summary = watched(file, log, "--save-state")
    assert (rows, summary["rows"]) == (expected, len(STREAM))


@contextmanager
def default_action(number: signal.Signals) -> Iterator[None]:
    """Of a signal, for a process that is started meanwhile: whoever started this one may ignore it."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_pipe_is_watched_until_a_signal(file: Path, number: signal.Signals) -> None:
    """While it waits for the next row: the state is saved, and the exit status tells of the alarm."""
    row = ringing(file)[0]
    command = [sys.executable, "-m", "tocsin", "watch", str(file), "-", "--json", "--save-state"]
    with (
        default_action(number),
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(csv(STREAM[:row]))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["row"] == row
        process.send_signal(number)
        assert process.wait(PATIENCE) == 1
        summary = json.loads(process.stdout.readline())
        assert process.stderr.read() == ""
    assert (summary["rows"], summary["interrupted"], summary["state_saved"]) == (row, True, True)
    assert state(file) == (1, 0)


# Names that would move a cursor


def test_control_characters_reach_no_terminal(tmp_path: Path, log: Path) -> None:
    """Of names and values, in alarms and in errors, in words and as JSON."""
    file = tmp_path / "harm.tocsin"
    reference = pd.DataFrame(REFERENCE, columns=NAMES)
    Detector(300, window=[5, 20], paths=500, seed=1).fit(reference, progress=False).save(file)
    stranger, bad = tmp_path / "q\x1b[2J.csv", tmp_path / "bad.csv"
    log.write_text(csv(STREAM, header=",".join(NAMES) + "\n"))
    stranger.write_text(csv(STREAM, header="q\x1b[2J,y\x9b\n"))
    bad.write_text(csv(STREAM[:2], header=",".join(NAMES) + "\n") + "1,\x1b]0;t\x07\x9b\n")
    for arguments, status in (
        ((log,), 1),
        ((log, "--json"), 1),
        ((log, "--on-alarm", r"printf '\033[2J\007'"), 1),
        ((stranger,), 2),
        ((bad,), 2),
        ((bad, "--bad-rows", "skip"), 0),
        ((log, "--columns", "z\x1b[2J"), 2),
        ((tmp_path / "none\x1b[2J.csv",), 2),
    ):
        result = tocsin("watch", file, *arguments)
        assert result.exit_code == status, result.output
        assert CONTROL.search(result.output) is None, result.output
    for column, shown in enumerate(["x[31m", "y2J"]):
        moved = STREAM.copy()
        moved[QUIET:, 1 - column] -= 2  # one column alone has changed, and is named
        log.write_text(csv(moved, header=",".join(NAMES) + "\n"))
        assert shown in tocsin("watch", file, log).stdout


def test_a_row_that_is_left_out_is_told_of_in_the_words_of_the_command(file: Path, tmp_path: Path) -> None:
    """What can be done about it are options, not parameters of the library."""
    log, kept = tmp_path / "log.jsonl", tmp_path / "kept.jsonl"
    log.write_text('{"x": 1, "y": 2}\n{"x": 1}\n')
    for policy, where in (("stop", "stderr"), ("skip", "stderr"), (kept, "kept")):
        result = tocsin("watch", file, log, "--bad-rows", policy)
        told = result.stderr if where == "stderr" else kept.read_text()
        assert "choose columns that all rows have: --columns" in told
        assert "columns=" not in told


# A line without an end


def test_a_line_without_an_end_costs_little(file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither memory, however long it is, nor time while it does not grow."""
    log.write_text(csv(STREAM[:5]))
    looks: list[float] = []

    def look(_seconds: float) -> None:
        looks.append(time.process_time())
        if len(looks) == 1:
            tracemalloc.start()
            with log.open("ab") as out:
                for _ in range(40):
                    out.write(b"1" * (1 << 20))
            tracemalloc.reset_peak()
        elif len(looks) == 52:
            append(log, "\n" + csv(STREAM[5:6], header=""))
        elif len(looks) == 53:
            signal.raise_signal(signal.SIGTERM)

    instead_of_waiting(monkeypatch, look)
    try:
        _, summary = watched(file, log, "-f", "--bad-rows", "skip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (summary["rows"], summary["bad_rows"]) == (6, 1)
    assert peak < 40 << 20
    assert looks[51] - looks[1] < 0.5  # 50 looks: 10 s of waiting


# A second watch


def test_a_file_that_has_grown(file: Path, log: Path, tmp_path: Path) -> None:
    """Only the rows that are new are taken in, and no alarm is told twice; then nothing is new."""
    alarms, expected, whole = tmp_path / "alarms.jsonl", ringing(file), state(file, STREAM)
    cut = expected[1]
    log.write_text(csv(STREAM[:cut]))
    first, summary = watched(file, log, "--save-state", "--alarms", alarms)
    assert (first, summary["rows"]) == (expected[:2], cut)
    append(log, csv(STREAM[cut:], header=""))
    second, summary = watched(file, log, "--save-state", "--alarms", alarms)
    assert (first + second, summary["rows"]) == (expected, len(STREAM) - cut)
    assert [json.loads(line)["row"] for line in alarms.read_text().splitlines()] == expected
    assert state(file) == whole
    assert watched(file, log, "--save-state", "--alarms", alarms)[1]["rows"] == 0
    assert len(alarms.read_text().splitlines()) == len(expected)


def test_a_file_that_is_read_again(file: Path, log: Path) -> None:
    """From its beginning, by a detector that goes on; and the watch after that knows where this one ended."""
    log.write_text(csv(STREAM[:QUIET]))
    expected = state(file, STREAM[:QUIET], STREAM[:QUIET])
    for _ in range(2):
        assert watched(file, log, "--save-state", "--reread")[1]["rows"] == QUIET
    assert state(file) == expected
    append(log, csv(STREAM[QUIET : QUIET + 1], header=""))
    assert watched(file, log, "--save-state")[1]["rows"] == 1


def test_only_what_comes_from_now_on(file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that the file has are left out; the next watch goes on after it."""
    log.write_text(csv(STREAM[:40]))
    expected, steps = state(file, STREAM[40:45]), iter([45])

    def more(_seconds: float) -> None:
        end = next(steps, None)
        if end is None:
            signal.raise_signal(signal.SIGTERM)
        else:
            append(log, csv(STREAM[40:end], header=""))

    instead_of_waiting(monkeypatch, more)
    assert watched(file, log, "-f", "--from-now", "--save-state")[1]["rows"] == 5
    assert state(file) == expected
    append(log, csv(STREAM[45:47], header=""))
    assert watched(file, log, "--save-state")[1]["rows"] == 2


@pytest.mark.parametrize("again", [(), ("--from-now",)])
def test_from_now_on_is_said_once(
    file: Path, log: Path, again: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if no row came: what comes while nobody watches is taken in by the next, with the same words or without."""
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    log.write_text(csv(STREAM[:40]) + "5,")
    expected = state(file, np.vstack([[5.0, 5.0], STREAM[40:45]]))
    assert watched(file, log, "-f", "--from-now", "--save-state")[1]["rows"] == 0
    append(log, "5\n" + csv(STREAM[40:45], header=""))
    assert watched(file, log, "-f", "--save-state", *again)[1]["rows"] == 6
    assert state(file) == expected


def test_from_now_on_after_a_place_is_lost(file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is told, with why."""
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    log.write_text(csv(STREAM[:40]))
    watched(file, log, "--save-state")
    log.write_text(csv(STREAM[50:55]))
    result = tocsin("watch", file, log, "-f", "--save-state", "--from-now")
    assert result.exit_code == 0
    assert "is no longer the file that was watched up to observation 40" in result.stderr
    assert "and what is there now is left out (--from-now)." in result.stderr
    assert "Give" not in result.stderr
    append(log, csv(STREAM[55:57], header=""))
    assert watched(file, log, "-f", "--save-state")[1]["rows"] == 2


def killed(file: Path, log: Path, rows: int) -> None:
    """A watch that follows, killed when it has saved that it took in so many rows."""
    command = [sys.executable, "-m", "tocsin", "watch", str(file), str(log), "-f", "--save-state", "--quiet"]
    deadline = time.monotonic() + PATIENCE
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while (place := Kept(file).place_of(str(log))) is None or place.rows < rows:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()


@pytest.mark.parametrize("when", ["a header", "rows", "no header"])
def test_a_kill_before_anything_is_told(
    file: Path, log: Path, tmp_path: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A watch keeps its place from the beginning: rows of a file that is rotated away are not lost, nor any doubled."""
    header = "" if when == "no header" else "x,y\n"
    log.write_text(header + csv(STREAM[: 0 if when == "a header" else 50], header=""))
    whole = state(file, STREAM[:80])
    killed(file, log, 0)
    if when == "a header":
        append(log, csv(STREAM[:50], header=""))
    log.rename(tmp_path / "log.csv.1")
    log.write_text(csv(STREAM[50:80], header=header))
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    columns = () if header else ("--columns", "1,2")
    assert tocsin("watch", file, log, "-f", "--save-state", *columns).exit_code == bool(whole[0])
    assert state(file) == whole


def test_a_kill_before_anything_is_told_and_a_copy(
    file: Path, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a file held when the watch began tells it from what is written to it after it was copied and cut."""
    log.write_text(csv(STREAM[:50]))
    whole = state(file, STREAM[:80])
    killed(file, log, 0)
    shutil.copy(log, tmp_path / "log.csv.1")
    log.write_text(csv(STREAM[50:80]))
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    tocsin("watch", file, log, "-f", "--save-state")
    assert state(file) == whole


def test_a_lock_that_is_a_link(file: Path, log: Path, tmp_path: Path) -> None:
    """It is not followed: nothing is made where it points to, and the watch says what is in its way."""
    log.write_text(csv(STREAM[:5]))
    lock, elsewhere = tmp_path / ".d.tocsin.lock", tmp_path / "elsewhere"
    lock.symlink_to(elsewhere)
    result = tocsin("watch", file, log, "--save-state")
    assert (result.exit_code, f"Cannot make {lock}" in result.stderr, elsewhere.exists()) == (2, True, False)
    assert "If it is a link or a folder, remove it" in result.stderr
    lock.unlink()
    before = file.read_bytes()
    with keeping.locked(file):
        second = tocsin("watch", file, log, "--save-state")
    assert (second.exit_code, "Another watch keeps its state" in second.stderr) == (2, True)
    assert file.read_bytes() == before
    lock.touch()  # a watch that was killed leaves it there, and the next one removes it
    assert tocsin("watch", file, log, "--save-state").exit_code == 0
    assert not lock.exists()


def test_saves_on_the_way(file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some time after the last one; a watch that is killed later takes in again what came since, and nothing else."""
    monkeypatch.setattr(keeping, "EVERY", 0.0)
    monkeypatch.setattr(keeping, "SHARE", 0)
    log.write_text(csv(STREAM[:QUIET]))
    saved: list[int] = []

    def look(_seconds: float) -> None:
        saved.append(Detector.load(file).time)
        signal.raise_signal(signal.SIGTERM)

    instead_of_waiting(monkeypatch, look)
    tocsin("watch", file, log, "-f", "--save-state")
    assert saved == [QUIET]


def test_a_stream_of_other_columns_has_no_place(file: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not watched: one of the right columns may take its name."""
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    log.write_text(csv(STREAM[:5], header="a,b\n"))
    assert tocsin("watch", file, log, "-f", "--save-state").exit_code == 2
    log.unlink()
    log.write_text(csv(STREAM[:5]))
    assert watched(file, log, "-f", "--save-state")[1]["rows"] == 5


@pytest.mark.parametrize("follow", [(), ("-f",)])
def test_a_file_that_was_cut_back_and_has_grown_again(
    file: Path, log: Path, follow: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which rows are new cannot be known: status 3, nothing is taken in, and the message says what helps."""
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    log.write_text(csv(STREAM[:QUIET]))
    watched(file, log, "--save-state")
    with log.open("r+") as out:
        out.truncate(len(csv(STREAM[:40])))
    append(log, csv(-STREAM[:QUIET], header=""))
    before = file.read_bytes()
    result = tocsin("watch", file, log, "--save-state", *follow)
    assert (result.exit_code, result.stdout, file.read_bytes()) == (LOST, "", before)
    assert "which are new cannot be known. Give --reread" in result.stderr
    expected = ringing(file, np.concatenate([STREAM[:40], -STREAM[:QUIET]]))
    rows, summary = watched(file, log, "--save-state", "--reread", *follow)
    assert (rows, summary["rows"]) == (expected, 40 + QUIET)


@pytest.mark.parametrize(("rest", "status"), [("\n", 0), ("\n1,2\n", 0), (".5\n", LOST)])
def test_a_last_line_that_grew(file: Path, log: Path, rest: str, status: int) -> None:
    """A file's last line is taken in without its end; if there was more of it to come, it was another row."""
    log.write_text(csv(STREAM[:3]) + "0,2")
    assert watched(file, log, "--save-state")[1]["rows"] == 4
    append(log, rest)
    assert tocsin("watch", file, log, "--save-state").exit_code == status
    assert Detector.load(file).time == 4 + rest.count(",")
