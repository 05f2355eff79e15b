"""Where compiled code is kept when numba has no place for it: beside the package, or in the user's home."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from functools import cache
from pathlib import Path

NO_PLACE = "cannot cache function"
"""How numba begins to say so."""


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
        found = folder.lstat()
    except OSError:
        return None
    mine = user is None or (found.st_uid == user and not stat.S_IMODE(found.st_mode) & 0o077)
    return folder if mine and stat.S_ISDIR(found.st_mode) else None
