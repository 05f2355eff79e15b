"""How files are written: whole or not at all, through no link, and nothing is left of processes that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tocsin import InputError
from tocsin._common.files import FORGOTTEN, PREFIX, must_be_writable, replacing

WRITER = """
import sys, time
from tocsin._common.files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"new" * 1000)
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""

AGAIN_AND_AGAIN = """
import sys
from tocsin._common.files import replacing
print("writing", flush=True)
for i in range(10**9):
    with replacing(sys.argv[1]) as file:
        for _ in range(20):
            file.write(b"%09d\\n" % i)
            file.flush()
"""

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs to know when processes began")


def parts_in(folder: Path) -> list[str]:
    """Files that are being written there, or were."""
    return [path.name for path in folder.iterdir() if path.name.startswith(PREFIX)]


def write(path: Path, content: bytes) -> None:
    """A whole file."""
    with replacing(path) as file:
        file.write(content)


@linux
def test_a_killed_process_leaves_the_old_file_and_nothing_for_ever(tmp_path: Path) -> None:
    """Its part is there until the next file is written beside it, by anyone."""
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with subprocess.Popen([sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert len(parts_in(tmp_path)) == 1
        write(tmp_path / "b", b"meanwhile")
        assert len(parts_in(tmp_path)) == 1, "a process that is still writing is left alone"
        writer.send_signal(signal.SIGKILL)
    assert target.read_bytes() == b"old"
    assert len(parts_in(tmp_path)) == 1
    write(tmp_path / "b", b"afterwards")
    assert not parts_in(tmp_path)


@linux
def test_kills_at_any_moment(tmp_path: Path) -> None:
    """A process that writes all the time, killed 8 times: the file is always one of those that it wrote, whole."""
    target = tmp_path / "a"
    write(target, b"%09d\n" % 0 * 20)
    for i in range(8):
        with subprocess.Popen([sys.executable, "-c", AGAIN_AND_AGAIN, str(target)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.006 * i)
            writer.send_signal(signal.SIGKILL)
        content = target.read_bytes()
        assert content == content[:10] * 20
    write(tmp_path / "b", b"")
    assert not parts_in(tmp_path)


def test_what_another_machine_left_goes_after_a_day(tmp_path: Path) -> None:
    """Whether its process is still there cannot be known."""
    new, old = tmp_path / f"{PREFIX}other-1-1-a", tmp_path / f"{PREFIX}other-1-1-b"
    for part in (new, old):
        part.touch()
    long_ago = time.time() - FORGOTTEN - 60
    os.utime(old, (long_ago, long_ago))
    write(tmp_path / "a", b"")
    assert parts_in(tmp_path) == [new.name]


def test_permissions_are_kept(tmp_path: Path) -> None:
    """Of the old file; a new one has those of any other."""
    target, other = tmp_path / "a", tmp_path / "b"
    target.touch()
    target.chmod(0o640)
    other.touch()
    write(target, b"new")
    write(tmp_path / "c", b"new")
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "c").stat().st_mode == other.stat().st_mode


def test_a_link_that_was_put_in_the_way_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even by somebody who guesses the name."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    monkeypatch.setattr("tocsin._common.files._name_of_part", lambda: f"{PREFIX}known")
    (tmp_path / f"{PREFIX}known").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write(tmp_path / "a", b"new")
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "a").exists()


def test_a_link_to_a_file_stays_one(tmp_path: Path) -> None:
    """It is the file that is replaced."""
    target, link = tmp_path / "a", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    """And no part."""
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def fail() -> None:
        with replacing(target) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    """Whoever put it there would choose what is written; so with links in a circle."""
    (tmp_path / "link").symlink_to(tmp_path / "chosen")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("link", "circle"):
        with pytest.raises(InputError, match=rf"Cannot write .*{name}: it is a link to .*, which is not there"):
            write(tmp_path / name, b"new")
        with pytest.raises(InputError, match="which is not there"):
            must_be_writable(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "link"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make links for others")
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    """Nor is one that a link of one's own leads to."""
    victim, link, own = tmp_path / "victim", tmp_path / "link", tmp_path / "own"
    victim.write_bytes(b"old")
    link.symlink_to(victim)
    own.symlink_to(link)
    os.chown(link, 12345, 12345, follow_symlinks=False)
    for path in (link, own):
        with pytest.raises(InputError, match="it is a link that another user has put there"):
            write(path, b"new")
    assert victim.read_bytes() == b"old"


@pytest.mark.parametrize(
    ("name", "why"), [("a\0b", "it holds a NUL"), ("a\ud800", "surrogates"), ("a" * 300, "too long"), ("a/" * 3000, "")]
)
def test_names_that_no_file_can_have(tmp_path: Path, name: str, why: str) -> None:
    """The name is told in letters that can be written, and another one asked for."""
    for call in (partial(write, tmp_path / name, b""), partial(must_be_writable, tmp_path / name)):
        with pytest.raises(InputError, match=rf"(?i)Cannot write '.*': .*{why}.*Choose another") as told:
            call()
        str(told.value).encode()
    assert not list(tmp_path.iterdir())
