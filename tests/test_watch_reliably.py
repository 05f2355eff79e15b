"""`tocsin watch` among things that fail: rows that are none, listeners that are gone, and others at the same file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from tocsin import Detector, Independent
from tocsin._cli import actions, app, bad_rows, following
from tocsin._common.errors import InputError
from tocsin._compute.arrays import Float64Array
from tocsin._data.tables import Table
from waiting import instead_of_waiting

PATIENCE = 60.0
ERT = 300

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 2))
QUIET = 60
STREAM = np.concatenate([rng.normal(size=(QUIET, 2)), rng.normal(loc=2, size=(30, 2))])
BAD = {3: "1,2,3\n", 20: "one,2\n", 21: "inf,1\n", 75: "1\n"}
"""Rows that are none, each before the row of STREAM that has this number, from 0."""

REASONS = ("has 3 fields", "holds 'one'", "holds inf", "has 1 fields")


def csv(rows: Float64Array, header: str = "x,y\n") -> str:
    """Rows as CSV, to the last bit."""
    return header + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist())


def with_bad_rows() -> tuple[str, list[int]]:
    """STREAM as CSV with bad rows in it, and the numbers of their lines."""
    lines, numbers = ["x,y\n"], []
    for i, row in enumerate(csv(STREAM, header="").splitlines(keepends=True)):
        if i in BAD:
            lines.append(BAD[i])
            numbers.append(len(lines))
        lines.append(row)
    return "".join(lines), numbers


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def events(text: str) -> list[dict[str, Any]]:
    """Lines of JSON."""
    return [json.loads(line) for line in text.splitlines()]


def rings(file: Path, rows: Float64Array = STREAM) -> list[tuple[int, float]]:
    """Rows that ring and their statistics, as the library has them."""
    outcomes = Detector.load(file).update_many(rows)
    return [(int(i) + 1, float(outcomes.statistic[i])) for i in np.flatnonzero(outcomes.alarm)]


def told(text: str) -> list[tuple[int, float]]:
    """The same, as a watch told them in JSON."""
    return [(event["row"], event["statistic"]) for event in events(text) if event["event"] == "alarm"]


def until(happened: Callable[[], object]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "tocsin", *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector; not to be changed."""
    file = tmp_path_factory.mktemp("fitted") / "d.tocsin"
    Detector(ERT, window=[5, 20], paths=500, seed=1).fit(REFERENCE, progress=False).save(file)
    return file


