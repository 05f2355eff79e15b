"""Files that grow, are cut back and are rotated, while their lines are taken."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tocsin._cli import following, opened
from tocsin._cli.following import Followed
from tocsin._cli.places import PlaceLostError
from tocsin._common.errors import InputError
from waiting import instead_of_waiting

Step = Callable[[Path], object]


class OverError(Exception):
    """Nothing more will be written."""


def followed(path: Path, steps: list[Step], monkeypatch: pytest.MonkeyPatch, *, from_now: bool = False) -> list[str]:
    """The lines that a follower hands out if each time that it waits the next of these things happens."""
    remaining = iter(steps)

    def happen(_seconds: float) -> None:
        step = next(remaining, None)
        if step is None:
            raise OverError
        step(path)

    instead_of_waiting(monkeypatch, happen)
    found: list[str] = []
    with suppress(OverError):
        found.extend(line.rstrip("\n") for line in every_line(path, from_now=from_now))
    return found


def every_line(path: Path, *, from_now: bool = False) -> Iterator[str]:
    """All lines, blank ones too."""
    as_json = path.read_text().startswith("{")
    source = Followed(str(path), from_now=from_now, as_json=as_json, on_bad=lambda _: None)
    try:
        while True:
            yield source.next_line()
    finally:
        source.close()


def append(text: str | bytes) -> Step:
    """Write to the end."""

    def step(path: Path) -> None:
        with path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    return step


def replace(text: str) -> Step:
    """Put another file in its place."""

    def step(path: Path) -> None:
        other = path.with_suffix(".new")
        other.write_text(text)
        other.replace(path)

    return step


def rename(path: Path) -> None:
    """Move it away, as rotation does first."""
    path.rename(path.with_suffix(".1"))


def cut_back(path: Path) -> None:
    """Empty it, as rotation by copying does."""
    path.write_text("")


def nothing(path: Path) -> None:
    """A look at a file that has not changed."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file with a header and a row."""
    path = tmp_path / "log.csv"
    path.write_text("x,y\n1,2\n")
    return path


def test_lines_come_once_they_are_whole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is half written, even within a character, is waited for; ends of lines of any kind will do."""
    steps = [append("3,"), nothing, append("4"), append("\n5,6\r\n\n7,"), append(b"\xc3"), append(b"\xa9\n")]
    assert followed(log, steps, monkeypatch) == ["x,y", "1,2", "3,4", "5,6\r", "", "7,é"]


def test_an_empty_file_is_waited_for(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the header comes in pieces, after blank lines and with a byte order mark, or in another file."""
    log.write_text("")
    steps = [append("\n"), append(b"\xef\xbb\xbfx"), replace(""), append(b"\xef\xbb\xbfx,"), append("y\n1,2\n")]
    assert followed(log, [*steps, replace("x,y\n3,4\n")], monkeypatch) == ["", "x,y", "1,2", "3,4"]


