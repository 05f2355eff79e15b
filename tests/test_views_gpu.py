"""Views of many streams on a GPU: rows and sums are the host's, and what is heard is, to the rounding of logarithms.

All that is kept in whole numbers is compared to the last bit. Running scales are kept in float32, where a last digit of
a logarithm may tip a rounding: they and what is heard are compared to CLOSE. Alarms must be the same; none of these
streams comes as near to its threshold.

It runs where TOCSIN_TEST_DEVICE is a GPU, or on a CPU with TRITON_INTERPRET=1 and Triton installed (minutes).
"""

from __future__ import annotations

import copy
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends import DEVICE, HAS_TORCH, on_device
from test_compute import ARGUMENTS, Sizes
from test_views_many import STREAMS, alone, fitted, streams, views_of
from tocsin import Detector, DetectorBank
from tocsin._compute import LazyFunctions, protocol
from tocsin._compute.arrays import Float64Array
from tocsin._statistics.view_model import MOST_COLUMNS
from tocsin._statistics.view_streams import summed

CLOSE = 1e-6
INTERPRETED = DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
SOME = 4 if INTERPRETED else 25
"""Examples; and, of streams, one row in so many less."""

pytestmark = pytest.mark.skipif(
    not HAS_TORCH or find_spec("triton") is None or not (INTERPRETED or DEVICE != "cpu"),
    reason="needs a GPU (TOCSIN_TEST_DEVICE=cuda), or Triton and TRITON_INTERPRET=1",
)


