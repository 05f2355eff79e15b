"""What views cost beside MMD, both with their default windows: one detector, a bank, a fleet; and what banks promise.

    python -m benchmarks.views [--quick]
    python -m benchmarks.views --promise  # a minute
    python -m benchmarks.views --gpu  # with PyTorch, Triton and a GPU

Streams of 8 and 20 columns, 1000 reference points. Microseconds of processor time, on all cores together, for an
observation; both are measured by turns, and the least of several rounds counts: other processes can only add to it.

--promise: alarms of quiet streams over those promised, in their first rows and later, on average over references, with
the standard error; thresholds for one fit's expected run time, and read off for others; and for many streams together,
of which each then rings so rarely that the fit extrapolates.

--gpu: a step of a bank, by the clock, on all cores of the host and on the GPU; and whether they heard the same.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

from tocsin import MMD, Detector, DetectorBank, Fleet, Independent, Outcomes, Views
from tocsin._compute.arrays import Float64Array

COLUMNS, REFERENCE, MEMORY, ROUNDS = (8, 20), 1000, 0.6, 9
STREAMS, KEYS, EACH, ROWS = 10_000, 1000, 10, 4000

Work = Callable[[], int]
"""Does something with so many observations, and says how many."""

Noise = Callable[[np.random.Generator, tuple[int, ...]], Float64Array]


def remembering(count: int, columns: int, seed: int) -> Float64Array:
    """Rows of an autoregression."""
    rows = np.random.default_rng(seed).standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += MEMORY * rows[t - 1]
    return rows[50:]


def works(detector: Detector, columns: int) -> dict[str, Work]:
    """Ways to watch."""
    rows, many = remembering(ROWS, columns, 2), remembering(STREAMS, columns, 3)
    bank, fleet = DetectorBank(detector, STREAMS), Fleet(detector)
    keys, owner, order = [str(k) for k in range(KEYS)], np.arange(KEYS * EACH) % KEYS, np.arange(KEYS * EACH)
    states = fleet.step(keys, [None] * KEYS, many[: KEYS * EACH], owner, order - KEYS * EACH).states

    def update() -> int:
        for row in rows[:500]:
            detector.update(row)
        return 500

    def update_many() -> int:
        return len(detector.update_many(rows))

    def step_of_a_bank() -> int:
        return len(bank.update(many))

    def step_of_a_fleet() -> int:
        return fleet.step(keys, states, many[: KEYS * EACH], owner, order).taken

    return {
        "update": update,
        "update_many": update_many,
        f"bank, {STREAMS:,} streams": step_of_a_bank,
        f"fleet, {KEYS:,} keys, {EACH} rows of each": step_of_a_fleet,
    }


def measured(several: list[Work], rounds: int) -> list[float]:
    """Microseconds of processor time for an observation, at least."""
    least = [np.inf] * len(several)
    for number in range(rounds + 1):
        for i, work in enumerate(several):
            began = time.process_time()
            count = work()
            if number:  # the first compiles
                least[i] = min(least[i], (time.process_time() - began) / count * 1e6)
    return least


def gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array:
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array:
    """Of Student's law with three degrees of freedom."""
    return rng.standard_t(3, shape)


LAWS = {"Gaussian, 1 column": (gaussian, 1), "heavy tails, 3 columns": (heavy, 3)}
POINTS, FITTED, OTHERS, FIRST, LATER, LONG = 400, 100, (72, 85, 100, 115), 100, 300, 600
TOGETHER, RARELY = 100, 20
"""Streams that share a promise, and observations of each in which one of them may ring."""
REFERENCES, QUIET = 12, 200


def autoregressions(law: Noise, rng: np.random.Generator, shape: tuple[int, ...]) -> Float64Array:
    """Streams (rows, streams, columns) that remember."""
    rows = law(rng, (shape[0] + 50, *shape[1:]))
    for t in range(1, len(rows)):
        rows[t] += MEMORY * rows[t - 1]
    return rows[50:]


def alarms(bank: DetectorBank, rows: Float64Array, ert: float) -> tuple[float, float]:
    """Over those promised, in first rows and in later ones."""
    found = np.array([bank.update(each).alarm.mean() for each in rows]) * ert
    return float(found[:FIRST].mean()), float(found[LATER:].mean())


