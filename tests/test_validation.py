"""What is refused, and how: every message names the value, the rule and a remedy. And what is taken all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import LSDD, MMD, Blocks, Custom, Detector, Gaussian, Independent, InputError, MeanShift
from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Calibration
from tocsin._calibration.run import Simulation
from tocsin._compute.arrays import Array
from tocsin._data import validation

pytestmark = pytest.mark.usefixtures("quick_fits")

ROWS = np.random.default_rng(0).normal(size=(60, 2))


def fitted(statistic: Any = None, reference: Any = ROWS, **options: Any) -> Detector:
    """A quick fit with one option or another."""
    defaults = {"ert": 30, "statistic": statistic, "window": 5, "paths": 60, "seed": 1, "sampler": Independent()}
    return Detector(**{**defaults, **options}).fit(reference)


def everywhere(value: Any) -> Array:
    """The reference with one value replaced."""
    spoilt = ROWS.copy()
    spoilt[3, 1] = value
    return spoilt


def _any(value: Any) -> Any:
    """A value of the wrong type, past the type checker."""
    return value


# Options of a detector

OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"ert": 1}, r"ert=1 is too small \(at least 2 for windows up to 5\).*Ask for a longer"),
    ({"ert": 1.99}, r"ert=1\.99 is too small"),
    ({"ert": 3, "window": 20}, r"ert=3 is too small \(at least 6\.667 for windows up to 20\).*shorter windows"),
    ({"ert": -5}, r"ert=-5 is too small"),
    ({"ert": np.nan}, r"ert=nan(?!.*too small)"),
    ({"ert": np.inf}, r"ert=inf(?!.*too small)"),
    ({"ert": "30"}, r"ert='30' is a str; it must be a number"),
    ({"ert": None}, r"ert=None is a NoneType; it must be a number"),
    ({"ert": True}, r"ert=True is a bool; it must be a number"),
    ({"ert": None, "window": None}, r"ert=None is a NoneType; it must be a number"),
    ({"window": 1}, r"window=1: a window is a whole number of observations, at least 2"),
    ({"window": 0}, r"window=0: .* at least 2"),
    ({"window": 5.0}, r"window=5\.0: a window is a whole number"),
    ({"window": "5"}, r"window='5': a window is a whole number"),
    ({"window": True}, r"window=True: a window is a whole number"),
    ({"window": (5, 1)}, r"window=\(5, 1\): .* at least 2"),
    ({"window": (5, 5)}, r"window=\(5, 5\): give one window, or several different ones"),
    ({"window": []}, r"window=\[\]: give one window, or several different ones"),
    ({"seed": -1}, r"seed=-1: a seed is a whole number from 0 on; leave it out for a fresh one"),
    ({"seed": 1.5}, r"seed=1\.5: a seed is a whole number"),
    ({"seed": "a"}, r"seed='a': a seed is a whole number"),
    ({"seed": True}, r"seed=True: a seed is a whole number"),
    ({"error": 0}, r"error=0 must lie between 0\.0001 and 1"),
    ({"error": 1.5}, r"error=1\.5 must lie between"),
    ({"error": np.nan}, r"error=nan must lie between"),
    ({"error": "small"}, r"error='small' is a str; it must be a number"),
    ({"paths": 0}, r"paths=0 must be a whole number from 1 on; leave it out to have it chosen"),
    ({"paths": 2.5}, r"paths=2\.5 must be a whole number"),
    ({"paths": True}, r"paths=True must be a whole number"),
    ({"paths": 20, "mode": "paper"}, r"paths=20 is too few for ert=30: .* Give paths=600 or more"),
    ({"paths": 20, "mode": "fixed"}, r"paths=20 is too few for ert=30: .* or mode='steady'"),
    ({"paths": 20}, r"paths=20 is too few: .* thresholds would rest on \d\.\d alarms\. Give \d+ or more, or none"),
    ({"sampler": "blocks"}, r"sampler='blocks' is unknown; give 'auto', Independent\(\) or Blocks\(\)"),
    ({"sampler": Blocks}, r"Blocks'> is unknown; give 'auto', Independent\(\) or Blocks\(\)"),
    ({"sampler": None}, r"sampler=None is unknown; give 'auto'"),
    ({"sampler": Blocks(0)}, r"Blocks\(length=0\): must be a whole number from 1 on; leave it out to"),
    ({"sampler": Blocks(_any(2.0))}, r"Blocks\(length=2\.0\): must be a whole number from 1 on"),
    ({"sampler": Blocks(True)}, r"Blocks\(length=True\): must be a whole number"),
    ({"sampler": Blocks(5, -1)}, r"Blocks\(guard=-1\): must be a whole number from 0 on"),
    ({"sampler": Blocks(7)}, r"Blocks of 7 .* too long for a reference of 60: at least 10 must fit.*Collect 70 "),
    ({"sampler": Blocks(5, 4)}, r"Blocks\(guard=4\) is too large for a reference of 60"),
    ({"guarantee": 0.4}, r"guarantee=0\.4 must lie between 0\.5 and 0\.999"),
    ({"guarantee": 1}, r"guarantee=1 must lie between 0\.5 and 0\.999"),
    ({"guarantee": "high"}, r"guarantee='high' is a str; it must be a number"),
    ({"guarantee": 0.9, "interval": False}, r"A guarantee needs interval=True: it is the interval that says how far"),
    ({"guarantee": 0.9, "mode": "fixed"}, r"guarantee=0\.9: mode='fixed' makes no promise"),
    ({"guarantee": 0.99, "ert": 1e9}, r"guarantee=0\.99 cannot be given for ert=1e\+09: .*larger reference"),
    ({"start": "hot"}, r"start='hot' is unknown; choose one of 'warm', 'cold'"),
    ({"start": None}, r"start=None is unknown; choose one of"),
    ({"mode": "magic"}, r"mode='magic' is unknown; choose one of 'steady', 'paper', 'fixed'"),
    ({"backend": "jax"}, r"backend='jax' is unknown; choose one of 'auto', 'numba', 'torch', 'numpy'"),
    ({"device": "gpu"}, r"device='gpu' is unknown; choose 'cpu', 'cuda', or 'cuda:0'"),
    ({"backend": "numba", "device": "cuda"}, r"backend='numba' runs on the CPU, not on 'cuda'"),
    ({"statistic": "MMD"}, r"statistic='MMD' is not a statistic; give MMD\(\), LSDD\(\)"),
    ({"statistic": MMD}, r"MMD'> is not a statistic; give MMD\(\), LSDD\(\)"),
    ({"statistic": []}, r"statistic=\[\] names no statistic; leave it out for MMD\(\)"),
    ({"statistic": [MMD(), None]}, r"statistic=None is not a statistic"),
]


HUGE = 10**5000
"""Python writes no whole number of so many digits."""


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "seed",
            2**4096 + 1,
            r"seed=\(a number of 1234 digits\): a seed is at most 2\*\*4096, since files",
        ),
        ("seed", HUGE, r"seed=\(a number of 5001 digits\): a seed is at most"),
        ("seed", -HUGE, r"seed=\(a number of 5001 digits\): a seed is a whole number from 0 on"),
        ("ert", HUGE, r"ert=\(a number of 5001 digits\) is more than numbers reach"),
        ("window", HUGE, r"window=\(a number of 5001 digits\): a window is a whole number"),
        ("window", [5, HUGE], r"window=\[5, \(a number of 5001 digits\)\]: a window is a whole number"),
        ("sampler", Blocks(HUGE), r"Blocks\(length=\(a number of 5001 digits\)\): must be a whole number"),
        (
            "statistic",
            MMD(Gaussian(10**400)),
            r"Gaussian\(width=\(a number of 401 digits\)\): widths are positive numbers",
        ),
        ("statistic", MMD(Gaussian([1, HUGE])), r"Gaussian\(width=\[1, \(a number of 5001 digits\)\]\): widths are"),
        (
            "statistic",
            MMD(Gaussian(factors=(10**400,))),
            r"Gaussian\(factors=\(\(a number of 401 digits\),\)\): widths",
        ),
        (
            "statistic",
            MeanShift([10**400, 1]),
            r"direction=\[\(a number of 401 digits\), 1\]\): a direction has finite",
        ),
        ("statistic", LSDD(centres=HUGE), r"LSDD\(centres=\(a number of 5001 digits\)\): at least one centre"),
        ("preprocess", HUGE, r"preprocess=one that cannot be shown"),
    ],
    ids=lambda value: "" if not isinstance(value, str) else value[:30],
)
def test_numbers_without_end(name: str, value: object, message: str) -> None:
    """They are refused by what they are, and the message can be written."""
    with pytest.raises(InputError, match=message):
        fitted(**{name: value})


def test_the_largest_seed_comes_back(tmp_path: Path) -> None:
    """What a fit takes, a file holds."""
    detector = fitted(seed=2**4096)
    detector.save(tmp_path / "a.tocsin")
    assert Detector.load(tmp_path / "a.tocsin").seed_ == 2**4096


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[str(options) for options, _ in OPTIONS])
def test_options(options: dict[str, Any], message: str) -> None:
    """Each is looked at by `fit`, and refused with its value and what to do."""
    with pytest.raises(InputError, match=message):
        fitted(**options)


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "two"])
def test_workers(workers: Any) -> None:
    """A number of threads, or None."""
    with pytest.raises(InputError, match=f"workers={workers!r} must be a whole number from 1 on"):
        Detector(30, window=5, paths=60).fit(ROWS, workers=workers)


def test_a_discrete_reference_has_no_tail_to_extrapolate_from() -> None:
    """Alarms rarer than those simulated are refused, with what can be had."""
    coins = (np.random.default_rng(1).random((200, 1)) < 0.3).astype(float)
    with pytest.raises(InputError, match=r"ert=1e\+09 is too rare for a reference with so few distinct values: alarms"):
        fitted(MMD(Gaussian()), coins, ert=1e9, paths=2000)


@pytest.mark.parametrize("paths", [1, 2, 4, 8])
def test_a_handful_of_paths(paths: int) -> None:
    """Either they suffice for some threshold, or the error says that they are too few."""
    message = ""
    try:
        assert np.isfinite(fitted(MeanShift(), window=20, paths=paths).thresholds_).all()
    except InputError as error:
        message = str(error)
    assert message == "" or f"paths={paths} is too few" in message


# Statistics

STATISTICS: list[tuple[Callable[[], object], str]] = [
    (lambda: Gaussian(width=0), r"Gaussian\(width=0\): widths are"),
    (lambda: Gaussian(width=-1.0), r"Gaussian\(width=-1\.0\): widths are positive"),
    (lambda: Gaussian(width=np.nan), r"Gaussian\(width=nan\): widths are positive"),
    (lambda: Gaussian(width=(1, np.inf)), r"Gaussian\(width=\(1, inf\)\): widths are positive"),
    (lambda: Gaussian(width=[]), r"Gaussian\(width=\[\]\): .* at least one"),
    (lambda: Gaussian(width=(2, 2.0)), r"Gaussian\(width=\(2, 2\.0\)\) names a width twice"),
    (lambda: Gaussian(factors=(1, -1)), r"Gaussian\(factors=\(1, -1\)\): widths are positive"),
    (lambda: Gaussian(factors=()), r"Gaussian\(factors=\(\)\): .* at least one"),
    (lambda: Gaussian(width=_any("wide")), r"Gaussian\(width='wide'\)"),
    (lambda: Gaussian(width=_any([[1.0, 2.0]])), r"Gaussian\(width=\[\[1"),
    (lambda: MMD(kernel=_any(3)), r"MMD\(kernel=3\): a kernel is Gaussian\(\.\.\.\) or a function k\(X, Y\)"),
    (lambda: MMD(kernel=_any("rbf")), r"MMD\(kernel='rbf'\): .* write Gaussian\(width=\.\.\.\)"),
    (lambda: LSDD(centres=0), r"LSDD\(centres=0\): at least one centre"),
    (lambda: LSDD(centres=_any(2.5)), r"LSDD\(centres=2\.5\)"),
    (lambda: LSDD(centres=_any("many")), r"LSDD\(centres='many'\)"),
    (lambda: LSDD(width=0), r"LSDD\(width=0\): must be a positive number; leave it out"),
    (lambda: LSDD(width=_any("wide")), r"LSDD\(width='wide'\): must be a positive number"),
    (lambda: LSDD(regularisation=-0.1), r"LSDD\(regularisation=-0\.1\): must be a positive number; leave it out"),
    (lambda: LSDD(regularisation=np.nan), r"LSDD\(regularisation=nan\): must be a positive number"),
    (lambda: MeanShift(direction=[0, 0]), r"MeanShift\(direction=\[0, 0\]\): .* not all 0"),
    (lambda: MeanShift(direction=[1, np.nan]), r"MeanShift\(direction=\[1, nan\]\): a direction has finite numbers"),
    (lambda: MeanShift(direction=[]), r"MeanShift\(direction=\[\]\)"),
    (lambda: MeanShift(direction=_any("up")), r"MeanShift\(direction='up'\)"),
    (lambda: Custom(_any(3)), r"Custom\(function=3\): give a function D\(X, Y\)"),
    (lambda: MeanShift(direction=[1.0]), r"has 1 numbers for a reference of 2 columns; give one number per"),
    (lambda: LSDD(centres=49), r"60 points is too small .* besides the 49 that the statistic sets aside"),
]


@pytest.mark.parametrize(("make", "message"), STATISTICS, ids=[message for _, message in STATISTICS])
def test_statistics(make: Callable[[], object], message: str) -> None:
    """A fit refuses what can be no option of a statistic, with the value; constructors only keep it."""
    made = make()
    with pytest.raises(InputError, match=message):
        fitted(MMD(made) if isinstance(made, Gaussian) else made)


# References

REFERENCES: list[tuple[Any, str]] = [
    ("text", r"The reference is a str; it must be a sequence of observations"),
    (b"bytes", r"The reference is a bytes; it must be a sequence"),
    ({"x": [1, 2]}, r"The reference is a dict; it must be a sequence"),
    (None, r"The reference is a NoneType; it must be a sequence"),
    (iter([1.0]), r"The reference is a list_iterator; it must be a sequence"),
    (np.float64(3), r"The reference is a float64; it must be a sequence"),
    (np.array(3.0), r"The reference (is|has)"),
    ([], r"The reference is empty; it must hold observations from the time when all was well"),
    (np.empty((0, 2)), r"The reference is empty"),
    (np.empty((60, 0)), r"shape \(60, 0\); it must have one row per observation and at least one column"),
    (np.ones((20, 3, 3)), r"shape \(20, 3, 3\); .*Flatten or embed"),
    ([b"a", b"b"] * 30, r"holds bytes values such as .*, not numbers.*encode the columns .*, or give MMD\(kernel"),
    ([None] * 60, r"holds NoneType values such as 'None', not numbers"),
    ([[1.0], [2.0, 3.0]] * 30, r"holds list values such as '\[1\.0\]', not numbers"),
    (ROWS * 1j, r"The reference holds .*not numbers"),
    (
        everywhere(np.nan),
        r"The reference holds nan in row 4, column 2 .index 3, 1.; every value must be finite.*Drop or fill",
    ),
    (everywhere(np.inf), r"The reference holds inf in row 4, column 2 \(index 3, 1\)"),
    (np.full((60, 2), np.nan), r"holds nan in row 1, column 1 .* \(and 119 more\)"),
    (ROWS[:1], r"A reference of 1 point is too small for a window of 5"),
    (ROWS[:11], r"A reference of 11 points is too small for a window of 5: at least 12 are needed.*Collect more"),
    (np.ones((60, 2)), r"All reference points are equal, so no kernel width.*give Gaussian\(width=\.\.\.\)"),
]


@pytest.mark.parametrize(("reference", "message"), REFERENCES, ids=[message for _, message in REFERENCES])
def test_references(reference: Any, message: str) -> None:
    """One that cannot be compared with is refused, with where it is wrong and what to do."""
    with pytest.raises(InputError, match=message):
        fitted(reference=reference)


def test_too_large_for_a_kernel_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's kernel is evaluated on every pair."""
    monkeypatch.setattr("tocsin._statistics.mmd_callable.LARGEST", 59)
    with pytest.raises(InputError, match=r"A reference of 60 points is too large .* at most 59.*random part"):
        fitted(MMD(lambda X, Y: X @ Y.T))


