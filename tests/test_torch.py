"""What only the PyTorch backend has: its random numbers, its memory, and streams that go on with another backend.

Chi-square tests, and bounds of BOUND standard errors, fail falsely once in 10^6 each; seeds are fixed and were not
chosen. All of it runs on the CPU.
"""

from __future__ import annotations

import copy
import json
import zipfile
from collections.abc import Callable
from itertools import pairwise, permutations
from math import perm
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from backends import DEVICE, on_device
from tocsin import LSDD, MMD, Custom, Detector, Gaussian, MeanShift
from tocsin import _compute as compute
from tocsin._compute.arrays import Array

MISSING = "PyTorch is not installed: pip install 'tocsin[torch]'"
torch = pytest.importorskip("torch", reason=MISSING)
torch_ = pytest.importorskip("tocsin._compute.torch_", reason=MISSING)
torch_memory = pytest.importorskip("tocsin._compute.torch_memory", reason=MISSING)
torch_pairs = pytest.importorskip("tocsin._compute.torch_pairs", reason=MISSING)
torch_live = pytest.importorskip("tocsin._compute.torch_live", reason=MISSING)

RARE = 1e-6
BOUND = 4.9
FUNCTIONS = on_device("torch")


def chi_square(counts: Array) -> float:
    """p-value of counts of independent draws among as many values that are equally likely."""
    return float(stats.chisquare(counts).pvalue)


# Random numbers


def splitmix(seed: int, place: int) -> float:
    """The number at a place (from 1) of the stream of a seed, in whole numbers of any size."""
    x, mask = seed + place * 0x9E3779B97F4A7C15, 2**64 - 1
    x &= mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return float(((x ^ (x >> 31)) >> 11) / 2**53)


@given(seed=st.integers(0, 2**62 - 1), size=st.integers(1, 300), cut=st.integers(0, 300))
def test_hashed_numbers_are_those_of_their_places(seed: int, size: int, cut: int) -> None:
    """However many are asked for: each depends on the seed and on its place alone, as splitmix64 has it."""
    numbers = torch_._hashed(seed, size, "cpu")
    assert numbers.tolist() == [splitmix(seed, place) for place in range(1, size + 1)]
    assert torch_._hashed(seed, min(cut, size), "cpu").tolist() == numbers[:cut].tolist()


def test_uniform_numbers() -> None:
    """From 0 to 1, alike, and a number tells nothing of the next; others for other calls, the same for the same seed.

    Chi-square over 100 cells, 10^6 numbers: sees one that is 9 % too full.
    """
    rng = np.random.default_rng(0)
    numbers = FUNCTIONS.get(FUNCTIONS.uniforms(rng, (1000, 1000)))
    assert numbers.dtype == np.float64
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert chi_square(np.bincount((100 * numbers.ravel()).astype(int), minlength=100)) > RARE
    cells = (10 * numbers.reshape(-1, 2)).astype(int)
    assert chi_square(np.bincount(10 * cells[:, 0] + cells[:, 1], minlength=100)) > RARE
    more = FUNCTIONS.get(FUNCTIONS.uniforms(rng, (1000, 1000)))
    assert not np.isin(more, numbers).any()
    np.testing.assert_array_equal(FUNCTIONS.get(FUNCTIONS.uniforms(np.random.default_rng(0), (1000, 1000))), numbers)


@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_whole_numbers(count: int) -> None:
    """Each below `count`, and as likely as the others: sees one of 300 that comes 20 % too often."""
    numbers = FUNCTIONS.get(FUNCTIONS.integers(np.random.default_rng(1), count, (500, 600)))
    assert numbers.dtype == np.int32
    assert 0 <= numbers.min() <= numbers.max() < count
    if count > 1:
        assert chi_square(np.bincount(numbers.ravel(), minlength=count)) > RARE


