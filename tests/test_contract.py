"""What every detector keeps to, whatever its statistic. A new statistic costs one line in the registry."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends import DEVICE, needs_torch
from tocsin import (
    LSDD,
    MMD,
    Blocks,
    Custom,
    Detector,
    Gaussian,
    Independent,
    InputError,
    Landmarks,
    MeanShift,
    NotFittedError,
    Outcome,
    Outcomes,
    Views,
)
from tocsin._calibration.result import Calibration
from tocsin._compute.arrays import Array
from tocsin._detector.base import altered
from tocsin._state import Start
from tocsin._statistics.base import Statistic
from tocsin.baselines import LSDDInc, ScanB

pytestmark = pytest.mark.usefixtures("quick_fits")

WINDOWS = (3, 6)
WIDEST = WINDOWS[-1]


# Kernels and functions of a user's


def word_overlap(X: list[str], Y: list[str]) -> Array:
    """How many letters two words share, on the scale of their lengths."""
    shared = [[len(set(x) & set(y)) / (len(set(x)) * len(set(y))) ** 0.5 for y in Y] for x in X]
    return np.array(shared).reshape(len(X), len(Y))


def laplace(X: Array, Y: Array) -> Array:
    """A kernel on rows of numbers that is not Gaussian."""
    return np.asarray(2 * np.exp(-np.abs(X[:, None] - Y[None]).sum(-1)))


def largest_gap(X: Array, Y: Array) -> float:
    """A distance between two samples of rows."""
    return float(abs(X.max() - Y.max()) + abs(X.min() - Y.min()))


def mean_gap(X: Array, Y: Array) -> float:
    """Another."""
    return abs(float(X.mean() - Y.mean()))


def price_gap(X: list[dict[str, float]], Y: list[dict[str, float]]) -> float:
    """A distance between two samples of dicts."""
    return abs(float(np.mean([x["price"] for x in X]) - np.mean([y["price"] for y in Y])))


# Data: `shift` moves the distribution


def rows(rng: np.random.Generator, count: int, shift: float = 0.0) -> Array:
    """Three columns on different scales."""
    return np.asarray((rng.normal(size=(count, 3)) + shift) * [1.0, 0.5, 2.0] + [100.0, 0.0, -3.0])


def discrete(rng: np.random.Generator, count: int, shift: float = 0.0) -> Array:
    """One column of two values: statistics tie."""
    return (rng.random((count, 1)) < 0.2 + 0.6 * shift).astype(np.float64)


def remembering(rng: np.random.Generator, count: int, shift: float = 0.0) -> Array:
    """Three columns on different scales, with a memory."""
    noise = rng.normal(size=(count, 3))
    for t in range(1, count):
        noise[t] += 0.6 * noise[t - 1]
    return np.asarray((noise + 4 * shift) * [1.0, 0.5, 2.0] + [100.0, 0.0, -3.0])


def words(rng: np.random.Generator, count: int, shift: float = 0.0) -> list[str]:
    """Words of three letters."""
    letters = "abcdefgh"[int(2 * shift) :]
    return ["".join(rng.choice(list(letters), 3)) for _ in range(count)]


def records(rng: np.random.Generator, count: int, shift: float = 0.0) -> list[dict[str, Any]]:
    """Dicts of a number and a string."""
    return [{"price": float(price), "shop": "here"} for price in rng.normal(loc=shift, size=count)]


# The registry


AnyDetector = Detector | ScanB | LSDDInc


@dataclass(frozen=True)
class Entry:
    """A detector to test: how to make it, and what to feed it.

    functions: whether it holds functions of a user's, which no file can hold.
    starts: the ways in which it can start; `make` takes them as `start`.
    formula: whether its threshold is that of a formula, and draws set only the unit of its statistic.
    goes_on: whether a new run goes on with the windows of the one before, silent until they are its own.
    """

    make: Callable[..., AnyDetector]
    data: Callable[..., Any]
    functions: bool = False
    starts: tuple[Start, ...] = ("warm", "cold")
    formula: bool = False
    goes_on: bool = False

    def silent(self, start: Start, widest: int) -> int:
        """Observations of a run before its first test."""
        return widest if self.goes_on else 0 if start == "warm" else widest - 1

    @property
    def numeric(self) -> bool:
        """Whether observations are rows of numbers."""
        return self.data in (rows, discrete, remembering)

    def fit(self, **options: Any) -> AnyDetector:
        """A detector, fitted to its reference; the same one for the same options."""
        return self.make(**options).fit(self.reference)

    def load(self, path: Path, detector: AnyDetector) -> AnyDetector:
        """What `detector` saved there."""
        if isinstance(detector, Detector):
            return Detector.load(path, statistic=detector.statistic if self.functions else None)
        return type(detector).load(path)

    @property
    def reference(self) -> Any:
        """Observations from the time when all was well."""
        return self.data(np.random.default_rng(1), 60)

    def stream(self, count: int, seed: int = 2) -> Any:
        """Observations, of which the second half is different."""
        rng = np.random.default_rng(seed)
        before, after = self.data(rng, count // 2), self.data(rng, count - count // 2, 1.0)
        return np.concatenate([before, after]) if self.numeric else before + after


def entry(statistic: Any = None, data: Callable[..., Any] = rows, *, functions: bool = False, **fixed: Any) -> Entry:
    """An entry for Detector(statistic=statistic, ...)."""

    def make(**options: Any) -> Detector:
        options = {"ert": 30, "window": WINDOWS, "paths": 60, "seed": 3, **fixed, **options}
        return Detector(statistic=statistic, **options)

    return Entry(make, data, functions)


def baseline(kind: type[ScanB | LSDDInc], *, formula: bool = False, **fixed: Any) -> Entry:
    """An entry for a detector of one window, which knows no other start than a cold one."""

    def make(*, start: Start = "cold", **options: Any) -> AnyDetector:
        assert start == "cold"
        return kind(**{"ert": 30, "window": WIDEST, "seed": 3, **fixed, **options})

    return Entry(make, rows, starts=("cold",), formula=formula)


def views(**fixed: Any) -> Entry:
    """An entry for views, whose runs begin alike whatever start they are asked for."""
    return replace(entry(Views(), remembering, **{"paths": 12, **fixed}), starts=("cold",), goes_on=True)


REGISTRY = {
    "MMD": entry(sampler=Independent()),
    "MMD, one width": entry(MMD(Gaussian()), window=WIDEST),
    "MMD, discrete": entry(MMD(Gaussian(width=(1, 2.5))), discrete),
    "MeanShift, discrete": entry(MeanShift(), discrete),
    "Custom, discrete": entry(Custom(mean_gap), discrete, functions=True),
    "MMD, landmarks": entry(MMD(approximation=Landmarks(15)), sampler=Independent()),
    "MMD, landmarks, discrete": entry(MMD(Gaussian(), Landmarks(5)), discrete, sampler=Independent()),
    "MMD, paper": entry(MMD(Gaussian()), mode="paper"),
    "MMD, fixed": entry(MMD(Gaussian()), mode="fixed"),
    "MMD, rows with a kernel": entry(MMD(laplace), functions=True),
    "MMD, words with a kernel": entry(MMD(word_overlap), words, functions=True),
    "LSDD": entry(LSDD()),
    "LSDD, given centres": entry(LSDD(centres=4, width=1.5, regularisation=0.1)),
    "MeanShift": entry(MeanShift()),
    "MeanShift, signed": entry(MeanShift(direction=[1, 0, 1])),
    "Custom": entry(Custom(largest_gap), functions=True),
    "Custom, dicts": entry(Custom(price_gap, label="price"), records, functions=True),
    "MMD and LSDD and MeanShift": entry([MMD(), LSDD(), MeanShift()]),
    "all of them, numpy": entry(
        [MMD(Gaussian()), LSDD(centres=4), MeanShift()], backend="numpy", window=4, paths=40, interval=False
    ),
    "MMD and Custom": entry([MMD(), Custom(largest_gap)], functions=True),
    "MMD, blocks": entry(MMD(Gaussian()), sampler=Blocks(5, 2)),
    "MMD, discrete, blocks": entry(MMD(Gaussian(width=1)), discrete, sampler=Blocks(5, 2)),
    "LSDD and MeanShift, blocks": entry([LSDD(centres=4), MeanShift()], sampler=Blocks(4, 2)),
    "Custom, blocks": entry(Custom(largest_gap), sampler=Blocks(5), functions=True),
    "MMD, guaranteed, rare": entry(MMD(Gaussian()), ert=1000, guarantee=0.6, paths=200),
    "Views": views(),
    "Views, guaranteed": views(guarantee=0.8),
    "ScanB": baseline(ScanB, samples=2000),
    "ScanB, plain": baseline(ScanB, samples=2000, correct_skewness=False, formula=True),
    # Far away, bumps see only that nothing is near: so short a window hears that at short run times alone.
    "LSDDInc": baseline(LSDDInc, paths=120, ert=12),
    "LSDDInc, redraw": baseline(LSDDInc, paths=120, ert=12, redraw=True),
}
entries = pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
started_entries = pytest.mark.parametrize(
    ("entry", "start"),
    [pytest.param(each, start, id=f"{start}-{name}") for name, each in REGISTRY.items() for start in each.starts],
)
warm_entries = pytest.mark.parametrize(
    "entry", [pytest.param(each, id=name) for name, each in REGISTRY.items() if "warm" in each.starts]
)
"""Those of `Detector`."""


# Helpers


def exact(outcomes: Iterable[Outcome | None]) -> list[str]:
    """Outcomes to compare bit for bit: a float's repr is exact, and that of NaN equals itself."""
    return [repr(outcome) for outcome in outcomes]


