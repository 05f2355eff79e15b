"""What `tocsin watch` loses or doubles when it is killed, ended or stopped and its file is rotated.

A writer appends rows, rotates the file and kills the watch (kill -9, or a signal that asks it to end) at moments chosen
at random; each try ends as one uninterrupted watch of all rows would, or, where nobody could know what is missing, in
the exit status that says so. What is compared are the rows that the detector took in, the alarms that were written, and
the statistics of the rows that come next.
A long file, since what is done to a file, to a watch, and what is compared belong to one story.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from tocsin import Detector
from tocsin._compute.arrays import Float64Array

HUNG = 124
"""Instead of an exit status: a watch that was asked to end, and had not when patience did."""

ROWS, EVERY, LOST, PATIENCE = 160, 10, 3, 20.0
"""Rows of a stream, those between two saves, the exit status of a watch that cannot know whether rows are lost, and the
seconds within which it must have seen all."""

ROTATIONS = ("none", "rename", "rename twice", "dated", "copy and truncate", "copy and truncate twice", "put aside")
KILLS = {"none": 0, "one": 1, "three": 3}
ASKS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ASKED = ("none", "rename", "copy and truncate")
STOPPED = (
    "rename", "dated", "dated, oldest gone", "compress", "compress twice", "compress later", "compress later twice",
    "move away", "move away twice",
)  # fmt: skip
SHORT_STOP, LONG_STOP = 0.5, 6.0
"""Seconds that a watch is stopped; and longer than it may be without a look at a file that is no longer there."""

PIECES = 24
"""In which a stream is written."""

LONG, LONG_EVERY = 20_000, 500
"""Rows of a stream that is all there from the beginning, and those between two saves: watched, it takes a second."""

AT_ONCE = 4
"""Tries that are made at the same time."""

END = "end\n"
"""A line that is no row, after the last: once it is kept as such, all rows before it were taken in."""

ALL_THERE = "all there"
AT_ONCE_KILLED = "at once"
"""A watch that is killed as soon as it has a place, before a row is known to be taken in."""

ONE_LINE: Callable[[], object] = lambda: None  # noqa: E731

CUT = ("cut back and regrown", "cut back and regrown to less")

SCENARIOS = [
    *(f"{rotation}, kills: {kill}" for rotation in ROTATIONS for kill in KILLS),
    *(f"{rotation}, kills: at once" for rotation in ("rename", "dated", "copy and truncate")),
    *(f"{rotation}, asked to end: three" for rotation in ASKED),
    *(f"{rotation}, stopped" for rotation in STOPPED),
    "compress, kills: none",
    "move away, kills: none",
    *(f"{cut}, kills: none" for cut in CUT),
    "cut back and regrown, kills: one",
    "all there, kills: one",
    "all there, kills: three",
]

UNKNOWABLE = {
    *(scenario for scenario in SCENARIOS if scenario.startswith(CUT)),
    "compress twice, stopped",
    "dated, oldest gone, stopped",
    "move away, stopped",
    "move away twice, stopped",
}
"""Where a watch cannot know what is missing, and is right to say so. Anywhere else it must not."""


@dataclass
class Tally:
    """What tries of a scenario came to."""

    tries: int = 0
    refused: int = 0
    crashed: int = 0
    rows_lost: int = 0
    rows_doubled: int = 0
    alarms_lost: int = 0
    alarms_doubled: int = 0
    different: int = 0

    def add(self, other: Tally) -> None:
        """One more."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _listening() -> None:
    """What nohup, or a shell that starts this in the background, has others ignore is not for a watch to ignore."""
    for number in ASKS:
        signal.signal(number, signal.SIG_DFL)


def fitted(file: Path) -> None:
    """A small detector."""
    rows = np.random.default_rng(0).normal(size=(300, 2))
    Detector(300, window=[5, 20], paths=500, seed=1).fit(rows, progress=False).save(file)


