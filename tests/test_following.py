"""Files that grow, are cut back and are rotated, while their lines are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tocsin._cli import opened
from tocsin._cli.following import Followed
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
