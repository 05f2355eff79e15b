"""Rows relative to what is expected of them given their context, compiled: row by row, so that a row alone is the same.

`tocsin._data.context.basis` has the same functions of a context in plain NumPy: read those first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._compute.jit import literal

LEVELS, SPLINE, FLAT, CIRCLE, DAYS = range(5)
"""What a term is made of: levels of a category, a spline, nothing but 0, harmonics of a cycle, days of the week."""

DAY, WEEK = 86_400.0, 604_800.0


def context_rows(
    prepared: tuple[Any, ...],
    width: int,
    context: Float64Array,
    values: Float64Array,
    beside: Float64Array,
    residuals: Float64Array,
) -> None:
    """What is expected of rows whose context is known, the spread around it, and the rows relative to both.

    prepared: how functions of a context are made:

        terms: of each, its kind, its column, where its functions begin, how many these are, where its numbers begin,
            and how many knots there are; (terms, 6).
        numbers: of splines, knots and then what functions are made of, (knots, functions); of cycles, their length.
        products: of each pair, where the functions of the first begin, and how many; of the second; and where their
            products begin; (pairs, 5).
        first_monday: when the first week began.

        and what is made of these:

        used: the functions that weigh in.  weights: of these, on what is expected and on the logarithm of the spread;
            (2, used, laws).
        limits: of each law, the least and the largest such logarithm, and what spreads are multiplied by; (3, laws).
        laws: whether each is of a share, whether what is missing is as expected, where its functions begin among
            `places`, how many these are, and where its square root begins among `halves`; (laws, 5).
        places, halves: of laws one after the other: their functions, and the lower triangle of what is not known.
        least_share, farthest: between which shares lie; and beyond which residuals are all alike.
    width: functions in all.  context: as numbers, (n, columns).  values: what laws are of, (n, laws).
    beside: what is expected, to which all of it is added; the spread and the context, to be filled; side by side.
    residuals: to be filled; (n, laws).
    """
    _rows(width, context, values, beside, residuals, *prepared)


@literal
def _rows(
    width: int,
    context: Float64Array,
    values: Float64Array,
    beside: Float64Array,
    residuals: Float64Array,
    terms: Int64Array,
    numbers: Float64Array,
    products: Int64Array,
    first_monday: float,
    used: Int64Array,
    weights: Float64Array,
    limits: Float64Array,
    laws: Int64Array,
    places: Int64Array,
    halves: Float64Array,
    least_share: float,
    farthest: float,
) -> None:
    count_of_laws = laws.shape[0]
    functions, logarithms, root = np.empty(width), np.empty(count_of_laws), np.empty(width)
    for row in range(context.shape[0]):
        for k in range(context.shape[1]):
            beside[row, 2 * count_of_laws + k] = context[row, k]
        for k in range(width):
            functions[k] = 0.0
        functions[0] = 1.0
        for t in range(terms.shape[0]):
            kind, x, start, count = terms[t, 0], context[row, terms[t, 1]], terms[t, 2], terms[t, 3]
            at, knots = terms[t, 4], terms[t, 5]
            if kind == LEVELS:
                if x >= 0:
                    functions[start + int(x)] = 1.0
            elif kind == SPLINE:
                first, scale = numbers[at], numbers[at + knots - 1] - numbers[at]
                place, end = (x - first) / scale, (numbers[at + knots - 1] - first) / scale
                ahead = max(place - end, 0.0)
                last, before = ahead * ahead * ahead, 0.0
                for j in range(-1, knots):
                    # The last bend but one comes first, since it is taken from the others.
                    own = 1.0 if j < 1 else place
                    if j < 0 or j > 1:
                        inner = (numbers[at + (knots - 2 if j < 0 else j - 2)] - first) / scale
                        ahead = max(place - inner, 0.0)
                        own = (ahead * ahead * ahead - last) / (end - inner) - before
                    if j < 0:
                        before = own
                    elif own != 0.0:
                        for k in range(count):
                            functions[start + k] += own * numbers[at + knots + j * count + k]
            elif kind == DAYS:
                day = (x - first_monday) % WEEK / DAY
                if day >= 0:
                    functions[start + min(int(day), 6)] = 1.0
            elif kind == CIRCLE:
                angle = x % numbers[at] * (2 * np.pi / numbers[at])
                for k in range(1, count // 2 + 1):
                    size = math.sqrt(2.0) / k**1.5
                    functions[start + 2 * k - 2] = math.cos(k * angle) * size
                    functions[start + 2 * k - 1] = math.sin(k * angle) * size
        for p in range(products.shape[0]):
            one, two, twos, start = products[p, 0], products[p, 2], products[p, 3], products[p, 4]
            for i in range(products[p, 1]):
                factor = functions[one + i]
                if factor != 0.0:
                    for k in range(twos):
                        functions[start + i * twos + k] = factor * functions[two + k]
        for law in range(count_of_laws):
            logarithms[law] = 0.0
        for u in range(len(used)):
            weight = functions[used[u]]
            if weight != 0.0:
                for law in range(count_of_laws):
                    beside[row, law] += weight * weights[0, u, law]
                    logarithms[law] += weight * weights[1, u, law]
        for law in range(count_of_laws):
            begin, count, half = laws[law, 2], laws[law, 3], laws[law, 4]
            own = math.exp(min(max(logarithms[law], limits[0, law]), limits[1, law]))
            if laws[law, 0]:
                share = min(max(beside[row, law], least_share), 1 - least_share)
                own = math.sqrt(share * (1 - share)) / limits[2, law]
            for i in range(count):
                root[i] = 0.0
            for i in range(count):
                weight = functions[places[begin + i]]
                if weight != 0.0:
                    for k in range(i + 1):
                        root[k] += weight * halves[half + k]
                half += i + 1
            unsure = 0.0
            for i in range(count):
                unsure += root[i] * root[i]
            beside[row, count_of_laws + law] = limits[2, law] * math.sqrt(own * own + unsure)
            residual = (values[row, law] - beside[row, law]) / beside[row, count_of_laws + law]
            if residual != residual and laws[law, 1]:
                residual = 0.0
            residuals[row, law] = min(max(residual, -farthest), farthest) if residual == residual else residual