def stream(seed: int, count: int) -> Float64Array:
    """Rows of which the last have changed."""
    rng = np.random.default_rng(seed)
    changed = ROWS // 3
    return np.concatenate([rng.normal(size=(count - changed, 2)), rng.normal(loc=2, size=(changed, 2))])


def lines(rows: Float64Array) -> list[str]:
    """Rows as CSV, to the last bit."""
    return [f"{x!r},{y!r}\n" for x, y in rows.tolist()]


@dataclass
class Trial:
    """One stream that is written, rotated and watched."""

    folder: Path
    rng: np.random.Generator
    log: Path = field(init=False)
    process: subprocess.Popen[bytes] | None = None
    statuses: list[int] = field(default_factory=list)
    rotations: int = 0
    found: int = 0

    def __post_init__(self) -> None:
        self.log = self.folder / "log.csv"
        self.log.write_text("x,y\n")

    # The watch

    def start(self, *, follow: bool = True) -> None:
        """Watch, in a process of its own."""
        self.found = (self.folder / "d.tocsin").stat().st_mtime_ns
        how = ["--follow", "--save-every", str(EVERY)] if follow else ["--save-every", str(LONG_EVERY)]
        options = [*how, "--alarms", str(self.folder / "alarms.jsonl"), "--quiet"]
        command = [sys.executable, "-m", "tocsin", "watch", str(self.folder / "d.tocsin"), str(self.log), *options]
        with (self.folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(command, stderr=errors, stdin=subprocess.DEVNULL, preexec_fn=_listening)

    def end(self, number: int) -> None:
        """End it by a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            try:
                self.statuses.append(self.process.wait(PATIENCE))
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.statuses.append(HUNG)
                self.process.wait()
            self.process = None

    def ask(self) -> None:
        """Ask it to end, by one of the signals for that."""
        number = ASKS[int(self.rng.integers(len(ASKS)))]
        if number == signal.SIGINT:
            self.wait(self.listens)  # before that, while modules are imported, Ctrl-C is Python's to take or to lose
        self.end(number)

    def stop(self) -> None:
        """Let it stand still."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """And go on."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def saved(self) -> int:
        """Rows that the state knows of."""
        from tocsin._cli.keeping import Kept

        place = Kept(self.folder / "d.tocsin").place_of(str(self.log))
        return 0 if place is None else place.rows

    def listens(self) -> bool:
        """Whether it has saved, which it does when it begins."""
        return (self.folder / "d.tocsin").stat().st_mtime_ns != self.found

    def has_place(self) -> bool:
        """Whether the state knows of the stream, though of no row perhaps."""
        from tocsin._cli.keeping import Kept

        return Kept(self.folder / "d.tocsin").place_of(str(self.log)) is not None

    def has_begun(self) -> bool:
        """Whether some rows are known to be seen."""
        return self.saved() > 0

    def has_ended(self) -> bool:
        """Whether all were taken in, saved or not."""
        bad = self.folder / "d.bad.jsonl"
        return bad.exists() and json.dumps(END.strip()) in bad.read_text()

    def wait(self, until: Callable[[], bool]) -> None:
        """Until this is so, or the watch has given up."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None or until():
                return
            time.sleep(0.05)

    # The file

    def write(self, text: str) -> None:
        """Append, as a program would that opens the file anew."""
        with self.log.open("a") as out:
            out.write(text)

    def rotate(self, how: str) -> None:
        """Give the name to another file."""
        self.rotations += 1
        how = how.removesuffix(" twice")
        if how in ("rename", "copy and truncate", "compress", "compress later"):
            for file in sorted(self.folder.glob("log.csv.[0-9]*"), reverse=True):
                number, _, ending = file.name.removeprefix("log.csv.").partition(".")
                file.rename(self.folder / f"log.csv.{int(number) + 1}{ending and '.'}{ending}")
        if how in ("rename", "compress", "compress later"):
            self.log.rename(self.folder / "log.csv.1")
            if how != "rename":
                _compress(self.folder / ("log.csv.1" if how == "compress" else "log.csv.2"))
        elif how == "move away":
            (self.folder / "old").mkdir(exist_ok=True)
            self.log.rename(self.folder / "old" / f"log.csv.{self.rotations}")
        elif how.startswith("dated"):
            self.log.rename(self.folder / f"log.csv-2024{self.rotations:04d}")
            if how == "dated, oldest gone" and self.rotations > 1:
                (self.folder / f"log.csv-2024{self.rotations - 1:04d}").unlink()
        elif how.startswith("copy"):
            shutil.copy(self.log, self.folder / "log.csv.1")
        elif how == "put aside":
            self.log.rename(self.folder / f"log.csv.old{self.rotations}")
        self.log.write_text("x,y\n")


def _compress(file: Path) -> None:
    """As gzip does, which keeps the time."""
    if file.exists():
        seen = file.stat()
        packed = file.with_name(f"{file.name}.gz")
        packed.write_bytes(gzip.compress(file.read_bytes()))
        os.utime(packed, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        file.unlink()


def trial(scenario: str, seed: int, detector: Path, pieces: int = PIECES) -> Tally:
    """One try, compared with one uninterrupted run."""
    rotation, kill = scenario, ""
    for how, word in ((", kills: ", ""), (", asked to end: ", "asked "), (", stopped", "stopped")):
        if how in scenario:
            rotation, _, kill = scenario.partition(how)
            kill = word + kill
    rng = np.random.default_rng(seed)
    rows = stream(seed, LONG if rotation == ALL_THERE else ROWS)
    with tempfile.TemporaryDirectory() as name:
        it = Trial(Path(name), rng)
        shutil.copy(detector, it.folder / "d.tocsin")
        if rotation == ALL_THERE:
            _watch_all_there(it, KILLS[kill], rows)
            return _compared(it, detector, rows)
        steps = list(_steps(it, rotation, kill, lines(rows[EVERY:]), pieces))
        try:
            it.write("".join(lines(rows[:EVERY])))
            it.start()
            # What was rotated away before anyone watched is nobody's loss.
            it.wait(it.has_place if kill == AT_ONCE_KILLED else it.has_begun)
            for step in steps:
                step()
                if it.process is not None and it.process.poll() is not None:
                    break
            it.write(END)
            it.wait(it.has_ended)
            it.end(signal.SIGTERM)
        finally:
            if it.process is not None:
                it.process.kill()
                it.process.wait()
        return _compared(it, detector, rows)


def _watch_all_there(it: Trial, kills: int, rows: Float64Array) -> None:
    """A file to its end, by watches that are killed once they have begun to save, and one that is not."""
    it.write("".join(lines(rows)))
    for kill in range(kills + 1):
        before = it.saved()
        it.start(follow=False)
        assert it.process is not None
        if kill < kills:
            it.wait(lambda before=before: it.saved() > before)  # type: ignore[misc]
            time.sleep(it.rng.uniform(0, 0.3))
            it.end(signal.SIGKILL)
        else:
            it.statuses.append(it.process.wait(10 * PATIENCE))
            it.process = None


def _steps(it: Trial, rotation: str, kill: str, texts: list[str], pieces: int) -> Iterator[Callable[[], object]]:
    """What happens, in order: pieces of text, rotations, kills and pauses."""
    text = "".join(texts)
    ends = sorted(it.rng.choice(np.arange(1, len(text)), pieces, replace=False).tolist())
    events: dict[int, list[Callable[[], object]]] = {}

    def at(count: int, *what: Callable[[], object]) -> None:
        for place in it.rng.choice(np.arange(4, len(ends) - 2), count, replace=False).tolist():
            events.setdefault(int(place), []).extend(what)

    rotate = partial(it.rotate, rotation)
    if rotation == "cut back and regrown":
        at(1, partial(it.log.write_text, "x,y\n" + text[: len(text) // 2] * 2))
    elif rotation == "cut back and regrown to less":
        at(1, ONE_LINE, partial(it.log.write_text, "x,y\n" + texts[0]))
    elif kill == "stopped":
        often: list[Callable[[], object]] = [rotate, ONE_LINE] * (2 if rotation.endswith(("twice", "gone")) else 1)
        pause = LONG_STOP if rotation.startswith("move away") else SHORT_STOP
        at(1, it.stop, ONE_LINE, *often, partial(time.sleep, pause), it.go_on)
    elif rotation.endswith("twice"):
        at(1, rotate, ONE_LINE, rotate)
    elif rotation != "none" and kill != AT_ONCE_KILLED:
        # Of several that are moved away or compressed between two looks, only the first can be read.
        at(1 if rotation in ("move away", "compress") else 3, rotate)
    if kill.startswith("asked"):
        at(KILLS[kill.split()[-1]], it.ask, it.start)
    elif kill in KILLS:
        at(KILLS[kill], partial(it.end, signal.SIGKILL), it.start)
    done = 0
    if kill == AT_ONCE_KILLED:
        yield partial(it.end, signal.SIGKILL)
        done = len(texts[0])
        yield partial(it.write, text[:done])
        yield rotate
        yield it.start
    for i, end in enumerate(ends):
        if end <= done:
            continue
        if i in events:
            # It falls between two lines, as it does with loggers.
            end = text.find("\n", max(end - 1, done - 1)) + 1
        yield partial(it.write, text[done:end])
        done = max(end, done)
        if it.rng.random() < 0.4:
            yield partial(time.sleep, 0.3)
        for event in events.get(i, []):
            if event is ONE_LINE:  # all that the file between two rotations ever holds
                end = text.find("\n", done) + 1
                event = partial(it.write, text[done:end])
                done = end
            yield event
    yield partial(it.write, text[done:])


def _compared(it: Trial, detector: Path, rows: Float64Array) -> Tally:
    tally = Tally(tries=1)
    if LOST in it.statuses:
        return Tally(tries=1, refused=1)
    tally.crashed = int(HUNG in it.statuses or "Traceback" in (it.folder / "errors").read_text())
    expected = Detector.load(detector)
    ringing = [int(i) + 1 for i in np.flatnonzero(expected.update_many(rows).alarm)]
    found = Detector.load(it.folder / "d.tocsin")
    taken = it.saved()
    tally.rows_lost, tally.rows_doubled = max(len(rows) - taken, 0), max(taken - len(rows), 0)
    for one in (expected, found):
        if one.alarm is not None:
            one.reset()
    later = stream(0, ROWS)
    place = (expected.run, expected.time)
    if (found.run, found.time) != place or not np.array_equal(
        expected.update_many(later).statistic, found.update_many(later).statistic, equal_nan=True
    ):
        tally.different = 1
    log = it.folder / "alarms.jsonl"
    written = Counter(json.loads(line)["row"] for line in log.read_text().splitlines()) if log.exists() else Counter()
    tally.alarms_lost = sum((Counter(ringing) - written).values())
    tally.alarms_doubled = sum((written - Counter(ringing)).values())
    return tally


def run(scenario: str, tries: int, detector: Path, first: int = 0, pieces: int = PIECES) -> Tally:
    """So many tries, some at once, since most of their time they wait."""
    tally = Tally()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for own in pool.map(partial(trial, scenario, detector=detector, pieces=pieces), range(first, first + tries)):
            tally.add(own)
    return tally


def tallies(tries: int) -> Iterator[tuple[str, Tally]]:
    """So many tries of every scenario."""
    with tempfile.TemporaryDirectory() as folder:
        detector = Path(folder) / "d.tocsin"
        fitted(detector)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            under_way = [
                [pool.submit(trial, scenario, 1000 * i + own, detector) for own in range(tries)]
                for i, scenario in enumerate(SCENARIOS)
            ]
            for scenario, ends in zip(SCENARIOS, under_way, strict=True):
                tally = Tally()
                for end in ends:
                    tally.add(end.result())
                yield scenario, tally
