"""Where null streams come from: every random number of a calibration is drawn here, seeded block by block of paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin.compute import Functions
from tocsin.compute.arrays import Float32Array, Float64Array, Int32Array


@dataclass(frozen=True)
class Streams:
    """A block of null streams.

    points: (P, L) indices into the reference, in the order in which the points arrive.
    copies: (P,) which pseudo-reference each stream is tested against; None where it is tested against the reference
        points that it leaves out.
    coins: (P, L) uniform numbers that break ties.
    """

    points: Int32Array
    copies: Int32Array | None
    coins: Float64Array


@dataclass(frozen=True)
class DrawnStreams:
    """Points drawn with replacement, each stream tested against one of `copies` pseudo-references.

    The truth is one reference drawn from the unknown law, then an endless stream from the law. Its mirror is one
    pseudo-reference drawn from the reference with replacement, then a stream drawn from the reference.
    """

    count: int
    length: int
    copies: int

    def references(self, rng: np.random.Generator) -> Float32Array:
        """How often each reference point is in each pseudo-reference; (N, G), columns sum to N."""
        even = np.full(self.count, 1 / self.count)
        return np.ascontiguousarray(rng.multinomial(self.count, even, self.copies).T.astype(np.float32))

    def draw(self, rng: np.random.Generator, paths: int, compute: Functions) -> Streams:
        points = rng.integers(0, self.count, (paths, self.length), dtype=np.int32)
        copies = rng.integers(0, self.copies, paths, dtype=np.int32)
        return Streams(points, copies, rng.random((paths, self.length)))


@dataclass(frozen=True)
class SplitStreams:
    """Distinct points, each stream tested against all the reference points that it leaves out (Algorithms 2 and 3)."""

    count: int
    length: int

    def draw(self, rng: np.random.Generator, paths: int, compute: Functions) -> Streams:
        points = compute.distinct_streams(rng.random((paths, self.length)), self.count)
        return Streams(points, None, rng.random((paths, self.length)))


Sampler = DrawnStreams | SplitStreams
