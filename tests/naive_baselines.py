"""An oracle for the baselines: the equations of docs/baselines.md, written out one by one.

Like `naive.py` it shares no code with the library, and is slow and meant to be obvious. B, n, V, kappa, b and nu are
those of Li et al. (2019); H, G, A and u those of Bu et al. (2016, 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, pi, sqrt

import numpy as np
from numpy.typing import NDArray

import naive
from naive import Floats, Kernel

Draws = NDArray[np.int64]
"""Places in the reference, one row for each of the points that an expectation is over."""


# Scan-B: the statistic


def scan_b(reference: Floats, Y: Floats, kernel: Kernel) -> float:
    """Z = mean_i MMD2(X_i, Y), X_i consecutive disjoint blocks of as many points as Y has; the rest is left over.

    As run for the paper: the cross term takes all pairs, mean K(X_i, Y), as `naive.mmd` does.
    """
    B = len(Y)
    blocks = [reference[i * B : (i + 1) * B] for i in range(len(reference) // B)]
    return float(np.mean([naive.mmd(X, Y, kernel) for X in blocks]))


# Scan-B: its moments without a change, by draws from the reference


def h(K: Floats, x: int, x_: int, y: int, y_: int) -> float:
    """h(x, x', y, y') = k(x, x') + k(y, y') - k(x, y') - k(x', y); points by their places."""
    return float(K[x, x_] + K[y, y_] - K[x, y_] - K[x_, y])


def variance(K: Floats, x: Draws, y: Draws, B: int, n: int) -> float:
    """V = 2/(B(B-1)) { E[h^2(x,x',y,y')]/n + (n-1)/n Cov[h(x,x',y,y'), h(x'',x''',y,y')] }."""
    first = [h(K, x0, x1, y0, y1) for x0, x1, y0, y1 in zip(x[0], x[1], y[0], y[1], strict=True)]
    other = [h(K, x2, x3, y0, y1) for x2, x3, y0, y1 in zip(x[2], x[3], y[0], y[1], strict=True)]
    square = np.mean([value**2 for value in first])
    covariance = np.mean([(f - np.mean(first)) * (o - np.mean(other)) for f, o in zip(first, other, strict=True)])
    return float(2 / (B * (B - 1)) * (square / n + (n - 1) / n * covariance))


def third_moment(K: Floats, x: Draws, y: Draws, B: int, n: int) -> float:
    """E[Z^3], from the six expectations a1 to c2 over x_0..x_5 and y_0..y_2."""
    a1, b1, c1, a2, b2, c2 = np.zeros((6, x.shape[1]))
    for s in range(x.shape[1]):

        def at(i: int, j: int, p: int, q: int, s: int = s) -> float:
            return h(K, x[i, s], x[j, s], y[p, s], y[q, s])

        a1[s] = at(0, 1, 0, 1) * at(1, 2, 1, 2) * at(2, 0, 2, 0)
        b1[s] = at(0, 1, 0, 1) * at(1, 2, 1, 2) * at(3, 4, 2, 0)
        c1[s] = at(0, 1, 0, 1) * at(2, 3, 1, 2) * at(4, 5, 2, 0)
        a2[s] = at(0, 1, 0, 1) ** 3
        b2[s] = at(0, 1, 0, 1) ** 2 * at(2, 3, 0, 1)
        c2[s] = at(0, 1, 0, 1) * at(2, 3, 0, 1) * at(4, 5, 0, 1)
    chains = (a1.mean() + 3 * (n - 1) * b1.mean() + (n - 1) * (n - 2) * c1.mean()) / n**2
    powers = (a2.mean() + 3 * (n - 1) * b2.mean() + (n - 1) * (n - 2) * c2.mean()) / n**2
    squared = B**2 * (B - 1) ** 2
    return float(8 * (B - 2) / squared * chains + 4 / squared * powers)


def skewness(K: Floats, x: Draws, y: Draws, B: int, n: int) -> float:
    """kappa = E[Z^3] / V^1.5."""
    return float(third_moment(K, x, y, B, n) / variance(K, x, y, B, n) ** 1.5)


# Scan-B: the threshold


def nu(u: float) -> float:
    """(2/u)(Phi(u/2) - 1/2) / ((u/2) Phi(u/2) + phi(u/2))."""
    Phi, phi = (1 + erf(u / 2 / sqrt(2))) / 2, exp(-((u / 2) ** 2) / 2) / sqrt(2 * pi)
    return (2 / u) * (Phi - 1 / 2) / (u / 2 * Phi + phi)


def plain_run_length(b: float, B: int) -> float:
    """E[T] = exp(b^2/2)/b / ( a/sqrt(2 pi) nu(b sqrt(2a)) ), a = (2B-1)/(B(B-1))."""
    a = (2 * B - 1) / (B * (B - 1))
    return exp(b**2 / 2) / b / (a / sqrt(2 * pi) * nu(b * sqrt(2 * a)))


def skewed_run_length(b: float, B: int, kappa: float) -> float:
    """The same with exp(theta b - psi(theta)), theta = (sqrt(1 + 2 kappa b) - 1)/kappa."""
    a = (2 * B - 1) / (B * (B - 1))
    theta = (sqrt(1 + 2 * kappa * b) - 1) / kappa
    psi = theta**2 / 2 + kappa * theta**3 / 6
    return exp(theta * b - psi) / b / (a / sqrt(2 * pi) * nu(b * sqrt(2 * a)))


def threshold(run_length: Callable[[float], float], ert: float) -> float:
    """The b with that run length, on the branch that increases from b = 1 on."""
    low, high = 1.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if run_length(middle) < ert else (low, middle)
    return low


# LSDD-Inc


def regularisation(differences: Floats, H: Floats) -> float:
    """The largest candidate 2^-i, i = 0..9, whose relative difference is below 0.2."""
    return max(2.0**-i for i in range(10) if naive.relative_difference(differences, H, 2.0**-i) < 0.2)


def pairs_of_windows(
    points: Floats, references: Draws, windows: Draws, centres: Floats, width: float, penalty: float
) -> Floats:
    """S_b^(W, W) = u'Au for W reference points and W others, both drawn from the reference; penalty is lambda."""
    drawn = zip(references, windows, strict=True)
    return np.array([naive.lsdd(points[x], points[y], centres, width, penalty) for x, y in drawn])


def algorithm_1(statistics: Floats, alpha: float, N: int, W: int) -> float:
    """h^(N, W) = h^(W, W) + [ (1/N + 1/W)/(2/W) - 1 ] mean_b S_b^(W, W): step 6 brings in the whole reference."""
    h_W_W = float(np.quantile(statistics, 1 - alpha))
    return h_W_W + ((1 / N + 1 / W) / (2 / W) - 1) * float(np.mean(statistics))
