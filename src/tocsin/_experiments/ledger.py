"""Work that is done, in one SQLite file: each piece is written whole or not at all, and never twice."""

from __future__ import annotations

import io
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tocsin._common.errors import Option, StorageError
from tocsin._experiments.base import Result

SCHEMA = """CREATE TABLE IF NOT EXISTS done
    (key TEXT PRIMARY KEY, commit_ TEXT NOT NULL, machine TEXT NOT NULL, seconds REAL NOT NULL, result BLOB NOT NULL)"""


class Ledger:
    """Results by the key of their piece of work."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._explained():
            file.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(file)
            self._database.execute(SCHEMA)

    def add(self, key: str, result: Result, *, commit: str, machine: str, seconds: float) -> None:
        """Keep a result; on disk when this returns."""
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, **result)
        self._ask(
            "INSERT OR REPLACE INTO done VALUES (?, ?, ?, ?, ?)", key, commit, machine, seconds, content.getvalue()
        )

    def __contains__(self, key: str) -> bool:
        return self._ask("SELECT 1 FROM done WHERE key = ?", key) is not None

    def __getitem__(self, key: str) -> Result:
        (content,) = self._ask("SELECT result FROM done WHERE key = ?", key)
        with self._explained(), np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return dict(arrays)

    def origin(self, key: str) -> tuple[str, str]:
        """The commit and the machine that a result came from."""
        commit, machine = self._ask("SELECT commit_, machine FROM done WHERE key = ?", key)
        return commit, machine

    def forget(self, key: str) -> None:
        """Remove a result."""
        self._ask("DELETE FROM done WHERE key = ?", key)

    def _ask(self, question: str, *values: str | float | bytes) -> Any:
        """The first row of the answer, or None; changes are on disk when this returns."""
        with self._explained(), self._database:
            return self._database.execute(question, values).fetchone()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, zipfile.BadZipFile) as error:
            raise StorageError(
                f"Cannot keep results in {self._file}: {error}. If it is damaged, remove it and run again; or give "
                "another ",
                Option("folder"),
                ".",
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._database.close()