# Observations

OBSERVATIONS: list[tuple[Any, str]] = [
    ([1.0, np.nan], r"The observation holds nan in column 2 .index 1.; every value must be finite"),
    ([-np.inf, 1.0], r"The observation holds -inf in column 1 .index 0."),
    ([1.0], r"The observation has shape \(1,\); the reference has 2 columns"),
    ([1.0, 2.0, 3.0], r"shape \(3,\); the reference has 2 columns"),
    (3.0, r"shape \(1,\); the reference has 2 columns"),
    (ROWS[:3], r"shape \(3, 2\); .* For several observations at once use update_many"),
    ("text", r"The observation is str values such as 'text', not numbers; the reference is numeric"),
    (None, r"The observation is NoneType values such as 'None', not numbers"),
    ({"x": 1}, r"The observation is dict values"),
    ([1.0, [2.0]], r"The observation is list values"),
    (["a", "b"], r"The observation is list values such as .*not numbers"),
]


@pytest.mark.parametrize(("x", "message"), OBSERVATIONS, ids=[message for _, message in OBSERVATIONS])
def test_observations(x: Any, message: str) -> None:
    """An observation that is no row like those of the reference is refused, with what it is."""
    with pytest.raises(InputError, match=message):
        fitted().update(x)


BLOCKS: list[tuple[Any, str]] = [
    (np.vstack([ROWS[:4], [1.0, np.nan]]), r"The block holds nan in row 5, column 2"),
    (ROWS[:, :1], r"The block has 1 column; the reference has 2"),
    (np.ones((4, 3)), r"The block has 3 columns; the reference has 2"),
    ([1.0, 2.0], r"update_many takes rows of 2 numbers, and got an array of shape \(2,\); .* use update"),
    (3.0, r"update_many takes rows of 2 numbers, and got an array of shape \(\)"),
    (np.ones((2, 2, 2)), r"array of shape \(2, 2, 2\)"),
    ("text", r"str values such as 'text', not numbers"),
    (None, r"NoneType values such as 'None', not numbers"),
]


