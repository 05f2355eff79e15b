"""`tocsin watch` as a companion: the running picture, files that grow, and what an alarm sets off."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner, Result

from tocsin import Detector
from tocsin._cli import actions, app, common, describe, live, outbox
from tocsin._cli.actions import Actions
from tocsin._cli.live import Trace, View
from tocsin._cli.outbox import Outbox
from tocsin._cli.stopping import stopper
from tocsin._compute.arrays import Float64Array
from tocsin._explain.result import Began, Explanation, Moved
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Channel
from waiting import instead_of_waiting

PATIENCE = 60.0
ERT = 300

rng = np.random.default_rng(0)
REFERENCE = rng.normal(size=(300, 2))
QUIET = 150
STREAM = np.concatenate([rng.normal(size=(QUIET, 2)), rng.normal(loc=2, size=(50, 2))])


def csv(rows: Float64Array, header: str = "x,y\n") -> str:
    """Rows as CSV, to the last bit."""
    return header + "".join(f"{x!r},{y!r}\n" for x, y in rows.tolist())


def tocsin(*arguments: object, stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def events(text: str) -> list[dict[str, Any]]:
    """Lines of JSON."""
    return [json.loads(line) for line in text.splitlines()]


def rows_that_ring(file: Path, rows: Float64Array = STREAM) -> list[int]:
    """As the library has them."""
    outcomes = Detector.load(file).update_many(rows)
    return [int(i) + 1 for i in np.flatnonzero(outcomes.alarm)]


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


def terminal(width: int = 100, height: int = 40) -> Console:
    """A console that believes it is a terminal."""
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, highlight=False, legacy_windows=False,
        _environ={"TERM": "xterm"},
    )  # fmt: skip


def without_codes(text: str) -> str:
    """What a terminal was sent, without colours and movements of the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def printed(console: Console) -> str:
    """All that a console printed."""
    assert isinstance(console.file, io.StringIO)
    return without_codes(console.file.getvalue())


# The running picture


@pytest.mark.parametrize("each", [1, 2, 8])
def test_columns_are_the_largest_of_the_latest(each: int) -> None:
    """However they came, one by one or many at once; a column holds the same rows until it leaves the picture."""
    ratios = np.random.default_rng(1).random(150)
    ratios[:5] = np.nan
    trace, width = Trace(64), 6
    for size in (1, 1, 3, 0, 20, 1, 100, 24):
        before = trace.count
        if size == 1:
            trace.add_one(float(ratios[before]))
        else:
            trace.add(ratios[before : before + size])
        count = before + size
        last = (count - 1) // each
        expected = []
        for column in range(last - width + 1, last + 1):
            seen = ratios[max(column * each, 0) : max(min((column + 1) * each, count), 0)]
            finite = seen[np.isfinite(seen)]
            expected.append(finite.max() if len(finite) else np.nan)
        np.testing.assert_array_equal(trace.columns(width, each), expected)


def test_the_picture_tells_what_was_seen() -> None:
    """Rows and their rate, alarms against chance, the last of them and why; in each state of a watch."""
    now = 0.0
    out = terminal()
    view = View(out, "d.tocsin watches log.csv", ERT, clock=lambda: now)

    def picture() -> str:
        with out.capture() as capture:
            out.print(view.picture())
        return without_codes(capture.get())

    assert "Seen    waiting for the first; watching for 0 s" in picture()
    now = 2.0
    view.saw(np.full(1000, 0.5), np.full(1000, 1.0))
    view.saw_one(np.nan, np.nan)
    view.saw_one(3.0, 2.0)
    view.rang("observation 1,002, by chance", "column x moved\nup")
    now = 4.0
    shown = picture()
    assert "─ d.tocsin watches log.csv ─" in shown
    assert "Seen    1,002, 250 a second; watching for 4 s" in shown
    assert "Alarms  1, where chance alone would give 3.3 on average (one in 300)" in shown
    assert "Last    2 s ago, at observation 1,002, by chance" in shown
    assert re.search("Why     column x moved +│\n│         up", shown)
    assert shown.count("▲") == 1
    assert "16 to a column" in shown
    assert max(map(len, shown.splitlines())) < out.width
    for second in range(5, 105):
        now = float(second)
        picture()
    assert "Seen    1,002, no more for 1 min 40 s; watching for 1 min 44 s" in picture()
    assert "16 to a column" in picture()
    view.saw(np.full(100, 0.5), np.full(100, 1.0))
    assert "4 to a column" in picture()


