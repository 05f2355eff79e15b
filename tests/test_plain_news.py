"""What a reference of independent rows never shows: gaps, categories, numbers outside, columns that stop.

Bounds on counts are crossed by chance less than once in 10^6. Seeds are fixed and were not chosen.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from naive_news import News, Record, chance
from tocsin import LSDD, MMD, Blocks, Detector, DetectorBank, Fleet, FleetAlarm, Gaussian, Independent
from tocsin import _compute as compute
from tocsin._calibration.result import Thresholds
from tocsin._compute import Backend
from tocsin._data.intake import Rows, Tabular, learn
from tocsin._detector.base import altered, fitted_of
from tocsin._state.news import SHARE, Ear
from tocsin._statistics.chance import log_chance, stopping

NAMES = {"flow": True, "level": True, "count": True, "state": False, "city": False, "mode": True}


def records(count: int, rng: np.random.Generator) -> list[Record]:
    """Numbers without and with gaps and ties, few categories and many rare ones, a constant."""
    return [
        {
            "flow": float(rng.standard_t(2)),
            "level": None if rng.random() < 0.02 else float(rng.normal()),
            "count": float(rng.poisson(1.0)),
            "state": str(rng.choice(["on", "off", "idle"], p=[0.6, 0.3, 0.1])),
            "city": f"c{min(int(rng.zipf(1.6)), 10**9)}",
            "mode": 3.0,
        }
        for _ in range(count)
    ]


REFERENCE = records(300, np.random.default_rng(0))


def ear_of(reference: Any, ert: float, backend: Backend = "numba") -> tuple[Ear, Rows | Tabular]:
    learned = learn(reference, None, None, objects_allowed=False)
    assert isinstance(learned.intake, Rows | Tabular)
    ear = Ear.of(learned.intake, learned.points, Thresholds(ert, np.ones(1), 0.0), compute.load(backend))
    assert ear is not None
    return ear, learned.intake


def disturbed(count: int, rng: np.random.Generator) -> list[Record]:
    """Stretches of every kind of news in every column, full and thin, by turns."""
    rows, t = records(count, rng), 0
    kinds = [(name, kind) for kind in range(4) for name in NAMES]
    for name, kind in kinds * 9:
        length = int(rng.integers(5, 20))
        value = [None, records(1, rng)[0][name], "new", f"n{t}"][kind]
        if NAMES[name] and kind > 1:
            value = [-1e9, 1e9][kind - 2] * (1 + rng.random())
        for row in rows[t : t + length]:
            if rng.random() < rng.choice([0.3, 1.0]):
                row[name] = value
        t += length + int(rng.integers(0, 5))
    return rows


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("ert", [30, 2000])
def test_rings_are_those_of_the_oracle(backend: Backend, ert: int) -> None:
    """Row by row, in which column and for what; an alarm begins a new run."""
    ear, intake = ear_of(REFERENCE, ert, backend)
    oracle = News(REFERENCE, NAMES, ert)
    stream = disturbed(1500 if backend == "numba" else 700, np.random.default_rng(1))
    heard, begun, kinds = ear.begun(), 0, set()
    for t, point in enumerate(intake.many(stream)):
        found = ear.watch(heard, point[None])
        expected = oracle.ringing(stream[begun : t + 1])
        got = {
            (str(own.channel.column), str(own.channel.view), 0 if own.channel.view == "stopped" else own.channel.window)
            for own in ear.ringing(heard[0])
        }
        assert got == expected, t
        assert bool(found) == bool(expected)
        if expected:
            spoke = ear.channels[int(np.searchsorted(ear.slots, found.slot[0]))]
            assert any((spoke.column, spoke.view) == own[:2] for own in expected)
            assert found.log_rate[0] <= math.log(oracle.allowed) + 1e-9
            kinds |= {own[1] for own in expected}
            heard, begun = ear.begun(), t + 1
    assert kinds == {"missing", "unseen", "above all", "below all", "stopped"}


@pytest.mark.parametrize(("k", "m", "n"), [(1, 0, 999), (3, 0, 20), (5, 7, 100), (40, 60, 70)])
def test_chances_are_those_of_the_oracle(k: int, m: int, n: int) -> None:
    assert math.exp(log_chance(k, k, m, n)) == pytest.approx(float(chance(k, m, n)), rel=1e-9)
    allowed = math.log(float(chance(k, m, n))) + 1e-12
    needed, rate = stopping(np.array([m]), n, allowed)[0]
    assert needed == k
    assert math.exp(rate) == pytest.approx(float(chance(k, m, n)), rel=1e-9)


@pytest.mark.parametrize("n", [10, 60])
@pytest.mark.parametrize("allowed", [1e-2, 1e-4])
def test_the_bound_holds_on_average_over_references(n: int, allowed: float) -> None:
    """Whatever the probability of an event: not simulated, but summed over how often the reference has it."""
    needed = [stopping(np.array([m]), n, math.log(allowed))[0, 0] for m in range(n + 1)]
    closest = 0.0
    for p in np.geomspace(1e-5, 0.999, 200):
        seen = stats.binom.pmf(np.arange(n + 1), n, p)
        rate = float((seen * np.where(np.isinf(needed), 0.0, p ** np.array(needed))).sum())
        assert rate <= allowed * (1 + 1e-9)
        closest = max(closest, rate / allowed)
    assert closest > 0.05, "the bound says something"


LAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "heavy tails": lambda rng, n: rng.standard_t(1, size=(n, 3)),
    "counts": lambda rng, n: rng.poisson(1.0, size=(n, 3)).astype(np.float64),
    "events that one row in N shows": lambda rng, n: (rng.random((n, 3)) < 0.01).astype(np.float64),
    "zipf": lambda rng, n: [{"a": f"k{k}", "b": f"k{j}"} for k, j in rng.zipf(1.8, (n, 2))],
    "rare categories": lambda rng, n: [{"a": f"k{k}"} for k in rng.integers(0, 40, n)],
    "rare gaps": lambda rng, n: [{"a": None if u < 0.01 else float(u)} for u in rng.random(n)],
}


@pytest.mark.parametrize("law", LAWS)
def test_chance_brings_no_more_than_its_share(law: str) -> None:
    """Of the alarms of ERT 30, over references: those that ring at all are counted, of which each rings or does not.

    A share that is twice as large fails half of the time; one that is kept fails less than once in 10^6.
    """
    rng, count, length, ert, rang = np.random.default_rng(2), 600, 200, 30, 0
    for _ in range(count):
        ear, intake = ear_of(LAWS[law](rng, 100), ert)
        rang += bool(ear.watch(ear.begun(), intake.many(LAWS[law](rng, length))))
    assert rang <= stats.binom.ppf(1 - 1e-6, count, length * SHARE / ert)


@cache
def fitted(kind: str = "table", **options: Any) -> Detector:
    reference: Any = REFERENCE if kind == "table" else np.random.default_rng(3).normal(size=(300, 3))
    given: dict[str, Any] = {
        "ert": 500,
        "window": (8, 25),
        "paths": 400,
        "interval": False,
        "sampler": Independent(),
        "seed": 1,
    }
    return Detector(**given, **options).fit(reference, progress=False)


NEWS = [
    ("flow", None, "missing", "missing in 4 of the last 4 observations"),
    ("mode", 4.0, "above all", "above all of the reference in 4 of the last 4 observations"),
    ("mode", 2.0, "below all", "below all of the reference in 4 of the last 4 observations"),
    ("state", "stuck", "unseen", "never seen before in 4 of the last 4 observations"),
    ("flow", 0.25, "stopped", "the same value 5 times in succession"),
]


@pytest.mark.parametrize(("column", "value", "view", "how"), NEWS)
def test_news_is_heard_soon_and_told(column: str, value: Any, view: str, how: str, tmp_path: Path) -> None:
    """In the column, with when it began; whatever the way in, and from a file in between."""
    news = altered(fitted(), live=fitted()._ready().live)  # a run of its own
    news.reset()
    stream = records(60, np.random.default_rng(4))
    for row in stream[30:]:
        row[column] = value
    one = altered(news)
    outcomes = [one.update(row) for row in stream[:32]]
    one.save(tmp_path / "half.tocsin")
    outcomes += Detector.load(tmp_path / "half.tocsin").update_many(stream[32:])
    assert repr(outcomes) == repr(list(altered(news).update_many(stream)))
    rang = [outcome for outcome in outcomes if outcome.channel is not None and outcome.channel.view == view]
    assert rang
    assert 30 < rang[0].time <= 36
    assert rang[0].alarm
    assert rang[0].statistic > rang[0].threshold
    assert rang[0].rarity >= 499
    alone = altered(news)
    until = alone.update_until_alarm(stream)
    if until[len(until) - 1].channel == rang[0].channel:
        explanation = alone.explain()
        assert explanation.changed[0].name == column
        assert explanation.changed[0].how == how
        assert 31 <= explanation.began.time <= 32
        assert explanation.recent[0].place == len(until)
        json.loads(explanation.to_json())


def test_nothing_else_is_changed() -> None:
    """Where no news rings, outcomes are the same to the last bit without it."""
    stream = records(400, np.random.default_rng(5))
    with_news, without = (altered(fitted(), hears=hears) for hears in (True, False))
    with_news.reset()
    without.reset()
    got, expected = with_news.update_many(stream), without.update_many(stream)
    assert not any(channel is not None and channel.statistic == "news" for channel in got.channel)
    for name in ("time", "alarm", "statistic", "threshold", "rarity"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


def test_it_is_told_by_any_statistic_on_columns_of_independent_rows() -> None:
    rows = np.random.default_rng(3).normal(size=(300, 2))
    quick: dict[str, Any] = {"paths": 400, "interval": False, "seed": 1}
    statistics: list[Any] = [None, LSDD(centres=5), [MMD(Gaussian()), LSDD(centres=5)]]
    for statistic in statistics:
        assert fitted_of(Detector(100, statistic, sampler=Independent(), window=5, **quick).fit(rows)).ear is not None
    others: list[dict[str, Any]] = [{"mode": "paper"}, {"sampler": Blocks(4, 2)}, {"preprocess": np.tanh}]
    for options in others:
        given: dict[str, Any] = {"sampler": Independent(), **options}
        assert fitted_of(Detector(100, MMD(Gaussian()), window=5, **given, **quick).fit(rows)).ear is None
    words = ["".join(letters) for letters in np.random.default_rng(2).choice(list("abc"), (40, 3))]
    same = MMD(lambda X, Y: np.array([[float(x[0] == y[0]) for y in Y] for x in X]))
    assert fitted_of(Detector(30, same, window=5, sampler=Independent(), **quick).fit(words)).ear is None


def test_another_promise_asks_for_more_news() -> None:
    """A bank that rings less often asks for more rows of news."""
    slow = DetectorBank(fitted("rows"), 1, for_all=1000)
    one, many = fitted_of(fitted("rows")).ear, slow._fitted.ear
    assert one is not None
    assert many is not None
    assert np.isfinite(many.rates).sum() < np.isfinite(one.rates).sum()


def test_streams_of_a_bank_hear_what_detectors_do(tmp_path: Path) -> None:
    """Each its own news, from a file in between."""
    bank, rng = DetectorBank(fitted("rows"), 3), np.random.default_rng(6)
    rows = rng.normal(size=(3, 40, 3))
    rows[1, 20:, 2] = rows[1, 20, 2]
    alarms = []
    for t in range(40):
        if t == 22:
            bank.save(tmp_path / "bank.tocsin")
            bank = DetectorBank.load(tmp_path / "bank.tocsin")
        outcomes = bank.update(rows[:, t])
        alarms += [(t, s, str(outcomes[s].channel)) for s in np.flatnonzero(outcomes.alarm).tolist()]
        if outcomes.alarm[1] and "news" in str(outcomes[1].channel):
            assert bank.explain(1).changed[0].name == "3"
    news = [(t, s) for t, s, channel in alarms if channel.startswith("news in 3, stopped")]
    assert news
    assert all(s == 1 for _, s in news)
    assert 23 <= news[0][0] <= 26
    assert np.diff([t for t, _ in news]).min() >= 4, "a new run has heard nothing"
    alone = altered(fitted("rows"))
    alone.reset()
    heard = [outcome for outcome in alone.update_many(rows[1]) if "stopped" in str(outcome.channel)]
    assert heard


@pytest.mark.parametrize(("size", "rest"), [(1, 0), (7, 0), (200, 0), (7, None)])
def test_keys_of_a_fleet_hear_it_in_batches_that_end_anywhere(size: int, rest: int | None) -> None:
    """The same alarms and states, with changes that make them."""
    fleet, rng = Fleet(fitted("rows"), explain=True, rest=rest), np.random.default_rng(7)
    rows = rng.normal(size=(120, 3))
    rows[60:70, 0] = rows[60, 0]
    rows[90:, 1] = rows[90, 1]
    state: bytes | None = None
    alarms: list[FleetAlarm] = []
    for start in range(0, 120, size):
        order = np.arange(start, min(start + size, 120))
        step = fleet.step(["a"], [state], rows[order], np.zeros(len(order), np.int64), order, changes=True)
        assert Fleet.applied(step.changes[0], state) == step.states[0]
        state, alarms = step.states[0], alarms + step.alarms
    whole = fleet.step(["a"], [None], rows, np.zeros(120, np.int64), np.arange(120))
    told = [(alarm.order, alarm.channel, alarm.statistic, alarm.rarity) for alarm in alarms]
    assert told == [(alarm.order, alarm.channel, alarm.statistic, alarm.rarity) for alarm in whole.alarms]
    assert state is not None
    kept, last = (fleet._windows.read([own[: fleet._windows.layout.itemsize]], {}) for own in (state, whole.states[0]))
    np.testing.assert_array_equal(kept.news, last.news)
    stopped = [alarm for alarm in whole.alarms if alarm.channel.view == "stopped" and alarm.order >= 90]
    if rest is None:
        return
    assert np.diff([alarm.order for alarm in stopped]).min() >= 4, "a new run has heard nothing"
    assert stopped[0].explanation is not None
    assert stopped[0].explanation.changed[0].name == "2"


def test_a_file_of_the_version_before_goes_on_without_it(tmp_path: Path) -> None:
    """As it was made: the detector's promise was made of its statistics alone."""
    alone = altered(fitted("rows"))
    alone.save(tmp_path / "new.tocsin")
    with zipfile.ZipFile(tmp_path / "new.tocsin") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    description = json.loads(members["tocsin.json"])
    del description["fitted"]["items"]["hears"], description["run"]["items"]["heard"]
    members["tocsin.json"] = json.dumps({**description, "version": 6}).encode()
    with zipfile.ZipFile(tmp_path / "old.tocsin", "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    old = Detector.load(tmp_path / "old.tocsin")
    assert fitted_of(old).ear is None
    stream = np.random.default_rng(8).normal(size=(30, 3))
    assert repr(list(old.update_many(stream))) == repr(list(altered(alone, hears=False).update_many(stream)))


def test_the_card_knows_it() -> None:
    """Columns that stop, gaps and unseen categories are found in a few rows, and were not so soon."""
    card, before = (altered(fitted(), hears=hears).power(["flow", "state"]) for hears in (True, False))
    for kind, column, size in (("stuck", "flow", None), ("missing", "flow", 1.0), ("unseen", "state", 1.0)):
        own, old = (
            next(each for each in one.changes if (each.kind, each.column, each.size) == (kind, column, size))
            for one in (card, before)
        )
        assert own.found
        assert own.delay <= min(6, old.delay)
