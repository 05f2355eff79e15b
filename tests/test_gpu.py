"""What only a GPU can show. `make test-gpu` runs these, and the tests of the torch backend, on one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from tocsin import MMD, Detector, DetectorBank, Gaussian, Independent, Landmarks
from tocsin._compute import Functions, load

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'tocsin[torch]'")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")

NO_WEIGHTS = np.empty((0, 0), np.float32)
WIDTHS = np.array([0.2, 0, 0, 12.8, 0], np.float32)


def on_gpu() -> Functions:
    return load("torch", "cuda")


def columns(seed: int, d: int, count: int, spread: float = 1.0) -> Any:
    return (spread * np.random.default_rng(seed).normal(size=(d, count))).astype(np.float32)


@pytest.mark.parametrize(("d", "count", "n"), [(1, 70, 3), (5, 1000, 130), (32, 3000, 700), (70, 500, 129)])
@pytest.mark.parametrize("guard", [0, 4])
def test_row_sums_and_products(d: int, count: int, n: int, guard: int) -> None:
    points, own = columns(0, d, count, d**-0.5), np.arange(n)
    compute, plain = on_gpu(), load("numba")
    weights = np.random.default_rng(1).integers(0, 4, (count, 70)).astype(np.float32)
    padded = np.zeros((d, -(-count // 64) * 64), np.float32)
    padded[:, :count] = points
    for name, last in (("gaussian_row_sums", NO_WEIGHTS), ("gaussian_products", weights)):
        arguments = (count, points[:, :n], own, guard, WIDTHS, last)
        got, expected = (
            compute.get(getattr(compute, name)(compute.put(padded), *arguments)),
            getattr(plain, name)(padded, *arguments),
        )
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-6 * float(np.abs(expected).max()))


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e4])
def test_points_that_are_far_out_and_alike_keep_their_digits(offset: float) -> None:
    """Clusters far from the centre, where differences of squares would lose everything."""
    points = columns(0, 3, 640, 0.05)
    points[:, ::3] += np.float32(offset)
    arguments = (640, points, np.arange(640), 0, WIDTHS, NO_WEIGHTS)
    compute = on_gpu()
    got = compute.get(compute.gaussian_row_sums(compute.put(points), *arguments))
    np.testing.assert_allclose(got, load("numba").gaussian_row_sums(points, *arguments), rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"window": (5, 20)},
        {"statistic": MMD(Gaussian()), "window": 20},
        {"statistic": MMD(Gaussian()), "window": 20, "mode": "paper"},
        {"statistic": MMD(approximation=Landmarks(60)), "window": (5, 20)},
    ],
)
def test_the_gpu_and_the_cpu_give_the_same_thresholds(options: dict[str, Any]) -> None:
    """PyTorch draws the same streams on both."""
    sample = np.random.default_rng(0).normal(size=(500, 4))
    given = {"sampler": Independent(), "paths": 2000, "seed": 3, **options}
    detectors = [
        Detector(100, backend="torch", device=device, **given).fit(sample, progress=False) for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(detectors[0].thresholds_, detectors[1].thresholds_, rtol=1e-4)


def test_tensors_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block on the GPU has the outcomes of the same block on the host, and never comes down as a whole."""
    sample = torch.randn((2000, 6), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
    detector = Detector(500, window=(8, 25), paths=2000, seed=1, device="cuda").fit(sample, progress=False)
    block = torch.randn((50_000, 6), device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    rows = block.cpu().numpy().astype(np.float64)
    twin, another = deepcopy(detector), deepcopy(detector)
    down = torch.Tensor.cpu

    def small(tensor: Any, *arguments: Any) -> Any:
        assert tensor.numel() < block.numel() / 2
        return down(tensor, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "cpu", small)
        got = detector.update_many(block)
    np.testing.assert_allclose(got.statistic, twin.update_many(rows).statistic, rtol=1e-6, atol=1e-6)
    one_by_one = np.array([another.update(row).statistic for row in rows[:200]])
    np.testing.assert_allclose(got.statistic[:200], one_by_one, rtol=1e-5, atol=1e-5)


def test_a_bank_takes_tensors() -> None:
    sample = np.random.default_rng(0).normal(size=(1000, 4))
    detector = Detector(200, window=(5, 20), paths=2000, seed=1, device="cuda").fit(sample, progress=False)
    host, device = DetectorBank(detector, 100), DetectorBank(detector, 100)
    for _ in range(30):
        rows = torch.randn((100, 4), device="cuda")
        np.testing.assert_allclose(
            device.update(rows).statistic, host.update(rows.cpu().numpy()).statistic, rtol=1e-5, atol=1e-5
        )


def test_little_memory_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is planned by what is free; results do not depend on it."""
    from tocsin._compute import torch_memory

    sample = np.random.default_rng(0).normal(size=(500, 4))
    detector = Detector(100, sampler=Independent(), window=(5, 20), paths=3000, seed=3, backend="torch", device="cuda")
    plenty = detector.fit(sample, progress=False).thresholds_
    monkeypatch.setattr(torch_memory, "free_bytes", lambda device: 2**20)
    np.testing.assert_allclose(detector.fit(sample, progress=False).thresholds_, plenty, rtol=1e-6)