def test_the_largest_uniform_number_is_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest number below 1 makes the last whole number, and not the one after it."""
    monkeypatch.setattr(
        torch_, "_hashed", lambda seed, size, device: torch.full((size,), np.nextafter(1.0, 0.0), dtype=torch.float64)
    )
    for count in [*range(1, 200), 2**20 - 1, 10**9, 2**31 - 1]:
        assert torch_.integers("cpu", np.random.default_rng(0), count, (1,)).tolist() == [count - 1]


@pytest.mark.parametrize(("count", "length"), [(5, 2), (30, 2), (4, 3), (4, 4), (5, 5), (3, 1)])
def test_distinct_numbers_come_in_any_order_alike(count: int, length: int) -> None:
    """Every ordered choice is as likely as the others, also where (nearly) all numbers are in it.

    Chi-square over up to 870 choices, 10^5 streams: sees one of 20 pairs that comes 10 % too often, one of 120 orders
    that comes 25 % too often.
    """
    streams = FUNCTIONS.get(FUNCTIONS.distinct(np.random.default_rng([2, count, length]), count, (100_000, length)))
    assert streams.dtype == np.int32
    places = {choice: i for i, choice in enumerate(permutations(range(count), length))}
    counts = np.bincount([places[tuple(stream)] for stream in streams.tolist()], minlength=len(places))
    assert len(counts) == perm(count, length)
    assert chi_square(counts) > RARE


@given(count=st.integers(1, 120), spare=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_distinct_numbers_are_distinct(count: int, spare: int, seed: int) -> None:
    """Even where a stream takes all of them, or all but a few."""
    length = max(1, count - spare)
    streams = FUNCTIONS.get(FUNCTIONS.distinct(np.random.default_rng(seed), count, (7, length)))
    assert streams.shape == (7, length)
    assert all(len(set(stream)) == length for stream in streams.tolist())
    assert 0 <= streams.min() <= streams.max() < count


def test_pseudo_references_are_multinomial() -> None:
    """N draws each, points alike, and counts that vary as those of N independent draws.

    The sum of (count - 1)^2 has a mean of N - 1 and a variance below 2 (N - 1): over 5000 copies sees a spread that is
    3 % off. Two copies are independent: their products of deviations average 0.
    """
    count, copies = 20, 5000
    weights = FUNCTIONS.get(FUNCTIONS.references(np.random.default_rng(3), count, copies))
    assert weights.dtype == np.float32
    assert weights.shape == (count, copies)
    assert (weights.sum(0) == count).all()
    assert (weights == weights.round()).all()
    assert chi_square(weights.sum(1)) > RARE
    squares = ((weights - 1) ** 2).sum(0)
    assert abs(squares.mean() - (count - 1)) < BOUND * (2 * (count - 1) / copies) ** 0.5
    products = ((weights[:, ::2] - 1) * (weights[:, 1::2] - 1)).sum(0)
    assert abs(products.mean()) < BOUND * products.std() / len(products) ** 0.5


# Memory


class Small:
    """A device that holds `room` items at once: a function that notes what it was asked for."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[tuple[int, int]] = []
        self.done: list[int] = []

    def __call__(self, start: int, stop: int) -> None:
        """Do these."""
        self.asked.append((start, stop))
        if stop - start > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        self.done.extend(range(start, stop))


CPU = torch.device("cpu")


@given(count=st.integers(0, 200), room=st.integers(1, 60), planned=st.integers(1, 300))
def test_pieces_that_do_not_fit_are_halved(count: int, room: int, planned: int) -> None:
    """Each item is done once and in order, in pieces no larger than planned, and never larger again."""
    small = Small(room)
    torch_memory.in_pieces(small, count, torch_memory.HOST_BYTES / (planned + 0.5), CPU)
    assert small.done == list(range(count))
    sizes = [stop - start for start, stop in small.asked]
    assert all(0 < size <= planned for size in sizes)
    assert all(later <= earlier for earlier, later in pairwise(sizes))
    assert sum(size > room for size in sizes) <= np.log2(planned) + 1


def test_a_piece_is_halved_in_the_middle() -> None:
    """What was done before stays done, and the piece that failed is done again in halves."""
    small = Small(50)
    original = small.__call__

    def shrinking(start: int, stop: int) -> None:
        small.room = 50 if start < 100 else 13
        original(start, stop)

    torch_memory.in_pieces(shrinking, 150, torch_memory.HOST_BYTES / 50.5, CPU)
    assert small.done == list(range(150))
    assert small.asked[:5] == [(0, 50), (50, 100), (100, 150), (100, 125), (100, 112)]


@pytest.mark.parametrize("count", [1, 2, 17])
def test_a_single_item_that_does_not_fit(count: int) -> None:
    """Then nothing can be done: the error is PyTorch's."""
    small = Small(0)
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch_memory.in_pieces(small, count, 1.0, CPU)
    assert small.asked[-1] == (0, 1)
    assert not small.done


def test_other_errors_are_not_taken_for_want_of_memory() -> None:
    """They come through at once."""
    calls = []

    def broken(start: int, stop: int) -> None:
        calls.append(start)
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        torch_memory.in_pieces(broken, 8, 1.0, CPU)
    assert calls == [0]