@pytest.mark.parametrize(("width", "height"), [(30, 10), (8, 3), (300, 100)])
def test_the_picture_fits_its_terminal(width: int, height: int) -> None:
    """Small and large."""
    out = terminal(width, height)
    view = View(out, "d.tocsin watches standard input", ERT)
    view.saw(np.linspace(0, 2, 500), np.ones(500))
    out.print(view.picture())
    assert max(map(len, printed(out).splitlines())) <= min(width, live.WIDEST)


def test_lines_stand_above_the_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order; of too many at once some are left out, and what comes after the end is printed too."""
    monkeypatch.setattr(live, "PER_SECOND", 1e-3)
    out = terminal()
    with View(out, "title", ERT) as view:
        for i in range(20):
            view.print(Text(f"line {i}"))
    view.print("after")
    lines = [line for line in printed(out).splitlines() if line.startswith(("line", "...", "after"))]
    assert lines == ["line 0", "line 1", "line 2", "line 3", "... and 16 more lines like these", "after"]


def test_a_watch_with_a_picture(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for in a terminal, it shows all alarms and the summary; it is refused where it cannot be shown."""
    (tmp_path / "s.csv").write_text(csv(STREAM))
    refused = tocsin("watch", file, tmp_path / "s.csv", "--live")
    assert (refused.exit_code, "needs a terminal" in refused.stderr) == (2, True)
    out = terminal()
    monkeypatch.setattr(common, "console", lambda: out)
    for option in ("--quiet", "--json"):
        refused = tocsin("watch", file, tmp_path / "s.csv", "--live", option)
        assert (refused.exit_code, "--alarms helps" in refused.stderr) == (2, True)
    monkeypatch.setattr(live, "MOST_LINES", 100)
    assert tocsin("watch", file, tmp_path / "s.csv", "--live").exit_code == 1
    ringing = re.findall(r"ALARM \d\d:\d\d:\d\d observation (\d+), by chance once in", printed(out))
    assert [int(row) for row in ringing] == rows_that_ring(file)
    assert f"\n200 observations: {len(ringing)} alarms, where chance" in printed(out)
    monkeypatch.chdir(tmp_path)  # a long path would leave no room for more in the picture's title
    for source, stdin, shown in (("s.csv", None, False), ("-", csv(STREAM), True)):
        out = terminal()
        tocsin("watch", file.name, source, stdin=stdin)
        assert ("watches" in printed(out)) is shown


# Plain lines


def test_plain_lines_say_why(file: Path) -> None:
    """As the library does, counted as the stream is; of alarms that follow each other closely, three times at most."""
    lines = tocsin("watch", file, "-", stdin=csv(STREAM)).stdout.splitlines()
    detector, before, in_series, wanted = Detector.load(file), 0, 0, []
    for row in rows_that_ring(file):
        in_series = in_series + 1 if before and row - before <= ERT / 20 else 1
        detector.update_until_alarm(STREAM[before:row])
        began = detector.explain().began
        wanted.append(f"ALARM at observation {row}: run length {detector.time}, ")
        if in_series > 1 and began.low == 1:
            why = "goes on since the alarm before"
        else:
            when, low, high = (before + place for place in (began.time, began.low, began.high))
            why = f"began at about observation {when} (90% interval {low} to {high})"
        wanted += [f"  The change {why}"] if in_series <= 3 else []
        detector.reset()
        before = row
    assert in_series > 3
    assert any("goes on" in line for line in wanted)
    for line, beginning in zip(lines, [*wanted, "200 observations: "], strict=True):
        assert line.startswith(beginning)


def explained(began: Began, *moved: tuple[str, str], time: int = 100) -> Explanation:
    """A change of columns that did something."""
    columns = tuple(Moved(name, 1.0, (0.0, 0.5), 0.01, bool(how), how.strip(), "", "") for name, how in moved)
    outcome = Outcome(time, True, 2.0, 1.0, 1e4, Channel("MMD", 25, 1.0))
    return Explanation(outcome, 2.0, "", began, columns, 0.05, (), ())


