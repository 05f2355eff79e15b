"""The GPU: fits, row sums, blocks of observations and a bank of streams, with the floors that operations and bytes set.

    python -m benchmarks.gpu            # everything, on the first GPU
    python -m benchmarks.gpu --profile  # where the time of a fit goes

Times are the best of nine fits, or of a few of the others, after a first one that compiles. The floors of row sums
count what must be done: products in TF32, and exponentials, at the rates of an H200.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
import triton

from tocsin import MMD, Detector, DetectorBank, Gaussian, Independent
from tocsin._compute import load
from tocsin._compute.arrays import Float64Array

N, D, WINDOW, PATHS, ERT = 20_000, 32, 100, 100_000, 5000.0

TF32, EXPONENTIALS = 4.0e14, 4.2e12
"""Multiply-adds of the matrix units in TF32 (three of which make a product in float32), counted twice, and
exponentials (16 a clock on each of 132 processors at 1.98 GHz), a second."""

STEADY, FAMILY, INTERVAL = "steady at 2 %", "default family", "default family, with its interval"


def timed(function: Callable[[], object], repeats: int = 3) -> float:
    """Seconds, the best of a few, after one that does not count."""
    function()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return min(times)


def reference(count: int = N) -> Float64Array:
    return np.random.default_rng(0).normal(size=(count, D))


def fits() -> dict[str, Callable[[], Detector]]:
    """The fits that are measured."""
    points = reference()
    # Millions of rows hold hundreds of false alarms, after which new runs would begin, on the host.
    plain = partial(Detector, reset_on_alarm=False, backend="torch", device="cuda")
    family = partial(plain, ERT, sampler=Independent(), seed=1, error=0.02)
    single = partial(family, statistic=MMD(Gaussian()), window=WINDOW)

    def fit(make: Callable[[], Detector]) -> Callable[[], Detector]:
        return lambda: make().fit(points, progress=False)

    return {
        "paper mode": fit(partial(single, mode="paper", paths=PATHS, interval=False)),
        STEADY: fit(partial(single, interval=False)),
        "steady at 2 %, with its interval": fit(single),
        FAMILY: fit(partial(family, interval=False)),
        INTERVAL: fit(family),
    }


def row_sums() -> None:
    """Exact row sums of large kernel matrices, one width and five."""
    for count in (N, 200_000, 1_000_000):
        points = torch.randn((D, count), device="cuda", generator=torch.Generator("cuda").manual_seed(0)) / 10
        for widths in (1, 5):
            multipliers = np.array([1, 0, 0, 64, 0][:widths], np.float32)
            own, compute = torch.arange(count, device="cuda"), load("torch", "cuda")
            arguments = (points, count, points, own, 0, multipliers, np.empty((0, 0), np.float32))
            seconds = timed(lambda: compute.gaussian_row_sums(*arguments), 1)  # noqa: B023
            flops = 3 * 2 * D * count**2 / TF32
            exps = count**2 * (1 if widths == 1 else 2) / EXPONENTIALS
            print(
                f"row sums, N = {count:,}, {widths} widths: {seconds:.3f} s (floor {max(flops, exps):.3f} s)",
                flush=True,
            )


def blocks(detectors: dict[str, Detector]) -> None:
    """`update_many`, without new runs after false alarms."""
    for name, detector in detectors.items():
        block = torch.randn((3_000_000, D), device="cuda", generator=torch.Generator("cuda").manual_seed(0))
        host = block.double().cpu().numpy()
        for place, data in (("GPU", block), ("host", host)):
            seconds = timed(lambda: detector.update_many(data), 2)  # noqa: B023
            print(
                f"update_many, {name}, block on the {place}: {len(data) / seconds / 1e6:.2f} million a second",
                flush=True,
            )


def banks(detectors: dict[str, Detector]) -> None:
    """Steps of ten thousand streams."""
    for name, detector in detectors.items():
        bank = DetectorBank(detector, 10_000)
        block = torch.randn((10_000, D), device="cuda")
        host = block.double().cpu().numpy()
        for place, data in (("GPU", block), ("host", host)):
            seconds = timed(lambda: bank.update(data), 20)  # noqa: B023
            print(f"bank of 10,000 streams, {name}, block on the {place}: {1000 * seconds:.2f} ms a step", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="show where the time of fits and blocks goes")
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "Triton", triton.__version__)
    measured = fits()
    for name, fit in measured.items():
        print(f"fit, {name}: {timed(fit, 9):.3f} s", flush=True)
    detectors = {name: measured[fit]() for name, fit in (("one channel", STEADY), ("default family", FAMILY))}
    if options.profile:
        for work in (measured[STEADY], measured[INTERVAL], lambda: blocks(detectors), lambda: banks(detectors)):
            profile = cProfile.Profile()
            profile.runcall(work)
            pstats.Stats(profile).sort_stats("tottime").print_stats(16)
        return
    row_sums()
    blocks(detectors)
    banks(detectors)


if __name__ == "__main__":
    main()