@pytest.mark.parametrize(("block", "message"), BLOCKS, ids=[message for _, message in BLOCKS])
def test_blocks(block: Any, message: str) -> None:
    """The same for blocks."""
    with pytest.raises(InputError, match=message):
        fitted().update_many(block)


@pytest.mark.parametrize("block", ["text", b"bytes", {"x": 1}, 5, None])
def test_blocks_of_objects(block: Any) -> None:
    """Where observations may be anything, a block is still a sequence of them."""
    detector = fitted(Custom(lambda X, Y: abs(len(X[0]) - len(Y[-1]))), reference=["a", "bb", "ccc"] * 20)
    with pytest.raises(InputError, match=rf"sequence of observations, and got a {type(block).__name__}; .* use update"):
        detector.update_many(block)


# What is taken


@pytest.mark.parametrize(
    "reference",
    [
        ROWS.tolist(),
        ROWS.astype(np.float32),
        (ROWS * 10).astype(np.int8),
        ROWS > 0.3,
        np.asfortranarray(ROWS),
        tuple(map(tuple, ROWS)),
    ],
    ids=["list", "float32", "int8", "bool", "fortran", "tuples"],
)
def test_numbers_in_any_form(reference: Any) -> None:
    """Anything that NumPy sees as a table of real numbers is one."""
    detector = fitted(reference=reference)
    same = fitted(reference=np.array(reference, dtype=np.float64))
    assert detector.thresholds_.tolist() == same.thresholds_.tolist()
    assert repr(detector.update(reference[0])) == repr(same.update(np.array(reference, dtype=np.float64)[0]))