@pytest.mark.parametrize(
    ("began", "row", "text"),
    [
        (Began(90, 80, 95, 0.9), 100, "at about observation 90 (90% interval 80 to 95)"),
        (Began(90, 80, 95, 0.9), 5100, "at about observation 5,090 (90% interval 5,080 to 5,095)"),
        (Began(90, 80, 95, 0.9), 12, "at about observation 2 (90% interval 1 to 7)"),
        (Began(90, 80, 95, 0.9), 10, "before this stream"),
    ],
)
def test_when_a_change_began_in_a_stream(began: Began, row: int, text: str) -> None:
    """The run may have begun in a stream before."""
    assert str(explained(began).moved_on(row - 100).began) == text


def test_columns_that_changed_in_few_words() -> None:
    """A few of them; those that have no direction by their names alone."""
    began = Began(90, 80, 95, 0.9)
    assert describe.changed(explained(began, ("x", ""))) == ""
    assert describe.changed(explained(began, ("x", "higher"), ("y", " "), ("z", ""))) == "x (higher) and y"
    many = explained(began, *((f"x{i}", "wider") for i in range(1000)), ("z", "lower"), ("w", "lower"))
    assert describe.changed(many) == "x0 (wider), x1 (wider), x2 (wider) and 999 more"


# What an alarm sets off


class Told:
    """What `Detector.explain` answers."""

    def __str__(self) -> str:
        return "x moved"

    def moved_on(self, by: int, judged: object = ()) -> Self:
        return self

    def found_by(self, beside: object) -> Self:
        return self

    def to_dict(self) -> dict[str, Any]:
        return {"columns": ["x"], "p_value": float("nan")}


