"""Columns that stop, beside views: by the reference's own runs of equal values.

Bounds on counts are crossed by chance less than once in 10^6. Seeds are fixed and were not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from naive_news import chance
from tocsin import Detector, DetectorBank, Fleet, Monitor, Views
from tocsin import _compute as compute
from tocsin._calibration.result import Thresholds
from tocsin._compute import Backend
from tocsin._compute.arrays import Float64Array
from tocsin._data.intake import learn
from tocsin._detector.base import altered, fitted_of, now
from tocsin._power.changes import Cells, Change
from tocsin._power.trials import stage_of
from tocsin._state.news import SHARE, Ear

Rows = Sequence[Sequence[float | None]]
SILENT = 25


def remembering(count: int, columns: int, rng: np.random.Generator) -> Float64Array:
    rows = rng.normal(size=(count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += 0.8 * rows[t - 1]
    return rows[50:]


def sensors(count: int, rng: np.random.Generator) -> Float64Array:
    """One of many digits, one of few, and one that is read more often than it changes."""
    rows = remembering(count, 3, rng)
    rows[:, 1] = np.round(rows[:, 1])
    changes = np.maximum.accumulate(np.where(rng.random(count) < 0.2, np.arange(count), 0))
    rows[:, 2] = rows[changes, 2]
    return rows


def ear_of(reference: Any, ert: float, edges: Sequence[int], backend: Backend = "numba") -> tuple[Ear, Any]:
    learned = learn(reference, None, None, objects_allowed=False)
    given = Thresholds(ert, np.ones(1), 0.0), compute.load(backend)
    ear = Ear.of_views(learned.intake, learned.points, np.array(edges), *given)
    assert ear is not None
    return ear, learned.intake


def runs(values: Sequence[float | None], edges: Sequence[int]) -> list[int]:
    """Lengths of runs of equal values."""
    found: list[int] = []
    for start, stop in pairwise(edges):
        last = None
        for value in values[start:stop]:
            if value is not None and value == last:
                found[-1] += 1
            elif value is not None:
                found.append(1)
            last = value
    return found


def ties_that_ring(lengths: list[int], rows: int, allowed: float) -> float:
    """The most that is asked for: by all runs of the reference, and by those longer than half of the longest."""
    longest, asked = max(lengths), 0
    for floor in (0, longest // 2):
        over = sum(length > floor for length in lengths)
        times = 3
        while float(chance(times, 0, over)) * over / rows > allowed:
            times += 1
            if times > 3000:
                return math.inf
        asked = max(asked, floor + times * (longest - floor))
    return asked


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_rings_are_those_of_the_oracle(backend: Backend) -> None:
    """Row by row: where ties are as many as are asked for, or that many doubled, and doubled again."""
    rng, names, edges, ert = np.random.default_rng(0), ("fine", "coarse", "held"), [0, 150, 400], 200

    def table(rows: Float64Array) -> list[dict[str, float | None]]:
        gone = rng.random(rows.shape) < 0.02
        return [
            {name: None if lost else value for name, value, lost in zip(names, row, out, strict=True)}
            for row, out in zip(rows.tolist(), gone.tolist(), strict=True)
        ]

    reference, rows = table(sensors(400, rng)), sensors(1500, rng)
    for t in range(50, 1400, 50):
        rows[t : t + int(rng.integers(2, 50)), t // 50 % 3] = 9.5
    stream = table(rows)
    for start, stop, name in ((900, 1400, "coarse"), (500, 850, "held")):
        for row in stream[start:stop]:
            row[name] = 2.0
    ear, intake = ear_of(reference, ert, edges, backend)
    asked = {
        name: ties_that_ring(runs([row[name] for row in reference], edges), 400, float(SHARE) / (ert * 3))
        for name in names
    }
    assert ear.alone[:, 0].tolist() == [asked[name] for name in names]
    found = ear.watch(ear.begun(), intake.many(stream))
    got = {(t, names[slot // 7]) for t, slot in enumerate(found.slot.tolist()) if slot >= 0}
    expected, ties = set(), dict.fromkeys(names, 0)
    for t, row in enumerate(stream):
        for name in names:
            same = t > 0 and row[name] is not None and row[name] == stream[t - 1][name]
            ties[name] = ties[name] + 1 if same else 0
            if any(ties[name] == asked[name] * 2**k for k in range(12)):
                expected.add((t, name))
    assert got <= expected
    assert {t for t, _ in got} == {t for t, _ in expected}
    assert {name for _, name in got} == set(names)
    assert sum(name == "coarse" for t, name in got if 900 <= t < 1400) > 1, "a column that stands rings again, rarely"


LAWS: dict[str, Callable[[np.random.Generator, int], Float64Array]] = {
    "fine": lambda rng, n: remembering(n, 1, rng),
    "few values": lambda rng, n: np.round(remembering(n, 1, rng)),
    "walk, quantised": lambda rng, n: np.floor(np.cumsum(rng.normal(size=(n, 1)), axis=0) / 5),
    "counts with memory": lambda rng, n: rng.poisson(np.exp(0.4 * remembering(n, 1, rng) - 1)).astype(np.float64),
    "held": lambda rng, n: sensors(n, rng)[:, 2:],
    "rare events": lambda rng, n: (rng.random((n, 1)) < 0.03).astype(np.float64),
}


@pytest.mark.parametrize("law", LAWS)
def test_chance_brings_no_more_than_its_share(law: str) -> None:
    """Of the alarms of ERT 30, over references: those that ring at all are counted. Twice the share fails half of the
    time; a share that is kept, less than once in 10^6."""
    rng, count, length, ert, rang = np.random.default_rng(2), 300, 400, 30, 0
    for _ in range(count):
        rows = LAWS[law](rng, 150 + length)
        ear, intake = ear_of(rows[:150], ert, [0, 150])
        rang += bool(ear.watch(ear.begun(), intake.many(rows[150:])))
    assert rang <= stats.binom.ppf(1 - 1e-6, count, length * SHARE / ert)


@cache
def fitted(resets: bool = True) -> Detector:
    reference = sensors(400, np.random.default_rng(3))
    return Detector(500, Views(), paths=6, seed=1, interval=False, reset_on_alarm=resets).fit(reference)


def stopping() -> Float64Array:
    """Two columns stop: one for long, the other within the silence after that, and later alone."""
    rows = sensors(600, np.random.default_rng(4))
    rows[120:300, 0] = rows[120, 0]
    rows[130:160, 1] = 9.0
    rows[400:410, 0] = rows[400, 0]
    rows[500:599, 2] = rows[500, 2]
    return rows


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("cut", [1, 123, 126, 290, 404])
def test_all_ways_in_are_one(resets: bool, cut: int, tmp_path: Path) -> None:
    """Row by row, in blocks, up to alarms, and from a file in between: the same bits."""
    stream, one, blocks, stops = stopping(), *(altered(fitted(resets)) for _ in range(3))
    for each in (one, blocks, stops):
        each.reset()
    outcomes = [one.update(row) for row in stream]
    got = list(blocks.update_many(stream[:cut]))
    blocks.save(tmp_path / "half.tocsin")
    blocks = Detector.load(tmp_path / "half.tocsin")
    got += list(blocks.update_many(stream[cut:]))
    assert repr(got) == repr(outcomes)
    assert place_of(blocks) == place_of(one)
    if resets:
        until: list[Any] = []
        while len(until) < len(stream):
            until += list(stops.update_until_alarm(stream[len(until) :]))
        assert repr(until) == repr(outcomes)
    rang = [t for t, own in enumerate(outcomes) if own.channel is not None and own.channel.view == "stopped"]
    needed = int(ear_beside(one).alone[0, 0])
    assert 120 + needed in rang
    assert 400 + needed in rang
    if resets:
        silent = [math.isnan(own.statistic) for own in outcomes]
        first = 120 + needed
        assert all(silent[first + 1 : first + 1 + SILENT])
        assert [own.time for own in outcomes[first + 1 : first + 3]] == [1, 2]


def place_of(detector: Detector) -> Any:
    run = now(detector)[1]
    windows = [{name: part.tolist() for name, part in own.items()} for own in run.windows]
    return run.time, run.number, run.alarm, windows, None if run.heard is None else run.heard.tolist()


def ear_beside(detector: Detector) -> Ear:
    ear = fitted_of(detector).ear
    assert ear is not None
    return ear


def test_a_stop_is_heard_soon_and_told() -> None:
    detector = altered(fitted())
    detector.reset()
    stream = stopping()
    outcomes = detector.update_many(stream[:120])
    outcomes = detector.update_until_alarm(stream[120:])
    rang = outcomes[len(outcomes) - 1]
    assert len(outcomes) == 1 + ear_beside(detector).alone[0, 0]
    assert str(rang.channel) == f"news in 1, stopped, window {len(outcomes)}"
    assert rang.statistic > rang.threshold
    assert rang.rarity > 499
    explanation = detector.explain()
    assert explanation.changed[0].name == "1"
    assert explanation.changed[0].how == f"the same value {len(outcomes)} times in succession"
    assert rang.time - explanation.began.time == len(outcomes) - 2


def test_where_nothing_stops_nothing_is_changed() -> None:
    stream = remembering(500, 3, np.random.default_rng(5))
    stream[300:, 1] += 9
    with_news, without = (altered(fitted(), hears=hears) for hears in (True, False))
    with_news.reset()
    without.reset()
    got, expected = with_news.update_many(stream), without.update_many(stream)
    assert got.alarm.any()
    for name in ("time", "alarm", "statistic", "threshold", "rarity"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


@pytest.mark.parametrize("size", [1, 7, 600])
def test_streams_of_a_bank_and_a_fleet_hear_what_detectors_do(size: int, tmp_path: Path) -> None:
    """Each its own news; in batches of any size, by changes of states, and from a file in between."""
    streams = np.stack([stopping(), sensors(600, np.random.default_rng(6))], axis=1)
    alone = [deepcopy(fitted()).update_many(streams[:, s]) for s in range(2)]
    fleet, states, alarms = Fleet(fitted()), [None, None], []
    for start in range(0, 600, size):
        rows = streams[start : start + size]
        n = len(rows)
        step = fleet.step(
            ["a", "b"], states, rows.reshape(2 * n, 3), np.tile([0, 1], n), start + np.repeat(np.arange(n), 2),
            changes=True,
        )  # fmt: skip
        assert [fleet.applied(new, old) for new, old in zip(step.changes, states, strict=True)] == step.states
        states = step.states  # type: ignore[assignment]
        alarms += [(a.key, a.order, a.time, a.statistic, str(a.channel)) for a in step.alarms]
    expected = [
        ("ab"[s], t, int(outcomes.time[t]), outcomes[t].statistic, str(outcomes[t].channel))
        for s, outcomes in enumerate(alone)
        for t in np.flatnonzero(outcomes.alarm).tolist()
    ]
    assert sorted(alarms) == sorted(expected)
    assert any("stopped" in each[-1] for each in alarms)
    if size > 1:
        return
    bank = DetectorBank(fitted(), 2)
    for t in range(600):
        if t == 122:
            bank.save(tmp_path / "bank.tocsin")
            bank = DetectorBank.load(tmp_path / "bank.tocsin")
        outcomes = bank.update(streams[t])
        assert [repr(each) for each in outcomes] == [repr(own[t]) for own in alone]
        if outcomes.alarm[0] and "stopped" in str(outcomes[0].channel):
            assert bank.explain(0).changed[0].name == str(outcomes[0].channel.column)  # type: ignore[union-attr]


def test_a_stop_is_an_incident(tmp_path: Path) -> None:
    """Row by row, in a block and from a file; running scales, which it has taught nothing, stay as they are."""
    rng = np.random.default_rng(8)
    detector = Detector(2000, Views(), paths=6, seed=1, interval=False).fit(remembering(400, 2, rng))
    stream, needed = remembering(300, 2, rng), int(ear_beside(detector).alone[0, 0])
    stream[120:150, 0] = stream[120, 0]
    one, many = Monitor(detector), Monitor(detector)
    rows = [one.update(row) for row in stream]
    block = list(many.update_many(stream[: 121 + needed]))
    scales = now(many._watcher)[1].windows[0]["scale"]
    many.save(tmp_path / "monitor.tocsin")
    many = Monitor.load(tmp_path / "monitor.tocsin")
    block += list(many.update_many(stream[121 + needed :]))
    for name in ("time", "alarm", "statistic", "threshold"):
        np.testing.assert_array_equal([getattr(own, name) for own in block], [getattr(own, name) for own in rows])
    assert repr(one.incidents) == repr(many.incidents)
    (first, *_) = one.incidents
    assert first.row == 121 + needed
    assert str(first.outcome.channel) == f"news in 1, stopped, window {needed + 1}"
    alone = deepcopy(detector)
    alone.update_many(stream[: 121 + needed])
    np.testing.assert_array_equal(scales, now(alone)[1].windows[0]["scale"])


def test_the_card_knows_of_stops() -> None:
    """In trials a column that stops at its last value rings with as many rows as ties are needed, at the latest."""
    own = fitted_of(fitted())
    place = stage_of(own, None, Cells(own.intake, own.reference))
    needed, changes = ear_beside(fitted()).alone[:, 0], [Change("stuck", j) for j in range(3)]
    assert needed[0] < place.horizon
    for trial, onset in enumerate(place.onsets(6).tolist()):
        delays = place.delays(onset, trial, changes)[1:]
        assert delays[0] == needed[0]
        assert (delays <= np.where(needed < place.horizon, needed, np.inf)).all()


def test_residuals_of_a_context_baselines_and_representations_have_no_stops() -> None:
    rows = remembering(300, 2, np.random.default_rng(7))
    quick: dict[str, Any] = {"paths": 6, "seed": 1, "interval": False}
    assert fitted_of(Detector(100, Views(), preprocess=np.tanh, **quick).fit(rows)).ear is None
    assert fitted_of(Detector(100, Views(), given=[1], **quick).fit(rows)).ear is None
    groups = np.repeat(np.arange(6), 50)
    assert fitted_of(Detector(100, baseline=10, **quick).fit(rows, groups=groups)).ear is None
