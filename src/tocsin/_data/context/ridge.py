"""Ridge regression in terms, each with a shrinkage of its own, chosen by what stretches that were left out say.

All that is needed of the rows are sums over stretches (folds), so that trying a shrinkage costs nothing per row. A term
enters where it foretells left out stretches better than chance would: memory makes neighbours alike, so rows left out
one by one would be foretold by their neighbours, and every term would seem to help.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

UNSHRUNKEN = 1e-9
"""What the intercept is shrunken by, so that it can be found."""


@dataclass(frozen=True, eq=False)
class Functions:
    """Functions of rows of a context, and what of them does not depend on what is foretold.

    rows: (n, p).  folds: of each row, from 0 on.  terms: where the functions of each are; the first is the intercept's.
    singles: of the terms after the intercept, how many are of single columns.
    """

    rows: Float64Array
    folds: Int64Array
    terms: Sequence[slice]
    singles: int

    @cached_property
    def grams(self) -> Float64Array:
        """Of each fold, (K, p, p)."""
        return np.array([own.T @ own for own in self._pieces])

    def products(self, wanted: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Over each fold, of functions and a target, (K, p), and its squares, (K,)."""
        targets = [wanted[self.folds == k] for k in range(len(self._pieces))]
        products = [rows.T @ own for rows, own in zip(self._pieces, targets, strict=True)]
        return np.array(products), np.array([(own**2).sum() for own in targets])

    def weighed(self, weights: Float64Array) -> Functions:
        """The same with a weight for each row."""
        return Functions(self.rows * weights[:, None], self.folds, self.terms, self.singles)

    def some(self, there: Int64Array) -> Functions:
        """Of some rows."""
        if len(there) == len(self.rows):
            return self
        return Functions(
            self.rows[there], np.unique(self.folds[there], return_inverse=True)[1], self.terms, self.singles
        )

    @cached_property
    def _pieces(self) -> list[Float64Array]:
        return [self.rows[self.folds == k] for k in range(int(self.folds.max()) + 1)]


@dataclass(frozen=True, eq=False)
class Chosen:
    """What a target is made of: which functions, how they weigh, and how well that is known.

    shrinkages: of its terms, by their places among SHRINKAGES.
    places: of its functions.  weights: (p,).  inverse: of their shrunken gram, (p, p).
    fold_weights, fold_inverses: the same learned without each fold, (K, p) and (K, p, p).
    explained: the part of the variance in left out stretches.
    """

    shrinkages: tuple[int, ...]
    places: Int64Array
    weights: Float64Array
    inverse: Float64Array
    fold_weights: Float64Array
    fold_inverses: Float64Array
    explained: float


class Ridge:
    """Chooses terms for a target, and how much each is shrunken."""

    def __init__(self, functions: Functions, wanted: Float64Array) -> None:
        self._grams, self._terms = functions.grams, functions.terms
        self._products, self._squares = functions.products(wanted)
        self._gram, self._product = self._grams.sum(0), self._products.sum(0)
        self._count = len(wanted)
        self._known: dict[tuple[int, ...], Float64Array] = {}

    def choose(self, among: Sequence[bool] | None = None, before: Chosen | None = None) -> Chosen:
        """Terms and shrinkages, and what comes of them.

        among: the terms to look at.  before: what was chosen for a target much like this: its terms are looked at, and
            shrinkages near those.
        """
        count = len(self._terms) - 1
        best = (NONE,) * count if before is None else before.shrinkages
        terms = [k for k in range(count) if (among is None or among[k]) and (before is None or best[k] != NONE)]
        for _ in range(SWEEPS if before is None else 1):
            last = best
            for term in terms:
                best = self._improved(best, term, COARSE if before is None else (best[term],))
            if best == last:
                break
        left, all_of_it = self._errors(best), self._errors((NONE,) * count)
        return self._made(best, float(1 - left.sum() / max(all_of_it.sum(), 1e-300)))

    def _improved(self, best: tuple[int, ...], term: int, first: Sequence[int]) -> tuple[int, ...]:
        """The same with the best shrinkage of one term. first: those that are tried before their neighbours."""
        without = self._errors(_with(best, term, NONE))
        tried = {k: self._errors(_with(best, term, k)) for k in first}
        middle = min(tried, key=lambda k: tried[k].sum())
        for k in (middle - 1, middle + 1):
            if 0 <= k < len(SHRINKAGES):
                tried[k] = self._errors(_with(best, term, k))
        place = min(tried, key=lambda k: tried[k].sum())
        gains = without - tried[place]
        sure = SURE * gains.std(ddof=1) * len(gains) ** 0.5
        return _with(best, term, NONE if gains.sum() <= max(sure, 0.0) else place)

    def _errors(self, chosen: tuple[int, ...]) -> Float64Array:
        """Squared errors in each fold by what the others say, (K,)."""
        if chosen not in self._known:
            places, shrinkage = self._places(chosen)
            own, given = self._grams[:, places[:, None], places], self._products[:, places]
            others = self._gram[places[:, None], places] - own + np.diag(shrinkage)
            weights = np.linalg.solve(others, (self._product[places] - given)[:, :, None])
            twice = (own @ weights)[:, :, 0] - 2 * given
            self._known[chosen] = self._squares + (weights[:, :, 0] * twice).sum(1)
        return self._known[chosen]

    def _places(self, chosen: tuple[int, ...]) -> tuple[Int64Array, Float64Array]:
        """Of the functions of chosen terms, and how much each is shrunken."""
        slices = [self._terms[0], *(own for own, k in zip(self._terms[1:], chosen, strict=True) if k != NONE)]
        levels = [UNSHRUNKEN, *(SHRINKAGES[k] for k in chosen if k != NONE)]
        shrinkage = np.repeat(levels, [own.stop - own.start for own in slices]) * self._count
        return np.concatenate([np.arange(own.start, own.stop) for own in slices]), shrinkage

    def _made(self, chosen: tuple[int, ...], explained: float) -> Chosen:
        places, shrinkage = self._places(chosen)
        own, given = self._grams[:, places[:, None], places], self._products[:, places]
        gram, product = self._gram[places[:, None], places] + np.diag(shrinkage), self._product[places]
        inverse, inverses = np.linalg.inv(gram), np.linalg.inv(gram - own)
        weights = (inverses @ (product - given)[:, :, None])[:, :, 0]
        return Chosen(chosen, places, inverse @ product, inverse, weights, inverses, explained)


def _with(chosen: tuple[int, ...], term: int, place: int) -> tuple[int, ...]:
    return (*chosen[:term], place, *chosen[term + 1 :])