@pytest.fixture(autouse=True)
def by_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams step by Triton, also where it is interpreted."""
    if INTERPRETED:
        monkeypatch.setattr(LazyFunctions, "stepping", property(lambda self: self))


def there(**options: Any) -> Detector:
    return fitted(backend="torch", device=DEVICE, **options)


def kept_alike(bank: DetectorBank, twin: DetectorBank) -> None:
    """What two banks keep of their streams, and that sums are those of the rows."""
    one, other, live = bank._windows.state(), twin._windows.state(), views_of(twin.detector)
    for name, part in one.items():
        np.testing.assert_allclose(part, other[name], rtol=CLOSE if name in ("scale", "loud") else 0, err_msg=name)
    expected = summed(one, live.ear, live.model.spans, on_device("numba"))
    for s in range(len(expected)):
        np.testing.assert_array_equal(bank._windows.heard(s)[0]["sums"][0], expected[s])


def heard_alike(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one.statistic, other.statistic, rtol=CLOSE)
    for name in ("time", "alarm", "loudest", "threshold"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@settings(max_examples=SOME)
@given(
    seed=st.integers(0, 2**32), columns=st.integers(1, 5), tabulated=st.booleans(), together=st.integers(1, 2),
    guard=st.integers(0, 1), windows=st.sampled_from([(1,), (5,), (2, 7), (3, 4, 8)]),
)  # fmt: skip
def test_it_equals_the_readable_one(seed: int, windows: tuple[int, ...], **sizes: Any) -> None:
    """Several rows of a stream, up to an alarm or not, with all channels or not; along axes or not."""
    given = ARGUMENTS["view_watch"](Sizes(seed, 40, windows=windows, multipliers=(1.0,), **sizes))
    functions, expected = on_device("torch"), copy.deepcopy(given)
    put: list[Any] = [functions.put(part.copy()) if isinstance(part, np.ndarray) else part for part in given]
    functions.view_watch(*put)
    on_device("numpy").view_watch(*expected)
    names = list(protocol.Hot.view_watch.__annotations__)[:-1]
    for name, one, other in zip(names, put, expected, strict=True):
        if isinstance(other, np.ndarray):
            close = CLOSE if name in ("scale", "loud", "best", "out") else 0
            np.testing.assert_allclose(functions.get(one), other, rtol=close, err_msg=name)


@pytest.mark.parametrize(
    "options", [{}, {"columns": MOST_COLUMNS + 3}, {"reset_on_alarm": False}, {"window": 6}], ids=str
)
def test_streams_of_a_bank_are_those_of_the_host(options: dict[str, Any], tmp_path: Path) -> None:
    """In any order, when only some take part, through alarms, resets, and files that go to the host and back."""
    rows, rng, rang = streams(options.get("columns", 3)), np.random.default_rng(0), 0
    rows = rows[80:130] if INTERPRETED else rows
    bank, twin = DetectorBank(there(**options), STREAMS), DetectorBank(fitted(**options), STREAMS)
    assert f"; on torch on {DEVICE}; " in repr(bank)
    for t, every in enumerate(rows):
        chosen = rng.permutation(STREAMS)[: STREAMS - t % 3 % 2]
        heard = bank.update(every[chosen], chosen)
        heard_alike(heard, twin.update(every[chosen], chosen))
        rang += int(heard.alarm.sum())
        if t % 50 == 30:
            for each in (bank, twin):
                each.reset([t % STREAMS])
        if t % 70 == 40:
            bank.save(tmp_path / "there.tocsin")
            twin.save(tmp_path / "here.tocsin")
            bank = DetectorBank.load(tmp_path / "here.tocsin", backend="torch", device=DEVICE)
            twin = DetectorBank.load(tmp_path / "there.tocsin", backend="numba", device="cpu")
            kept_alike(bank, twin)
        assert (bank.run.tolist(), bank.time.tolist()) == (twin.run.tolist(), twin.time.tolist())
    kept_alike(bank, twin)
    assert rang > (0 if INTERPRETED else 2)


def test_a_detector_alone_is_one_of_them() -> None:
    """It is heard on the host, and explains its alarms as the bank does."""
    detector, told = there(), 0
    bank, twins = DetectorBank(detector, STREAMS), alone(detector)
    for every in streams()[90:120]:
        for s, (outcome, row) in enumerate(zip(bank.update(every), every, strict=True)):
            expected = twins[s].update(row)
            assert (outcome.alarm, outcome.time, outcome.channel) == (expected.alarm, expected.time, expected.channel)
            np.testing.assert_allclose(outcome.statistic, expected.statistic, rtol=CLOSE)
            if outcome.alarm:
                mine, its = bank.explain(s), twins[s].explain()
                assert [column.name for column in mine.columns] == [column.name for column in its.columns]
                assert mine.began == its.began
                told += 1
    assert told


def test_tensors_stay_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """In single precision too, and as columns of something larger; none comes to the host."""
    torch = pytest.importorskip("torch")
    if INTERPRETED:
        pytest.skip("a tensor on the CPU is taken as NumPy's")
    bank, twin, rows = DetectorBank(there(), STREAMS), DetectorBank(there(), STREAMS), streams()[:30]
    rows = np.clip(rows, -100, 100).astype(np.float32)
    put = torch.as_tensor(rows, device=DEVICE)
    wide = torch.cat([put, put], 2).double()
    monkeypatch.setattr("tocsin._data.intake.Rows.many", None)
    there_ = [bank.update(wide[t, :, :3] if t % 2 else put[t]) for t in range(len(rows))]
    monkeypatch.undo()
    for one, every in zip(there_, rows, strict=True):
        heard_alike(one, twin.update(every.astype(np.float64)))


def test_many_streams_and_none() -> None:
    """More than a thread of the host steps at once are one launch; no stream is none."""
    count = 40 if INTERPRETED else 3000
    rows = np.random.default_rng(9).standard_normal((12, count, 3)).cumsum(0)
    bank, twin = DetectorBank(there(), count), DetectorBank(fitted(), count)
    for every in rows[: 4 if INTERPRETED else None]:
        heard_alike(bank.update(every), twin.update(every))
    assert len(bank.update(np.empty((0, 3)), [])) == 0
    kept_alike(bank, twin)


def quiet(count: int) -> Float64Array:
    return np.random.default_rng(0).standard_normal((count, 3))


def test_a_step_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong before the launch."""
    bank, twin = (DetectorBank(there(), STREAMS) for _ in range(2))
    with monkeypatch.context() as patched:

        def full(*_: Any) -> None:
            raise MemoryError

        patched.setattr("tocsin._compute.triton_view_streams.view_watch", full)
        with pytest.raises(MemoryError):
            bank.update(quiet(STREAMS))
    heard_alike(bank.update(quiet(STREAMS)), twin.update(quiet(STREAMS)))
    kept_alike(bank, twin)
