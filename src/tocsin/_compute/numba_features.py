"""Hot functions of statistics that compare mean features, compiled. `numpy_` has the same ones in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin._compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin._compute.jit import jit


def bumps(points: Float64Array, centres: Float64Array, width: float, factor: Float64Array) -> Float64Array:
    out = np.zeros((len(points), factor.shape[1]))
    _bumps(points, centres, width, factor, out)
    return out


@jit
def _bumps(points: Float64Array, centres: Float64Array, width: float, factor: Float64Array, out: Float64Array) -> None:
    (n, d), (m, features) = points.shape, factor.shape
    for i in range(n):
        for j in range(m):
            square = 0.0
            for k in range(d):
                square += (points[i, k] - centres[j, k]) ** 2
            bump = np.exp(-square / (2 * width * width))
            for k in range(features):
                out[i, k] += bump * factor[j, k]


def mean_distances(
    values: Float64Array, places: Int64Array, others: Float64Array, other_places: Int64Array
) -> Float64Array:
    out, m = np.empty(len(places)), values.shape[1]
    _mean_distances(values, places, others, other_places, np.empty(m), np.empty(m), out)
    return out


@jit
def _mean_distances(
    values: Float64Array,
    places: Int64Array,
    others: Float64Array,
    other_places: Int64Array,
    mean: Float64Array,
    other: Float64Array,
    out: Float64Array,
) -> None:
    (n, size), (_, other_size), m = places.shape, other_places.shape, values.shape[1]
    for i in range(n):
        for k in range(m):
            mean[k] = other[k] = 0.0
        for j in range(size):
            for k in range(m):
                mean[k] += values[places[i, j], k]
        for j in range(other_size):
            for k in range(m):
                other[k] += others[other_places[i, j], k]
        square = 0.0
        for k in range(m):
            square += (mean[k] / size - other[k] / other_size) ** 2
        out[i] = square


@jit
def _slide(
    values: Float64Array, last: int, v: int, window: int, tails: Float64Array, fresh: Float64Array, age: Int64Array
) -> None:
    """Let row `last` of `values` enter window v; its sum is then tails[v, age[v]] + fresh[v].

    fresh[v] is the sum of the newest age[v] rows; tails[v, a] that of the window - a rows before them, summed anew when
    all of them have left. Nothing is ever subtracted, so neither time nor an outlier leaves a trace.
    """
    m = values.shape[1]
    age[v] += 1
    for k in range(m):
        fresh[v, k] += values[last, k]
    if age[v] == window:
        age[v] = 0
        for k in range(m):
            fresh[v, k] = 0.0
            tails[v, window, k] = 0.0
        for a in range(window - 1, -1, -1):
            for k in range(m):
                tails[v, a, k] = tails[v, a + 1, k] + values[last - window + 1 + a, k]


@jit
def _square(tails: Float64Array, fresh: Float64Array, age: Int64Array, v: int) -> float:
    square = 0.0
    for k in range(fresh.shape[1]):
        total = tails[v, age[v], k] + fresh[v, k]
        square += total * total
    return square


def _sliding(windows: Int64Array, m: int) -> tuple[Float64Array, Float64Array, Int64Array]:
    """For `_slide`: tails, fresh and age."""
    return np.empty((windows.size, windows[-1] + 1, m)), np.empty((windows.size, m)), np.empty(windows.size, np.int64)


@jit
def _begin(tails: Float64Array, fresh: Float64Array, age: Int64Array) -> None:
    """Windows of nothing but zeros."""
    for v in range(age.size):
        age[v] = 0
        for k in range(fresh.shape[1]):
            fresh[v, k] = 0.0
        for a in range(tails.shape[1]):
            for k in range(fresh.shape[1]):
                tails[v, a, k] = 0.0


def feature_bootstrap_paths(
    features: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    excess: Float64Array,
    offset: Float64Array,
    linear: Float64Array,
    quadratic: float,
) -> Float32Array:
    length, m, tests = streams.shape[1], features.shape[1], streams.shape[1] - windows[-1] + 1
    out = np.empty((windows.size, copies.size, tests), np.float32)
    _bootstrap_paths(
        features, streams, copies, windows, excess, offset, linear, quadratic, *_sliding(windows, m),
        np.empty((length, m)), np.empty(length), np.zeros(length + 1), np.empty((windows.size, tests)), out,
    )  # fmt: skip
    return out


@jit
def _bootstrap_paths(
    features: Float64Array,
    streams: Int32Array,
    copies: Int32Array,
    windows: Int64Array,
    excess: Float64Array,
    offset: Float64Array,
    linear: Float64Array,
    quadratic: float,
    tails: Float64Array,
    fresh: Float64Array,
    age: Int64Array,
    arrived: Float64Array,
    repeats: Float64Array,
    running: Float64Array,
    squares: Float64Array,
    out: Float32Array,
) -> None:
    (count, length), m, widest = streams.shape, features.shape[1], windows[-1]
    against, tests = copies.shape[1], length - widest + 1
    for p in range(count):
        _begin(tails, fresh, age)
        for t in range(length):
            own = streams[p, t]
            repeats[t] = 0.0
            for k in range(m):
                arrived[t, k] = features[own, k]
            for j in range(max(0, t - widest + 1), t):
                if streams[p, j] == own:
                    repeats[j] += excess[own]
            doubled, end = 0.0, t
            for v in range(windows.size):
                window = windows[v]
                _slide(arrived, t, v, window, tails, fresh, age)
                if t >= widest - 1:
                    begin = t - window + 1
                    for j in range(begin, end):
                        doubled += repeats[j]
                    end = begin
                    square = (_square(tails, fresh, age, v) + 2 * doubled) / (window * window)
                    squares[v, t - widest + 1] = quadratic * square
        for i in range(against):
            g = copies[p, i]
            for t in range(length):
                running[t + 1] = running[t] + linear[g, streams[p, t]]
            for v in range(windows.size):
                for test in range(tests):
                    end = test + widest
                    mean = (running[end] - running[end - windows[v]]) / windows[v]
                    out[v, p * against + i, test] = offset[g] + squares[v, test] + mean


def feature_split_paths(features: Float64Array, streams: Int32Array, windows: Int64Array, signed: bool) -> Float32Array:
    (count, length), m = streams.shape, features.shape[1]
    out = np.empty((windows.size, count, length - windows[-1] + 1), np.float32)
    _split_paths(
        features, streams, windows, signed, *_sliding(windows, m),
        np.zeros(m), np.empty(m), np.empty((length, m)), out,
    )  # fmt: skip
    return out


@jit
def _split_paths(
    features: Float64Array,
    streams: Int32Array,
    windows: Int64Array,
    signed: bool,
    tails: Float64Array,
    fresh: Float64Array,
    age: Int64Array,
    everything: Float64Array,
    kept: Float64Array,
    arrived: Float64Array,
    out: Float32Array,
) -> None:
    (count, length), (n, m), widest = streams.shape, features.shape, windows[-1]
    for i in range(n):
        for k in range(m):
            everything[k] += features[i, k]
    for p in range(count):
        _begin(tails, fresh, age)
        for k in range(m):
            kept[k] = everything[k]
        for t in range(length):
            own = streams[p, t]
            for k in range(np.uintp(m)):
                arrived[t, k] = features[own, k]
            for k in range(np.uintp(m)):
                kept[k] -= features[own, k]
        for k in range(m):
            kept[k] /= n - length
        for t in range(length):
            for v in range(windows.size):
                _slide(arrived, t, v, windows[v], tails, fresh, age)
                if t >= widest - 1:
                    value = 0.0
                    for k in range(m):
                        difference = (tails[v, age[v], k] + fresh[v, k]) / windows[v] - kept[k]
                        value += difference if signed else difference * difference
                    out[v, p, t - widest + 1] = value


@jit
def feature_advance(
    buffer: Float64Array,
    linear: Float64Array,
    tails: Float64Array,
    fresh: Float64Array,
    age: Int64Array,
    cursor: Int64Array,
    windows: Int64Array,
    quadratic: float,
    block: Float64Array,
    block_linear: Float64Array,
    start: int,
    stop: int,
    out: Float64Array,
) -> None:
    (capacity, _), widest = buffer.shape, windows[-1]
    position = cursor[0]
    for i in range(start, stop):
        if position == capacity:
            position = widest - 1
            for j in range(position):
                linear[j] = linear[capacity - position + j]
                for k in range(buffer.shape[1]):
                    buffer[j, k] = buffer[capacity - position + j, k]
        t = position
        linear[t] = block_linear[i]
        for k in range(buffer.shape[1]):
            buffer[t, k] = block[i, k]
        for v in range(windows.size):
            window = windows[v]
            _slide(buffer, t, v, window, tails, fresh, age)
            begin = t - window + 1
            out[i - start, v] = np.nan
            if begin >= 0:
                mean = 0.0
                for j in range(begin, t + 1):
                    mean += linear[j]
                square = _square(tails, fresh, age, v) / (window * window)
                out[i - start, v] = quadratic * square + mean / window
        position += 1
    cursor[0] = position
