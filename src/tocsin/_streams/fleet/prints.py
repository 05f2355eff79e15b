"""By what states know the detector that wrote them."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._state import Fitted
from tocsin._statistics.base import Parts


def fingerprint_of(fitted: Fitted[Calibration], parts: Parts) -> int:
    """Of windows, the seed, and what a statistic keeps of the reference."""
    heard = ("news",) if fitted.hears else ()
    digest = blake2b(repr((fitted.windows, fitted.seed, *heard)).encode(), digest_size=8)
    for name, part in sorted(parts.items()):
        digest.update(name.encode())
        digest.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return int.from_bytes(digest.digest(), "little")