@pytest.mark.parametrize(
    "rotation",
    [
        [replace("x,y\n5,6\n")],
        [rename, nothing, replace("x,y\n5,6\n")],
        [rename, append("x,"), append("y\n"), append("5,6\n")],
        [cut_back, append("x,y\n5,6\n")],
        [cut_back, nothing, append("5,6\n")],
    ],
)
def test_a_rotated_file_is_read_from_its_beginning(
    log: Path, rotation: list[Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it was replaced, moved away or cut back: the repeated header is left out, and nothing comes twice."""
    steps = [append("3,4\n"), *rotation, append("7,8\n"), nothing]
    assert followed(log, steps, monkeypatch) == ["x,y", "1,2", "3,4", "5,6", "7,8"]


def test_what_was_written_before_a_rotation_is_not_lost(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that came after the last look at the old file come first; a line that never ended is no row."""

    def write_and_rotate(path: Path) -> None:
        append("3,4\n5,")(path)
        replace("x,y\n7,8\n")(path)

    assert followed(log, [write_and_rotate], monkeypatch) == ["x,y", "1,2", "3,4", "7,8"]


def test_rows_without_a_header_are_all_rows(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON lines and CSV without names repeat nothing; nor does a log that was cut back by someone else."""
    log.write_text("1,2\n")
    assert followed(log, [replace("1,2\n3,4\n")], monkeypatch) == ["1,2", "1,2", "3,4"]
    log.write_text('{"x": 1}\n')
    assert followed(log, [replace('{"x": 1}\n{"x": 2}\n')], monkeypatch) == ['{"x": 1}', '{"x": 1}', '{"x": 2}']
    log.write_text("x,y\n1,2\n")
    assert followed(log, [replace("3,4\n")], monkeypatch) == ["x,y", "1,2", "3,4"]


def test_another_header_is_refused(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of other columns must not be taken for those before."""
    instead_of_waiting(monkeypatch, lambda _: replace("x,z\n1,2\n")(log))
    lines = Followed(str(log))
    assert [next(lines), next(lines)] == ["x,y\n", "1,2\n"]
    with pytest.raises(InputError, match=r"begins with 'x,z', where the one before had the header 'x,y'"):
        next(lines)
    lines.close()


def rotated(*names: str, elsewhere: bool = False, when: float | None = None) -> Step:
    """As many rotations at once: these are put behind the name, oldest first.

    What ends in .gz is compressed, and what begins with ! is deleted. when: compressed files were last written.
    """

    def step(path: Path) -> None:
        for i, name in enumerate(names):
            old = path.with_name(path.name + name.removeprefix("!")) if not elsewhere else path.parent / "old" / name
            old.parent.mkdir(exist_ok=True)
            if name.endswith(".gz"):
                seen = path.stat()
                old.write_bytes(gzip.compress(path.read_bytes()))
                path.unlink()
                os.utime(old, ns=(seen.st_atime_ns, seen.st_mtime_ns) if when is None else (int(when), int(when)))
            elif name.startswith("!"):
                path.unlink()
            else:
                path.rename(old)
            path.write_text(f"x,y\n{i},{i}\n")
            time_passes(path, i + 1)

    return step


def time_passes(path: Path, seconds: int) -> None:
    """A file is written later than those before it, whatever the clock's grain."""
    seen = path.stat()
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + seconds * 10**9))


@pytest.mark.parametrize("later", [None, 4e18])
def test_a_file_that_was_compressed(log: Path, monkeypatch: pytest.MonkeyPatch, later: float | None) -> None:
    """It is known by its content, whether or not it keeps its time: its rest was read before."""
    steps = [append("3,4\n"), rotated(".1.gz", when=later), append("7,8\n")]
    assert followed(log, steps, monkeypatch) == ["x,y", "1,2", "3,4", "0,0", "7,8"]


@pytest.mark.parametrize(
    "rotations",
    [
        rotated(".2.gz", ".1.gz"),
        rotated(".1.gz", ".0.gz"),
        rotated("!", ".1.gz"),
        rotated("!", ".1"),
        rotated("!-20240101", "-20240102"),
        rotated("-20240101", "-20240102.gz"),
        rotated("-20240101.gz", "-20240102.gz"),
    ],
)
def test_rotations_of_which_one_is_gone(log: Path, monkeypatch: pytest.MonkeyPatch, rotations: Step) -> None:
    """What a file held that had the name in between is not known: it stops."""
    with pytest.raises(PlaceLostError, match="rotated more than once"):
        followed(log, [rotations, *[nothing] * following.DOUBTS], monkeypatch)


@pytest.mark.parametrize("names", [(".2.gz", ".1"), (".2", ".1"), ("-1", "-2"), ("-1.gz", "-2")])
def test_rotations_that_are_all_there(log: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    """Those that came between can be read, although the one before them is compressed."""
    steps = [append("3,4\n"), rotated(*names), append("7,8\n")]
    assert followed(log, steps, monkeypatch) == ["x,y", "1,2", "3,4", "0,0", "1,1", "7,8"]


def test_a_dated_file_and_older_ones(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That an older one is compressed only now is no reason to stop; nor are files of Tocsin's own."""

    def others(path: Path) -> None:
        for name in ("log.csv-20231231.gz", "log.csv.tocsin", "log.tocsin", "log.bad.jsonl", "logbook.csv"):
            other = path.with_name(name)
            other.write_bytes(b"1")
            time_passes(other, 100)

    for name in ("-20240101", "!"):
        log.write_text("x,y\n1,2\n")
        steps = [others, rotated(name), append("7,8\n")]
        if name == "!":
            log.with_name("log.csv-20231231.gz").unlink()
            steps = steps[1:]
        assert followed(log, steps, monkeypatch) == ["x,y", "1,2", "0,0", "7,8"]


def test_files_that_are_put_elsewhere(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is no matter while it is looked often enough; after a while without a look there may have been more."""
    assert followed(log, [rotated("a", elsewhere=True)], monkeypatch) == ["x,y", "1,2", "0,0"]
    monkeypatch.setattr(following, "AWAY", 0.0)
    with pytest.raises(PlaceLostError, match="not looked at for 0 s"):
        followed(log, [rotated("b", "c", elsewhere=True)], monkeypatch)


def test_a_file_that_was_cut_back_and_written_to(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a look: what it held last is in a copy, or is not known."""
    rows = "".join(f"{i},{i}\n" for i in range(50))

    def cut(path: Path) -> None:
        append(rows)(path)
        path.write_text("x,y\n7,8\n")

    def copied(path: Path) -> None:
        append(rows)(path)
        shutil.copy(path, path.with_name("log.csv.1"))
        path.write_text("x,y\n7,8\n")

    with pytest.raises(PlaceLostError, match="cut back and has grown again"):
        followed(log, [append("3,4\n" * 9), cut], monkeypatch)
    log.write_text("x,y\n1,2\n")
    assert followed(log, [append("3,4\n"), copied], monkeypatch) == ["x,y", "1,2", "3,4", *rows.split(), "7,8"]


def test_from_now_on(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are there already are left out, but for the header and a row that is half written; then as ever."""
    monkeypatch.setattr(opened, "CHUNK", 4)
    log.write_text("x,y\n1,2\n3,4\n5,")
    steps = [append("66\n"), append("7,8\n"), replace("x,y\n9,10\n")]
    assert followed(log, steps, monkeypatch, from_now=True) == ["x,y", "5,66", "7,8", "9,10"]
    log.write_text("1,2\n3,4\n")
    assert followed(log, [append("5,6\n")], monkeypatch, from_now=True) == ["5,6"]
    log.write_text("")
    assert followed(log, [append("x,y\n1,2\n")], monkeypatch, from_now=True) == ["x,y", "1,2"]


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    """Told at once, before any waiting."""
    with pytest.raises(InputError, match=r"There is no file .*none.csv to follow"):
        Followed(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="not a file that can grow"):
        Followed(str(tmp_path))
