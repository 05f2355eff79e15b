"""The least that kernel evaluations can cost in a plain compiled loop: d multiply-adds and one exp each, in cache."""

from __future__ import annotations

import time

import numpy as np

from tocsin._compute.arrays import Float32Array
from tocsin._compute.jit import jit
from tocsin._compute.numba_pairs import exponential
from tocsin._execution.threads import Threads


@jit
def loop(points: Float32Array, rows: int) -> float:
    """exp(-<x, y>) of `rows` points with all points; points as (d, n)."""
    d, n = points.shape
    products = np.empty(n, np.float32)
    total = 0.0
    for r in range(rows):
        products[:] = 0
        for k in range(d):
            x = points[k, r % n]
            line = points[k]
            for j in range(n):
                products[j] += x * line[j]
        row = np.float32(0.0)
        for j in range(n):
            row += exponential(-products[j])
        total += float(row)
    return total


def seconds(evaluations: float, dimensions: int, row: int, workers: int) -> float:
    """How long the bare loop takes for this many evaluations, in rows of `row`, on all workers (extrapolated)."""
    points = (np.random.default_rng(0).random((dimensions, row)) / dimensions).astype(np.float32)
    loop(points, 10)
    rows = 200_000
    began = time.perf_counter()
    list(Threads(workers).map(lambda _: loop(points, rows), range(workers)))
    return (time.perf_counter() - began) * evaluations / (rows * row * workers)
