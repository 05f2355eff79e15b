"""Hot functions of statistics that compare mean features, compiled. `numpy_` has the same ones in plain NumPy."""

from __future__ import annotations

import numpy as np

from tocsin.compute.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from tocsin.compute.jit import jit


@jit
def bumps(points: Float64Array, centres: Float64Array, width: float, factor: Float64Array) -> Float64Array:
    (n, d), (m, features) = points.shape, factor.shape
    out = np.zeros((n, features))
    for i in range(n):
        for j in range(m):
            square = 0.0
            for k in range(d):
                square += (points[i, k] - centres[j, k]) ** 2
            bump = np.exp(-square / (2 * width * width))
            for k in range(features):
                out[i, k] += bump * factor[j, k]
    return out


@jit
def mean_distances(
    values: Float64Array, places: Int64Array, others: Float64Array, other_places: Int64Array
) -> Float64Array:
    (n, size), (_, other_size), m = places.shape, other_places.shape, values.shape[1]
    out, mean, other = np.empty(n), np.empty(m), np.empty(m)
    for i in range(n):
        mean[:] = 0.0
        other[:] = 0.0
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
    return out


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


@jit
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
    (count, length), m, widest = streams.shape, features.shape[1], windows[-1]
    against, tests = copies.shape[1], length - widest + 1
    out = np.empty((windows.size, count * against, tests), np.float32)
    tails, fresh = np.zeros((windows.size, widest + 1, m)), np.zeros((windows.size, m))
    age = np.zeros(windows.size, np.int64)
    arrived, repeats, running = np.empty((length, m)), np.empty(length), np.zeros(length + 1)
    squares = np.empty((windows.size, tests))
    for p in range(count):
        stream = streams[p]
        tails[:] = 0
        fresh[:] = 0
        age[:] = 0
        repeats[:] = 0
        for t in range(length):
            own = stream[t]
            arrived[t] = features[own]
            for j in range(max(0, t - widest + 1), t):
                if stream[j] == own:
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
                running[t + 1] = running[t] + linear[g, stream[t]]
            for v in range(windows.size):
                for test in range(tests):
                    end = test + widest
                    mean = (running[end] - running[end - windows[v]]) / windows[v]
                    out[v, p * against + i, test] = offset[g] + squares[v, test] + mean
    return out


@jit
def feature_split_paths(features: Float64Array, streams: Int32Array, windows: Int64Array, signed: bool) -> Float32Array:
    (count, length), (n, m), widest = streams.shape, features.shape, windows[-1]
    out = np.empty((windows.size, count, length - widest + 1), np.float32)
    tails, fresh = np.zeros((windows.size, widest + 1, m)), np.zeros((windows.size, m))
    age = np.zeros(windows.size, np.int64)
    everything, arrived = np.zeros(m), np.empty((length, m))
    for i in range(n):
        everything += features[i]
    for p in range(count):
        tails[:] = 0
        fresh[:] = 0
        age[:] = 0
        kept = everything.copy()
        for t in range(length):
            arrived[t] = features[streams[p, t]]
            kept -= arrived[t]
        kept /= n - length
        for t in range(length):
            for v in range(windows.size):
                _slide(arrived, t, v, windows[v], tails, fresh, age)
                if t >= widest - 1:
                    value = 0.0
                    for k in range(m):
                        difference = (tails[v, age[v], k] + fresh[v, k]) / windows[v] - kept[k]
                        value += difference if signed else difference * difference
                    out[v, p, t - widest + 1] = value
    return out


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
            buffer[: widest - 1] = buffer[capacity - widest + 1 :].copy()
            linear[: widest - 1] = linear[capacity - widest + 1 :].copy()
            position = widest - 1
        t = position
        buffer[t] = block[i]
        linear[t] = block_linear[i]
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