def one_by_one(detector: AnyDetector, stream: Any) -> list[str]:
    """Outcomes of repeated `update`."""
    return exact(detector.update(x) for x in stream)


def plain(node: Any) -> Any:
    """A dataclass, and those in it, as dicts of lists: their repr is exact."""
    if isinstance(node, np.ndarray):
        return node.tolist()
    if is_dataclass(node):
        return {field.name: plain(getattr(node, field.name)) for field in fields(node)}
    return node


def what_is_known(detector: AnyDetector) -> list[str]:
    """Everything a user can ask a fitted detector, but for how long its fit took."""
    found = {name: value for name, value in plain(detector.calibration_).items() if name != "seconds"}
    options = found, detector.channels_, detector.windows_, detector.seed_
    place = detector.run, detector.time, detector.alarm, detector.recent, detector._run.begun_with
    return [repr(value) for value in (*options, *place)]


def goes_on_like(detector: AnyDetector, twin: AnyDetector, entry: Entry) -> None:
    """Both know the same and answer the same, in this run and in the next."""
    assert what_is_known(detector) == what_is_known(twin)
    for seed in (11, 12):
        stream = entry.stream(40, seed)
        assert one_by_one(detector, stream) == one_by_one(twin, stream)
        assert what_is_known(detector) == what_is_known(twin)
        detector.reset()
        twin.reset()


