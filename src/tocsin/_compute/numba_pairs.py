"""Kernels between points, and sums of them, compiled for the CPU. `numpy_` has the same in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int64Array
from tocsin._compute.jit import exact, jit
from tocsin._compute.tiles import LANES, distance_strip, float_of_bits, product_tile

Whole = int | np.signedinteger
"""A number of places, as Python has it or as an array holds it."""

STRIP = 4 * LANES
CHUNK = 8 * STRIP

PRODUCT_ROWS, PRODUCT_COLUMNS = 4, 2 * LANES

COLUMNS, SUMMED = 2048, 128
"""Points that are compared with queries before all are multiplied, and added up in float32 before the sum moves to
float64."""


def aligned(rows: int, columns: int) -> Float32Array:
    """An array whose rows begin where a processor fetches memory: vectors of it are then in one piece each."""
    columns = -(-columns // LANES) * LANES
    room = np.empty(rows * columns + LANES, np.float32)
    first = -(room.ctypes.data // room.itemsize) % LANES
    return room[first : first + rows * columns].reshape(rows, columns)


@exact
def exponential(x: np.float32) -> np.float32:
    """exp(x) for x <= 0 to 1e-7: powers of two by their bits, a polynomial for the rest; exp(-87) below -87."""
    if x < np.float32(-87.0):
        x = np.float32(-87.0)
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    # ln 2 in two parts, the first with few bits, so that the remainder is exact.
    r = x - n * np.float32(0.693359375)
    r = r + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    scaled: np.float32 = p * float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))
    return scaled


@jit
def exponentials(x: Float32Array) -> Float32Array:
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exponential(x[i])
    return out


# The loops below run over unsigned indices, which numba need not check for wrapping around, and take whole arrays
# with bounds instead of slices, which it would count references to: both matter more than the arithmetic.
#
# Compiling them is what a first fit waits for. Hence answers are made outside, arrays are filled by loops (for
# assignments of arrays numba compiles what it might say about their shapes), and each function is compiled for one
# signature: an array without entries stands for one that is not needed, and no number is given as it is written, which
# would make it a type of its own.


@jit
def all_widths(kernels: Float32Array, size: Whole, multipliers: Float32Array) -> None:
    """kernels[w + 1, :size] = exp(-multipliers[w] * kernels[0, :size]); row 0 holds squared distances.

    A multiplier of 0 stands for the fourth power of the width before.
    """
    for w in range(multipliers.size):
        multiplier = multipliers[w]
        if multiplier > 0:
            for j in range(np.uintp(size)):
                kernels[w + 1, j] = exponential(-multiplier * kernels[0, j])
        else:
            for j in range(np.uintp(size)):
                square = kernels[w, j] * kernels[w, j]
                kernels[w + 1, j] = square * square


@jit
def total_of(values: Float32Array, row: Whole, start: Whole, stop: Whole) -> float:
    total = 0.0
    for j in range(np.uintp(start), np.uintp(stop)):
        total += np.float64(values[row, j])
    return total


@jit
def row_total(kernels: Float32Array, w: int, size: int) -> float:
    total = 0.0
    for j in range(np.uintp(size)):
        total += np.float64(kernels[w + 1, j])
    return total


@jit
def weighted_total(kernels: Float32Array, weights: Float32Array, w: int, start: int, size: int) -> float:
    total = 0.0
    first = np.uintp(start)
    for j in range(np.uintp(size)):
        total += np.float64(kernels[w + 1, j] * weights[w, first + j])
    return total


@jit
def leave_out(kernels: Float32Array, start: int, stop: int, size: int) -> None:
    for w in range(1, kernels.shape[0]):
        for j in range(max(start, 0), min(stop, size)):
            kernels[w, j] = 0


def gaussian_products(
    points: Float32Array,
    count: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    weights: Float32Array,
) -> Float64Array:
    queries, widths, columns = np.ascontiguousarray(queries), multipliers.size, weights.shape[1]
    # Not NumPy's product, which would take all cores, in every one of the threads that call this.
    weights = _padded(weights, 0, PRODUCT_COLUMNS)
    total = np.zeros((widths * queries.shape[1], weights.shape[1]))
    tile = np.empty((PRODUCT_ROWS, PRODUCT_COLUMNS), np.float32)
    for first in range(0, count, COLUMNS):
        last = min(first + COLUMNS, count)
        block = gaussian_block(points, first, last, queries, own, guard, multipliers).reshape(-1, last - first)
        _add_product(_padded(block, PRODUCT_ROWS, 0), weights, first, last, tile, total)
    return total.reshape(widths, -1, weights.shape[1])[:, :, :columns]


def _padded(values: Float32Array, *multiples: int) -> Float32Array:
    """In order of rows, and with zeros up to whole multiples of rows and columns; 0: as many as there are."""
    room = [(0, -size % (multiple or size)) for size, multiple in zip(values.shape, multiples, strict=True)]
    return np.ascontiguousarray(np.pad(values, room) if any(after for _, after in room) else values)


@jit
def _add_product(
    block: Float32Array, weights: Float32Array, first: int, last: int, tile: Float32Array, total: Float64Array
) -> None:
    """Add block @ weights[first:last] to the total, which may have fewer rows than the block."""
    for start in range(first, last, SUMMED):
        stop = min(start + SUMMED, last)
        for row in range(0, block.shape[0], tile.shape[0]):
            for column in range(0, weights.shape[1], tile.shape[1]):
                product_tile(block, row, start - first, weights, column, start, stop, tile)
                for r in range(min(tile.shape[0], total.shape[0] - row)):
                    for j in range(np.uintp(tile.shape[1])):
                        total[row + r, np.uintp(column) + j] += np.float64(tile[r, j])


def gaussian_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
) -> Float32Array:
    block = np.empty((multipliers.size, queries.shape[1], stop - start), np.float32)
    _fill_block(points, start, stop, queries, own, guard, multipliers, block)
    return block


@jit
def _fill_block(
    points: Float32Array,
    start: int,
    stop: int,
    queries: Float32Array,
    own: Int64Array,
    guard: int,
    multipliers: Float32Array,
    block: Float32Array,
) -> None:
    size = stop - start
    kernels = np.empty((multipliers.size + 1, size + STRIP), np.float32)
    for q in range(queries.shape[1]):
        for j in range(0, size, STRIP):
            distance_strip(points, start + j, queries, q, kernels, 0, j)
        all_widths(kernels, size, multipliers)
        if own[q] >= 0:
            leave_out(kernels, own[q] - guard - start, own[q] + guard + 1 - start, size)
        for w in range(multipliers.size):
            for j in range(np.uintp(size)):
                block[w, q, j] = kernels[w + 1, j]