def test_one_column() -> None:
    """A sequence of numbers is a column, and an observation of it a number."""
    column = ROWS[:, 0]
    flat, table = fitted(reference=column), fitted(reference=column[:, None])
    assert repr(flat.update(0.5)) == repr(table.update([0.5]))
    assert repr(flat.update(np.float32(0.5))) == repr(table.update(np.array([[0.5]])))
    np.testing.assert_array_equal(flat.update_many(column).statistic, table.update_many(column[:, None]).statistic)


@pytest.mark.parametrize("statistic", [MMD(), MeanShift(), Custom(lambda X, Y: X[0, 0] - Y[0, 0])])
def test_the_fewest_points(statistic: Any) -> None:
    """Twice the window and two, no more."""
    for window in (2, 5):
        detector = fitted(statistic, ROWS[: 2 * window + 2], window=window, paths=600, reset_on_alarm=False)
        assert np.isfinite(detector.update_many(ROWS).statistic).all()
        with pytest.raises(InputError, match=f"at least {2 * window + 2} are needed"):
            fitted(statistic, ROWS[: 2 * window + 1], window=window)


def test_the_smallest_expected_run_time() -> None:
    """Two observations, or a third of the widest window."""
    assert fitted(ert=2, window=6, paths=3000).calibration_.ert == 2
    assert fitted(ert=5, window=15, paths=3000).calibration_.ert == 5


