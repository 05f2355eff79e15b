"""Does a fit that is as precise as its reference deserves keep the promise as well as one that is more precise?

    python -m benchmarks.precision [--references 25] [--points 2000]

Many references of every law of `tocsin reproduce intervals`, each fitted twice: to a Monte Carlo error of 2 %, and
with error="auto". The true expected run time of both is measured by runs without a change: how far it is from the
promise, how often the interval holds it, how wide that is, how often a guarantee of 0.9 is kept, and what the fits
took. Hours on two cores, for all; fewer references, or only the smaller ones (--points), take as much less.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from tocsin import Detector, Independent
from tocsin._calibration.plan import Precision
from tocsin._common.errors import InputError
from tocsin._data.validation import default_windows
from tocsin._experiments.intervals import CELLS, LAWS, RUNS, with_guarantee
from tocsin._experiments.runs import run_lengths

PRECISIONS: tuple[Precision, Precision] = (0.02, "auto")


class Found(NamedTuple):
    """Of one fit: log(ART / ERT), half the interval's width in logs, whether a guarantee was kept, and its time."""

    off: float
    reach: float
    kept: bool
    seconds: float


def both(number: int, law: str, points: int, ert: float) -> list[Found] | None:
    """A reference, fitted both ways; None where its interval has no end, so that nothing can be guaranteed."""
    found = []
    for error in PRECISIONS:
        rng = np.random.default_rng([number, points, int(ert), list(LAWS).index(law)])
        reference = LAWS[law](rng, points)
        detector = Detector(
            ert, window=default_windows(points, ert), sampler=Independent(), start="cold", seed=number, error=error
        )
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector.fit(reference, workers=1, progress=False)
        took = time.process_time() - began
        try:
            guaranteed = with_guarantee(detector)
        except InputError:
            return None
        errors = detector.calibration_.errors
        assert errors is not None
        lengths = run_lengths([detector, guaranteed], LAWS[law], rng, RUNS[points])
        off, kept = math.log(lengths[0].mean() / ert), bool(lengths[1].mean() >= ert)
        found.append(Found(off, errors.quantile(0.95), kept, took))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", type=int, default=25, help="of each law and size")
    parser.add_argument("--points", type=int, default=2000, help="sizes of references, at most")
    options = parser.parse_args()
    cells: dict[tuple[int, float], list[list[Found]]] = defaultdict(list)
    with ProcessPoolExecutor() as pool:
        for points, ert in CELLS:
            if points > options.points:
                continue
            for law in LAWS:
                tried = pool.map(partial(both, law=law, points=points, ert=ert), range(options.references))
                cells[points, ert].extend(found for found in tried if found is not None)
    print("| N | ERT | error | references | mean log(ART/ERT) | covered | half-width | guarantee kept | fit |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (size, run_time), found in cells.items():
        for error, own in zip(PRECISIONS, zip(*found, strict=True), strict=True):
            off, reach, kept, seconds = (np.array(column) for column in zip(*own, strict=True))
            # The measurement has noise of its own.
            held = np.abs(off) <= np.hypot(reach, 1.645 / math.sqrt(RUNS[size]))
            mean = f"{off.mean():+.3f} ± {off.std() / math.sqrt(len(off)):.3f}"
            print(
                f"| {size} | {run_time:g} | {error} | {len(off)} | {mean} | {held.mean():.1%} | "
                f"{np.median(reach):.3f} | {kept.mean():.1%} | {np.median(seconds):.2f} s |"
            )


if __name__ == "__main__":
    main()
