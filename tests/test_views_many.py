"""Views of many streams: each is heard as a detector alone hears it, to the last bit, in a bank and in a fleet.

The promise for another rate is checked on REFERENCES references: the mean over them of log(alarms / expected) must be
within BOUND standard errors of 0, SPREAD being more than such references differ by (0.2 was seen). At 4.9 standard
errors it fails falsely once in 10^6; it sees a rate that is wrong by a factor of 1.5.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive_views as naive
from backends import needs_torch
from tocsin import Detector, DetectorBank, Fleet, FleetAlarm, InputError, StorageError, Views
from tocsin._compute import LazyFunctions, numba_view_streams
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._statistics.base import WindowState
from tocsin._statistics.view_model import MOST_COLUMNS, SILENT
from tocsin._statistics.view_streams import EXACT, as_kept, history, latest, most_of, settling, summed
from tocsin._statistics.views import ViewsLive
from tocsin._streams.fleet.changes import CHANGE_OF_HEARD
from tocsin._streams.fleet.view_states import ViewStates
from tocsin._streams.promise import promising

STREAMS, LONG = 4, 260
BOUND, REFERENCES, SPREAD, QUIET = 4.9, 12, 0.3, 300


def remembering(count: int, columns: int = 3, seed: int = 0) -> Float64Array:
    """Rows of an autoregression."""
    rows = np.random.default_rng(seed).standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += 0.6 * rows[t - 1]
    return rows[50:]


@cache
def fitted(columns: int = 3, **options: Any) -> Detector:
    given = {"ert": 80, "paths": 6, "seed": 1, "window": (3, 8), **options}
    return Detector(statistic=Views(), **given).fit(remembering(200, columns), progress=False)


@cache
def streams(columns: int = 3) -> Float64Array:
    """Of which some change, and one goes beyond all measure; (LONG, STREAMS, columns)."""
    rows = np.stack([remembering(LONG, columns, seed=s + 1) for s in range(STREAMS)], axis=1)
    rows[100:, 1] += 5
    rows[150:, 2, 0] *= 4
    rows[60:70, 3, -1] = 1e200
    return rows


def views_of(detector: Detector) -> ViewsLive:
    (live,) = detector._ready().live.members
    assert isinstance(live, ViewsLive)
    return live


def alone(detector: Detector) -> list[Detector]:
    return [copy.deepcopy(detector) for _ in range(STREAMS)]


# Banks


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize(
    "options", [{}, {"columns": MOST_COLUMNS + 3}, {"reset_on_alarm": False}, {"window": 6}], ids=str
)
def test_streams_of_a_bank_are_detectors(options: dict[str, Any], backend: str, tmp_path: Path) -> None:
    """Bit for bit, in any order, when only some take part, through alarms, resets, saving and loading."""
    detector, rows = fitted(**options), streams(options.get("columns", 3))
    if backend == "numpy":
        rows = rows[60:140]
        detector.save(tmp_path / "one.tocsin")
        detector = Detector.load(tmp_path / "one.tocsin", backend="numpy")
    bank, twins, rng = DetectorBank(detector, STREAMS), alone(detector), np.random.default_rng(0)
    rang = 0
    for t, every in enumerate(rows):
        chosen = rng.permutation(STREAMS)[: 1 + t % STREAMS]
        outcomes = bank.update(every[chosen], chosen)
        assert [repr(each) for each in outcomes] == [repr(twins[s].update(every[s])) for s in chosen]
        rang += int(outcomes.alarm.sum())
        if t % 50 == 30:
            bank.reset([t % STREAMS])
            twins[t % STREAMS].reset()
        if t % 70 == 40:
            bank.save(tmp_path / "bank.tocsin")
            bank = DetectorBank.load(tmp_path / "bank.tocsin", backend=backend)
        assert bank.alarms.tolist() == [twin.alarm is not None for twin in twins]
        assert (bank.run.tolist(), bank.time.tolist()) == ([d.run for d in twins], [d.time for d in twins])
    assert rang > 2


def test_pieces_of_many_streams() -> None:
    """More of them than a thread steps at once are stepped alike."""
    rows = remembering(40, 600 * 3, seed=9).reshape(40, 600, 3)
    rows[20:, ::7] += 4
    bank, other = DetectorBank(fitted(), 600), DetectorBank(fitted(), 600)
    for every in rows:
        whole = bank.update(every)
        halves = [other.update(every[part], part) for part in (np.arange(0, 600, 2), np.arange(1, 600, 2))]
        for a, part in zip((0, 1), halves, strict=True):
            np.testing.assert_array_equal(whole.statistic[a::2], part.statistic)
            np.testing.assert_array_equal(whole.loudest[a::2], part.loudest)
    assert bank.alarms.any() or bank.run.any()


def test_explanations_of_a_bank() -> None:
    """Those of a detector alone; observations are shown as far as they are kept."""
    bank, twins, told = DetectorBank(fitted(), STREAMS), alone(fitted()), 0
    for every in streams():
        outcomes = bank.update(every)
        for s, twin in enumerate(twins):
            if twin.update(every[s]).alarm:
                mine, its = bank.explain(s), twin.explain()
                assert (mine.outcome, mine.began, mine.beyond) == (its.outcome, its.began, its.beyond)
                for one, other in zip(mine.columns, its.columns, strict=True):
                    assert (one.name, one.contribution, one.how) == (other.name, other.contribution, other.how)
                if np.abs(every[s]).max() < 100:
                    shown = [list(map(float, each.values.values())) for each in mine.recent]
                    expected = [list(map(float, each.values.values())) for each in its.recent]
                    np.testing.assert_allclose(shown, expected, atol=1e-3)
                told += 1
        assert outcomes.alarm.tolist() == [twin.alarm is not None for twin in twins]
    assert told > 3
    with pytest.raises(InputError, match="no alarm to explain"):
        DetectorBank(fitted(), 2).explain(1)


def test_a_bank_of_tables() -> None:
    """What an explanation shows of a stream are its columns, with their values."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(remembering(200), columns=["heat", "flow", "load"])
    frame["state"] = np.where(frame["load"] > 0, "on", "off")
    detector = Detector(80, Views(), window=(3, 8), paths=6, seed=1).fit(frame)
    bank, stream = DetectorBank(detector, 2), frame.copy()
    stream["heat"] += 9
    for t in range(60):
        if bank.update(pd.concat([frame.iloc[t : t + 1], stream.iloc[t : t + 1]])).alarm[1]:
            break
    said = bank.explain(1)
    assert said.columns[0].name == "heat"
    assert {str(each.values["state"]) for each in said.recent} <= {"on", "off"}