# Batch equals stream


@started_entries
def test_batch_equals_stream(entry: Entry, start: Start) -> None:
    """`update_many` gives what repeated `update` gives, bit for bit, however the stream is cut into blocks."""
    stream = entry.stream(300)
    expected = one_by_one(entry.fit(start=start), stream)
    assert any("alarm=True" in outcome for outcome in expected)
    rng = np.random.default_rng(5)
    for cuts in ([0, 300], [0, 1, 2, 2, 299, 300], [0, *sorted(rng.integers(0, 300, 20).tolist()), 300]):
        detector = entry.fit(start=start)
        got = [outcome for first, last in pairwise(cuts) for outcome in exact(detector.update_many(stream[first:last]))]
        assert got == expected


@started_entries
def test_an_alarm_ends_a_run(entry: Entry, start: Start) -> None:
    """The next observation begins a new one, as `reset` would: by `update`, in blocks, and up to alarms."""
    stream, twin = entry.stream(160), entry.fit(start=start)
    expected = []
    for x in stream:
        if twin.alarm is not None:
            twin.reset()
        expected.append(twin.update(x))
    assert sum(outcome.alarm for outcome in expected) > 1
    detectors = [entry.fit(start=start) for _ in range(3)]
    assert exact([detectors[0].update(x) for x in stream]) == exact(expected)
    assert exact(detectors[1].update_many(stream)) == exact(expected)
    pieces, rest = [], stream
    while len(rest):
        pieces.append(detectors[2].update_until_alarm(rest))
        assert not pieces[-1].alarm[:-1].any()
        rest = rest[len(pieces[-1]) :]
    assert exact(Outcomes.join(pieces)) == exact(expected)
    for each in detectors:
        goes_on_like(each, copy.copy(twin), entry)


@started_entries
def test_the_run_that_rang_can_be_looked_at(entry: Entry, start: Start) -> None:
    """Until the next observation: its time, its alarm and its latest points are those of `update` without a block."""
    detector, other = entry.fit(start=start), entry.fit(start=start)
    outcomes = detector.update_until_alarm(entry.stream(160))
    assert outcomes.alarm[-1]
    other.update_many(entry.stream(160)[: len(outcomes)])
    for each in (detector, other):
        assert exact([each.alarm]) == exact(outcomes[-1:])
        most = 2 * each.windows_[-1]
        assert (each.time, each.run, len(each.recent)) == (len(outcomes), 0, min(len(outcomes), most))
    detector.update_many(entry.stream(160)[:0])
    assert exact([detector.alarm]) == exact(outcomes[-1:])
    detector.update(entry.stream(1)[0])
    assert (detector.time, detector.run) == (1, 1)


@started_entries
def test_a_run_may_go_on_after_its_alarm(entry: Entry, start: Start) -> None:
    """Where the detector is told so: blocks are what `update` gives, and only `reset` begins another run."""
    detector, other = (altered(entry.fit(start=start), resets=False) for _ in range(2))
    stream = entry.stream(160)
    expected = [detector.update(x) for x in stream]
    assert [outcome.time for outcome in expected] == list(range(1, 161))
    assert sum(outcome.alarm for outcome in expected) > 1
    assert exact(other.update_many(stream)) == exact(expected)
    goes_on_like(other, detector, entry)


@entries
def test_blocks_in_any_form(entry: Entry) -> None:
    """Lists, arrays in any layout and integers that stand for the same numbers give the same outcomes."""
    if not entry.numeric:
        pytest.skip("observations are objects")
    stream = np.round(entry.stream(40))
    expected = one_by_one(entry.fit(), stream)
    padded = np.zeros((80, 2 * stream.shape[1]))
    padded[::2, ::2] = stream
    forms: list[Any] = [stream.tolist(), np.asfortranarray(stream), padded[::2, ::2], stream.astype(np.int32)]
    for form in forms:
        detector = entry.fit()
        assert exact(detector.update_many(form[:20])) + one_by_one(detector, form[20:]) == expected