@pytest.fixture
def file(fitted: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    return Path(shutil.copy(fitted, tmp_path / "d.tocsin"))


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """STREAM as a file."""
    path = tmp_path / "s.csv"
    path.write_text(csv(STREAM))
    return path


# Rows that are none


@pytest.mark.parametrize("source", ["s.csv", "-"])
@pytest.mark.parametrize("kept", [False, True])
def test_bad_rows_are_left_out(file: Path, tmp_path: Path, source: str, kept: bool) -> None:
    """The others have the outcomes that they would have alone; the bad ones are counted, told and perhaps kept."""
    text, numbers = with_bad_rows()
    (tmp_path / "s.csv").write_text(text)
    path, stdin = ("-", text) if source == "-" else (tmp_path / source, None)
    quarantine = tmp_path / "bad.jsonl"
    policy, expected = quarantine if kept else "skip", rings(file)
    result = tocsin("watch", file, path, "--json", "--bad-rows", policy, "--save-state", stdin=stdin)
    assert result.exit_code == 1
    assert told(result.stdout) == expected
    summary = events(result.stdout)[-1]
    assert (summary["rows"], summary["bad_rows"]) == (len(STREAM), len(BAD))
    assert Detector.load(file).run == len(expected)
    assert result.stderr.count("tocsin: ") == 1
    if not kept:
        assert result.stderr.startswith("tocsin: A row is left out, and so will others be (--bad-rows skip): ")
        assert f"line {numbers[0]}, has 3 fields" in result.stderr
        assert not quarantine.exists()
        return
    assert result.stderr == f"tocsin: A row could not be taken in; it is kept in {quarantine}, as others will be.\n"
    found = events(quarantine.read_text())
    assert [row["line"] for row in found] == numbers
    for row, text, reason in zip(found, BAD.values(), REASONS, strict=True):
        assert (reason in row["reason"], row["text"]) == (True, text.rstrip())
    assert len({row["id"] for row in found}) == len(BAD)


def refuse_large_values(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a detector with a function of its user's may."""
    step = getattr(Detector, method)

    def refuse(self: Detector, table: Table) -> object:
        if (table.columns["1" if "1" in table.columns else "x"].data > 1e300).any():
            raise InputError("1e+306 is too much.")
        return step(self, table)

    monkeypatch.setattr(Detector, method, refuse)


@pytest.mark.parametrize("source", ["s.csv", "s.jsonl", "s.npy", "-", "-f"])
def test_rows_that_the_detector_refuses(
    file: Path, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could be read, and are kept as they stood there."""
    rows, quarantine, place = STREAM[:30].copy(), tmp_path / "bad.jsonl", 17
    rows[place] = (1e306, 2.0)
    name = {"-": "s.csv", "-f": "s.csv"}.get(source, source)
    text, line = csv(rows), place + 2
    if name == "s.npy":
        np.save(tmp_path / name, rows)
        line = place + 1
    elif name == "s.jsonl":
        text, line = "".join(f"{json.dumps(row)}\n" for row in rows.tolist()), place + 1
    (tmp_path / "s.csv").write_text(text)
    (tmp_path / "s.jsonl").write_text(text)
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    for method in ("update", "update_until_alarm"):
        refuse_large_values(method, monkeypatch)
    stream = "-" if source == "-" else tmp_path / name
    options = ("-f",) if source == "-f" else ()
    result = tocsin("watch", file, stream, "--json", "--bad-rows", quarantine, *options, stdin=text)
    assert events(result.stdout)[-1]["rows"] == len(rows) - 1
    (row,) = events(quarantine.read_text())
    assert (row["line"], "1e+306" in row["reason"]) == (line, True)
    wanted = {"s.jsonl": "[1e+306, 2.0]", "s.npy": "1e+306,2"}.get(name, "1e+306,2.0")
    assert row["text"] == wanted


def test_bad_rows_in_words(file: Path, tmp_path: Path) -> None:
    """At the end, with what became of them."""
    text, _ = with_bad_rows()
    skipped = tocsin("watch", file, "-", "--bad-rows", "skip", stdin=text).stdout
    assert skipped.splitlines()[-1] == "4 rows could not be taken in, and are left out."
    one = tocsin("watch", file, "-", "--bad-rows", tmp_path / "bad.jsonl", stdin=csv(STREAM[:5]) + "1\n").stdout
    assert one.splitlines()[-1] == f"1 row could not be taken in, and is kept in {tmp_path / 'bad.jsonl'}."
    assert "could not" not in tocsin("watch", file, "-", "--bad-rows", "skip", stdin=csv(STREAM)).stdout


def test_bad_rows_of_an_array(file: Path, tmp_path: Path) -> None:
    """By their numbers; and a later watch goes on after the row that this one ended with."""
    rows, quarantine, path = STREAM.copy(), tmp_path / "bad.jsonl", tmp_path / "s.npy"
    bad = [4, 9, 10]
    for i in bad:
        rows = np.insert(rows, i, (np.inf, 0), axis=0)
    np.save(path, rows)
    expected = rings(file)
    first = tocsin("watch", file, path, "--json", "--bad-rows", quarantine, "--save-state", "--once")
    assert [row["line"] for row in events(quarantine.read_text())] == [i + 1 for i in bad]
    second = tocsin("watch", file, path, "--json", "--bad-rows", quarantine, "--save-state")
    assert told(first.stdout) + told(second.stdout) == expected
    taken = [events(result.stdout)[-1]["rows"] for result in (first, second)]
    assert (taken[0], sum(taken)) == (expected[0][0], len(STREAM))
    assert [events(result.stdout)[-1]["bad_rows"] for result in (first, second)] == [len(bad), 0]


def test_a_plain_file_is_stopped_by_a_bad_row(file: Path, stream: Path) -> None:
    """Unless told otherwise."""
    stream.write_text(csv(STREAM[:10]) + "one,2\n")
    plain = tocsin("watch", file, stream)
    assert (plain.exit_code, "line 12" in plain.stderr) == (2, True)
    assert plain.stderr == tocsin("watch", file, stream, "--bad-rows", "stop").stderr
    assert not file.with_suffix(".bad.jsonl").exists()


def test_a_followed_file_keeps_its_bad_rows(file: Path, stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the detector, and it says where; a watch that sees them again keeps them once."""
    text, numbers = with_bad_rows()
    stream.write_text(text)
    instead_of_waiting(monkeypatch, lambda _: signal.raise_signal(signal.SIGTERM))
    quarantine = file.with_suffix(".bad.jsonl")
    expected = rings(file)
    for _ in range(2):
        result = tocsin("watch", file, stream, "-f", "--json")
        assert told(result.stdout) == expected
        assert events(result.stdout)[-1]["bad_rows"] == len(BAD)
        assert result.stderr == f"tocsin: A row could not be taken in; it is kept in {quarantine}, as others will be.\n"
        assert [row["line"] for row in events(quarantine.read_text())] == numbers


@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_too_many_bad_rows_in_a_row(file: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the watch with the reason; good ones between them make it go on."""
    monkeypatch.setattr(bad_rows, "MOST_IN_A_ROW", 5)
    path = tmp_path / f"s.{kind}"

    def watch(*bad: int) -> Result:
        rows = np.insert(STREAM[:40], bad, (np.inf, 0), axis=0)
        if kind == "npy":
            np.save(path, rows)
        else:
            path.write_text(csv(rows))
        return tocsin("watch", file, path, "--json", "--bad-rows", "skip")

    apart = watch(*([3] * 4), *range(4, 30), *([30] * 4))
    assert (apart.exit_code, events(apart.stdout)[-1]["bad_rows"]) == (0, 34)
    together = watch(*([3] * 5))
    assert together.exit_code == 2
    assert "5 rows in a row could not be taken in" in together.stderr
    assert "The last: " in together.stderr
    assert "inf" in together.stderr.partition("The last: ")[2]


@pytest.mark.parametrize("kept", [False, True])
def test_a_quote_too_many(file: Path, stream: Path, tmp_path: Path, kept: bool) -> None:
    """It costs its own row, and not those after it; where it ends the watch, it is named by its line."""
    lines, quarantine, place = csv(STREAM).splitlines(keepends=True), tmp_path / "bad.jsonl", 11
    stream.write_text("".join([*lines[:place], '"' + lines[place], *lines[place + 1 :]]))
    rest = np.delete(STREAM, place - 1, axis=0)
    expected = rings(file, rest)
    result = tocsin("watch", file, stream, "--json", "--bad-rows", quarantine if kept else "skip")
    assert (result.exit_code, told(result.stdout)) == (1, expected)
    summary = events(result.stdout)[-1]
    assert (summary["rows"], summary["bad_rows"]) == (len(rest), 1)
    if kept:
        (row,) = events(quarantine.read_text())
        assert (row["line"], row["text"]) == (place + 1, '"' + lines[place].rstrip())
    stopped = tocsin("watch", file, stream)
    assert stopped.exit_code == 2
    assert f"lines {place + 1} to {len(lines)}, are not CSV" in stopped.stderr
    assert "Mend that line." in stopped.stderr


def test_fields_that_span_lines(tmp_path: Path) -> None:
    """They are rows where bad ones end the watch; else each of their lines is one, left out, counted and kept."""
    records = [{"x": float(x), "note": f"{i}" * 5} for i, x in enumerate(REFERENCE[:, 0])]
    file, stream, quarantine = tmp_path / "d.tocsin", tmp_path / "s.csv", tmp_path / "bad.jsonl"
    options: dict[str, Any] = {"kinds": {"note": "text"}, "sampler": Independent()}
    Detector(ERT, window=5, paths=500, seed=1, **options).fit(records, progress=False).save(file)
    stream.write_text('x,note\n1,one\n2,"two\nlines"\n3,three\n')
    whole = events(tocsin("watch", file, stream, "--json").stdout)[-1]
    assert (whole["rows"], whole["bad_rows"]) == (3, 0)
    parts = events(tocsin("watch", file, stream, "--json", "--bad-rows", quarantine).stdout)[-1]
    assert (parts["rows"], parts["bad_rows"]) == (2, 2)
    assert [(row["line"], row["text"]) for row in events(quarantine.read_text())] == [(3, '2,"two'), (4, 'lines"')]


def test_a_quarantine_that_cannot_be(file: Path, stream: Path, tmp_path: Path) -> None:
    """Told before the watch, whether or not there is a bad row; never into what is read."""
    for target, message in ((tmp_path / "no" / "b", "Cannot write"), (tmp_path, "Cannot write"), (file, "is read")):
        result = tocsin("watch", file, stream, "--bad-rows", target)
        assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)
    file.with_suffix(".bad.jsonl").mkdir()
    stream.write_text(csv(STREAM[:5]) + "1\n")
    result = tocsin("watch", file, stream, "-f")
    assert (result.exit_code, "Is a directory" in result.stderr, "has 1 fields" in result.stderr) == (2, True, True)


# Alarms that cannot be told


def noting(folder: Path) -> str:
    """A command that keeps the id of each alarm."""
    return f'echo "$TOCSIN_ID" >> "{folder}/ids"'


def ids(folder: Path) -> list[str]:
    """Those that it kept."""
    return (folder / "ids").read_text().split()


def test_a_full_disk_keeps_nobody_else_from_hearing(file: Path, stream: Path, tmp_path: Path) -> None:
    """A file that cannot be written is told of, the command runs; the next watch writes what is missing, once."""
    options = ("--save-state", "--on-alarm", noting(tmp_path))
    rows = [row for row, _ in rings(file)]
    first = tocsin("watch", file, stream, "--json", "--alarms", "/dev/full", *options)
    wanted = [alarm["id"] for alarm in events(first.stdout)[:-1]]
    assert (first.exit_code, len(set(wanted))) == (1, len(rows))
    assert ids(tmp_path) == wanted
    assert f"--alarms failed for the alarm at observation {rows[0]}, and is tried again: No space" in first.stderr
    assert f"{len(rows)} alarms could not be written to --alarms." in first.stderr
    log = tmp_path / "alarms.jsonl"
    second = tocsin("watch", file, stream, "--json", "--alarms", log, *options)
    assert (second.exit_code, [event["event"] for event in events(second.stdout)]) == (0, ["summary"])
    assert events(log.read_text()) == events(first.stdout)[:-1]
    tocsin("watch", file, stream, "--alarms", log, *options)
    assert len(events(log.read_text())) == len(rows)
    assert ids(tmp_path) == wanted


def test_a_folder_that_goes_and_comes_back(
    file: Path, stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alarms are not written into a file that has been removed, nor into one that was put aside."""
    folder, expected = tmp_path / "logs", [row for row, _ in rings(file)]
    first, second = expected[0], expected[1]
    folder.mkdir()
    log = folder / "alarms.jsonl"
    stream.write_text(csv(STREAM[: first - 1]))

    def more(begin: int, end: int) -> None:
        with stream.open("a") as out:
            out.write(csv(STREAM[begin:end], header=""))

    def gone() -> None:
        shutil.rmtree(folder)
        more(first - 1, second - 1)

    def back() -> None:
        assert ids(tmp_path)
        folder.mkdir()
        more(second - 1, second)

    def put_aside() -> None:
        log.rename(folder / "alarms.1.jsonl")
        more(second, len(STREAM))

    steps = iter([gone, lambda: until((tmp_path / "ids").exists), back, put_aside])
    naps = time.sleep

    def sleep(seconds: float) -> None:
        step = next(steps, lambda: signal.raise_signal(signal.SIGTERM)) if seconds == following.POLL else None
        step() if step is not None else naps(seconds)

    instead_of_waiting(monkeypatch, sleep)
    monkeypatch.setattr(actions, "PATIENCE", PATIENCE)  # a busy machine tells nothing more
    result = tocsin("watch", file, stream, "-f", "--json", "--alarms", log, "--on-alarm", noting(tmp_path))
    assert [row for row, _ in told(result.stdout)] == expected
    failed = f"--alarms failed for the alarm at observation {first}, and is tried again: No such file or directory."
    assert result.stderr == f"tocsin: {failed}\n"
    for path, rows in ((folder / "alarms.1.jsonl", expected[:2]), (log, expected[2:])):
        assert [alarm["row"] for alarm in events(path.read_text())] == rows


def test_a_webhook_that_is_down_is_called_by_the_next_watch(
    file: Path, stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or whatever is asked for then, with the same id."""
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        first = tocsin("watch", file, stream, "--json", "--save-state", "--once", "--on-alarm", address)
    assert "3 times: 127.0.0.1 did not take it" in first.stderr
    tocsin("watch", file, "-", "--save-state", "--on-alarm", noting(tmp_path), stdin=csv(STREAM[:1]))
    assert ids(tmp_path) == [alarm["id"] for alarm in events(first.stdout)[:-1]]


def test_a_bad_row_right_behind_an_alarm(file: Path, stream: Path, tmp_path: Path) -> None:
    """The end that it makes waits for what the alarm has set off, which the next watch does not do again."""
    first = rings(file)[0][0]
    stream.write_text(csv(STREAM[:first]) + "1\n")
    options = ("-f", "--bad-rows", "stop", "--save-state", "--on-alarm", f"sleep 0.2; {noting(tmp_path)}")
    for _ in range(2):
        assert tocsin("watch", file, stream, *options).exit_code == 2
    assert len(ids(tmp_path)) == 1


def test_standard_output_that_fails(file: Path, stream: Path, tmp_path: Path) -> None:
    """A pipe whose reader has left is no alarm, and keeps none from being acted upon; a full disk is told of."""
    quiet = tmp_path / "quiet.csv"
    quiet.write_text(csv(STREAM[:QUIET]))
    assert rings(file)[0][0] > QUIET
    for source, status in ((quiet, 0), (stream, 1)):
        read, write = os.pipe()
        os.close(read)
        with process("watch", file, source, "--on-alarm", noting(tmp_path), stdout=write) as watch:
            os.close(write)
            trouble = [line for line in watch.communicate()[1].splitlines() if "Waiting for --on-alarm" not in line]
            assert (trouble, watch.returncode) == ([], status)
    assert len(ids(tmp_path)) == len(rings(file))
    expected = [row for row, _ in rings(file)]
    for unbuffered in ("", "1"):
        own = shutil.copy(file, tmp_path / f"own{unbuffered}.tocsin")
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        with (
            Path("/dev/full").open("w") as full,
            process("watch", own, stream, "--save-state", stdout=full, env=environment) as watch,
        ):
            assert watch.communicate()[1].splitlines() == [
                "tocsin: Standard output failed, and is tried again: No space left on device.",
                f"tocsin: {len(expected)} alarms could not be written to standard output.",
            ]
        again = tocsin("watch", own, stream, "--save-state").stdout
        assert [int(row) for row in re.findall(r"ALARM before: .* rang at observation (\d+) of", again)] == expected


def test_a_command_that_hangs(file: Path, stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is ended with all that it has started, and tried again; the alarms after it are told."""
    monkeypatch.setattr(actions, "TRIES", 2)
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    monkeypatch.setattr(actions, "PATIENCE", PATIENCE)  # a busy machine tells nothing more
    rows = [row for row, _ in rings(file)]
    late, few = tmp_path / "late", f'test $(wc -l < "{tmp_path}/ids") -lt 3'
    hangs = f'{noting(tmp_path)}; if {few}; then (sleep 3; echo > "{late}"); fi'
    began = time.monotonic()
    result = tocsin("watch", file, stream, "--json", "--timeout", "1.5", "--on-alarm", hangs)
    assert result.exit_code == 1
    assert result.stderr == (
        f"tocsin: --on-alarm failed for the alarm at observation {rows[0]}, 2 times: the command took more than 1.5 s, "
        "and was ended (--timeout).\n"
    )
    wanted = [alarm["id"] for alarm in events(result.stdout)[:-1]]
    assert ids(tmp_path) == [wanted[0], wanted[0], *wanted]
    time.sleep(max(began + 4 - time.monotonic(), 0))
    assert not late.exists()


def test_a_status_for_supervisors(file: Path, stream: Path) -> None:
    """That it rang is no failure with --exit-zero; trouble still is."""
    assert tocsin("watch", file, stream).exit_code == 1
    assert tocsin("watch", file, stream, "--exit-zero").exit_code == 0
    stream.write_text("x,y\n1\n")
    assert tocsin("watch", file, stream, "--exit-zero").exit_code == 2
