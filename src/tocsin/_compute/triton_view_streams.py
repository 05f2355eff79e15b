"""Streams of views at work on NVIDIA GPUs, in Triton: a program for each stream, whose rows enter one after the other.

`numpy_view_streams` has the same to read. Whole numbers are kept as floats, so that rows and sums of windows are the
host's. What is foreseen is rounded to whole numbers too, and added up by fused multiply-adds, as compiled code for CPUs
does it: else a row could leave a window as another number than it came. Only logarithms may differ in the last digit.

Blocks are (N, D), windows and columns, or (1, D); `i` and `j` are their places, and `there` says which of these exist.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from tocsin._compute import numpy_view_streams as readable

QUANTA, COARSE = tl.constexpr(readable.QUANTA), tl.constexpr(readable.COARSE)
LARGEST, FARTHEST, LOUDEST = (tl.constexpr(x) for x in (readable.LARGEST, readable.FARTHEST, readable.LOUDEST))

WHOLE = tl.constexpr(1.5 * 2.0**52)
"""A number of up to 2^51 that this is added to, and taken away from, is rounded to a whole one, halves to even ones."""


@triton.jit
def _rounded(x):
    return (x + WHOLE) - WHOLE


@triton.jit
def _between(x, most):
    return tl.minimum(tl.maximum(x, -most), most)


@triton.jit
def _told(points, columns, chosen, m, axes, d, soft, j, AXES: tl.constexpr):
    """A point as a row of whole numbers."""
    there, largest = j < d, tl.full([], LARGEST, tl.float64)
    if AXES:
        along = tl.zeros_like(j).to(tl.float64)
        for c in range(m):
            value = tl.load(points + tl.load(chosen + c)).to(tl.float64)
            own = _between((value - tl.load(columns + c)) / tl.load(columns + m + c), largest)
            axis = tl.load(axes + c * d + j, mask=there, other=0.0)
            along = tl.fma(own + tl.zeros_like(along), axis, along)
    else:
        value = tl.load(points + tl.load(chosen + j, mask=there, other=0), mask=there, other=0.0).to(tl.float64)
        centre = tl.load(columns + j, mask=there, other=0.0)
        along = _between((value - centre) / tl.load(columns + m + j, mask=there, other=1.0), largest)
    size = tl.abs(along) / soft
    size = tl.minimum(soft * tl.log(size + tl.sqrt(size * size + 1)), FARTHEST)
    return _rounded(tl.where(along >= 0, size, -size) * QUANTA)


@triton.jit
def _back(place, rows, places):
    """The place of what came so many rows before."""
    before = place - rows
    return tl.where(before < 0, before + places, before)


@triton.jit
def _level(rows, rests, a, b, lag, many, few, d, j, there):
    """The row that came `lag` before that at places a and b."""
    coarse = tl.load(rows + _back(a, lag, many) * d + j, mask=there, other=0).to(tl.float64)
    return COARSE * coarse + tl.load(rests + _back(b, lag, few) * d + j, mask=there, other=0).to(tl.float64)


@triton.jit
def _seen(level, rows, rests, a, b, lag, many, few, d, j, there, lags, most):
    """Prediction error and change of the row `lag` before that at places a and b, whose level is given."""
    own = j < d
    before = _level(rows, rests, a, b, lag + 1, many, few, d, j, there)
    foreseen = tl.load(lags + j, mask=own, other=0.0) + tl.zeros_like(before)
    for k in tl.static_range(1, 4):
        past = before if k == 1 else _level(rows, rests, a, b, lag + k, many, few, d, j, there)
        foreseen = tl.fma(tl.load(lags + k * d + j, mask=own, other=0.0) + tl.zeros_like(before), past, foreseen)
    # Cut off before it is rounded: `most` is whole, and nothing larger could be rounded so.
    return _rounded(_between(level - foreseen, most)), _between(level - before, most)


@triton.jit
def _seen_with_level(rows, rests, a, b, lag, many, few, d, j, there, lags, most):
    level = _level(rows, rests, a, b, lag, many, few, d, j, there)
    error, change = _seen(level, rows, rests, a, b, lag, many, few, d, j, there, lags, most)
    return level, error, change


@triton.jit
def _moved(rows, a, lag, gap, base, many, d, j, there):
    """By how much the sum over the baseline of the row `lag` before grows as its row enters."""
    enters = tl.load(rows + _back(a, lag + gap + 1, many) * d + j, mask=there, other=0).to(tl.float64)
    return enters - tl.load(rows + _back(a, lag + gap + base + 1, many) * d + j, mask=there, other=0).to(tl.float64)


@triton.jit
def _added(sums, place, there, more):
    """Sums at a place, once more is added to them."""
    total = tl.load(sums + place, mask=there, other=0.0) + more
    tl.store(sums + place, total, mask=there)
    return total


@triton.jit
def _widest(values, i, n):
    """Of the widest window."""
    return tl.sum(tl.where(i == n - 1, values, 0.0), 0, keep_dims=True)


@triton.jit
def _spread(squares, total, shares, d, floor, j):
    """The logarithm of a variance, of the sum of squares and the sum of what is squared."""
    there = j < d
    mean = total * tl.load(shares + j, mask=there, other=0.0)
    variance = squares * tl.load(shares + d + j, mask=there, other=0.0) - mean * mean
    return tl.log(tl.maximum(variance, 0.0) + floor * floor)


@triton.jit
def _off(values, units, channels, at, there):
    """How far channels are off, in their units."""
    unit = tl.load(units + at, mask=there, other=0.0)
    return values * unit - tl.load(units + channels + at, mask=there, other=0.0)


@triton.jit
def _squares(values, units, channels, at, there):
    off = _off(values, units, channels, at, there)
    return tl.minimum(off * off, tl.full([], LOUDEST, tl.float64))


@triton.jit
def _followed(values, units, channels, scale, at, there, follows, remembered, largest):
    """Running scales, which have heard of a window before, if they follow it by now."""
    off, old = _off(values, units, channels, at, there), tl.load(scale + at, mask=there, other=1.0).to(tl.float64)
    heard = tl.fma(tl.minimum(off * off, largest) - old, remembered + tl.zeros_like(old), old)
    size = tl.where(follows, tl.maximum(heard, 1.0), old).to(tl.float32)
    tl.store(scale + at, size, mask=there)
    return size.to(tl.float64)


@triton.jit
def _watch(
    points, width, streams, firsts, lasts, begin, rows, many, rests, few, sums, position, scale, clock, loud, columns,
    chosen, m, axes, lags, windows, n, d, base, gap, units, shares, pace, best, which, out, HALT: tl.constexpr,
    AXES: tl.constexpr, OUT: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    k = begin + tl.program_id(0)
    s, t, stop = tl.load(streams + k), tl.load(firsts + k), tl.load(lasts + k)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, D)[None, :]
    own = j < d
    each, channels = (i < n) & own, (4 * n + 2) * d
    window, widest = tl.load(windows + i, mask=i < n, other=1), tl.load(windows + n - 1)
    soft, floor, most, level = tl.load(pace), tl.load(pace + 1), tl.load(pace + 2), tl.load(pace + 3)
    remembered, attack, largest = tl.load(pace + 4), tl.load(pace + 5), tl.load(pace + 6)
    early, fade = tl.load(pace + 7), tl.load(pace + 8)
    rows, rests, sums = rows + s * many * d, rests + s * few * d, sums + s * (8 * n + 5) * d
    scale, loud = scale + s * channels, loud + s * channels
    p, silent, age = tl.load(position + s), tl.load(clock + 2 * s), tl.load(clock + 2 * s + 1)
    now, then = 2 * n + 1, 5 * n + 3
    e = i * d + j
    while t < stop:
        a, b = p % many, p % few
        x = _told(points + t * width, columns, chosen, m, axes, d, soft, j, AXES)
        coarse = tl.floor((x + COARSE / 2) / COARSE)
        tl.store(rows + a * d + j, coarse.to(tl.int16), mask=own)
        tl.store(rests + b * d + j, (x - COARSE * coarse).to(tl.int8), mask=own)
        # The new row is at hand; what is read are others.
        error, change = _seen(x, rows, rests, a, b, 0, many, few, d, j, own, lags, most)
        middle, middle_error, middle_change = _seen_with_level(
            rows, rests, a, b, widest, many, few, d, j, own, lags, most
        )
        oldest, oldest_error, oldest_change = _seen_with_level(
            rows, rests, a, b, 2 * widest, many, few, d, j, own, lags, most
        )
        leaves, leaves_error, _ = _seen_with_level(rows, rests, a, b, window, many, few, d, j, each, lags, most)
        left, left_error, _ = _seen_with_level(rows, rests, a, b, widest + window, many, few, d, j, each, lags, most)
        # Baselines: of the newest row, and of the last ones of each window; as they were, and as they are now.
        newest = _added(sums, j, own, _moved(rows, a, 0, gap, base, many, d, j, own))
        before = tl.load(sums + n * d + j, mask=own, other=0.0)
        tl.debug_barrier()  # the next line writes there
        step = _moved(rows, a, window - 1, gap, base, many, d, j, each)
        of_now = _added(sums, d + e, each, step) - step
        step = _moved(rows, a, widest + window - 1, gap, base, many, d, j, each)
        of_then = _added(sums, (n + 1) * d + e, each, step) - step
        levels = _added(sums, now * d + e, each, x - leaves)
        errors = _added(sums, (now + n) * d + e, each, error - leaves_error)
        bases = _added(sums, (now + 2 * n) * d + e, each, newest - of_now)
        error_squares = _added(sums, (now + 3 * n) * d + j, own, error * error - middle_error * middle_error)
        change_squares = _added(sums, (now + 3 * n + 1) * d + j, own, change * change - middle_change * middle_change)
        old_levels = _added(sums, then * d + e, each, middle - left)
        old_errors = _added(sums, (then + n) * d + e, each, middle_error - left_error)
        old_bases = _added(sums, (then + 2 * n) * d + e, each, before - of_then)
        old_error_squares = _added(
            sums, (then + 3 * n) * d + j, own, middle_error * middle_error - oldest_error * oldest_error
        )
        old_change_squares = _added(
            sums, (then + 3 * n + 1) * d + j, own, middle_change * middle_change - oldest_change * oldest_change
        )
        error_sum, old_error_sum = _widest(errors, i, n), _widest(old_errors, i, n)
        # Channels, a window before and now: levels, errors, changes, moving levels, spreads of errors and of changes.
        heard_then = (
            old_levels, old_errors, middle - left, base * old_levels - COARSE * old_bases,
            _spread(old_error_squares, old_error_sum, shares, d, floor, j),
            _spread(old_change_squares, middle - oldest, shares + 2 * d, d, floor, j),
        )  # fmt: skip
        heard = (
            levels, errors, x - leaves, base * levels - COARSE * bases,
            _spread(error_squares, error_sum, shares, d, floor, j),
            _spread(change_squares, x - middle, shares + 2 * d, d, floor, j),
        )  # fmt: skip
        raised, follows = 1 + early * tl.exp(-age.to(tl.float64) / fade), age >= widest - 1
        is_silent, highest, first = silent != 0, tl.full([], -1.0, tl.float64), 0 * channels
        for g in tl.static_range(6):
            at, there = (g * n * d + e, each) if g < 4 else ((4 * n + g - 4) * d + j, own)
            size = _followed(heard_then[g], units, channels, scale, at, there, follows, remembered, largest)
            loudness = tl.sqrt(_squares(heard[g], units, channels, at, there) / size) / raised
            if OUT:
                tl.store(out + t * channels + at, tl.where(is_silent, float("nan"), loudness), mask=there)
            loudness = tl.where(there, loudness, -1.0)
            loudest = tl.max(loudness)
            place = tl.min(tl.where(loudness == loudest, at, channels))
            first = tl.where(loudest > highest, place, first)
            highest = tl.maximum(loudest, highest)
        rings = (silent == 0) & (highest > level)
        if rings | (silent > 0):
            tl.debug_barrier()  # scales have been written
            worth = attack / ((raised * level) * (raised * level))
            for g in tl.static_range(6):
                at, there = (g * n * d + e, each) if g < 4 else ((4 * n + g - 4) * d + j, own)
                size = tl.load(scale + at, mask=there, other=1.0).to(tl.float64)
                squares = _squares(heard[g], units, channels, at, there)
                if rings:
                    tl.store(loud + at, tl.sqrt(squares / size) / raised, mask=there)
                taught = tl.minimum(tl.maximum(size, worth * squares), tl.full([], LOUDEST, tl.float64))
                tl.store(scale + at, taught.to(tl.float32), mask=there)
        tl.store(best + t, tl.where(is_silent, float("nan"), highest))
        tl.store(which + t, tl.where(is_silent, 0, first))
        silent = tl.where(rings, widest, silent + (silent < 0).to(tl.int64) - (silent > 0).to(tl.int64))
        t, p, age = t + 1, p + 1, age + 1
        if HALT:  # noqa: SIM102
            if rings:
                tl.store(lasts + k, t)
                stop = t
        tl.debug_barrier()  # the next row reads what this one wrote
    tl.store(position + s, p)
    tl.store(clock + 2 * s, silent)
    tl.store(clock + 2 * s + 1, age)


def view_watch(
    points: Tensor, streams: Tensor, first: Tensor, last: Tensor, begin: int, end: int, halt: bool, rows: Tensor,
    rests: Tensor, sums: Tensor, position: Tensor, scale: Tensor, clock: Tensor, loud: Tensor, usual: Tensor,
    columns: Tensor, chosen: Tensor, axes: Tensor, lags: Tensor, windows: Tensor, base: int, gap: int, units: Tensor,
    shares: Tensor, pace: Tensor, best: Tensor, which: Tensor, out: Tensor,
) -> None:  # fmt: skip
    # Streams with levels of their own (`usual`) are stepped on the host: see `ViewsBank`.
    n, d, points = len(windows), lags.shape[1], points.contiguous()
    with torch.cuda.device_of(points):  # Triton launches on the current one
        _watch[(end - begin,)](
            points, points.shape[1], streams, first, last, begin, rows, rows.shape[1], rests, rests.shape[1], sums,
            position, scale, clock, loud, columns, chosen, len(chosen), axes, lags, windows, n, d, base, gap, units,
            shares, pace, best, which, out, HALT=halt, AXES=axes.numel() > 0, OUT=out.numel() > 0,
            N=triton.next_power_of_2(n), D=triton.next_power_of_2(d), num_warps=1,
        )  # fmt: skip