def test_alarms_are_objects_with_all_there_is_to_know(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard output and in a file that grows, the same; with an explanation."""
    log = tmp_path / "alarms.jsonl"
    log.write_text("{}\n")
    monkeypatch.setattr(Detector, "explain", lambda self: Told())
    found = events(tocsin("watch", file, "-", "--json", "--alarms", log, stdin=csv(STREAM)).stdout)[:-1]
    assert events(log.read_text()) == [{}, *found]
    assert [alarm["row"] for alarm in found] == rows_that_ring(file)
    first = found[0]
    assert datetime.fromisoformat(first["timestamp"]).tzinfo is not None
    assert first["explanation"] == {"columns": ["x"], "p_value": None, "text": "x moved"}
    assert first["statistic"] > first["threshold"]
    assert first["channel"]["window"] in (5, 20)
    assert first["text"].startswith(f"{file} rang at observation {first['row']} of standard input: statistic ")
    tocsin("watch", file, "-", "--quiet", "--once", "--alarms", log, stdin=csv(STREAM))
    assert [alarm["row"] for alarm in events(log.read_text())[1 + len(found) :]] == [first["row"]]


def test_an_alarm_and_its_explanation_count_alike(file: Path) -> None:
    """Observations of the stream, from 1, whatever run they belong to; plain words and numbers."""
    found = events(tocsin("watch", file, "-", "--json", stdin=csv(STREAM)).stdout)[:-1]
    assert len(found) > 1
    for alarm in found:
        why, row = alarm["explanation"], alarm["row"]
        assert why["time"] == row
        assert row - alarm["run_length"] < why["began"]["low"] <= why["began"]["time"] <= row
        assert all(row - alarm["run_length"] < example["time"] <= row for example in why["recent"])
        for example in why["recent"]:
            values = [float(value) for value in example["values"].values()]
            assert values == pytest.approx(STREAM[example["time"] - 1], rel=1e-3)
        assert why["text"].startswith(f"Alarm at observation {row:,} ")
        assert f"began at about observation {why['began']['time']:,} " in why["text"]


def test_alarms_do_not_go_where_they_do_harm(file: Path, tmp_path: Path) -> None:
    """Not into the detector or the stream, and not where nothing can be written."""
    stream, before = tmp_path / "s.csv", file.read_bytes()
    stream.write_text(csv(STREAM))
    for target, message in ((file, "into what is read"), (stream, "into what is read"), (tmp_path, "Is a directory")):
        result = tocsin("watch", file, stream, "--alarms", target)
        assert (result.exit_code, message in result.stderr) == (2, True)
    assert (file.read_bytes(), stream.read_text()) == (before, csv(STREAM))


def test_a_command_for_each_alarm(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, with the alarm on its input and in its environment; what it prints is told."""
    monkeypatch.setattr(actions, "PATIENCE", PATIENCE)  # a busy machine tells nothing more
    script = tmp_path / "hook.sh"
    script.write_text(
        f'cat >> "{tmp_path}/alarms"; echo "$TOCSIN_ROW $TOCSIN_STREAM" >> "{tmp_path}/rows"\n'
        'echo "hooked $TOCSIN_ROW"; sleep 5 &\n'
    )
    result = tocsin("watch", file, "-", "--json", "--on-alarm", f"sh {script}", stdin=csv(STREAM))
    rows = rows_that_ring(file)
    assert result.exit_code == 1
    assert events((tmp_path / "alarms").read_text()) == events(result.stdout)[:-1]
    assert (tmp_path / "rows").read_text().splitlines() == [f"{row} standard input" for row in rows]
    assert result.stderr.splitlines() == [f"hooked {row}" for row in rows]


def test_a_command_that_fails(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again, at once and before later alarms, and told of; the next watch tries what never worked."""
    monkeypatch.setattr(actions, "PATIENCE", PATIENCE)
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    rows = rows_that_ring(file)
    tries, note = tmp_path / "tries", f'echo "$TOCSIN_ROW" >> "{tmp_path}/tries"'
    fails = f'{note}; test "$TOCSIN_ROW" != {rows[0]}'
    result = tocsin("watch", file, "-", "--json", "--save-state", "--on-alarm", fails, stdin=csv(STREAM))
    expected = [rows[0]] * actions.TRIES + [row for later in rows[1:] for row in (rows[0], later)]
    assert list(map(int, tries.read_text().split())) == expected
    failed = f"--on-alarm failed for the alarm at observation {rows[0]}, 3 times: the command ended with status 1."
    left = "1 alarm had no effect by --on-alarm; the next watch tries again."
    assert result.stderr.splitlines() == [f"tocsin: {failed}", f"tocsin: {left}"]
    tries.unlink()
    again = tocsin("watch", file, "-", "--save-state", "--on-alarm", note, stdin="")
    assert (tries.read_text().split(), again.stderr) == ([str(rows[0])], "")
    tocsin("watch", file, "-", "--save-state", "--on-alarm", note, stdin="")
    assert tries.read_text().split() == [str(rows[0])]


def test_a_command_that_cannot_be_started(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the trouble: it is told, later alarms have their turn, and all of them stay to be told."""
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    rows = rows_that_ring(file)

    def fail(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr("tempfile.TemporaryFile", fail)
        result = tocsin("watch", file, "-", "--quiet", "--save-state", "--on-alarm", "true", stdin=csv(STREAM))
    told = [f"tocsin: --on-alarm failed for the alarm at observation {row}, 3 times: MemoryError." for row in rows]
    left = f"tocsin: {len(rows)} alarms had no effect by --on-alarm; the next watch tries again."
    assert result.stderr.splitlines() == [*told, left]
    note = f'echo "$TOCSIN_ROW" >> "{tmp_path}/rows"'
    tocsin("watch", file, "-", "--quiet", "--save-state", "--on-alarm", note, stdin="")
    assert list(map(int, (tmp_path / "rows").read_text().split())) == rows


def waiting(count: int) -> Outbox:
    """So many alarms that wait for their action."""
    box = Outbox(["action"])
    for i in range(count):
        box.add({"id": str(i), "row": i})
    return box


def test_actions_that_are_slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The watch does not wait for them, and none is dropped; at the end they have a while left, and that is told."""
    told: list[str] = []
    gate, box = tmp_path / "gate", waiting(300)
    it = Actions(f'test "$TOCSIN_ROW" != 0 && exit; while [ ! -e "{gate}" ]; do sleep 0.05; done', told.append, box)
    it.ring()
    it.finish(0.05)
    assert told == [
        "tocsin: Waiting for --on-alarm, up to 0 s; Ctrl-C to leave at once.",
        "tocsin: --on-alarm is still busy and is left to itself; 299 alarms behind it had no effect.",
    ]
    assert len(box) == 300
    gate.touch()
    assert it._idle.wait(PATIENCE)
    assert (len(box), told[2:]) == (0, [])


def test_more_alarms_than_can_wait(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are pushed out are told of."""
    monkeypatch.setattr(outbox, "MOST", 2)
    rows = rows_that_ring(file)
    result = tocsin("watch", file, "-", "--json", "--alarms", "/dev/full", stdin=csv(STREAM))
    assert result.stderr.count("alarms wait to be told, and new ones push out the oldest.") == 1
    assert f"{len(rows) - 2} alarms came to nothing: too many waited to be told." in result.stderr


def test_a_second_ctrl_c_leaves_actions_to_themselves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While the end of a watch waits for them; elsewhere it changes nothing."""
    monkeypatch.setattr(actions, "PATIENCE", 0.01)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        if "Waiting" in text:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    it = Actions(f'while [ ! -e "{tmp_path}/gate" ]; do sleep 0.05; done', tell, waiting(2))
    it.ring()
    with stopper() as stop:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), stop.waiting():
            it.finish()
        signal.raise_signal(signal.SIGINT)
    assert told[1] == "tocsin: --on-alarm is still busy and is left to itself; 1 alarm behind it had no effect."
    (tmp_path / "gate").touch()
    assert it._idle.wait(PATIENCE)


@contextmanager
def server(*answers: int) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """A web server that gives these answers in turn, the last again and again: its address, and what it got."""
    got: list[tuple[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers["Content-Type"], json.loads(body)))
            self.send_response(answers[min(len(got), len(answers)) - 1])
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            got.append(("GET", None))

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as it:
        thread = threading.Thread(target=it.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{it.server_port}/secret", got
        finally:
            it.shutdown()
            thread.join()


def test_a_webhook_for_each_alarm(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON; one that fails is tried again, and then the next has its turn."""
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    with server(500, 503, 200) as (address, got):
        result = tocsin("watch", file, "-", "--json", "--on-alarm", address, stdin=csv(STREAM))
    alarms = events(result.stdout)[:-1]
    assert got == [("application/json", alarm) for alarm in [alarms[0], alarms[0], *alarms]]
    assert (result.exit_code, result.stderr) == (1, "")


def test_a_webhook_that_fails_is_told(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the address, which may be a secret; and the watch goes on."""
    monkeypatch.setattr(actions, "BACKOFF", 0.001)
    row = rows_that_ring(file)[0]
    failed = f"tocsin: --on-alarm failed for the alarm at observation {row}, 3 times: 127.0.0.1 did not take it: "
    for answer in (404, 302):
        with server(answer) as (address, got):
            result = tocsin("watch", file, "-", "--once", "--on-alarm", address, stdin=csv(STREAM))
        assert [kind for kind, _ in got] == ["application/json"] * 3
        assert result.stderr.startswith(f"{failed}it answered {answer} ")
        assert "secret" not in result.stderr
    result = tocsin("watch", file, "-", "--once", "--on-alarm", address, stdin=csv(STREAM))
    assert (result.exit_code, "refused" in result.stderr) == (1, True)


def test_actions_that_make_no_sense(file: Path) -> None:
    """Told before the watch."""
    for value, message in ((" ", "--on-alarm is empty"), ("http://", "names no host")):
        result = tocsin("watch", file, "-", "--on-alarm", value, stdin=csv(STREAM))
        assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)


# Files that grow


def test_following_that_makes_no_sense(file: Path, tmp_path: Path) -> None:
    """Told before the watch."""
    np.save(tmp_path / "s.npy", STREAM)
    for arguments, message in (
        (("-", "-f"), "standard input are always taken as they arrive"),
        ((tmp_path / "s.npy", "-f"), "only text can be read while it is written"),
        ((tmp_path / "none.csv", "-f"), "There is no file"),
        ((tmp_path / "s.npy", "--from-now"), "give --follow too"),
    ):
        result = tocsin("watch", file, *arguments, stdin=csv(STREAM))
        assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_file_is_followed_until_a_signal(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Through growth and rotation the alarms are those of one stream; the state is saved on the way and at the end."""
    log, done, saved, places = tmp_path / "log.csv", 0, [], []
    ringing = rows_that_ring(file)
    for rows in (0, QUIET - 7, QUIET + 13, QUIET + 30):
        saves = 0  # at the first row, at every alarm, and 40 rows after that or the last time
        for row in range(1, rows + 1):
            saves = row if row in ringing or row - saves >= 40 or row == 1 else saves
        detector = Detector.load(file)
        detector.update_many(STREAM[:saves])
        places.append((detector.run, detector.time))
    log.write_text("x,y\n")
    stops = iter([QUIET - 7, QUIET + 13, QUIET + 30])
    expected = rows_that_ring(file, STREAM[: QUIET + 30])

    def more(_seconds: float) -> None:
        nonlocal done
        saved.append((Detector.load(file).run, Detector.load(file).time))
        stop = next(stops, None)
        if stop is None:
            signal.raise_signal(number)
        elif done < QUIET:
            with log.open("a") as out:
                out.write(csv(STREAM[done:stop], header=""))
        else:
            log.rename(tmp_path / "log.csv.1")
            log.write_text(csv(STREAM[done:stop]))
        done = stop or done

    instead_of_waiting(monkeypatch, more)
    result = tocsin("watch", file, log, "--follow", "--json", "--save-every", 40)
    *alarms, summary = events(result.stdout)
    assert [alarm["row"] for alarm in alarms] == expected
    assert (summary["rows"], summary["interrupted"], summary["state_saved"]) == (QUIET + 30, True, True)
    assert saved == places
    assert result.exit_code == 1


def test_a_bad_row_ends_a_watch_with_everything(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture is left whole, alarms before it have had their effect, the rows before it are kept; status 2."""
    out, log = terminal(), tmp_path / "log.csv"
    log.write_text(csv(STREAM) + "1,two\n")
    monkeypatch.setattr(common, "console", lambda: out)
    rows = rows_that_ring(file)
    expected = Detector.load(file)
    expected.update_many(STREAM)
    hook = f'echo "$TOCSIN_ROW" >> "{tmp_path}/rows"'
    options = ("--bad-rows", "stop", "--on-alarm", hook, "--alarms", tmp_path / "a.jsonl")
    result = tocsin("watch", file, log, "-f", "--save-state", *options)
    assert (result.exit_code, "line 202" in result.stderr) == (2, True)
    assert printed(out).rstrip().endswith("╯")
    assert list(map(int, (tmp_path / "rows").read_text().split())) == rows
    assert len(events((tmp_path / "a.jsonl").read_text())) == len(rows)
    assert (Detector.load(file).run, Detector.load(file).time) == (expected.run, expected.time)


# A real terminal


def test_in_a_terminal(file: Path, tmp_path: Path) -> None:
    """A picture by itself, an alarm above it as soon as its row is written, and after Ctrl-C the cursor is back."""
    log, row = tmp_path / "log.csv", rows_that_ring(file)[0]
    log.write_text(csv(STREAM[: row - 1]))
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "90", "LINES": "30", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "tocsin", "watch", str(file), str(log), "-f", "--save-state"]
    shown = b""

    def read_until(text: str) -> None:
        nonlocal shown
        deadline = time.monotonic() + PATIENCE
        while text not in without_codes(shown.decode(errors="ignore")):
            assert time.monotonic() < deadline, shown.decode()
            if select.select([master], [], [], 0.1)[0]:
                shown += os.read(master, 65536)

    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        read_until(f"Seen    {row - 1},")
        assert b"ALARM" not in shown
        with log.open("a") as out:
            out.write(csv(STREAM[row - 1 : row], header=""))
        read_until(f" observation {row}, by chance once in")
        process.send_signal(signal.SIGINT)
        read_until("State saved to")
        assert process.wait(PATIENCE) == 1
    os.close(slave)
    os.close(master)
    assert shown.count(b"\x1b[?25l") == shown.count(b"\x1b[?25h") == 1
    assert f"Stopped after {row} observations: 1 alarm, where chance" in without_codes(shown.decode())
    assert Detector.load(file).run == 1