@pytest.mark.parametrize("name", ["pair_bootstrap_paths", "pair_split_paths", "feature_bootstrap_paths"])
def test_paths_are_the_same_in_pieces(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One path at a time, or all at once: to 1e-9 of their scale (they are kept in float32)."""
    rng = np.random.default_rng(4)
    points, windows, widths = rng.normal(size=(40, 3)), np.array([2, 5]), np.array([1.0, 0.0], np.float32)
    streams = np.stack([rng.permutation(40)[:9] for _ in range(6)]).astype(np.int32)
    copies, none = np.zeros((6, 1), np.int32), np.empty((0, 0), np.float32)
    single, linear = points.astype(np.float32), rng.normal(size=(1, 2, 40)).astype(np.float32)
    arguments: dict[str, list[Any]] = {
        "pair_bootstrap_paths": [
            FUNCTIONS.put(single), none, streams, copies, windows, widths, linear[0], np.zeros((2, 1)), linear, 0,
        ],
        "pair_split_paths": [FUNCTIONS.put(single), none, streams, windows, widths, np.full((2, 40), 20.0), 0],
        "feature_bootstrap_paths": [points, streams, copies, windows, points[:, 0], np.zeros(1), points[:, :1].T, 1.0],
    }  # fmt: skip
    together = FUNCTIONS.get(getattr(FUNCTIONS, name)(*arguments[name]))
    monkeypatch.setattr(torch_memory, "HOST_BYTES", 1)
    apart = FUNCTIONS.get(getattr(FUNCTIONS, name)(*arguments[name]))
    np.testing.assert_allclose(apart, together, rtol=0, atol=1e-9 * np.abs(together).max())


# Sums over windows


@given(seed=st.integers(0, 2**32), length=st.integers(1, 40), window=st.integers(1, 40))
def test_sums_over_windows(seed: int, length: int, window: int) -> None:
    """Every window of that many values in a row, in any number of dimensions."""
    window = min(window, length)
    values = np.random.default_rng(seed).normal(size=(2, 3, length))
    expected = np.stack([values[..., t : t + window].sum(-1) for t in range(length - window + 1)], -1)
    np.testing.assert_allclose(torch_pairs.window_sums(torch.as_tensor(values), window), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("size", [1e6, 1e18, 1e300])
@given(seed=st.integers(0, 2**32), window=st.integers(1, 12), place=st.integers(0, 39))
def test_an_outlier_leaves_no_trace_in_sums(size: float, seed: int, window: int, place: int) -> None:
    """Once it has left the window, and before it has come, sums are what they are without it, bit for bit."""
    values = np.random.default_rng(seed).normal(size=40)
    clean = torch_pairs.window_sums(torch.as_tensor(values), window).numpy()
    wild = values.copy()
    wild[place] = size
    got = torch_pairs.window_sums(torch.as_tensor(wild), window).numpy()
    first = np.arange(len(got))
    met = (first <= place) & (place < first + window)
    np.testing.assert_array_equal(got[~met], clean[~met])
    assert (got[met] > size / 2).all()


# From one backend to another


@given(
    seed=st.integers(0, 2**32),
    windows=st.sampled_from([(2,), (5,), (2, 3, 9)]),
    typical=st.sampled_from([-1, 0]),
    cuts=st.lists(st.integers(0, 80), max_size=6),
    first=st.integers(0, 2),
)
def test_a_live_stream_may_change_backends(
    seed: int, windows: tuple[int, ...], typical: int, cuts: list[int], first: int
) -> None:
    """In mid-stream, at any place and as often as one likes: the state of recent points is the same for all.

    On a GPU, squares of distances are taken from squared lengths, here of up to 30, in float32: they are off by up to
    30 times 2 ulps of 6e-8, kernels by as much, and the pairs of a window by twice that. Mixed up points would be off
    by tenths.
    """
    rng, widths, capacity, length = np.random.default_rng(seed), np.array([1.0, 0.0], np.float32), 4 * windows[-1], 80
    block, linear = rng.normal(size=(2, length)).astype(np.float32), rng.normal(size=(2, length))

    count = (len(widths) + (typical >= 0)) * len(windows)

    def state() -> tuple[Array, Array, Array, Array, Array, Array, Array, int, Array, Array]:
        buffer, ahead = np.zeros((2, capacity + 64), np.float32), np.zeros((2, capacity), np.float32)
        kept = buffer, ahead, np.zeros((2, capacity)), np.array([0])
        return *kept, np.array(windows), widths, np.ones(2), typical, np.arange(count), np.ones(count)

    expected = on_device("numpy").pair_advance(*state(), block, linear, 0, length)
    mixed, got, backends = state(), [], (FUNCTIONS, on_device("numba"), on_device("numpy"))
    for i, (start, stop) in enumerate(pairwise(sorted({0, *cuts, length}))):
        functions = backends[(i + first) % 3]
        rows = functions.pair_advance(*mixed, functions.put(block), functions.put(linear), start, stop)
        got.append(functions.get(rows))
    np.testing.assert_allclose(np.concatenate(got), expected, rtol=0, atol=1e-5 if FUNCTIONS.on_gpu else 1e-6)


def widest_gap(X: Array, Y: Array) -> float:
    """A distance between two samples of rows."""
    return float(abs(X.max() - Y.max()) + abs(X.min() - Y.min()))


STATISTICS: dict[str, Callable[[], Any]] = {
    "MMD": MMD,
    "MMD, one width": lambda: MMD(Gaussian()),
    "all": lambda: [MMD(Gaussian()), LSDD(centres=4), MeanShift(), Custom(widest_gap)],
}


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize(("fitted_with", "goes_on_with"), [("torch", "numba"), ("numba", "torch")])
@pytest.mark.usefixtures("quick_fits")
def test_a_detector_goes_on_with_another_backend(
    name: str, fitted_with: compute.Backend, goes_on_with: compute.Backend, tmp_path: Path
) -> None:
    """Saved after its `backend` was changed, or loaded from a file in which it is: the same statistics to 1e-6."""
    rng = np.random.default_rng(5)
    reference, stream = rng.normal(size=(60, 3)), rng.normal(size=(90, 3))
    stream[50:] += 1.5
    statistic = STATISTICS[name]()
    detector = Detector(
        30, statistic, window=(3, 6), paths=150, interval=False, seed=3, backend=fitted_with, device="cpu"
    ).fit(reference)
    detector.update_many(stream[:20])
    before = copy.deepcopy(detector)
    expected = detector.update_many(stream[20:])
    assert expected.alarm.any()

    before.save(tmp_path / "same.tocsin")
    before.set_params(backend=goes_on_with).save(tmp_path / "set.tocsin")
    with zipfile.ZipFile(tmp_path / "same.tocsin") as old, zipfile.ZipFile(tmp_path / "edited.tocsin", "w") as new:
        for member in old.namelist():
            content = old.read(member)
            if member == "tocsin.json":
                description = json.loads(content)
                assert description["options"]["items"]["backend"] == fitted_with
                description["options"]["items"]["backend"] = goes_on_with
                content = json.dumps(description).encode()
            new.writestr(member, content)

    for path, backend in (("same", fitted_with), ("set", goes_on_with), ("edited", goes_on_with)):
        loaded = Detector.load(tmp_path / f"{path}.tocsin", statistic=statistic)
        assert loaded.backend == backend
        np.testing.assert_array_equal(loaded.thresholds_, detector.thresholds_)
        got = loaded.update_many(stream[20:])
        scale = np.nanmax(np.abs(expected.statistic))
        np.testing.assert_allclose(got.statistic, expected.statistic, rtol=0, atol=1e-6 * scale)
        np.testing.assert_array_equal(got.alarm, expected.alarm)


def test_a_block_without_enough_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a block that is taken in by pieces, one that fails takes the others with it."""
    sample = np.random.default_rng(0).normal(size=(200, 2))
    monkeypatch.setattr("tocsin._statistics.mmd_gaussian.NEARBY_WORK", 0)  # else a GPU leaves so little to the CPU
    detector = Detector(
        50, MMD(Gaussian()), window=5, reset_on_alarm=False, paths=200, interval=False, seed=1, backend="torch",
        device=DEVICE,
    )  # fmt: skip
    detector.fit(sample, progress=False)
    twin = copy.deepcopy(detector)
    whole, pieces = torch_live._advanced, 0

    def failing(*arguments: Any) -> Any:
        nonlocal pieces
        pieces += 1
        if pieces == 3:
            raise torch.OutOfMemoryError("no memory left")
        return whole(*arguments)

    block = np.random.default_rng(1).normal(size=(400, 2))
    with monkeypatch.context() as patched:
        patched.setattr(torch_live, "STEPS", 130)
        patched.setattr(torch_live, "_advanced", failing)
        patched.setattr("tocsin._statistics.mmd_gaussian.SHORT", 0)
        with pytest.raises(torch.OutOfMemoryError):
            detector.update_many(block)
    np.testing.assert_array_equal(detector.update_many(block).statistic, twin.update_many(block).statistic)


def test_detectors_say_what_computes(tmp_path: Path) -> None:
    """What did, whatever the options say later; and in a file's detector, what does now."""
    sample = np.random.default_rng(0).normal(size=(200, 2))
    options: dict[str, Any] = {"window": 5, "paths": 200, "interval": False, "seed": 1}
    detector = Detector(50, MMD(Gaussian()), **options, backend="torch", device=DEVICE)
    assert "computed by" not in repr(detector)
    detector.fit(sample, progress=False)
    assert repr(detector).endswith(f"computed by torch on {DEVICE}>")
    detector.save(tmp_path / "d")
    assert repr(detector.set_params(backend="numpy")).endswith(f"computed by torch on {DEVICE}>")
    assert repr(Detector.load(tmp_path / "d", backend="numba", device="cpu")).endswith("computed by numba>")
