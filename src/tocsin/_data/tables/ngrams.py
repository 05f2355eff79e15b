"""Texts as vectors: counts of their n-grams, hashed into a fixed number of places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tocsin._compute.arrays import Float64Array

LENGTH = 3
"""Bytes of an n-gram, in UTF-8."""

PLACES = 256
"""Entries of a vector. Different n-grams may share one; the sign that each carries keeps that fair on average."""


def ngram_vectors(texts: Sequence[str | None]) -> Float64Array:
    """A vector of length 1 per text; zero for one without any n-gram.

    The squared distance between two is 2 - 2 cos, where cos is the similarity of their n-gram counts. Case does not
    matter, nor how much white space there is between words.

    >>> a, b, c = ngram_vectors(["the cat sat", "The  cat sat!", "quite another"])
    >>> bool(a @ b > 0.8 > 0.3 > a @ c)
    True
    """
    from tocsin._compute.numba_text import ngram_counts  # slow to import, and needed for texts alone

    pieces = [
        f" {' '.join(text.casefold().split())} ".encode("utf-8", "surrogatepass") if text and text.strip() else b""
        for text in texts
    ]
    ends = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
    return ngram_counts(np.frombuffer(b"".join(pieces), dtype=np.uint8), ends, LENGTH, PLACES)
