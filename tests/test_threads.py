"""Threads that share a detector or a bank: every observation is taken in, and the state is never torn."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tocsin import MMD, Detector, DetectorBank, Gaussian, Views
from tocsin._compute.arrays import Float64Array
from tocsin._statistics.base import Statistic

THREADS, EACH = 4, 500


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def made(statistic: Statistic | None = None) -> Detector:
    rng = np.random.default_rng(0)
    own, paths = (MMD(Gaussian()), 300) if statistic is None else (statistic, 6)
    detector = Detector(1e4, own, window=(4, 10), reset_on_alarm=False, paths=paths, interval=False, seed=1)
    return detector.fit(rng.normal(size=(200, 2)))


both = pytest.mark.parametrize("statistic", [None, Views()], ids=["MMD", "Views"])


def together(work: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, i) for i in range(THREADS)]:
            done.result()


def rows(thread: int) -> Float64Array:
    return np.random.default_rng([1, thread]).normal(size=(EACH, 2))


@both
@pytest.mark.parametrize("size", [1, 7])
def test_no_observation_is_lost(size: int, statistic: Statistic | None) -> None:
    """The clock counts all of them, and the last points are those of some order in which they came."""
    detector = made(statistic)
    times: list[int] = []

    def work(thread: int) -> None:
        for start in range(0, EACH, size):
            block = rows(thread)[start : start + size]
            if size == 1:
                times.append(detector.update(block[0]).time)
            else:
                times.extend(detector.update_many(block).time.tolist())

    together(work)
    assert detector.time == THREADS * EACH
    assert sorted(times) == list(range(1, THREADS * EACH + 1))
    everything = {tuple(row) for thread in range(THREADS) for row in rows(thread).tolist()}
    assert {tuple(row) for row in detector.recent.tolist()} <= everything


def test_what_follows_is_as_if_they_had_come_in_turn() -> None:
    """A detector alone that gets the remembered points in their order says the same of the next."""
    detector, alone = made(), made()
    together(lambda thread: [detector.update(row) for row in rows(thread)])
    new = np.zeros(2)
    alone.update_many(detector.recent)
    tie = detector._ready().normaliser.tie
    assert abs(detector.update(new).statistic - alone.update(new).statistic) <= tie + 1e-5


@both
def test_resets_saves_and_copies_among_updates(tmp_path: Path, statistic: Statistic | None) -> None:
    """Each copy, pickle and file is of one moment: its clock and its points belong together."""
    detector = made(statistic)

    def work(thread: int) -> None:
        for i, row in enumerate(rows(thread)[:150]):
            if thread == 0 and i % 10 == 0:
                other = copy.copy(detector) if i % 20 else pickle.loads(pickle.dumps(detector))
                assert len(other.recent) == min(other.time, 20)
            elif thread == 1 and i % 25 == 0:
                detector.save(tmp_path / "one.tocsin")
                saved = Detector.load(tmp_path / "one.tocsin")
                assert len(saved.recent) == min(saved.time, 20)
            elif thread == 2 and i % 30 == 0:
                detector.reset()
            else:
                detector.update(row)

    together(work)
    assert detector.run == 5


@both
def test_copies_go_their_own_ways(statistic: Statistic | None) -> None:
    """What one takes in, the other does not."""
    detector = made(statistic)
    detector.update_many(rows(0)[:30])
    others = [copy.copy(detector), copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))]
    expected = repr(list(detector.update_many(rows(1)[:20])))
    for other in others:
        assert other.time == 30
        assert repr([other.update(row) for row in rows(1)[:20]]) == expected
    assert detector.time == 50


def test_a_bank() -> None:
    """Each step is of the whole bank."""
    bank = DetectorBank(made(), 3)
    together(lambda thread: [bank.update(np.tile(row, (3, 1))) for row in rows(thread)[:200]])
    assert bank.time.tolist() == [THREADS * 200] * 3
    windows = [bank._windows.recent(s) for s in range(3)]
    for window in windows[1:]:
        np.testing.assert_array_equal(window, windows[0])
