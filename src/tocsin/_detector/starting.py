"""How a warm run begins: with reference points in its windows, whose own test is quiet, as the paper has it."""

from __future__ import annotations

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Calibration
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compute import Functions, on_host
from tocsin._compute.arrays import Int64Array
from tocsin._samplers import InBlocks, Singly, Source
from tocsin._state import Fitted, Run
from tocsin._statistics.base import choose

MOST_STARTS = 10_000

FEWEST_LEFT = 2
"""Points that a run is compared with, at least, once those that it begins with have left."""


def warm_run(fitted: Fitted[Calibration], number: int) -> Run:
    """A new run, whose windows are drawn until they are quiet."""
    rng, functions = generator(fitted.seed, Purpose.START, number), compute.load("numpy")
    places, live, widest = places_of(fitted), fitted.live, fitted.widest
    for _ in range(MOST_STARTS):
        chosen = warm_windows(fitted, rng, 1, functions)[0]
        if fitted.calibration.guard:
            chosen = np.concatenate([chosen, _near(fitted, chosen)])
        points, windows, left = choose(fitted.reference, chosen), live.begin(number), None
        observed = live.observe(points, None if places is None else places[chosen])
        if places is not None:
            observed, left = live.leave_out(observed, places[chosen], widest)
        run = Run.begun(windows, widest, number, choose(points, np.arange(widest)), left)
        values = live.advance(windows, observed, 0, widest)[-1:]
        if left is not None:
            values = on_host(values) + live.due(left)
        if fitted.rule.quiet_at_first(values, rng.random(1))[0]:
            return run
    raise InputError(
        f"{MOST_STARTS} windows drawn from the reference all rang at once, so no quiet start exists: ",
        Option("ert", Code(f"{fitted.calibration.ert:g}")),
        " is too small for this reference. Ask for a longer one, or ",
        Option("start", "cold"),
        ".",
    )


def warm_windows(fitted: Fitted[Calibration], rng: np.random.Generator, count: int, functions: Functions) -> Int64Array:
    """Places of reference points to start with, drawn as null streams are; (count, W).

    They are distinct, but for a discrete reference: null streams are drawn from its pseudo-references, and so are they.
    Where so few are compared with that they might all leave, the others are drawn from.
    """
    everyone, widest, block = len(fitted.reference), fitted.widest, fitted.calibration.block
    if block > 1:
        assert fitted.edges is not None
        source: Source = InBlocks(fitted.edges, block, fitted.calibration.guard)
    elif fitted.calibration.references == "direct":
        laws = rng.integers(0, everyone, (count, everyone))
        return np.take_along_axis(laws, rng.integers(0, everyone, (count, widest)), 1)
    elif fitted.kept is not None and len(fitted.kept) < widest + FEWEST_LEFT:
        others = np.setdiff1d(np.arange(everyone), fitted.kept)
        return others[Singly(len(others)).distinct(rng, count, widest, functions)]
    else:
        source = Singly(everyone)
    return source.distinct(rng, count, widest, functions).astype(np.int64)


def _near(fitted: Fitted[Calibration], chosen: Int64Array) -> Int64Array:
    """Other reference points within the guard of those chosen."""
    guard = fitted.calibration.guard
    near = np.unique(np.clip(chosen[:, None] + np.arange(-guard, guard + 1), 0, len(fitted.reference) - 1))
    return np.setdiff1d(near, chosen)


def places_of(fitted: Fitted[Calibration]) -> Int64Array | None:
    """Where each reference point is among those compared with (-1: it is not); None in a discrete reference.

    A warm start draws from all reference points. As in the null streams, none of them meets itself, but for those of a
    discrete reference.
    """
    if fitted.calibration.references == "direct":
        return None
    everyone = np.arange(len(fitted.reference))
    if fitted.kept is None:
        return everyone
    place = np.full(len(everyone), -1)
    place[fitted.kept] = np.arange(len(fitted.kept))
    return place