@entries
def test_the_caller_may_reuse_arrays(entry: Entry) -> None:
    """A buffer that is overwritten after the call, or a reference that is, changes nothing."""
    if not entry.numeric:
        pytest.skip("observations are objects")
    stream = entry.stream(40)
    expected = one_by_one(entry.fit(), stream)
    reference = entry.reference
    detector = entry.make().fit(reference)
    reference[:] = 1e9
    buffer = np.empty(stream.shape[1])
    got = []
    for x in stream[:20]:
        buffer[:] = x
        got.append(detector.update(buffer))
    block = stream[20:30].copy()
    got.extend(detector.update_many(block))
    block[:] = -1e9
    got.extend(detector.update_many(stream[30:]))
    assert exact(got) == expected


# Saving, loading, copying


@started_entries
@pytest.mark.parametrize("before", [2, 45])
def test_save_is_resume(entry: Entry, start: Start, before: int, tmp_path: Path) -> None:
    """A detector that is saved and loaded in mid-stream goes on bit for bit, and starts the same new run."""
    detector = entry.fit(start=start)
    detector.update_many(entry.stream(before))
    detector.save(tmp_path / "a.tocsin")
    goes_on_like(entry.load(tmp_path / "a.tocsin", detector), detector, entry)


def _pickled(detector: AnyDetector) -> AnyDetector:
    copied: AnyDetector = pickle.loads(pickle.dumps(detector))
    return copied


@entries
@pytest.mark.parametrize("duplicate", [_pickled, copy.deepcopy], ids=["pickle", "deepcopy"])
def test_copies_go_on(entry: Entry, duplicate: Callable[[AnyDetector], AnyDetector]) -> None:
    """A pickled or copied detector goes on like the original, and what it sees does not reach the original."""
    detector, twin = entry.fit(), entry.fit()
    for each in (detector, twin):
        each.update_many(entry.stream(25))
    goes_on_like(duplicate(detector), duplicate(twin), entry)
    goes_on_like(duplicate(detector), twin, entry)


def test_an_unfitted_detector_can_be_copied() -> None:
    """So that it can be sent to where the data are."""
    detector = _pickled(Detector(30, MMD(Gaussian(width=2.0)), window=5, seed=1))
    assert repr(detector) == repr(Detector(30, MMD(Gaussian(width=2.0)), window=5, seed=1))


# Memory


def size(node: Any) -> int:
    """Numbers and objects in nested containers."""
    if isinstance(node, np.ndarray):
        return node.nbytes
    if isinstance(node, dict):
        return sum(size(value) for value in node.values())
    return sum(size(item) for item in node) if isinstance(node, list | tuple) else 1


