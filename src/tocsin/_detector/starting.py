"""How a warm run begins: with reference points in its windows, whose own test is quiet, as the paper has it."""

from __future__ import annotations

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.result import Calibration
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Int64Array
from tocsin._samplers import InBlocks
from tocsin._state import Fitted, Run
from tocsin._statistics.base import choose

MOST_STARTS = 10_000


def warm_run(fitted: Fitted[Calibration], number: int) -> Run:
    """A new run, whose windows are drawn until they are quiet."""
    rng, places = generator(fitted.seed, Purpose.START, number), places_of(fitted)
    for _ in range(MOST_STARTS):
        chosen = _warm_window(fitted, rng)
        points, own = choose(fitted.reference, chosen), None if places is None else places[chosen]
        windows = fitted.live.begin(number)
        values = fitted.live.advance(windows, fitted.live.observe(points, own), 0, fitted.widest)[-1:]
        if fitted.rule.quiet_at_first(values, rng.random(1))[0]:
            return Run.begun(windows, fitted.widest, number, choose(points, np.arange(fitted.widest)))
    raise InputError(
        f"{MOST_STARTS} windows drawn from the reference all rang at once, so no quiet start exists: ",
        Option("ert", Code(f"{fitted.calibration.ert:g}")),
        " is too small for this reference. Ask for a longer one, or ",
        Option("start", "cold"),
        ".",
    )


def _warm_window(fitted: Fitted[Calibration], rng: np.random.Generator) -> Int64Array:
    """Reference points to start with, drawn as null streams are, and after them their neighbours within the guard."""
    widest, block, guard = fitted.widest, fitted.calibration.block, fitted.calibration.guard
    if block == 1:
        return rng.choice(len(fitted.reference), widest, replace=False)
    assert fitted.edges is not None
    source = InBlocks(fitted.edges, block, guard)
    chosen = source.distinct(rng, 1, widest, compute.load("numpy"))[0].astype(np.int64)
    near = np.unique(np.clip(chosen[:, None] + np.arange(-guard, guard + 1), 0, len(fitted.reference) - 1))
    return np.concatenate([chosen, np.setdiff1d(near, chosen)])


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
