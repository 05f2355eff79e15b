"""Run lengths and delays read off one long statistic are those of detectors that watch, ring and are reset."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest

from tocsin import LSDD, MMD, Detector, Gaussian, Independent
from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import altered
from tocsin._experiments import laws, runs
from tocsin._experiments.methods import METHODS
from tocsin._experiments.runs import AnyDetector, delays, run_lengths
from tocsin.baselines import LSDDInc, ScanB

ERTS = (20, 40, 80)
WINDOW = 6


def before(rng: np.random.Generator, n: int) -> Float64Array:
    """Two columns."""
    return rng.normal(size=(n, 2))


def faintly_after(rng: np.random.Generator, n: int) -> Float64Array:
    """Moved so little that some runs take a hundred observations to ring."""
    return rng.normal(size=(n, 2)) + 0.5


REFERENCE = before(np.random.default_rng(0), 150)


class Recorded:
    """A law that remembers what it drew."""

    def __init__(self, law: laws.Law) -> None:
        self.law = law
        self.blocks: list[Float64Array] = []

    def __call__(self, rng: np.random.Generator, n: int) -> Float64Array:
        """Draw, and remember."""
        self.blocks.append(self.law(rng, n))
        return self.blocks[-1]


def paper(ert: float) -> Detector:
    """Thresholds of their own for the first tests, and one channel."""
    return Detector(ert, MMD(Gaussian()), window=WINDOW, mode="paper", paths=500, start="cold", seed=1)


def steady(ert: float) -> Detector:
    """Of one channel."""
    return Detector(ert, LSDD(centres=5), window=WINDOW, paths=200, start="cold", seed=1)


def family(ert: float) -> Detector:
    """Of many channels."""
    return Detector(ert, window=(2, WINDOW, 15), sampler=Independent(), paths=200, start="cold", seed=1)


GROUPS: dict[str, Callable[[], list[AnyDetector]]] = {
    "paper": lambda: [paper(ert).fit(REFERENCE) for ert in ERTS],
    "steady": lambda: [steady(ert).fit(REFERENCE) for ert in ERTS],
    "Scan-B": lambda: [ScanB(ert, WINDOW, samples=500, seed=1).fit(REFERENCE) for ert in ERTS],
    # Redrawn reference points would make the statistic depend on more than the last observations.
    "LSDD-Inc": lambda: [LSDDInc(ert, WINDOW, paths=500, seed=1).fit(REFERENCE) for ert in ERTS[:2]],
    "family": lambda: [family(ERTS[0]).fit(REFERENCE)],
    "longest first": lambda: [paper(ert).fit(REFERENCE) for ert in reversed(ERTS)],
}


@pytest.fixture(scope="module", params=GROUPS.values(), ids=list(GROUPS))
def group(request: pytest.FixtureRequest, quick_fits: None) -> list[AnyDetector]:
    """Detectors that share a statistic; not to be changed."""
    made: list[AnyDetector] = request.param()
    return made


@pytest.mark.parametrize("count", [1, 150])
def test_run_lengths_are_those_of_a_detector_that_is_reset(
    group: list[AnyDetector], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the same stream, for every detector of a group, though all share the statistic of the first.

    Blocks are made so short that runs cross several. (Coins that break ties differ from run to run: 2^-16 of a
    statistic's scale, which changes an alarm once in some 10^5 runs, and none here.)
    """
    monkeypatch.setattr(runs, "SHORTEST_BLOCK", 10)
    monkeypatch.setattr(runs, "LONGEST_BLOCK", 400)
    law = Recorded(before)
    found = run_lengths(copy.deepcopy(group), law, np.random.default_rng(7), count)
    stream = np.concatenate(law.blocks)
    assert len(found) == len(group)
    assert count == 1 or len(law.blocks) > 5
    for lengths, detector in zip(found, copy.deepcopy(group), strict=True):
        outcomes = detector.update_many(stream)
        expected = outcomes.time[outcomes.alarm] - detector.windows_[-1] + 1
        assert lengths.tolist() == expected[:count].tolist()
        assert len(lengths) == count
        assert lengths.min() >= 1


