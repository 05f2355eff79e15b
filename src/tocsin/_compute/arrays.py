"""Names for the array types that the hot functions exchange."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S", bound=np.generic)

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Int8Array = NDArray[np.int8]
Int16Array = NDArray[np.int16]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
UInt64Array = NDArray[np.uint64]

FARTHEST = 1e15
"""Coordinates in units of the kernel width are cut off here: far enough to be like nothing else, near enough that
squares of differences stay finite in float32. Any finite observation can be compared, and an extreme one is heard."""

RUN_STRIDE, TEST_STRIDE, STREAM_STRIDE = 0xD1342543DE82EF95, 0x9E3779B97F4A7C15, 0xA0761D6478BD642F
MIXERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Of the coins that break ties; see `host.coins`."""


def read_only(array: NDArray[S]) -> NDArray[S]:
    """A view that cannot be written to; the array itself still can, or it would be another type to compiled code."""
    view = array.view()
    view.flags.writeable = False
    return view
