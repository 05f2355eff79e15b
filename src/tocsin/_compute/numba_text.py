"""Counts of n-grams, compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._compute.jit import exact

UInt8Array = NDArray[np.uint8]


def ngram_counts(characters: UInt8Array, ends: Int64Array, length: int, places: int) -> Float64Array:
    """Signed counts of hashed n-grams of texts that follow each other, each row scaled to length 1."""
    out = np.zeros((len(ends), places))
    _ngram_counts(characters, ends, length, out)
    return out


@exact
def _ngram_counts(characters: UInt8Array, ends: Int64Array, length: int, out: Float64Array) -> None:
    begin, places = 0, out.shape[1]
    for row in range(len(ends)):
        for first in range(begin, ends[row] - length + 1):
            code = np.uint32(2166136261)
            for i in range(length):
                code = np.uint32((code ^ np.uint32(characters[first + i])) * np.uint32(16777619))
            # The last bits are poorly mixed so far; these steps finish the mixing.
            code = np.uint32((code ^ (code >> np.uint32(15))) * np.uint32(2246822519))
            code = np.uint32(code ^ (code >> np.uint32(13)))
            out[row, code % places] += 1.0 if (code >> np.uint32(16)) & np.uint32(1) else -1.0
        begin = ends[row]
        square = 0.0
        for place in range(places):
            square += out[row, place] ** 2
        size = np.sqrt(square)
        if size > 0:
            for place in range(places):
                out[row, place] /= size
