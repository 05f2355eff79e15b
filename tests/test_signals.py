"""Ctrl-C at any moment leaves a detector as before the call or as after it: `benchmarks.hostile_signals`, in short."""

from __future__ import annotations

import signal
import threading
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from benchmarks.hostile_signals import (
    CALLS,
    STATISTICS,
    bank_twin,
    bank_update,
    fitted,
    fleet_tried,
    reference,
    tried,
)

import contexts
from backends import with_torch
from tocsin import LSDD, MMD, DetectorBank, Fleet
from tocsin._compute import Backend
from tocsin._detector.base import fitted_of
from tocsin._execution.threads import undisturbed
from tocsin._state import Run, rule
from tocsin.baselines import LSDDInc, ScanB

pytestmark = [
    pytest.mark.usefixtures("quick_fits"),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here"),
]

TRIES = 10


def interrupt_once(monkeypatch: pytest.MonkeyPatch, place: object, name: str) -> None:
    """The next call of a function is interrupted before it does anything."""
    original = getattr(place, name)

    def interrupted(*given: object, **named: object) -> object:
        monkeypatch.setattr(place, name, original)
        raise KeyboardInterrupt

    monkeypatch.setattr(place, name, interrupted)


@pytest.mark.parametrize("backend", with_torch)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_call_is_made_or_not(statistic: str, backend: Backend, tmp_path: Path) -> None:
    detector = fitted(STATISTICS[statistic](), backend)
    for call in CALLS.values():
        call(detector, np.random.default_rng(0))
        assert tried(detector, copy, call, TRIES, tmp_path).torn == 0


@pytest.mark.parametrize("kind", [LSDDInc, ScanB])
def test_baselines(kind: type[LSDDInc | ScanB], tmp_path: Path) -> None:
    detector = kind(100, window=5, seed=1).fit(reference())
    for call in CALLS.values():
        call(detector, np.random.default_rng(0))
        assert tried(detector, copy, call, TRIES, tmp_path).torn == 0


@pytest.mark.parametrize("backend", with_torch)
def test_banks_and_fleets(backend: Backend, tmp_path: Path) -> None:
    detector = fitted(MMD(), backend)
    verdict = tried(DetectorBank(detector, 300), bank_twin(tmp_path), bank_update, TRIES, tmp_path)
    assert verdict.torn == 0
    assert verdict.interrupted > 0
    assert fleet_tried(Fleet(detector), TRIES).torn == 0


@pytest.mark.parametrize("where", ["before", "within", "after"])
@pytest.mark.parametrize("age", [2, 11, 12], ids=["young", "about to lack nothing", "lacking nothing"])
def test_an_update_that_has_begun_is_finished(
    where: str, age: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Interrupted once, at a chosen place: before windows move nothing has happened, and from then on everything."""
    detector = fitted([MMD(), LSDD()], "numba").set_params(reset_on_alarm=False).fit(reference())
    detector.update_many(reference()[:age])
    assert (detector._run.left is None) == (age == 2 * detector.windows_[-1])
    twin, x = copy(detector), np.zeros(2)
    first, second = fitted_of(detector).live.members
    enter = "enter_lacking" if age < detector.windows_[-1] else "enter"
    place, name = {"before": (first, enter), "within": (second, enter), "after": (rule.Rule, "one")}[where]
    interrupt_once(monkeypatch, place, name)
    with pytest.raises(KeyboardInterrupt):
        detector.update(x)
    if where != "before":
        twin.update(x)
    detector.save(tmp_path / "a.tocsin")
    twin.save(tmp_path / "b.tocsin")
    assert (tmp_path / "a.tocsin").read_bytes() == (tmp_path / "b.tocsin").read_bytes()


@pytest.mark.parametrize("where", ["before", "judged", "settled"])
def test_what_is_kept_beside_points_follows_them(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same of a detector with a context: what was expected of an observation enters with it, or not at all."""
    detector = contexts.fitted(statistic=MMD())
    rows = contexts.records(2, 30)
    detector.update_many(rows[:25])
    twin = copy(detector)
    live = fitted_of(detector).live.members[0]
    place, name = {"before": (live, "enter"), "judged": (rule.Rule, "one"), "settled": (Run, "settle")}[where]
    interrupt_once(monkeypatch, place, name)
    with pytest.raises(KeyboardInterrupt):
        detector.update(rows[25])
    if where != "before":
        twin.update(rows[25])
    detector.save(tmp_path / "a.tocsin")
    twin.save(tmp_path / "b.tocsin")
    assert (tmp_path / "a.tocsin").read_bytes() == (tmp_path / "b.tocsin").read_bytes()


def test_work_that_has_begun_is_done() -> None:
    """In a thread of its own, unless this is one already; errors come out as they are."""
    begun, done = threading.Event(), []

    def work() -> None:
        begun.set()
        signal.raise_signal(signal.SIGINT)  # heard by the main thread
        done.append(threading.current_thread())

    with pytest.raises(KeyboardInterrupt):
        undisturbed(work)
    assert done
    assert done[0] is not threading.main_thread()
    assert undisturbed(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 // 0)
    here: list[bool] = []
    thread = threading.Thread(
        target=lambda: here.append(undisturbed(threading.current_thread) is threading.current_thread())
    )
    thread.start()
    thread.join()
    assert here == [True]
