"""Which observations are most typical of a change: where the witness function is largest, and where it is smallest.

The witness of a point is its mean similarity to the observations since the onset, less that to the reference. The MMD
is the difference between its means over the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._explain.kernel import some
from tocsin._statistics.base import Points, choose
from tocsin._statistics.kernels import Kernel

MOST = 500
"""Reference points that are looked at, at most."""

BEGUN = 0.5
"""Recent observations are examples if the change had begun by then with at least this probability."""


LEAST = 0.5
"""An example has at least this part of the largest witness."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Observations that are typical of a change, the most typical first.

    recent: places among the recent observations; the reference has few like these.
    reference: places in the reference; there are few like these since the change.
    """

    recent: Int64Array
    reference: Int64Array


def find_examples(
    recent: Points, reference: Points, kernel: Kernel, probabilities: Float64Array, *, count: int = 3, seed: int = 0
) -> Examples:
    """A few observations of each kind, no two of them copies of each other.

    Parameters
    ----------
    recent, reference
        Observations of this run, oldest first; and observations from before, two at least.
    kernel
        How alike two observations are.
    probabilities
        That the change began with each of the recent ones, as `Onset` has them. Each counts for as much as the change
        had likely begun by then.
    count
        How many of each kind, at most.
    """
    chosen = some(len(reference), MOST, seed)
    points = choose(reference, chosen)
    within, across, among = (
        np.asarray(kernel(*pair), dtype=np.float64) for pair in ((recent, recent), (recent, points), (points, points))
    )
    begun = np.cumsum(probabilities)
    # No observation is compared with itself.
    others = np.maximum(begun.sum() - begun, np.finfo(np.float64).tiny)
    new = (within @ begun - within.diagonal() * begun) / others - across.mean(1)
    old = (among.sum(1) - among.diagonal()) / (len(points) - 1) - begun @ across / begun.sum()
    typical = _diverse(np.where(begun >= BEGUN, new, -np.inf), within, count)
    return Examples(typical, chosen[_diverse(old, among, count)])


def _diverse(scores: Float64Array, similarity: Float64Array, count: int) -> Int64Array:
    """Places of large scores, each counting for less the more it is like one that was taken before."""
    size = np.sqrt(np.maximum(similarity.diagonal(), np.finfo(np.float64).tiny))
    alike = np.clip(similarity / size / size[:, None], 0, 1)
    worth = np.where(scores >= LEAST * scores.max(), scores, 0.0)
    taken = [int(scores.argmax())]
    while len(taken) < count:
        worth = worth * (1 - alike[taken[-1]])
        if worth.max() <= 0:
            break
        taken.append(int(worth.argmax()))
    return np.array(taken)
