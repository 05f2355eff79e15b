"""The states of several keys as one value, which a state store reads and writes in one go."""

from __future__ import annotations

import numpy as np

from tocsin._common.errors import StorageError

MARK = b"TOCSINB1"


def bundled(states: dict[str, bytes], buckets: int) -> bytes:
    """States by key, and over how many buckets keys are spread, as bytes."""
    keys = [key.encode() for key in states]
    sizes = np.array([[len(key) for key in keys], [len(state) for state in states.values()]], "<u4")
    return b"".join([MARK, np.array([buckets, len(keys)], "<u4").tobytes(), sizes.tobytes(), *keys, *states.values()])


def unbundled(bundle: bytes | None, buckets: int) -> dict[str, bytes]:
    """What `bundled` made bytes of; nothing of None."""
    if bundle is None:
        return {}
    if not bundle.startswith(MARK):
        raise StorageError(
            "A state in the checkpoint was not written by this version of Tocsin. Begin a new checkpoint."
        )
    spread, count = np.frombuffer(bundle, "<u4", 2, len(MARK)).tolist()
    if spread != buckets:
        raise StorageError(
            f"buckets={buckets}, and the checkpoint was begun with {spread}: keys would be looked for where they are "
            f"not. Go on with buckets={spread}, or begin a new checkpoint."
        )
    head = len(MARK) + 8
    sizes = np.frombuffer(bundle, "<u4", 2 * count, head).astype(np.int64)
    ends = head + 8 * count + np.cumsum(sizes)
    pieces = [bundle[begin:end] for begin, end in zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
    return {key.decode(): state for key, state in zip(pieces[:count], pieces[count:], strict=True)}