@entries
def test_memory_is_bounded(entry: Entry, tmp_path: Path) -> None:
    """Nothing that a live detector holds grows with the stream."""
    detector = altered(entry.fit(), resets=False)
    sizes = []
    for seed in range(6):
        detector.update_many(entry.stream(100, seed))
        detector.save(tmp_path / "a.tocsin")
        sizes.append((size(detector._run.windows), (tmp_path / "a.tocsin").stat().st_size // 1000))
    assert len(set(sizes)) == 1


# Bad input


def bad_inputs(entry: Entry) -> list[Callable[[AnyDetector], object]]:
    """Calls that must be refused."""
    if not entry.numeric:
        return [lambda d: d.update_many("abc"), lambda d: d.update_many(5), lambda d: d.update_many({"a": 1})]
    good = entry.stream(10)
    bad_rows = [np.where(np.arange(good.shape[1]) == 0, value, good[0]) for value in (np.nan, np.inf, -np.inf)]
    return [
        *(lambda d, x=x: d.update(x) for x in bad_rows),
        *(lambda d, x=x: d.update_many(np.vstack([good, x, good])) for x in bad_rows),
        lambda d: d.update(np.zeros(good.shape[1] + 1)),
        lambda d: d.update(good),
        lambda d: d.update_many(np.zeros((4, good.shape[1] + 1))),
        lambda d: d.update_many(np.zeros((0, good.shape[1] + 1))),
        lambda d: d.update_many(np.zeros((2, 2, good.shape[1]))),
        *(lambda d, x=x: d.update(x) for x in ("text", None, {}, object(), [], [["a"]], 1 + 2j, [1, [2, 3]])),
        *(lambda d, x=x: d.update_many(x) for x in ("text", None, {}, object(), ["a", "b"], 3.0, [[1], [2, 3]])),
    ]


@entries
def test_bad_input_leaves_the_state_alone(entry: Entry) -> None:
    """Every refusal is an `InputError`, after which the detector answers like an untouched twin."""
    detector, twin = entry.fit(), entry.fit()
    for each in (detector, twin):
        each.update_many(entry.stream(15))
    for call in bad_inputs(entry):
        with pytest.raises(InputError):
            call(detector)
    goes_on_like(detector, twin, entry)


@entries
def test_an_empty_block_changes_nothing(entry: Entry) -> None:
    """It gives no outcomes, as no updates would."""
    detector, twin = entry.fit(), entry.fit()
    empties: list[Any] = [[], entry.stream(10)[:0]]
    for empty in empties:
        outcomes = detector.update_many(empty)
        assert isinstance(outcomes, Outcomes)
        assert len(outcomes) == 0
    goes_on_like(detector, twin, entry)


@entries
@pytest.mark.parametrize("value", [1e20, 1e39, 1e155, 1e300])
def test_huge_values_do_not_blind(entry: Entry, value: float) -> None:
    """Any finite number may come: the statistic stays a number, and a sensor stuck there is heard."""
    if not entry.numeric:
        pytest.skip("observations are objects")
    detector = altered(entry.fit(), resets=False)
    stuck = np.full((2 * WIDEST, entry.reference.shape[1]), value)
    outcomes = detector.update_many(stuck)
    filling = entry.silent(entry.starts[0], WIDEST)
    assert outcomes.alarm[WIDEST:].any() if entry.goes_on else outcomes.alarm[WIDEST:].all()
    everything = Outcomes.join([outcomes, detector.update_many(entry.stream(40))])
    silent = np.arange(len(everything)) < filling
    if entry.goes_on:  # an alarm is followed by as many silent observations as a run begins with
        for t in np.flatnonzero(everything.alarm):
            silent[t + 1 : t + 1 + filling] = True
    assert np.isnan(everything.statistic).tolist() == silent.tolist()


# Fitting


@warm_entries
def test_workers_change_nothing(entry: Entry) -> None:
    """The same seed gives the same thresholds, whatever the number of threads that share the work."""
    if entry.make().backend == "numpy":
        pytest.skip("too slow for enough work to share")
    reference = entry.data(np.random.default_rng(1), 400)
    one, three = (entry.make(window=30, ert=200, paths=400) for _ in range(2))
    assert isinstance(one, Detector)
    assert isinstance(three, Detector)
    goes_on_like(one.fit(reference, workers=1), three.fit(reference, workers=3), entry)


@entries
def test_seeds(entry: Entry) -> None:
    """Another seed gives other thresholds; no seed a fresh one, which is kept and gives the same again."""
    one, two = (entry.fit(seed=seed) for seed in (3, 4))
    assert (one.thresholds_.tolist() == two.thresholds_.tolist()) == entry.formula
    assert what_is_known(one)[0] != what_is_known(two)[0]
    fresh, other = entry.fit(seed=None, start="cold"), entry.fit(seed=None, start="cold")
    assert fresh.seed_ != other.seed_
    goes_on_like(entry.fit(seed=fresh.seed_, start="cold"), fresh, entry)


@pytest.mark.parametrize("calibration", ["steady", "paper", "fixed"])
def test_no_fit_fails_by_chance(calibration: str) -> None:
    """Windows that would ring at once are drawn again: even where one in five would, a quiet one is found."""
    for seed in range(20):
        entry(MeanShift(), window=4, ert=5, mode=calibration).fit(seed=seed)


@entries
def test_refit(entry: Entry) -> None:
    """A second `fit` leaves nothing of the first."""
    detector = entry.fit()
    detector.update_many(entry.stream(30))
    reference = entry.data(np.random.default_rng(77), 70)
    goes_on_like(detector.fit(reference), entry.make().fit(reference), entry)


@entries
def test_fitting_changes_no_options(entry: Entry) -> None:
    """What the constructor was given is still there to be read, or to fit again."""
    detector, untouched = entry.make(seed=None), entry.make(seed=None)
    detector.fit(entry.reference)
    options = [name for name in vars(untouched) if not name.startswith("_")]
    assert {name: getattr(detector, name) for name in options} == {name: getattr(untouched, name) for name in options}


# Runs


@started_entries
def test_clock(entry: Entry, start: Start) -> None:
    """A warm detector tests from the first observation on, a cold one from when its widest window is full.

    What a run that goes on does after its alarm is not looked at here: views are silent for a while.
    """
    detector = altered(entry.fit(start=start), resets=False)
    widest = detector.windows_[-1]
    first = entry.silent(start, widest)
    for _ in range(2):
        assert detector.time == 0
        assert detector.alarm is None
        outcomes = detector.update_many(entry.stream(3 * widest))
        assert outcomes.time.tolist() == list(range(1, 3 * widest + 1))
        assert detector.time == 3 * widest
        end = int(outcomes.alarm.argmax()) + 1 if entry.goes_on and outcomes.alarm.any() else 3 * widest
        for tested in (~np.isnan(outcomes.statistic), ~np.isnan(outcomes.threshold)):
            assert tested[:end].tolist() == [t >= first for t in range(end)]
        assert [outcome.channel is None for outcome in outcomes[:end]] == [t < first for t in range(end)]
        detector.reset()


@started_entries
def test_thresholds_are_those_of_the_calibration(entry: Entry, start: Start) -> None:
    """In order, the last one for ever; a warm detector has made the first test before its first observation."""
    detector = altered(entry.fit(start=start), resets=False)
    thresholds, widest = detector.thresholds_, detector.windows_[-1]
    tests = range(1, 51) if start == "warm" else range(-entry.silent(start, widest), 50 - entry.silent(start, widest))
    expected = [thresholds[min(test, len(thresholds) - 1)] if test >= 0 else np.nan for test in tests]
    np.testing.assert_array_equal(detector.update_many(entry.stream(50)).threshold, expected)


@entries
def test_alarms(entry: Entry) -> None:
    """An alarm is a statistic above its threshold; the first one of a run that goes on stays until `reset`."""
    detector = altered(entry.fit(), resets=False)
    stream, first = entry.stream(80), None
    for x in stream:
        outcome = detector.update(x)
        assert outcome.alarm == (outcome.statistic > outcome.threshold)
        assert (outcome.channel in detector.channels_) == (not np.isnan(outcome.statistic))
        first = first or (outcome if outcome.alarm else None)
        assert detector.alarm == first
    assert first is not None
    assert first.time < 80
    detector.reset()
    assert detector.alarm is None
    assert detector.update(stream[0]).time == 1


@warm_entries
def test_warm_starts_are_quiet_and_not_the_same(entry: Entry) -> None:
    """Windows begin with reference points, drawn anew for every run: the same observation meets different windows."""
    detector = entry.fit(start="warm")
    first = []
    for _ in range(8):
        first.append(detector.update(entry.stream(2)[0]).statistic)
        detector.reset()
    coin = 2.0**-12 * max(map(abs, first))
    assert max(first) - min(first) > coin


@entries
def test_before_fit(entry: Entry, tmp_path: Path) -> None:
    """An unfitted detector says so, whatever is asked of it."""
    detector, stream = entry.make(), entry.stream(4)
    asked: list[Callable[[], object]] = [
        lambda: detector.update(stream[0]),
        lambda: detector.update_many(stream),
        detector.reset,
        lambda: detector.save(tmp_path / "a.tocsin"),
        *(lambda name=name: getattr(detector, name) for name in dir(detector) if name.endswith("_") and name[0] != "_"),
    ]
    assert len(asked) > 8
    for question in asked:
        with pytest.raises(NotFittedError, match=r"call fit\(reference\) first"):
            question()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [Detector, ScanB, LSDDInc])
def test_constructors_only_store(kind: Callable[..., AnyDetector]) -> None:
    """No option is looked at before `fit`."""
    anything: Any = object()
    names = list(signature(kind).parameters)
    detector = kind(**dict.fromkeys(names, anything))
    assert len(names) >= 7
    assert all(getattr(detector, name) is anything for name in names)


def test_no_shared_default() -> None:
    """Two detectors share no state."""
    entry = REGISTRY["MMD"]
    one, two, three = entry.fit(), entry.fit(), entry.fit()
    one.update_many(entry.stream(50))
    goes_on_like(two, three, entry)


# PyTorch, on the CPU: what it adds up in another order is the same to 1e-9, and all else bit for bit

ON_TORCH: dict[str, Any] = {"backend": "torch", "device": DEVICE}
TORCH_REGISTRY = {
    "MMD": entry(sampler=Independent(), **ON_TORCH),
    "MMD, one width": entry(MMD(Gaussian()), window=WIDEST, **ON_TORCH),
    "MMD, discrete": entry(MMD(Gaussian(width=(1, 2.5))), discrete, **ON_TORCH),
    "MMD, paper": entry(MMD(Gaussian()), mode="paper", **ON_TORCH),
    "MMD, fixed": entry(MMD(Gaussian()), mode="fixed", **ON_TORCH),
    "MMD, rows with a kernel": entry(MMD(laplace), functions=True, **ON_TORCH),
    "MMD, words with a kernel": entry(MMD(word_overlap), words, functions=True, **ON_TORCH),
    "MMD, blocks": entry(MMD(Gaussian()), sampler=Blocks(5, 2), **ON_TORCH),
    "MMD with a kernel, blocks": entry(MMD(laplace), sampler=Blocks(5, 2), functions=True, **ON_TORCH),
    "MMD, discrete, blocks": entry(MMD(Gaussian(width=1)), discrete, sampler=Blocks(5, 2), **ON_TORCH),
    "LSDD": entry(LSDD(centres=4), **ON_TORCH),
    "MeanShift, discrete": entry(MeanShift(), discrete, **ON_TORCH),
    "MeanShift, signed": entry(MeanShift(direction=[1, 0, 1]), **ON_TORCH),
    "MeanShift, blocks": entry(MeanShift(), sampler=Blocks(4, 2), **ON_TORCH),
    "Custom": entry(Custom(largest_gap), functions=True, **ON_TORCH),
    "MMD and LSDD and MeanShift": entry([MMD(), LSDD(), MeanShift()], **ON_TORCH),
    "MMD and Custom": entry([MMD(), Custom(largest_gap)], functions=True, **ON_TORCH),
}
torch_entries = pytest.mark.parametrize("entry", TORCH_REGISTRY.values(), ids=TORCH_REGISTRY)


def nearly(got: Iterable[Outcome], expected: Iterable[Outcome]) -> None:
    """The same outcomes, but that statistics are the same to 1e-9 of the largest."""
    pairs = list(zip(got, expected, strict=True))
    for one, other in pairs:
        assert (one.time, one.alarm, one.threshold) == (other.time, other.alarm, other.threshold)
    statistics = np.array([[outcome.statistic for outcome in pair] for pair in pairs])
    scale = float(np.abs(statistics).max())
    np.testing.assert_allclose(statistics[:, 0], statistics[:, 1], rtol=0, atol=1e-9 * scale)


@needs_torch
@torch_entries
@pytest.mark.parametrize("start", ["warm", "cold"])
def test_torch_batch_is_stream(entry: Entry, start: Start) -> None:
    """`update_many` gives what repeated `update` gives to 1e-9, however the stream is cut; so do resets on alarms."""
    stream, detector = entry.stream(120), altered(entry.fit(start=start), resets=False)
    expected = [detector.update(x) for x in stream]
    full = 0 if start == "warm" else WIDEST - 1
    assert any(outcome.alarm for outcome in expected)
    for cuts in ([0, 120], [0, 1, 2, 2, 119, 120], [0, 7, 50, 61, 120]):
        other = altered(entry.fit(start=start), resets=False)
        got = [outcome for first, last in pairwise(cuts) for outcome in other.update_many(stream[first:last])]
        nearly(got[full:], expected[full:])
        assert all(np.isnan(outcome.statistic) for outcome in got[:full])

    detector, expected = entry.fit(start="warm"), []
    for x in stream:
        expected.append(detector.update(x))
        if expected[-1].alarm:
            detector.reset()
    nearly(entry.fit(start="warm").update_many(stream), expected)


@needs_torch
@torch_entries
def test_torch_save_is_resume(entry: Entry, tmp_path: Path) -> None:
    """A detector that is saved and loaded in mid-stream, pickled or copied, goes on bit for bit."""
    detector = entry.fit()
    detector.update_many(entry.stream(20))
    detector.save(tmp_path / "a.tocsin")
    for other in (entry.load(tmp_path / "a.tocsin", detector), _pickled(detector), copy.deepcopy(detector)):
        assert (other.backend, other.device) == ("torch", DEVICE)
        goes_on_like(other, copy.deepcopy(detector), entry)


@needs_torch
@torch_entries
def test_torch_fits(entry: Entry) -> None:
    """The same seed gives the same thresholds, another one others; they are NumPy's."""
    one, two, other = entry.fit(), entry.fit(), entry.fit(seed=4)
    goes_on_like(one, two, entry)
    assert one.thresholds_.tolist() != other.thresholds_.tolist()
    assert type(one.thresholds_) is np.ndarray
    assert np.isfinite(one.thresholds_).all()


@needs_torch
@torch_entries
def test_torch_takes_in_nothing_bad(entry: Entry) -> None:
    """Every refusal is an `InputError`, after which the detector answers like an untouched twin."""
    detector, twin = entry.fit(), entry.fit()
    for call in bad_inputs(entry):
        with pytest.raises(InputError):
            call(detector)
    assert len(detector.update_many(entry.stream(10)[:0])) == 0
    goes_on_like(detector, twin, entry)


@needs_torch
@torch_entries
@pytest.mark.parametrize("value", [1e20, 1e300])
def test_huge_values_do_not_blind_torch(entry: Entry, value: float) -> None:
    """Any finite number may come: the statistic stays a number, a sensor stuck there is heard, and forgotten.

    News, which remembers longer than these windows, is left out.
    """
    if not entry.numeric:
        pytest.skip("observations are objects")
    detector = altered(entry.fit(), resets=False, hears=False)
    stuck = np.full((2 * WIDEST, entry.reference.shape[1]), value)
    outcomes = detector.update_many(stuck)
    assert not np.isnan(outcomes.statistic).any()
    assert outcomes.alarm[WIDEST:].all()
    twin = altered(entry.fit(), resets=False, hears=False)
    twin.update_many(stuck * 0)
    after, expected = (each.update_many(entry.stream(40)) for each in (detector, twin))
    np.testing.assert_allclose(after.statistic[WIDEST:], expected.statistic[WIDEST:], rtol=0, atol=1e-9)


@needs_torch
@pytest.mark.parametrize("name", ["MMD", "MMD, discrete", "MMD, blocks", "MMD and LSDD and MeanShift"])
def test_torch_estimates_intervals(name: str) -> None:
    """What the reference may do to the promise, as the other backends do: the same to a factor of two.

    Both have 300 paths, of which half ring; the fits are fixed, so that nothing is left to chance from run to run.
    """
    reference = TORCH_REGISTRY[name].data(np.random.default_rng(6), 200)
    errors = []
    for registry in (REGISTRY, TORCH_REGISTRY):
        calibration = registry[name].make(paths=300).fit(reference).calibration_
        assert isinstance(calibration, Calibration)
        assert calibration.errors is not None
        errors.append(calibration.errors.total)
    assert 0.5 < errors[0] / errors[1] < 2


# Failures in the middle


class Fragile:
    """A user's function that fails in its n-th call from now."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function
        self.left: int | None = None
        self.error: BaseException = RuntimeError()

    def fail(self, error: BaseException, calls: int) -> None:
        """Let `calls` more calls succeed."""
        self.left, self.error = calls, error

    def mend(self) -> None:
        """Work again."""
        self.left = None

    def __call__(self, X: Any, Y: Any) -> Any:
        """The function's answer."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise self.error
        return self.function(X, Y)


BLOCKS = {"sampler": Blocks(5, 2)}
Fragiles = Callable[[Fragile], Statistic | list[Statistic]]
fragile_statistics: dict[str, tuple[Callable[[Any, Any], Any], Fragiles, dict[str, Any]]] = {
    "kernel": (laplace, lambda function: MMD(function), {}),
    "function": (largest_gap, lambda function: Custom(function), {}),
    "function and others": (largest_gap, lambda function: [MMD(), MeanShift(), Custom(function)], {}),
    "kernel and others": (laplace, lambda function: [MeanShift(), MMD(function), LSDD()], {}),
    "kernel and others, blocks": (laplace, lambda function: [MeanShift(), MMD(function)], BLOCKS),
}
fragile = pytest.mark.parametrize("name", fragile_statistics)
errors = pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt()], ids=["error", "interrupt"])


