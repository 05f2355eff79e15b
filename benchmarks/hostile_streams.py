"""What `tocsin watch` loses or doubles when it is killed and its file is rotated.

A writer appends rows, rotates the file and kills the watch (kill -9) at moments chosen at random; each try ends as one
uninterrupted watch of all rows would, or in the exit status that says that this cannot be known. What is compared are
the rows that the detector took in and the alarms that were written.
"""

from __future__ import annotations

import json
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

ROWS, EVERY, LOST, PATIENCE = 160, 10, 3, 20.0
"""Rows of a stream, those between two saves, the exit status of a watch that cannot know whether rows are lost, and the
seconds within which it must have seen all."""

ROTATIONS = ("none", "rename", "rename twice", "dated", "copy and truncate", "copy and truncate twice", "put aside")
KILLS = {"none": 0, "one": 1, "three": 3}
PIECES = 24
"""In which a stream is written."""

LONG, LONG_EVERY = 20_000, 500
"""Rows of a stream that is all there from the beginning, and those between two saves: watched, it takes a second."""

AT_ONCE = 4
"""Tries that are made at the same time."""

END = "end\n"
"""A line that is no row, after the last: once it is kept as such, all rows before it were taken in."""

ALL_THERE = "all there"

ONE_LINE: Callable[[], object] = lambda: None  # noqa: E731

SCENARIOS = [
    *(f"{rotation}, kills: {kill}" for rotation in ROTATIONS for kill in KILLS),
    "cut back and regrown, kills: none",
    "cut back and regrown, kills: one",
    "all there, kills: one",
    "all there, kills: three",
]


@dataclass
class Tally:
    """What tries of a scenario came to."""

    tries: int = 0
    refused: int = 0
    rows_lost: int = 0
    rows_doubled: int = 0
    alarms_lost: int = 0
    alarms_doubled: int = 0
    different: int = 0

    def add(self, other: Tally) -> None:
        """One more."""
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


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

    def __post_init__(self) -> None:
        self.log = self.folder / "log.csv"
        self.log.write_text("x,y\n")

    # The watch

    def start(self, *, follow: bool = True) -> None:
        """Watch, in a process of its own."""
        how = ["--follow", "--save-every", str(EVERY)] if follow else ["--save-every", str(LONG_EVERY)]
        options = [*how, "--alarms", str(self.folder / "alarms.jsonl"), "--quiet"]
        command = [sys.executable, "-m", "tocsin", "watch", str(self.folder / "d.tocsin"), str(self.log), *options]
        with (self.folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(command, stderr=errors, stdin=subprocess.DEVNULL)

    def end(self, number: int) -> None:
        """End it by a signal."""
        if self.process is not None:
            self.process.send_signal(number)
            self.statuses.append(self.process.wait(PATIENCE))
            self.process = None

    def saved(self) -> int:
        """Rows that the state knows of."""
        from tocsin._cli.keeping import Kept

        place = Kept(self.folder / "d.tocsin").place_of(str(self.log))
        return 0 if place is None else place.rows

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
        old = sorted(self.folder.glob("log.csv.[0-9]*"), reverse=True)
        if how in ("rename", "rename twice", "copy and truncate", "copy and truncate twice"):
            for file in old:
                file.rename(self.folder / f"log.csv.{int(file.suffix[1:]) + 1}")
        if how.startswith("rename"):
            self.log.rename(self.folder / "log.csv.1")
        elif how == "dated":
            self.log.rename(self.folder / f"log.csv-2024{self.rotations:04d}")
        elif how.startswith("copy"):
            shutil.copy(self.log, self.folder / "log.csv.1")
        elif how == "put aside":
            self.log.rename(self.folder / f"log.csv.old{self.rotations}")
        self.log.write_text("x,y\n")


def trial(scenario: str, seed: int, detector: Path, pieces: int = PIECES) -> Tally:
    """One try, compared with one uninterrupted run."""
    rotation, _, kill = scenario.partition(", kills: ")
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
            it.wait(it.has_begun)  # what was rotated away before anyone watched is nobody's loss
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

    if rotation == "cut back and regrown":
        at(1, partial(it.log.write_text, "x,y\n" + text[: len(text) // 2] * 2))
    elif rotation.endswith("twice"):
        at(1, partial(it.rotate, rotation), ONE_LINE, partial(it.rotate, rotation))
    elif rotation != "none":
        at(3, partial(it.rotate, rotation))
    at(KILLS[kill], partial(it.end, signal.SIGKILL), it.start)
    done = 0
    for i, end in enumerate(ends):
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
    expected = Detector.load(detector)
    ringing = [int(i) + 1 for i in np.flatnonzero(expected.update_many(rows).alarm)]
    found = Detector.load(it.folder / "d.tocsin")
    taken = it.saved()
    tally.rows_lost, tally.rows_doubled = max(len(rows) - taken, 0), max(taken - len(rows), 0)
    place = (expected.run, expected.time)
    if expected.alarm is None and (found.run, found.time) != place:
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
        for i, scenario in enumerate(SCENARIOS):
            yield scenario, run(scenario, tries, detector, first=1000 * i)
