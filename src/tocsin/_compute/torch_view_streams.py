"""Streams of views at work, with PyTorch: many on a GPU, by Triton; what is kept on the host, there by Numba."""

from __future__ import annotations

import numpy as np

from tocsin._compute import numba_view_streams
from tocsin._compute.arrays import Float32Array, Float64Array, Int8Array, Int16Array, Int64Array


def view_watch(
    points: Float64Array,
    streams: Int64Array,
    first: Int64Array,
    last: Int64Array,
    begin: int,
    end: int,
    halt: bool,
    rows: Int16Array,
    rests: Int8Array,
    sums: Float64Array,
    position: Int64Array,
    scale: Float32Array,
    clock: Int64Array,
    loud: Float64Array,
    usual: Float64Array,
    columns: Float64Array,
    chosen: Int64Array,
    axes: Float64Array,
    lags: Float64Array,
    windows: Int64Array,
    base: int,
    gap: int,
    units: Float64Array,
    shares: Float64Array,
    pace: Float64Array,
    best: Float64Array,
    which: Int64Array,
    out: Float64Array,
) -> None:
    watch = numba_view_streams.view_watch
    if not isinstance(rows, np.ndarray):
        from tocsin._compute import triton_view_streams

        watch = triton_view_streams.view_watch
    watch(
        points, streams, first, last, begin, end, halt, rows, rests, sums, position, scale, clock, loud, usual,
        columns, chosen, axes, lags, windows, base, gap, units, shares, pace, best, which, out,
    )  # fmt: skip