@needs_torch
def test_banks_of_views_stay_on_the_cpu() -> None:
    """With PyTorch they are stepped by Numba, if it is not on a GPU, and give the same."""
    torch = fitted(backend="torch", device="cpu")
    bank, twins = DetectorBank(torch, STREAMS), alone(torch)
    for every in streams():
        assert [repr(each) for each in bank.update(every)] == [repr(d.update(every[s])) for s, d in enumerate(twins)]
    assert "; on numba; " in repr(bank)


@pytest.mark.parametrize("triton", [None, "there"])
def test_where_streams_are_stepped(triton: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU if it has Triton, else by Numba, and in plain NumPy if that was asked for."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: triton)
    places = [("torch", "cuda"), ("torch", "cpu"), ("numba", "cpu"), ("numpy", "cpu")]
    stepped = [str(LazyFunctions(*place).stepping) for place in places]
    assert stepped == ["torch on cuda" if triton else "numba", "numba", "numba", "numpy"]


# What is kept


@pytest.mark.parametrize("options", [{}, {"window": (2, 5, 9)}, {"window": 60}], ids=str)
def test_sums_are_exact(options: dict[str, Any]) -> None:
    """After any number of rows, however far out, sums of windows are those of the rows that are kept."""
    detector = copy.deepcopy(fitted(**options)) if "window" not in options else fitted(**options)
    live, rng = views_of(detector), np.random.default_rng(2)
    state = live.begin(0)
    for _ in range(6):
        points = rng.standard_t(1, (500, 3)) * 10.0 ** rng.integers(-3, 9, (500, 1))
        live.advance(state, points, 0, 500)
        np.testing.assert_array_equal(state["sums"], summed(state, live.ear, live.model.spans, live.compute))
        assert np.abs(state["sums"]).max() <= EXACT
    rows = as_kept(live.model.rows(points, live.compute))
    widest = live.model.spans.widest
    np.testing.assert_array_equal(latest(state, 0, 2 * widest), rows[-2 * widest :])
    np.testing.assert_allclose(history(state, 0), rows[-len(history(state, 0)) :], rtol=0, atol=2**-9)
    assert most_of(live.model.spans) ** 2 * widest <= EXACT
    near = np.abs(points[-2 * widest :]) < 100
    np.testing.assert_allclose(live.points_of(state, 0)[near], points[-2 * widest :][near], rtol=1e-3, atol=1e-3)


def test_a_new_stream_begins_after_the_reference() -> None:
    live = views_of(fitted())
    state = live.begin(0)
    rows = as_kept(live.model.rows(live.past, live.compute))
    count = live.model.spans.history + 1
    np.testing.assert_allclose(history(state, 0)[-count:], rows, rtol=0, atol=2**-9)
    assert state["clock"].tolist() == [[-8, 0]]


# Fleets

KEYS = [f"machine {s}" for s in range(STREAMS)]


class Carried:
    """States as an engine keeps them, by changes."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.states, self.alarms = fleet, dict[str, bytes](), list[FleetAlarm]()

    def take(self, rows: Float64Array, owner: Int64Array, order: Int64Array, resets: Any = None) -> None:
        before = [self.states.get(key) for key in KEYS]
        step = self.fleet.step(KEYS, before, rows, owner, order, resets, changes=True)
        for key, old, new, change in zip(KEYS, before, step.states, step.changes, strict=True):
            assert Fleet.applied(change, old) == new
            self.states[key] = new
        assert not step.refused
        self.alarms += step.alarms


def told(alarms: list[FleetAlarm]) -> list[tuple[Any, ...]]:
    """But for their explanations."""
    return sorted((a.key, a.order, a.run, a.time, a.statistic, a.threshold, a.rarity, str(a.channel)) for a in alarms)


def expected(detectors: list[Detector], rows: Float64Array) -> list[tuple[Any, ...]]:
    """Alarms of detectors alone."""
    told = []
    for s, detector in enumerate(detectors):
        for t, x in enumerate(rows[:, s]):
            each = detector.update(x)
            if each.alarm:
                place = KEYS[s], t, detector.run, each.time
                told.append((*place, each.statistic, each.threshold, each.rarity, str(each.channel)))
    return sorted(told)


def flat(rows: Float64Array, start: int = 0) -> tuple[Float64Array, Int64Array, Int64Array]:
    count = len(rows)
    owner, order = np.tile(np.arange(STREAMS), count), np.repeat(np.arange(start, start + count), STREAMS)
    return rows.reshape(count * STREAMS, -1), owner, order


@pytest.mark.parametrize("options", [{}, {"columns": MOST_COLUMNS + 3}, {"window": 6}], ids=str)
def test_keys_of_a_fleet_are_detectors(options: dict[str, Any]) -> None:
    """Bit for bit, however rows are cut into batches and shuffled; and so are states."""
    detector, rows = fitted(**options), streams(options.get("columns", 3))
    whole = Carried(Fleet(detector))
    whole.take(*flat(rows))
    assert told(whole.alarms) == expected(alone(detector), rows)
    assert len(whole.alarms) > 3
    for seed in range(2):
        rng, cut, t = np.random.default_rng(seed), Carried(Fleet(detector, workers=1)), 0
        while t < LONG:
            size = int(rng.choice([1, 2, 7, 40, 90]))
            given, owner, order = flat(rows[t : t + size], t)
            place = rng.permutation(len(given))
            cut.take(given[place], owner[place], order[place])
            t += size
        assert told(cut.alarms) == told(whole.alarms)
        last = flat(rows[-1:] + 0.1, LONG)
        cut.take(*last)
        again = Carried(Fleet(detector))
        again.states = dict(whole.states)
        again.take(*last)
        assert cut.states == again.states


def test_changes_are_small() -> None:
    """What a row is, running scales, and a head: not the rows of before."""
    carried = Carried(Fleet(fitted()))
    carried.take(*flat(streams()[:80]))
    step = carried.fleet.step(KEYS[:1], [carried.states[KEYS[0]]], streams()[80:81, 0], [0], [80], changes=True)
    (change,), (state,) = step.changes, step.states
    assert int.from_bytes(change[:2], "little") == CHANGE_OF_HEARD
    assert len(change) < len(state) - 3 * (len(history(views_of(fitted()).begin(0), 0)) - 2) * 2
    assert Fleet.applied(change, carried.states[KEYS[0]]) == state
    for wrong in (None, state[:-1], carried.states[KEYS[1]]):
        with pytest.raises(StorageError, match="does not fit the state"):
            Fleet.applied(change, wrong)
    with pytest.raises(StorageError, match="does not fit the state"):
        Fleet.applied(change[:-1], carried.states[KEYS[0]])


def test_states_are_small() -> None:
    """With the default windows, of eight columns."""
    detector = Detector(2000, Views(), paths=6, seed=1).fit(remembering(600, 8), progress=False)
    assert detector.windows_ == (5, 25)
    (state,) = Fleet(detector).step(["a"], [None], remembering(300, 8), np.zeros(300, int), np.arange(300)).states
    assert len(state) <= 3566 + 50 + 12 * 8
    assert len(state) < 4096


@pytest.mark.parametrize("rest", [1, 5, 30, None])
def test_a_key_that_rests(rest: int | None) -> None:
    """It is a detector that is not given these rows, and then is reset."""
    rows, fleet = streams()[:, 1], Fleet(fitted(), rest=rest)
    resets = np.isin(np.arange(LONG), [50, 98, 200])  # just before it changes, too: that is not heard at first
    step = fleet.step(["k"], [None], rows, np.zeros(LONG, int), np.arange(LONG), resets)
    twin, left, heard = copy.deepcopy(fitted()), 0.0, []
    for t, x in enumerate(rows):
        if resets[t]:
            twin.reset()
            left = 0.0
        if left:
            left -= 1
            if not left:
                twin.reset()
            continue
        outcome = twin.update(x)
        if outcome.alarm:
            heard.append((t, outcome.time, outcome.statistic))
            left = math.inf if rest is None else rest
    assert [(alarm.order, alarm.time, alarm.statistic) for alarm in step.alarms] == heard
    assert len(heard) > 1


def test_what_comes_again() -> None:
    fleet, rows = Fleet(fitted(), gapless=True), streams()[:, 1]
    first = fleet.step(["k"], [None], rows[:150], np.zeros(150, int), np.arange(150))
    again = fleet.step(["k"], first.states, rows[:150], np.zeros(150, int), np.arange(150))
    assert again.states == first.states
    assert told(again.alarms) == told(first.alarms)
    assert first.alarms


def test_explanations_of_a_fleet() -> None:
    """Those of a detector alone."""
    rows, twin = streams()[:, 1], copy.deepcopy(fitted())
    step = Fleet(fitted(), explain=True).step(["k"], [None], rows, np.zeros(LONG, int), np.arange(LONG))
    alarms = iter(step.alarms)
    for x in rows:
        if twin.update(x).alarm:
            mine, its = next(alarms).explanation, twin.explain()
            assert mine is not None
            assert (mine.began, mine.beyond, mine.outcome) == (its.began, its.beyond, its.outcome)
            told = [[(c.name, c.contribution, c.how) for c in each.columns] for each in (mine, its)]
            assert told[0] == told[1]
    assert next(alarms, None) is None


def test_another_detector_takes_over() -> None:
    """Rows go over, and what comes next is as if the new one had seen them; other kinds begin a new run."""
    rows, later = remembering(300, seed=5), remembering(300, seed=6) + 0.2
    old, new = fitted(), Detector(120, Views(), window=(3, 8), paths=6, seed=2).fit(later)
    zeros = np.zeros(300, int)
    (state,) = Fleet(old).step(["k"], [None], rows, zeros, np.arange(300)).states
    with pytest.raises(StorageError, match="made with another detector"):
        Fleet(new).step(["k"], [state], rows[:1], [0], [300])
    step = Fleet(new, before=[old]).step(["k"], [state], later, zeros, np.arange(300, 600))
    carried = Fleet(new, before=[old])
    kept, live = carried._read(["k"], [state]), views_of(new)
    assert isinstance(kept, ViewStates)
    np.testing.assert_allclose(
        latest(kept.streams(), 0, 16), as_kept(live.model.rows(rows[-16:], live.compute)), rtol=0, atol=1e-4
    )
    assert (kept.count[0], kept.age[0]) == (300, 300)
    assert kept.run[0] == Fleet(old)._read(["k"], [state]).run[0]
    assert step.taken == 300
    kinds = Detector(120, window=8, paths=200, seed=2, interval=False).fit(
        np.random.default_rng(0).normal(size=(200, 3))
    )
    (other,) = Fleet(kinds).step(["k"], [None], rows, zeros, np.arange(300)).states
    for detector, before, given in ((new, kinds, other), (kinds, old, state)):
        step = Fleet(detector, before=[before]).step(["k"], [given], rows[:1], [0], [300])
        assert step.taken == 1


def damaged(change: Callable[[WindowState], None]) -> bytes:
    """A state with numbers that a fleet did not write, and the checksum that they have."""
    fleet = Fleet(fitted())
    kept = fleet._read(
        ["k"], [fleet.step(["k"], [None], streams()[:99, 0], np.zeros(99, int), np.arange(99)).states[0]]
    )
    change(vars(kept))
    (state,) = kept.write(fleet._windows.fingerprint, fleet._windows.layout)
    return state


@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", np.nan), ("scale", np.inf), ("scale", 0.5), ("scale", 1e35), ("age", -1), ("age", 2**62 + 1),
     ("filled", 9), ("filled", -9), ("rows", 32767), ("rows", -32768), ("time", 100)],
)  # fmt: skip
def test_states_that_no_key_can_have(name: str, value: float) -> None:
    def change(parts: WindowState) -> None:
        parts[name][:] = value

    with pytest.raises(StorageError, match="holds numbers that no key can have"):
        Fleet(fitted()).step(["k"], [damaged(change)], streams()[:5, 0], np.zeros(5, int), np.arange(200, 205))
    Fleet(fitted()).step(["k"], [damaged(lambda _: None)], streams()[:5, 0], np.zeros(5, int), np.arange(200, 205))


@pytest.mark.parametrize("name", ["rows", "rests", "position", "scale", "clock", "loud"])
def test_banks_that_were_made_up(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a file holds of streams is looked at."""
    bank = DetectorBank(fitted(), 3)
    state = bank._windows.state()
    for wrong in (state[name][:2], state[name].astype(np.float16), np.full_like(state[name], -128)):
        monkeypatch.setattr(bank._windows, "state", lambda wrong=wrong: {**state, name: wrong})
        bank.save(tmp_path / "bank.tocsin")
        if (name, wrong.dtype, wrong.shape) == ("rests", state[name].dtype, state[name].shape):
            DetectorBank.load(tmp_path / "bank.tocsin").update(streams()[0, :3])
            continue
        if name == "rows" and wrong.shape == state[name].shape and wrong.dtype == state[name].dtype:
            DetectorBank.load(tmp_path / "bank.tocsin").update(streams()[0, :3])
            continue
        with pytest.raises(StorageError, match=rf"bank\.windows\.{name}"):
            DetectorBank.load(tmp_path / "bank.tocsin")


# Other promises


def test_another_promise_is_that_of_a_detector_at_its_level() -> None:
    """Alarms, the silence after them and what they teach are all of the same level."""
    detector, every = fitted(), streams()
    moved = promising(detector._ready(), 70, None)
    level = moved.calibration.threshold
    assert views_of(detector).level == detector.calibration_.threshold > level
    assert moved.live.members[0].level == level  # type: ignore[attr-defined]
    twins = alone(detector)
    for twin in twins:
        twin._deploy(moved)
    bank = DetectorBank(detector, STREAMS, ert=70)
    for rows in every:
        assert [repr(each) for each in bank.update(rows)] == [repr(d.update(rows[s])) for s, d in enumerate(twins)]
    carried = Carried(Fleet(detector, ert=70))
    carried.take(*flat(every))
    for twin in twins:
        twin._deploy(moved)
    assert told(carried.alarms) == expected(twins, every)
    assert promising(detector._ready(), detector.ert, None).live.members[0] is views_of(detector)


def test_scales_begin_as_the_reference_leaves_them_at_another_level() -> None:
    """Its last rows are followed once more, as the fit did: else the first alarms would come too soon, or too late."""
    live, reference = views_of(fitted()), fitted().reference_
    moved = live.at_level(0.8 * live.level, reference, np.array([0, len(reference)]))
    channels = live.model.channels(live.model.rows(reference, live.compute), live.compute)
    past, pace = channels[len(channels) - settling(len(channels), live.pace.memory) :], live.pace
    listener = naive.Listener(live.scale.tolist(), moved.level, pace.memory, pace.attack, pace.cap, 8, 0.0, pace.fade)
    for row in (past - live.middle) / live.unit:
        listener.hear(row.tolist())
    np.testing.assert_allclose(moved.scale, listener.scale, rtol=1e-4)
    assert np.abs(np.log(moved.scale / live.scale)).max() > 0.01


def test_states_do_not_hold_the_threshold() -> None:
    """A key goes on at another level."""
    state = Fleet(fitted()).step(["k"], [None], streams()[:90, 0], np.zeros(90, int), np.arange(90)).states
    assert (
        Fleet(fitted(), ert=70).step(["k"], state, streams()[90:99, 0], np.zeros(9, int), np.arange(90, 99)).taken == 9
    )


@pytest.mark.parametrize("many", [DetectorBank, lambda detector, count, **given: Fleet(detector, **given)])
def test_promises_that_were_not_rehearsed(many: Callable[..., Any]) -> None:
    for asked, words in (
        ({"ert": 9}, "ert=9 asks"),
        ({"ert": 5000}, "ert=5000 asks"),
        ({"for_all": 50}, "for_all=50 asks"),
    ):
        with pytest.raises(InputError, match=rf"{words} for alarms of each stream once in .* were rehearsed.*Fit the"):
            many(fitted(), 2, **asked)
    # What the message says does.
    rare = Detector(4000, Views(), window=(3, 8), paths=6, seed=1).fit(remembering(200), progress=False)
    made = many(rare, 2, ert=80, for_all=50)
    assert made.calibration_.ert == pytest.approx(4000, rel=0.01)
    assert made.calibration_.threshold == pytest.approx(rare.calibration_.threshold, rel=1e-3)


@pytest.mark.parametrize("part", [0.75, 1.2])
def test_the_rate_for_another_promise(part: float) -> None:
    """From the first row on, on average over references."""
    logs, ert = [], 100 * part
    for seed in range(REFERENCES):
        detector = Detector(100, Views(), window=(3, 8), seed=seed).fit(remembering(400, 1, 100 + seed), progress=False)
        rows = remembering(QUIET, 100, 200 + seed)[:, :, None]
        bank = DetectorBank(detector, 100, ert=ert)
        alarms = sum(int(bank.update(every).alarm.sum()) for every in rows)
        logs.append(math.log(alarms * ert / (100 * QUIET)))
    assert abs(np.mean(logs)) < BOUND * SPREAD / math.sqrt(REFERENCES)


# Which detectors


def test_what_is_not_shared() -> None:
    """Only what can be: the message says what."""
    from tocsin import LSDD, Independent

    detector = Detector(80, LSDD(centres=5), window=8, paths=100, interval=False, sampler=Independent()).fit(
        np.random.default_rng(0).normal(size=(200, 3))
    )
    for many in (lambda: DetectorBank(detector, 2), lambda: Fleet(detector)):
        with pytest.raises(InputError, match="or by Views, alone; this detector has LSDD"):
            many()


def test_it_is_compiled_once() -> None:
    """For detectors, banks and fleets alike: so they have the same bits, and nobody waits in the middle of a stream."""
    detector = copy.deepcopy(fitted())
    detector.update(streams()[0, 0])
    detector.update_many(np.asfortranarray(streams()[1:20, 0]))
    before = len(numba_view_streams.view_watch.signatures)  # type: ignore[attr-defined]
    DetectorBank(detector, 2).update(np.asfortranarray(streams()[0, :2]))
    carried = Carried(Fleet(detector))
    for t in range(2):
        carried.take(*flat(streams()[10 * t : 10 * t + 10], 10 * t))
    assert len(numba_view_streams.view_watch.signatures) == before  # type: ignore[attr-defined]


def test_news_of_many_streams() -> None:
    """What the reference never shows rings in a bank and in a fleet as it does alone, for another rate after as many
    rows; states go on at that rate."""
    constant, rows = np.full((200, 1), 5.0), streams()[:90, :2]
    detector = Detector(80, Views(), window=(3, 8), paths=6, seed=1).fit(np.hstack([remembering(200), constant]))
    live = views_of(detector)
    told, reference = live.news & (live.unit < SILENT), detector.reference_
    assert told.any()
    lower = live.at_level(live.level / 2, reference, np.array([0, len(reference)]))
    np.testing.assert_allclose(lower.unit, np.where(told, 2 * live.unit, live.unit))
    rows = np.concatenate([rows, np.full((90, 2, 1), 5.0)], axis=2)
    rows[12:16, 1, 3] = 6.0
    rang = []
    for ert in (None, 70, 95):
        bank, twins = DetectorBank(detector, 2, ert=ert), alone(detector)[:2]
        for twin in twins:
            twin._deploy(promising(detector._ready(), ert, None))
        heard = [bank.update(every) for every in rows]
        for t, outcomes in enumerate(heard):
            assert [repr(each) for each in outcomes] == [repr(twin.update(rows[t, s])) for s, twin in enumerate(twins)]
        news = [t for t, o in enumerate(heard) if o.alarm[1] and o[1].channel.statistic == "news"]  # type: ignore[union-attr]
        step = Fleet(detector, ert=ert).step(["k"], [None], rows[:, 1], np.zeros(90, int), np.arange(90))
        assert [alarm.order for alarm in step.alarms if alarm.channel.statistic == "news"] == news
        assert Fleet(detector, ert=75).step(["k"], step.states, rows[:1, 1], [0], [90]).taken == 1
        rang.append(news[:1])
    assert rang[0]
    assert rang[0] == rang[1] == rang[2]
