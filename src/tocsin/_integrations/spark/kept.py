"""The states of a bucket in Spark's store: what they were once, what has changed since, and a copy on a local disk.

Spark hands bytes to Python as text, at 50 MB a second, and does not take them much faster. So a micro-batch writes what
it has changed in states; all of them only once the changes have become more than they are. And what it came to is
copied to a file on the executor's own disk, where the next micro-batch finds it.

The store is the truth, and a copy is never believed by itself. With each write goes a token that was never used before,
to the store as to the copy, and only a copy with the token that the store has counts. The store takes all that a task
wrote, or none of it; so whatever was replayed, tried twice, killed, or went on when it should have been dead, a copy is
of the very states that the store has, or it is not looked at. Without one they are read from the store, only slower.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from zlib import crc32

from pyspark import TaskContext
from pyspark.sql.streaming import StatefulProcessorHandle

from tocsin._integrations.spark.bundles import bundled, unbundled
from tocsin._streams.fleet import Fleet

TOKEN = 16
"""Bytes, of the operating system's: workers are forked, and from generators of their own would all draw the same."""

MOST_CHANGES = 64
"""Entries that are read one by one where there is no copy."""


class KeptStates:
    """Reads and writes the states of one bucket after the other.

    owner: what tells these states from others of the same query.
    """

    def __init__(self, handle: StatefulProcessorHandle, buckets: int, owner: str) -> None:
        # All written at once in the first place, and what changed since in those that follow.
        self._entries = handle.getMapState("states", "place INT", "bundle BINARY")
        self._head = handle.getValueState("head", "token BINARY, entries INT, whole LONG, changes LONG")
        self._found: tuple[bytes, int, int, int] | None = None
        self._buckets, self._owner = buckets, owner

    def read(self, bucket: int) -> dict[str, bytes]:
        """States by key."""
        self._found = self._head.get()
        if self._found is None:
            return {}
        token, entries, _, _ = self._found
        file = self._copy(bucket)
        content = None if file is None else copied(file, token)
        if content is not None:
            return unbundled(content, self._buckets)
        states = dict[str, bytes]()
        for place in range(entries):
            for key, change in unbundled(self._entries.getValue((place,))[0], self._buckets).items():
                states[key] = Fleet.applied(change, states.get(key))
        return states

    def write(self, bucket: int, states: dict[str, bytes], changes: dict[str, bytes]) -> None:
        """All states of the bucket that was read last, and how those differ that have changed since."""
        token = os.urandom(TOKEN)
        content, entry = bundled(states, self._buckets), bundled(changes, self._buckets)
        _, entries, whole, since = self._found or (token, 0, 0, 0)
        since += len(entry)
        # Each bucket after a time of its own, or a micro-batch in which all are written whole would take long.
        room = whole * (1.5 + bucket * 0.618 % 1)
        if since > room or entries > MOST_CHANGES:
            entries, whole, since, entry = 0, len(content), 0, content
        self._entries.updateValue((entries,), (entry,))
        self._head.update((token, entries + 1, whole, since))
        file = self._copy(bucket)
        if file is not None:
            copy(file, token, content)

    def _copy(self, bucket: int) -> Path | None:
        """The file of a bucket, the same in every micro-batch: copies take the room that states do, and no more."""
        # Where Spark has what need not outlive the executor, shuffles for one.
        folders, task = os.environ.get("SPARK_LOCAL_DIRS"), TaskContext.get()
        if not folders or task is None:
            return None
        query = task.getLocalProperty("sql.streaming.queryId")
        name = blake2b(f"{query} {bucket} {self._owner}".encode(), digest_size=16).hexdigest()
        each = folders.split(",")
        return Path(each[bucket % len(each)], f"tocsin-{name}")


def copied(file: Path, token: bytes) -> bytes | None:
    """What was copied with this token, if that is what the file has, unharmed."""
    try:
        with file.open("rb", buffering=0) as copy:
            if copy.read(TOKEN) != token:
                return None
            checksum, content = copy.read(4), copy.read()
    except OSError:
        return None
    return content if crc32(content).to_bytes(4, "little") == checksum else None


def copy(file: Path, token: bytes, content: bytes) -> None:
    """Put it in place in one go: whoever reads the file finds this token with this content, or another with its own."""
    unfinished = file.with_suffix(f".{os.getpid()}")
    try:
        with unfinished.open("wb") as out:
            out.write(token + crc32(content).to_bytes(4, "little"))
            out.write(content)
        unfinished.replace(file)
    except OSError:
        # The disk is full, or gone: the store has it all.
        with suppress(OSError):
            unfinished.unlink()