@pytest.mark.parametrize(
    ("count", "ert", "windows"),
    [(60, 500, (8,)), (250, 500, (8, 25)), (999, 500, (8, 25)), (1000, 500, (8, 25, 100)), (5000, 20, (8, 25))],
)
def test_default_windows(count: int, ert: float, windows: tuple[int, ...]) -> None:
    """Those that the reference is ten times as long as, and not longer than three expected run times."""
    assert validation.default_windows(count, ert) == windows


def test_windows_are_sorted() -> None:
    """In whatever order, and of whatever integer type, they are given."""
    assert fitted(window=(np.int64(7), 3)).windows_ == (3, 7)
    assert fitted(window=np.array([6, 2])).windows_ == (2, 6)
    assert fitted(window=np.int32(4)).windows_ == (4,)


@pytest.mark.parametrize(("copies", "discrete"), [(1, False), (19, False), (20, True), (30, True)])
@pytest.mark.parametrize("kind", ["rows", "words", "dicts"])
def test_few_distinct_values(copies: int, discrete: bool, kind: str) -> None:
    """A reference is discrete where each value occurs twenty times."""
    rows = np.tile([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]], (copies, 1))
    points: Any = {"rows": rows, "words": list(map(str, rows)), "dicts": [{"x": x} for x in rows[:, 0]]}[kind]
    assert validation.few_distinct(points) == discrete


