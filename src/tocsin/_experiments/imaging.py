"""The paper's medical imaging example: tissue from hospitals that a detector knows, then from one that it does not.

An autoencoder is trained, its pictures leave the pool, and detectors watch the encodings of others. The paper's data
are Camelyon17-WILDS; tiles of BreaKHis, pale before and eosin-rich after the change, can stand in for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tocsin._common.errors import InputError
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._detector.detector import Detector
from tocsin._detector.quiet import geometric_quantiles
from tocsin._experiments import autoencoder, imaging_report, pictures
from tocsin._experiments.base import Experiment, Options, Perform, Result, Row, Tables, Unit, generator
from tocsin._samplers import Independent
from tocsin._statistics.kernels import Gaussian
from tocsin._statistics.mmd import MMD

PAPER, OURS = "CALM-MMD", "default family"

LEVELS = (np.arange(200) + 0.5) / 200
"""Of the quantiles that are kept."""

PIECE = 256
"""Observations of a run that are tested at once."""

ENCODED_AT_ONCE = 1000


@dataclass(frozen=True)
class Sizes:
    """How large a configuration is.

    training, epochs: pictures that the autoencoder learns from, and how often it sees each.
    reference: pictures that the detectors are fitted to (the paper's N).
    pool, pool_after: pictures that streams are drawn from, before and after the change.
    window, paths: of the paper's detector (its W and B); ours chooses its own.
    """

    training: int
    epochs: int
    reference: int
    pool: int
    pool_after: int
    window: int
    ert: int
    paths: int
    runs: int


FULL = {
    pictures.CAMELYON: (150, Sizes(10_000, 25, 20_000, 100_000, 10_000, 100, 5000, 100_000, 100)),
    # All 32 340 pale tiles. A small pool has an error of its own, which adds to that of the reference: with pools of
    # 2000, 5000 and 19 340 (40 splits of one encoding) log(ART / ERT) had a spread of 0.13, 0.10 and 0.08 for a
    # family of MMDs. Its mean was within 0.02 of 0 for all.
    pictures.BREAKHIS: (40, Sizes(6000, 25, 5000, 21_340, 15_064, 50, 500, 100_000, 250)),
}
QUICK = (4, Sizes(1000, 3, 1000, 6000, 1000, 25, 100, 10_000, 50))
"""Configurations, and the sizes of each."""


@dataclass(frozen=True)
class Configuration(Unit):
    """A newly trained autoencoder, a reference, both detectors fitted to it, and their runs.

    data, digest: what the pictures are; they determine the result, and the folder does not.
    """

    folder: str
    data: str
    digest: str
    sizes: Sizes
    number: int
    seed: int

    @property
    def key(self) -> str:
        """Without the folder: data that moved are the same data."""
        return super(Configuration, replace(self, folder="")).key

    def run(self) -> Result:
        rng = generator(self.seed, "imaging", self.number)
        before, after = pictures.find(Path(self.folder)).read()
        training, reference, pool = split(len(before), self.sizes, rng)
        chosen_after = rng.permutation(len(after))[: self.sizes.pool_after]

        learned = before[training]
        network = autoencoder.build(learned.shape[1], int(rng.integers(2**31)))
        result: Result = {"loss": np.array(network.fit(learned, self.sizes.epochs, rng))}
        encoded, held_out, changed = (
            encode(network, source, rows)
            for source, rows in ((before, reference), (before, pool), (after, chosen_after))
        )
        for name, detector in detectors(self.sizes, int(rng.integers(2**31))).items():
            detector.fit(encoded, workers=1, progress=False)
            lengths, rang = run_lengths(detector, held_out, self.sizes.runs, rng)
            delays, noticed = run_delays(detector, held_out, changed, self.sizes.runs, rng)
            result |= {f"{name} lengths": lengths, f"{name} rang": rang}
            result |= {f"{name} delays": delays, f"{name} noticed": noticed}
            result |= {f"{name} windows": np.array(detector.windows_)}
        return result


def split(count: int, sizes: Sizes, rng: np.random.Generator) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Which of `count` pictures train the autoencoder, which are the reference, and which streams are drawn from."""
    ends = np.cumsum([sizes.training, sizes.reference, sizes.pool])
    training, reference, pool = np.split(rng.permutation(count)[: ends[-1]], ends[:-1])
    return training, reference, pool


def encode(network: autoencoder.Autoencoder, source: pictures.Pictures, rows: Int64Array) -> Float64Array:
    """(n, 32); a part at a time, since there may be more pictures than memory."""
    parts = [network.encode(source[rows[i : i + ENCODED_AT_ONCE]]) for i in range(0, len(rows), ENCODED_AT_ONCE)]
    return np.concatenate(parts).astype(np.float64)


def detectors(sizes: Sizes, seed: int) -> dict[str, Detector]:
    """The paper's, and ours."""
    paper = Detector(
        sizes.ert,
        MMD(Gaussian()),
        window=sizes.window,
        sampler=Independent(),
        interval=False,
        mode="paper",
        paths=sizes.paths,
        start="cold",
        seed=seed,
    )
    return {PAPER: paper, OURS: Detector(sizes.ert, sampler=Independent(), interval=False, start="cold", seed=seed)}


def run_lengths(
    detector: Detector, pool: Float64Array, runs: int, rng: np.random.Generator
) -> tuple[Int64Array, BoolArray]:
    """Tests up to and including the alarm, and whether there was one before the pool was used up.

    No run meets a point twice: a repeated point is like itself, and would raise the statistic.
    """
    found = []
    for _ in range(runs):
        detector.reset()
        observations, rang = first_alarm(detector, pool[rng.permutation(len(pool))])
        found.append((observations - detector.windows_[-1] + 1, rang))
    return _columns(found)


def run_delays(
    detector: Detector, pool: Float64Array, after: Float64Array, runs: int, rng: np.random.Generator
) -> tuple[Int64Array, BoolArray]:
    """Tests from the change on, up to and including the alarm, and whether there was one.

    The change comes when the windows are just full, and the test made then was quiet.
    """
    found: list[tuple[int, bool]] = []
    widest = detector.windows_[-1]
    while len(found) < runs:
        detector.reset()
        quiet = not detector.update_many(pool[rng.choice(len(pool), widest, replace=False)]).alarm.any()
        if quiet:
            found.append(first_alarm(detector, after[rng.permutation(len(after))]))
    return _columns(found)


def first_alarm(detector: Detector, stream: Float64Array) -> tuple[int, bool]:
    """Observations up to and including the first alarm; all of them, and False, if there is none."""
    for start in range(0, len(stream), PIECE):
        rang = np.flatnonzero(detector.update_many(stream[start : start + PIECE]).alarm)
        if len(rang):
            return start + int(rang[0]) + 1, True
    return len(stream), False


def _columns(found: list[tuple[int, bool]]) -> tuple[Int64Array, BoolArray]:
    lengths, rang = zip(*found, strict=True)
    return np.array(lengths, np.int64), np.array(rang)


def measure(options: Options, perform: Perform) -> Tables:
    """Averages of each configuration, and quantiles of the runs of all.

    censored, censored_delays: runs that were still quiet when the pictures ran out; they count with that length.
    geometric: quantiles of the law that was asked for.
    """
    collection = pictures.find(options.data)
    autoencoder.load_torch()
    before, after = collection.read()
    configurations, sizes = QUICK if options.quick else FULL[collection.name]
    _check(collection, sizes, len(before), len(after))
    digest = collection.digest()
    units = [
        Configuration(str(options.data), collection.name, digest, sizes, number, options.seed)
        for number in range(configurations)
    ]
    results = perform("imaging", units)
    done = list(zip(units, results, strict=True))
    return {
        "imaging": [_row(unit, name, result) for unit, result in done for name in (PAPER, OURS)],
        "imaging-quantiles": [row for name in (PAPER, OURS) for row in _quantiles(name, sizes.ert, results)],
    }


def _check(collection: pictures.Collection, sizes: Sizes, before: int, after: int) -> None:
    needed = sizes.training + sizes.reference + sizes.pool
    if before < needed or after < sizes.pool_after:
        raise InputError(
            f"{collection.index.parent} has {before} pictures from before the change and {after} from after it, and "
            f"{needed} and {sizes.pool_after} are needed. Is the copy complete?"
        )


def _row(unit: Configuration, name: str, result: Result) -> Row:
    sizes = unit.sizes
    lengths, rang, delays, noticed = (result[f"{name} {what}"] for what in ("lengths", "rang", "delays", "noticed"))
    return {
        "configuration": unit.number,
        "detector": name,
        "mean_run_length": round(float(lengths.mean()), 3),
        "mean_delay": round(float(delays.mean()), 3),
        "runs": sizes.runs,
        "censored": int((~rang).sum()),
        "censored_delays": int((~noticed).sum()),
        "reference": sizes.reference,
        "windows": " ".join(map(str, result[f"{name} windows"])),
        "ert": sizes.ert,
        "dataset": unit.data,
        "digest": unit.digest,
        "training": sizes.training,
        "epochs": sizes.epochs,
        "training_loss": round(float(result["loss"]), 7),
        "pool": sizes.pool,
        "pool_after": sizes.pool_after,
    }


def _quantiles(name: str, ert: int, results: list[Result]) -> list[Row]:
    lengths, delays = (
        np.quantile(np.concatenate([result[f"{name} {what}"] for result in results]), LEVELS, method="inverted_cdf")
        for what in ("lengths", "delays")
    )

    geometric = geometric_quantiles(LEVELS, ert)
    return [
        {
            "detector": name,
            "level": round(float(level), 6),
            "geometric": int(promised),
            "run_length": int(length),
            "delay": int(delay),
        }
        for level, promised, length, delay in zip(LEVELS, geometric, lengths, delays, strict=True)
    ]


IMAGING = Experiment(
    "tissue scans, then those of another hospital (needs pictures)",
    ("imaging", "imaging-quantiles"),
    measure,
    imaging_report.draw,
    needs_data=True,
)
