"""What would find what is not found: a shorter expected run time, a longer reference, or own baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tocsin._calibration.result import Calibration
from tocsin._common.wording import called, listed, rounded
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.validation import DEFAULT_WINDOWS, POINTS_PER_WINDOW, default_windows
from tocsin._power.changes import Cells, Change
from tocsin._power.draws import Draws
from tocsin._power.plan import FEWEST_WINDOWS
from tocsin._power.result import Remedy
from tocsin._power.trials import Trials, at_run_time, stage_of, typical
from tocsin._power.words import gathered
from tocsin._state import Fitted
from tocsin._statistics.mmd_gaussian import GaussianLive

SOONER, FIRST, FURTHER = 2.0, 5.0, 20.0
"""By how much shorter expected run times are tried: the middle one first, then the longer one for what that finds, and
the shorter one for what it does not."""

PAIRS, MEANS = 1.0, 0.5
"""How fast the noise of a window falls as it gets wider, by its width to this power: of pairs of points that have
nothing to do with each other, and of means."""

FEWEST_RECORDINGS, MOST_NAMES = 4, 5
"""From which own baselines can be learnt; and columns named."""


@dataclass(frozen=True, eq=False)
class Help:
    """What helps a detector."""

    fitted: Fitted[Calibration]
    places: Int64Array | None
    cells: Cells
    trials: Trials

    def remedies(self, missed: Sequence[Change]) -> tuple[Remedy, ...]:
        """For each of these changes, which are not found."""
        self.trials.total += 2 * self.trials.plan.few * (1 + len(missed))
        erts, rows = self._run_times(missed), self._rows(missed)
        return tuple(
            Remedy(
                change.kind, None if change.column is None else self.cells.names[change.column], change.size,
                erts.get(change), rows.get(change),
            )
            for change in missed
        )  # fmt: skip

    def advice(self, remedies: Sequence[Remedy], missed: int) -> Iterator[str]:
        """In words. missed: how many changes are not found."""
        told = [*self._sooner(remedies), *self._longer(remedies)]
        if told and len(remedies) < missed:
            told[0] += f" (of {len(remedies):,} tried of {missed:,} that are not found)"
        yield from told
        yield from self._other_rows()
        yield from self._baselines({remedy.column for remedy in remedies if remedy.column is not None})

    def _sooner(self, remedies: Sequence[Remedy]) -> Iterator[str]:
        ert = self.fitted.calibration.ert
        for less in (SOONER, FIRST, FURTHER):
            own = [remedy for remedy in remedies if remedy.ert == ert / less]
            if own:
                often = "twice" if less == 2 else f"{less:g} times"
                yield (
                    f"an expected run time of {rounded(ert / less)}, with {often} as many false alarms, finds "
                    f"{gathered(own)}"
                )

    def _longer(self, remedies: Sequence[Remedy]) -> Iterator[str]:
        for count in sorted({remedy.rows for remedy in remedies if remedy.rows is not None}):
            own = [remedy for remedy in remedies if remedy.rows == count]
            yield (
                f"a reference of {count:,} rows, by estimate, for the windows of {count // POINTS_PER_WINDOW} that it "
                f"allows, finds {gathered(own)}"
            )

    def _run_times(self, missed: Sequence[Change]) -> dict[Change, float]:
        """The longest expected run time that finds each, of those tried."""
        found = dict.fromkeys(self._found(missed, FIRST), FIRST)
        left = [change for change in missed if change not in found]
        found |= dict.fromkeys(self._found(list(found), SOONER), SOONER)
        found |= dict.fromkeys(self._found(left, FURTHER), FURTHER)
        return {change: self.fitted.calibration.ert / less for change, less in found.items()}

    def _found(self, changes: Sequence[Change], less: float) -> list[Change]:
        fitted = self.fitted
        shorter = fitted.calibration.ert / less
        if not changes or fitted.calibration.curve is None or shorter < FEWEST_WINDOWS * fitted.widest:
            return []
        stage = stage_of(at_run_time(fitted, shorter), self.places, self.cells)
        delays = self.trials(changes, self.trials.plan.few, stage)
        each = zip(changes, delays.T[1:], strict=True)
        return [change for change, own in each if math.isfinite(typical(own, delays[:, 0]))]

    @property
    def _wider(self) -> list[int]:
        """Default windows that more rows would allow: where the default statistic has default windows."""
        fitted, count = self.fitted, self.fitted.calibration.compared
        ert, (first, *others) = fitted.calibration.ert, fitted.live.members
        default = fitted.windows == default_windows(count, ert)
        if others or not isinstance(first, GaussianLive) or fitted.calibration.block > 1 or not default:
            return []
        return [window for window in DEFAULT_WINDOWS if window > fitted.widest and window <= 3 * ert]

    def _rows(self, missed: Sequence[Change]) -> dict[Change, int]:
        """Rows of a reference whose windows would be wide enough.

        How loud a change is once it fills a window, on average, over the noise of the window: that falls as the window
        gets wider, and the mean stays. What a wider window hears is louder by as much.
        """
        wider, stage = self._wider, self.trials.stage
        if not wider or not isinstance(stage, Draws) or stage.horizon <= self.fitted.widest:
            return {}
        channels = self.fitted.live.channels
        loud = np.mean([stage.loudness(trial, missed) for trial in range(self.trials.plan.few)], axis=0)
        power = np.array([PAIRS if channel.statistic == "MMD" else MEANS for channel in channels])
        found: dict[Change, int] = {}
        for window in wider:
            growth = (window / np.array([channel.window for channel in channels])) ** power
            heard = (loud * growth).max(1) > self.fitted.calibration.threshold
            for change, own in zip(missed, heard, strict=True):
                if own:
                    found.setdefault(change, POINTS_PER_WINDOW * window)
        return found

    def _other_rows(self) -> Iterator[str]:
        """What can be said of more rows where that is not estimated."""
        fitted = self.fitted
        if fitted.calibration.rehearsal is not None:
            yield "perhaps more rows of reference: what they would find cannot be told from these, where order matters"
        elif fitted.widest == DEFAULT_WINDOWS[-1] and not self._wider:
            yield "hardly more rows: the windows are the widest that there are by default"

    def _baselines(self, missed: Set[str]) -> Iterator[str]:
        """What can be said of levels of recordings' own, where columns of which changes are not found have such."""
        fitted, points = self.fitted, self.fitted.reference
        edges = fitted.edges
        if edges is None or len(edges) <= FEWEST_RECORDINGS or fitted.live.has_baselines:
            return
        if not isinstance(points, np.ndarray) or not missed:
            return
        pieces = [points[start:stop] for start, stop in pairwise(edges.tolist())]
        within = np.median([_spread(piece) for piece in pieces], axis=0)
        between = _spread(np.array([np.median(piece, axis=0) for piece in pieces]))
        apart = np.flatnonzero(between > within)
        own = [name for place, name in enumerate(self.cells.names) if name in missed and place in self._owners(apart)]
        if own:
            some = own if len(own) <= MOST_NAMES else [*own[:MOST_NAMES], "others"]
            yield (
                f"own baselines (baseline=50, or so many first rows), by which recordings may differ: those of the "
                f"reference differ more in {listed(map(called, some))} than rows within one do"
            )

    def _owners(self, features: Int64Array) -> set[int]:
        """Columns that numbers of a point belong to."""
        return set(self.fitted.intake.owners[features].tolist())


def _spread(rows: Float64Array) -> Float64Array:
    """Between quartiles, of each number."""
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    return np.asarray(high - low)
