"""Names for the array types that the hot functions exchange."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BoolArray = NDArray[np.bool_]
Float32Array = NDArray[np.float32]
Float64Array = NDArray[np.float64]
Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]