def fragile_pair(name: str, **more: Any) -> tuple[AnyDetector, Fragile, AnyDetector, Entry]:
    """A detector that can be made to fail, its function, and an untouched twin of it."""
    function, statistic, options = fragile_statistics[name]
    options = options | more
    breaking = Fragile(function)
    registered = entry(statistic(breaking), **options)
    detector, twin = registered.fit(), entry(statistic(Fragile(function)), **options).fit()
    for each in (detector, twin):
        each.update_many(registered.stream(20))
    return detector, breaking, twin, registered


@fragile
@errors
@pytest.mark.parametrize(
    ("reset_on_alarm", "calls"), [(False, 0), (False, 1), (False, 160), (True, 0), (True, 350), (True, 650)]
)
def test_a_failing_block_is_not_taken_in(name: str, error: BaseException, calls: int, reset_on_alarm: bool) -> None:
    """Wherever a user's function fails in a block, even after an alarm and a reset, the detector is as before it."""
    detector, breaking, twin, registered = fragile_pair(name, reset_on_alarm=reset_on_alarm)
    breaking.fail(error, calls)
    with pytest.raises(type(error)):
        detector.update_many(registered.stream(300))
    breaking.mend()
    goes_on_like(detector, twin, registered)


@fragile
@errors
@pytest.mark.parametrize("calls", [0, 1])
@pytest.mark.parametrize("method", ["update", "fit", "reset"])
def test_a_failing_call_changes_nothing(name: str, error: BaseException, calls: int, method: str) -> None:
    """Whether the function fails at once or halfway: the observation is not taken in, the old fit or run stays."""
    detector, breaking, twin, registered = fragile_pair(name)
    attempts: dict[str, Callable[[], object]] = {
        "update": lambda: detector.update(registered.stream(2)[1]),
        "fit": lambda: detector.fit(registered.data(np.random.default_rng(5), 70)),
        "reset": detector.reset,
    }
    breaking.fail(error, calls)
    with pytest.raises(type(error)):
        attempts[method]()
    breaking.mend()
    goes_on_like(detector, twin, registered)


