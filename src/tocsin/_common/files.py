"""Files that are to be written."""

from __future__ import annotations

import os
from pathlib import Path

from tocsin._common.errors import InputError


def must_be_writable(file: Path) -> None:
    """Refuse a file that cannot be written, before the work rather than after it."""
    if file.exists() and not file.is_file():
        # A file is replaced as a whole, so writing to a device or a pipe would remove it.
        raise InputError(f"Cannot write {file}: it is a folder, a device or a pipe. Choose a file.")
    if not os.access(file.parent, os.W_OK):
        raise InputError(
            f"Cannot write {file}: no file can be made in {file.parent.absolute()}. Choose another folder."
        )
