"""Ridge regression in terms, each with a shrinkage of its own, chosen by what stretches that were left out say.

All that is needed of the rows are sums over stretches (folds), so that trying a shrinkage costs nothing per row. A term
enters where it foretells left out stretches better than chance would: memory makes neighbours alike, so rows left out
one by one would be foretold by their neighbours, and every term would seem to help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tocsin._compute.arrays import Float64Array, Int64Array

SHRINKAGES = tuple(float(10.0**-power) for power in np.arange(0.0, 4.75, 0.5))
"""Of functions that vary by 1, as parts of the number of rows; no term is the strongest of all."""

COARSE = (1, 4, 7)
"""Those tried first; then the neighbours of the best."""

SURE = 1.0
"""By how many of its standard errors, over folds, a term must lessen the error."""

SWEEPS = 3
"""How often all terms are gone through, at most."""

NONE = -1
"""The place of no term among the shrinkages."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Over each fold: gram (K, p, p), products (K, p, d) and squares (K, d) of functions and targets; rows (K,)."""

    gram: Float64Array
    products: Float64Array
    squares: Float64Array
    rows: Int64Array

    @classmethod
    def of(cls, functions: Float64Array, targets: Float64Array, folds: Int64Array) -> Sums:
        """folds: of each row, from 0 on."""
        kinds = range(int(folds.max()) + 1)
        pieces = [(functions[folds == k], targets[folds == k]) for k in kinds]
        return cls(
            np.array([own.T @ own for own, _ in pieces]),
            np.array([own.T @ wanted for own, wanted in pieces]),
            np.array([(wanted**2).sum(0) for _, wanted in pieces]),
            np.array([len(own) for own, _ in pieces]),
        )


@dataclass(frozen=True, eq=False)
class Chosen:
    """What a target is made of: which functions, how they weigh, and how well that is known.

    places: of its functions.  weights: (p,).  inverse: of their shrunken gram, (p, p).
    folds: the same weights and inverses learned without each fold, (K, p) and (K, p, p).
    explained: the part of the variance in left out stretches.
    """

    places: Int64Array
    weights: Float64Array
    inverse: Float64Array
    fold_weights: Float64Array
    fold_inverses: Float64Array
    explained: float


class Ridge:
    """Chooses for all targets at once, since they share what is costly."""

    def __init__(self, sums: Sums, terms: Sequence[slice]) -> None:
        self._sums, self._terms = sums, terms
        self._count = int(sums.rows.sum())
        self._left_out: dict[tuple[int, ...], Float64Array] = {}

    def choose(self, target: int) -> Chosen:
        """Terms and shrinkages for one target, and what comes of them."""
        best = (NONE,) * (len(self._terms) - 1)
        start = errors = self._errors(best)[:, target]
        for _ in range(SWEEPS):
            before = best
            for term in range(len(best)):
                best, errors = self._improved(best, errors, term, target)
            if best == before:
                break
        return self._made(best, target, 1 - errors.sum() / max(start.sum(), 1e-300))

    def _improved(
        self, best: tuple[int, ...], errors: Float64Array, term: int, target: int
    ) -> tuple[tuple[int, ...], Float64Array]:
        """The same with the best shrinkage of one term."""
        without = self._errors(_with(best, term, NONE))[:, target]
        tried = {k: self._errors(_with(best, term, k))[:, target] for k in COARSE}
        middle = min(tried, key=lambda k: tried[k].sum())
        for k in (middle - 1, middle + 1, middle + 2):
            if 0 <= k < len(SHRINKAGES) and k not in tried:
                tried[k] = self._errors(_with(best, term, k))[:, target]
        place = min(tried, key=lambda k: tried[k].sum())
        gains = without - tried[place]
        sure = SURE * gains.std(ddof=1) * len(gains) ** 0.5
        if gains.sum() <= sure or gains.sum() <= 0:
            return _with(best, term, NONE), without
        return _with(best, term, place), tried[place]

    def _errors(self, chosen: tuple[int, ...]) -> Float64Array:
        """Squared errors in each fold by what the others say, (K, d)."""
        if chosen not in self._left_out:
            places, _, gram, products, shrinkage = self._system(chosen)
            own = self._sums.gram[:, places[:, None], places]
            given = self._sums.products[:, places]
            weights = np.linalg.solve(gram[None] - own + np.diag(shrinkage), products[None] - given)
            errors = self._sums.squares - 2 * (weights * given).sum(1) + (weights * (own @ weights)).sum(1)
            self._left_out[chosen] = errors
        return self._left_out[chosen]

    def _system(
        self, chosen: tuple[int, ...]
    ) -> tuple[Int64Array, Int64Array, Float64Array, Float64Array, Float64Array]:
        slices = [self._terms[0], *(own for own, k in zip(self._terms[1:], chosen, strict=True) if k != NONE)]
        places = np.concatenate([np.arange(own.start, own.stop) for own in slices])
        levels = [0.0, *(SHRINKAGES[k] for k in chosen if k != NONE)]
        shrinkage = np.repeat(levels, [own.stop - own.start for own in slices]) * self._count
        shrinkage[0] = 1e-9 * self._count
        gram = self._sums.gram[:, places[:, None], places].sum(0)
        return places, np.arange(len(places)), gram, self._sums.products[:, places].sum(0), shrinkage

    def _made(self, chosen: tuple[int, ...], target: int, explained: float) -> Chosen:
        places, _, gram, products, shrinkage = self._system(chosen)
        own = self._sums.gram[:, places[:, None], places]
        given = self._sums.products[:, places, target]
        inverses = np.linalg.inv(gram[None] - own + np.diag(shrinkage))
        inverse = np.linalg.inv(gram + np.diag(shrinkage))
        return Chosen(
            places,
            inverse @ products[:, target],
            inverse,
            np.einsum("kij,kj->ki", inverses, products[None, :, target] - given),
            inverses,
            float(explained),
        )


def _with(chosen: tuple[int, ...], term: int, place: int) -> tuple[int, ...]:
    return (*chosen[:term], place, *chosen[term + 1 :])
