"""Files that are to be written: whole or not at all, and nothing is left of a process that was killed."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from tocsin._common.errors import InputError

PREFIX = ".tocsin-part-"
"""Of files that are being written: PREFIX, the machine, the process and its start, and a random part."""

FORGOTTEN = 86_400.0
"""Seconds after which a part that another machine was writing, or this one before it was started anew, is left over."""

UNKNOWN = "unknown"
"""A machine that does not tell which processes it has."""

NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR)
"""What file systems say that have no way to sync a folder."""


def must_be_writable(file: Path) -> None:
    """Refuse a file that cannot be written, before the work rather than after it."""
    target = written_to(file)
    if target.exists() and not target.is_file():
        # A file is replaced as a whole, so writing to a device or a pipe would remove it.
        raise InputError(f"Cannot write {file}: it is a folder, a device or a pipe. Choose a file.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(
            f"Cannot write {file}: no file can be made in {target.parent.absolute()}. Choose another folder."
        )


def written_to(path: str | os.PathLike[str]) -> Path:
    """The file that is written: what a link leads to, if it is the user's own and there is something.

    Refuses links that lead nowhere or are another user's, and names that no file can have.
    """
    name = os.fspath(path)
    try:
        if b"\0" in os.fsencode(name):
            raise ValueError("it holds a NUL")
        file = Path(path)
        if file.is_symlink() and not file.exists():
            raise InputError(
                f"Cannot write {path}: it is a link to {file.readlink()}, which is not there, and who made the link "
                "would choose what is written. Name the file itself, or remove the link."
            )
        while file.is_symlink():
            _must_be_trusted(file)
            file = file.parent / file.readlink()
        file.exists()  # raises what is wrong with the name
        return file.resolve()
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"Cannot write {name!r}: {error.strerror}. Choose another name, or another folder.") from error
    except (ValueError, RuntimeError) as error:
        raise InputError(f"Cannot write {name!r}: no file can have this name ({error}). Choose another.") from error


def _must_be_trusted(link: Path) -> None:
    """Refuse a link that another user has put into a folder: what it leads to would be written over for them."""
    if hasattr(os, "geteuid") and link.lstat().st_uid not in (os.geteuid(), 0, link.parent.stat().st_uid):
        raise InputError(
            f"Cannot write {link}: it is a link that another user has put there, and what it leads to would be written "
            "over. Remove it, or choose another folder."
        )


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, that takes the place of the one at `path` when the block ends, and is on disk then.

    If the block fails, or the machine does, the old file stays as it was. The new one has the permissions of the old.
    """
    target = written_to(path)
    remove_leftovers(target.parent)
    part = target.with_name(_name_of_part())
    mode = target.stat().st_mode & 0o777 if target.exists() else None
    try:
        # A name that nobody can guess, and that must be new: no link that somebody has put there is followed.
        with os.fdopen(os.open(part, _FLAGS, 0o666 if mode is None else 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that are no more were writing in this folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_left_over(entry):
                with suppress(OSError):
                    Path(entry).unlink()


def _is_left_over(entry: os.DirEntry[str]) -> bool:
    machine, _, rest = entry.name.removeprefix(PREFIX).partition("-")
    process, _, rest = rest.partition("-")
    if machine == _machine() != UNKNOWN and process.isdecimal():
        return _start_of(int(process)) != rest.partition("-")[0]
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > FORGOTTEN


def _name_of_part() -> str:
    process = os.getpid()
    return f"{PREFIX}{_machine()}-{process}-{_start_of(process)}-{secrets.token_hex(8)}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """This machine since it was started, as far as its processes can be told: those of a container are its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return blake2b(f"{boot}{Path('/proc/self/ns/pid').readlink()}".encode(), digest_size=6).hexdigest()
    except OSError:
        return UNKNOWN


def _start_of(process: int) -> str:
    """When a process was started, in ticks of this machine's clock; nothing, if there is none.

    Where that cannot be told, parts are left over once they are FORGOTTEN.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else fields[18]


def _sync_folder(folder: Path) -> None:
    """Let the name be on disk too, where there is a way to."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NO_FOLDER_SYNC:
            raise
    finally:
        os.close(handle)