# Columns and references without variation


@pytest.mark.parametrize("statistic", [MMD(), LSDD(), MeanShift()], ids=lambda statistic: statistic.name)
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6])
def test_constant_columns(statistic: Any, constant: float) -> None:
    """A column that never moved is no error and no noise, and is heard when it moves."""
    reference = np.column_stack([ROWS, np.full(60, constant)])
    with_column, without = (fitted(statistic, rows, reset_on_alarm=False) for rows in (reference, ROWS))
    np.testing.assert_allclose(with_column.thresholds_, without.thresholds_, rtol=1e-5)
    quiet, same = with_column.update_many(reference[:30]), without.update_many(ROWS[:30])
    np.testing.assert_allclose(quiet.statistic, same.statistic, rtol=1e-4, atol=1e-6)
    assert with_column.update_many(np.column_stack([ROWS[:10], np.full(10, constant + 20)])).alarm[5:].all()


@pytest.mark.parametrize(
    "statistic", [MeanShift(), MMD(Gaussian(width=1.0)), LSDD(width=1.0)], ids=lambda statistic: statistic.name
)
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_all_points_equal(statistic: Any, value: float) -> None:
    """Where a scale is given, or none is needed, a reference of one value rings as soon as there is another."""
    detector = fitted(statistic, np.full((60, 2), value), reset_on_alarm=False)
    quiet = detector.update_many(np.full((20, 2), value))
    assert np.isfinite(quiet.statistic).all()
    # (MMD is unbiased: a single new point in the window does not show.)
    assert detector.update_many(np.full((5, 2), value + 3)).alarm[1:].all()


def test_an_expected_run_time_that_allows_no_quiet_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every window drawn from the reference rings at once, the error says so."""
    monkeypatch.setattr("tocsin._detector.starting.MOST_STARTS", 3)
    monkeypatch.setattr("tocsin._detector.fitting.Simulation", BelowEverything)
    with pytest.raises(InputError, match=r"3 windows .* rang at once.*ert=30 is too small.*start='cold'"):
        fitted()
    assert fitted(start="cold", reset_on_alarm=False).update_many(ROWS[:10]).alarm[4:].all()


class BelowEverything(Simulation):
    """A calibration that finds thresholds below all that can be."""

    def run(self, guarantee: float | None) -> tuple[Calibration, Normaliser]:
        """The calibration, and the normaliser."""
        calibration, normaliser = super().run(guarantee)
        return replace(calibration, thresholds=calibration.thresholds - 1e9), normaliser