def test_run_lengths_do_not_depend_on_where_the_detector_was(group: list[AnyDetector]) -> None:
    """A detector in the middle of a stream gives the same as one just fitted; none are lost or doubled between."""
    used = copy.deepcopy(group)
    used[0].update_many(before(np.random.default_rng(3), 100))
    fresh, again = (run_lengths(each, before, np.random.default_rng(7), 40) for each in (copy.deepcopy(group), used))
    assert [lengths.tolist() for lengths in fresh] == [lengths.tolist() for lengths in again]


def ring(detector: AnyDetector, piece: Float64Array) -> int | None:
    """The observation at which a detector that is fed one by one rings; None if it does not."""
    return next((detector.time for x in piece if detector.update(x).alarm), None)


def test_delays_are_those_of_detectors_that_watch(group: list[AnyDetector], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stream, put together again from what was drawn, rings where it should when fed one by one.

    Of the windows that are quiet at the first test each detector takes the first `count`; a stream goes on, by a piece
    at a time, while any of them waits for it.
    """
    monkeypatch.setattr(runs, "FIRST_STEPS", 4)
    monkeypatch.setattr(runs, "MOST_STEPS", 16)
    count, widest = 25, group[0].windows_[-1]
    old, new = Recorded(before), Recorded(faintly_after)
    found = delays(copy.deepcopy(group), old, new, np.random.default_rng(7), count)

    (windows,) = (block.reshape(-1, widest, 2) for block in old.blocks)
    watching: list[dict[int, AnyDetector]] = []
    for detector in group:
        each = [copy.deepcopy(detector) for _ in windows]
        quiet = [i for i, window in enumerate(windows) if ring(each[i], window) is None]
        watching.append({i: each[i] for i in quiet[:count]})
    expected = [dict.fromkeys(rows, 0) for rows in watching]
    active, steps = list(range(len(windows))), 4
    for block in new.blocks:
        pieces = dict(zip(active, block.reshape(-1, steps, 2), strict=True))
        for rows, lengths in zip(watching, expected, strict=True):
            for i in list(rows):
                if (time := ring(rows[i], pieces[i])) is not None:
                    lengths[i] = time - widest
                    del rows[i]
        active, steps = sorted(set().union(*watching)), min(2 * steps, 16)
    assert not active
    assert len(new.blocks) > 3
    assert [lengths.tolist() for lengths in found] == [list(lengths.values()) for lengths in expected]
    assert all(len(lengths) == count for lengths in found)


def test_windows_that_ring_far_too_often_are_told() -> None:
    """Rather than giving fewer delays than were asked for."""
    detector = paper(100).fit(REFERENCE)
    with pytest.raises(ArithmeticError, match="windows rang before the change"):
        delays([detector], lambda rng, n: before(rng, n) + 3, faintly_after, np.random.default_rng(0), 50)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "default family"])
def test_methods_of_one_channel_have_the_same_statistic_at_every_run_time(name: str) -> None:
    """So that they may share it: to within the coin that breaks ties, 2^-16 of a statistic's scale."""
    reference = laws.square(np.random.default_rng(0), 300)
    one, two = (METHODS[name].fit(ert, reference, 5) for ert in (128.0, 1000.5))
    assert len(one._ready().live.channels) == 1
    stream = laws.diamond(np.random.default_rng(1), 200)
    first, second = (
        altered(detector, resets=False, hears=False).update_many(stream).statistic for detector in (one, two)
    )
    assert one.thresholds_[-1] < two.thresholds_[-1]
    widest = one.windows_[-1]
    assert one.windows_ == two.windows_
    np.testing.assert_array_equal(np.isnan(first), np.arange(200) < widest - 1)
    scale = np.abs(first[widest:]).max()
    np.testing.assert_allclose(first, second, rtol=0, atol=2.0**-15 * scale)
    if isinstance(one, ScanB | LSDDInc):
        np.testing.assert_array_equal(first, second)