def promises() -> None:
    print(f"| law | fitted for | asked for | first {FIRST} rows | rows from {LATER} on |\n|---|---|---|---|---|")
    for name, (law, columns) in LAWS.items():
        rates = dict[tuple[float, str], list[tuple[float, float]]]()
        for number in range(REFERENCES):
            rng = np.random.default_rng([81, number])
            reference = autoregressions(law, rng, (POINTS, 1, columns))[:, 0]
            rows = autoregressions(law, rng, (LONG, QUIET, columns))
            detector = Detector(FITTED, Views(), window=(3, 10), seed=number).fit(reference)
            for ert in OTHERS:
                found = alarms(DetectorBank(detector, QUIET, ert=ert), rows, ert)
                rates.setdefault((FITTED, f"{ert}"), []).append(found)
            rare = Detector(TOGETHER * RARELY, Views(), window=(3, 10), seed=number).fit(reference)
            bank = DetectorBank(rare, QUIET, ert=RARELY, for_all=TOGETHER)
            asked = f"{RARELY}, for all of {TOGETHER}"
            rates.setdefault((rare.ert, asked), []).append(alarms(bank, rows, bank.calibration_.ert))
        for (fitted, asked), each in rates.items():
            mean, error = np.mean(each, axis=0), np.std(each, axis=0, ddof=1) / np.sqrt(REFERENCES)
            told = [f"{m:.2f} ± {e:.2f}" for m, e in zip(mean, error, strict=True)]
            print(f"| {name} | {fitted:g} | {asked} | {told[0]} | {told[1]} |", flush=True)


def clocked(bank: DetectorBank, blocks: Sequence[object], rounds: int) -> tuple[float, float]:
    """Milliseconds of a step by the clock: the median, and the least."""
    times = []
    for number in range(rounds + 10):
        began = time.perf_counter()
        bank.update(blocks[number % len(blocks)])
        times.append(1000 * (time.perf_counter() - began))
    return float(np.median(times[10:])), min(times[10:])


def on_gpu(rounds: int) -> None:
    import torch

    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}. {STREAMS:,} streams; a step in ms, (at least)")
    print("| columns | host | GPU, rows on the host | rows on the GPU | host over GPU | alarms | apart, relatively |")
    print("|---|---|---|---|---|---|---|")
    for columns in COLUMNS:
        reference = remembering(REFERENCE, columns, 1)
        host, gpu = (
            DetectorBank(
                Detector(5000, Views(), seed=1, interval=False, paths=12, backend=backend).fit(reference), STREAMS
            )
            for backend in ("numba", "torch")
        )
        blocks = [remembering(STREAMS, columns, seed) for seed in range(3, 7)]
        pairs = [(host.update(rows), gpu.update(rows)) for rows in blocks * 20]
        heard = [(one.statistic, other.statistic) for one, other in pairs if not np.isnan(one.statistic).all()]
        apart = max(float(np.nanmax(np.abs(one / other - 1))) for one, other in heard)
        alarms, missed = (int(sum(part)) for part in zip(*map(alarms_of, pairs), strict=True))
        there = [torch.as_tensor(rows, device="cuda") for rows in blocks]
        found = [clocked(host, blocks, rounds), clocked(gpu, blocks, rounds), clocked(gpu, there, rounds)]
        told = [f"{median:.2f} ({least:.2f})" for median, least in found]
        same = f"{alarms}, all the same" if not missed else f"{missed} of {alarms} not the same"
        print(
            f"| {columns} | {' | '.join(told)} | {found[0][0] / found[1][0]:.1f} | {same} | {apart:.1g} |", flush=True
        )


def alarms_of(pair: tuple[Outcomes, Outcomes]) -> tuple[int, int]:
    """Alarms of one, and those that only one of both has."""
    one, other = pair
    return int(one.alarm.sum()), int((one.alarm != other.alarm).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--promise", action="store_true", help="alarms over those promised")
    parser.add_argument("--gpu", action="store_true", help="steps of a bank there, and on the host")
    given = parser.parse_args()
    if given.promise:
        promises()
        return
    if given.gpu:
        warnings.simplefilter("ignore")
        on_gpu(20 if given.quick else 200)
        return
    rounds = 3 if given.quick else ROUNDS
    print("| columns | | MMD, us | views, us | ratio |\n|---|---|---|---|---|")
    for columns in COLUMNS:
        reference = remembering(REFERENCE, columns, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = [
                Detector(5000, MMD(), seed=1, interval=False, paths=400, sampler=Independent()).fit(reference),
                Detector(5000, Views(), seed=1, interval=False, paths=12).fit(reference),
            ]
        ways = [works(detector, columns) for detector in pair]
        for name in ways[0]:
            first, second = measured([way[name] for way in ways], rounds)
            print(f"| {columns} | {name} | {first:.2f} | {second:.2f} | {second / first:.2f} |", flush=True)
        sizes = [len(Fleet(detector).step(["a"], [None], reference[:1], [0], [0]).states[0]) for detector in pair]
        print(f"| {columns} | bytes of a key's state | {sizes[0]:,} | {sizes[1]:,} | {sizes[1] / sizes[0]:.2f} |")


if __name__ == "__main__":
    main()
