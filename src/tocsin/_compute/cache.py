"""What compiled code depends on, and where it is kept if neither the package nor the home can be written to."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

NO_PLACE = "cannot cache function"
"""How numba begins to say so."""


@cache
def stamp() -> str:
    """Of everything that is compiled: code kept under another stamp is compiled anew.

    numba looks at the file of a function alone, and would run code in which functions of other files are as they were
    before an upgrade.
    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


@cache
def elsewhere() -> Path | None:
    """A folder of this user's own under the temporary one; None if there can be none. Tells once which it is."""
    folder = _own_folder()
    follows = "code is compiled anew in every process" if folder is None else f"compiled code is kept in {folder}"
    logging.getLogger("tocsin").warning(
        "Neither Tocsin's folder nor your home can be written: %s. Set NUMBA_CACHE_DIR to a folder that stays.", follows
    )
    return folder


def _own_folder() -> Path | None:
    # Cached code is run when it is loaded: nobody else may have put it there.
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"tocsin-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found, around = folder.lstat(), folder.parent.stat()
    except OSError:
        return None
    mine = user is None or (found.st_uid == user and not found.st_mode & 0o077)
    # Where all may write and the sticky bit is missing, anybody could put another folder in its place.
    exchangeable = user is not None and around.st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH
    return folder if mine and stat.S_ISDIR(found.st_mode) and not exchangeable else None
