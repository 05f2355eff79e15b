"""Ways to tell pooled rows apart into two tables: the one at hand, and random ones, in blocks where order matters."""

from __future__ import annotations

import math

import numpy as np

from tocsin._calibration.dependence import SIGNIFICANT, dependence, memory
from tocsin._common.seeds import Purpose, generator
from tocsin._compare.pooling import Pooled
from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._explain.kernel import exponents
from tocsin._statistics.neighbours import centred

REACH, FEWEST_ORDERED = 100, 50
"""How far back the memory of rows is looked for, and rows in which it can be seen."""

LONGER = 2
"""Times by which blocks are longer than those that tell the variance of a mean best: tails ask for more. Measured."""

DRAWN, LIKENED, PIECE = 100, 2000, 500
"""Splits that are drawn at once; rows that others are likened to, to see how typical they are, and how many at once."""

FIRST_MEMORY, FIRST_SPLIT = 20, 100
"""Parts of a comparison that draw at random, and their parts."""


def block_length(pooled: Pooled, width: float, seed: int) -> int:
    """Rows to keep together: 1 if no test finds a memory in either table, else as the larger with one asks for."""
    tables = sorted(np.split(pooled.points, [pooled.count]), key=len, reverse=True)
    for which, rows in enumerate(tables):
        if len(rows) < FEWEST_ORDERED:
            continue
        similarity, edges = _Similarity(rows, width), np.array([0, len(rows)])
        if dependence(similarity, edges, REACH) <= SIGNIFICANT:
            found = memory(similarity, edges, generator(seed, Purpose.COMPARE, FIRST_MEMORY + which))
            return LONGER * found.block
    return 1


class _Similarity:
    """The centred kernel between rows, given by their places."""

    def __init__(self, rows: Float64Array, width: float) -> None:
        self._rows, self._width = rows, width
        others = rows[np.linspace(0, len(rows) - 1, min(len(rows), LIKENED)).astype(np.int64)]
        pieces = [rows[start : start + PIECE] for start in range(0, len(rows), PIECE)]
        self._means = np.concatenate([np.exp(-exponents(piece, others, width)).mean(1) for piece in pieces])

    def __call__(self, first: Int64Array, second: Int64Array) -> Float64Array:
        differences = (self._rows[first] - self._rows[second]) / self._width
        kernel = np.exp(-0.5 * np.einsum("ij,ij->i", differences, differences))
        return centred(kernel, self._means, first, second)


def ways(pooled: Pooled, length: int) -> int:
    """In how many ways rows can be told apart into two tables of their sizes, in whole blocks."""
    first, second = pooled.count // length, pooled.others // length
    return math.comb(first + second, second) if min(first, second) else 1


def draw_splits(pooled: Pooled, length: int, count: int, seed: int) -> Float32Array:
    """Which rows are the batch's, (M, count) zeros and ones: as it is, and then at random, block by block."""
    first, second = pooled.count // length, pooled.others // length
    blocks = np.zeros((first + second, count), dtype=np.float32)
    blocks[first:, 0] = 1
    for start in range(1, count, DRAWN):
        rng = generator(seed, Purpose.COMPARE, FIRST_SPLIT + start)
        keys = rng.random((min(DRAWN, count - start), len(blocks)))
        chosen = np.argpartition(keys, second - 1, axis=1)[:, :second]
        blocks[chosen, start + np.arange(len(keys))[:, None]] = 1
    return np.repeat(blocks, length, axis=0)