@fragile
@errors
def test_a_failing_first_fit_leaves_the_detector_unfitted(name: str, error: BaseException) -> None:
    """And it can be fitted when the function works again."""
    function, statistic, options = fragile_statistics[name]
    breaking = Fragile(function)
    registered = entry(statistic(breaking), **options)
    detector = registered.make()
    breaking.fail(error, 0)
    with pytest.raises(type(error)):
        detector.fit(registered.reference)
    with pytest.raises(NotFittedError):
        detector.reset()
    breaking.mend()
    goes_on_like(detector.fit(registered.reference), entry(statistic(Fragile(function)), **options).fit(), registered)


def _spoilt(function: Callable[[Any, Any], Any], value: float) -> Callable[[Any, Any], Any]:
    return lambda X, Y: function(X, Y) + value


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_that_gives_no_number_is_refused(value: float) -> None:
    """And so is a kernel; the detector goes on."""
    for name in ("kernel", "function"):
        detector, breaking, twin, registered = fragile_pair(name)
        good = breaking.function
        breaking.function = _spoilt(good, value)
        with pytest.raises(InputError, match="finite"):
            detector.update(registered.stream(4)[0])
        breaking.function = good
        goes_on_like(detector, twin, registered)


def test_a_kernel_of_the_wrong_shape_is_refused() -> None:
    """With both shapes in the message."""
    detector = Detector(30, MMD(lambda X, Y: np.zeros(len(X) + 0 * len(Y))), window=3, paths=50)
    with pytest.raises(InputError, match=r"shape \(20,\) for 20 and 20 observations"):
        detector.fit(rows(np.random.default_rng(0), 20))
