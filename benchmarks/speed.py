"""Speed and memory, side by side with alibi-detect, with a bare loop, and of a family with one of its channels.

    python -m benchmarks.speed [--without-peer]

The peer gets an environment of its own (.peer-venv): it is never installed beside Tocsin. Absolute times mean little on
a shared machine; read the ratios.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import bare
from tocsin import MMD, Detector, Gaussian
from tocsin._execution.threads import Threads

HERE = Path(__file__).resolve().parent
PEER = HERE.parent / ".peer-venv"
ERT = 1024
INTERVAL_POINTS = (1000, 10_000)
SINGLE_COLUMNS = (2, 20)


def main() -> None:
    """Run every part in a process of its own, so that memory is measured from the same start, and print ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without-peer", action="store_true", help="skip alibi-detect (its set-up takes minutes)")
    parser.add_argument("--part", choices=sorted(PARTS), help="run one part here and print JSON (used by the above)")
    options = parser.parse_args()
    if options.part:
        say(json.dumps(PARTS[options.part]()))
        return
    ours = part("paper")
    if not options.without_peer:
        say("alibi-detect (PyTorch, CPU) on the paper's configuration: a minute or two ...")
        theirs = peer()
        again = part("paper")
        fit = statistics.median([ours["fit"], again["fit"]])
        say("\n## N=1000, W=25, B=25000, d=20, mode='paper', against alibi-detect")
        say("| | alibi-detect | tocsin | ratio |\n|---|---|---|---|")
        say(f"| fit | {theirs['fit']:.1f} s | {fit:.3f} s | {theirs['fit'] / fit:.0f}x |")
        say(f"| extra memory | {theirs['memory']:.0f} MiB | {ours['memory']:.0f} MiB | "
            f"{theirs['memory'] / ours['memory']:.0f}x |")  # fmt: skip
        for name in ("update", "update_many"):
            say(f"| {name}, per observation | {theirs['update'] * 1e6:.0f} us | {ours[name] * 1e6:.2f} us | "
                f"{theirs['update'] / ours[name]:.0f}x |")  # fmt: skip
    family = part("family")
    say("\n## The default family (windows 8, 25, 100; five widths at most) against one channel, N=1000, d=20")
    say("| | one channel, W=100 | family | ratio | one channel, W=25 |\n|---|---|---|---|---|")
    for name in ("fit", "update", "update_many"):
        one, many, short = (family[f"{kind}_{name}"] for kind in ("one", "many", "short"))
        unit, scale = ("s", 1.0) if name == "fit" else ("us", 1e6)
        say(f"| {name} | {one * scale:.3g} {unit} | {many * scale:.3g} {unit} | {many / one:.1f}x | "
            f"{short * scale:.3g} {unit} |")  # fmt: skip
    single = part("single")
    say("\n## One `update`, N=1000: processor time, the best of many batches")
    say("| d | family | one channel, W=25 |\n|---|---|---|")
    for columns in SINGLE_COLUMNS:
        say(f"| {columns} | {single[f'many_{columns}'] * 1e6:.1f} us | {single[f'short_{columns}'] * 1e6:.1f} us |")
    interval = part("interval")
    say("\n## What the interval for the ERT costs: the default family's fit with it and without, d=20")
    say("| N | without | with | ratio |\n|---|---|---|---|")
    for points in INTERVAL_POINTS:
        without, with_it = interval[f"without_{points}"], interval[f"with_{points}"]
        say(f"| {points:,} | {without:.2f} s | {with_it:.2f} s | {with_it / without:.2f}x |")
    large = part("large")
    say("\n## N=20000, W=100, B=100000, d=32, mode='paper', against a bare loop")
    say(
        f"fit {large['fit']:.1f} s, extra memory {large['memory']:.0f} MiB, "
        f"{large['evaluations']:.3g} kernel evaluations"
    )
    say(
        f"bare loop (multiply-add and exp) for as many: {large['bare']:.1f} s; ratio {large['fit'] / large['bare']:.2f}"
    )
    started = part("start")
    say("\n## Start")
    say(f"import tocsin: {started['import'] * 1e3:.0f} ms; first fit of a new process, compiled code cached: "
        f"{started['first_fit']:.2f} s, the second {started['second_fit']:.2f} s")  # fmt: skip


def paper() -> dict[str, float]:
    """Fit, memory, update and update_many on the peer's configuration."""
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((1000, 20))
    stream = rng.standard_normal((100_000, 20))

    def make(paths: int) -> Detector:
        return Detector(
            ert=ERT, statistic=MMD(Gaussian()), window=25, mode="paper", paths=paths, interval=False, seed=0
        )  # fmt: skip

    make(2000).fit(reference)
    before = peak()
    fit = timed(lambda: make(25_000).fit(reference), 7)
    memory = max(peak() - before, 1.0)
    detector = make(25_000).fit(reference)
    return {"fit": fit, "memory": memory, **live(detector, stream)}


def family() -> dict[str, float]:
    """The default family, and single channels of its widest and of its middle window."""
    rng = np.random.default_rng(0)
    reference, stream = rng.standard_normal((1000, 20)), rng.standard_normal((50_000, 20))
    kinds = {
        "one": Detector(ert=ERT, statistic=MMD(Gaussian()), window=100, interval=False, error=0.02, seed=0),
        "many": Detector(ert=ERT, interval=False, error=0.02, seed=0),
        "short": Detector(ert=ERT, statistic=MMD(Gaussian()), window=25, interval=False, error=0.02, seed=0),
    }
    out: dict[str, float] = {}
    for kind, detector in kinds.items():
        detector.fit(reference)
        out[f"{kind}_fit"] = timed(partial(detector.fit, reference), 3)
        out.update({f"{kind}_{name}": value for name, value in live(detector, stream).items()})
    return out


def single() -> dict[str, float]:
    """Single observations by the default family and by one channel, by turns: the least that they take."""
    detectors: dict[str, tuple[Detector, list[np.ndarray[tuple[int], np.dtype[np.float64]]]]] = {}
    for columns in SINGLE_COLUMNS:
        rng = np.random.default_rng(0)
        reference, rows = rng.standard_normal((1000, columns)), list(rng.standard_normal((300, columns)))
        for kind, statistic, window in (("many", None, None), ("short", MMD(Gaussian()), 25)):
            detector = Detector(ERT, statistic, window=window, interval=False, error=0.1, seed=0).fit(reference)
            detectors[f"{kind}_{columns}"] = detector, rows
    least = dict.fromkeys(detectors, math.inf)
    for _ in range(200):
        for name, (detector, rows) in detectors.items():
            began = time.process_time()
            for row in rows:
                detector.update(row)
            least[name] = min(least[name], (time.process_time() - began) / len(rows))
    return least


def interval() -> dict[str, float]:
    """Fits with the interval for the expected run time, and without, by turns."""
    rng = np.random.default_rng(0)
    out: dict[str, float] = {}
    for points in INTERVAL_POINTS:
        reference = rng.standard_normal((points, 20))
        times: dict[str, list[float]] = {"without": [], "with": []}
        for _ in range(4):
            for kind, own in times.items():
                detector = Detector(ert=ERT, interval=kind == "with", seed=0)
                own.append(timed(partial(detector.fit, reference), 1))
        out.update({f"{kind}_{points}": statistics.median(own[1:]) for kind, own in times.items()})
    return out


def large() -> dict[str, float]:
    """The paper's imaging configuration, against a loop that does nothing but the arithmetic."""
    rng = np.random.default_rng(0)
    points, window, paths = 20_000, 100, 100_000
    reference = rng.standard_normal((points, 32))

    def make(paths: int) -> Detector:
        return Detector(5000, MMD(Gaussian()), window=window, mode="paper", paths=paths, interval=False, seed=0)

    make(5000).fit(reference[:2000])
    before = peak()
    began = time.perf_counter()
    make(paths).fit(reference)
    fit = time.perf_counter() - began
    length = 2 * window - 1
    evaluations = points**2 + (points - length) ** 2 + paths * length * (length - 1) // 2
    return {
        "fit": fit,
        "memory": peak() - before,
        "evaluations": evaluations,
        "bare": bare.seconds(evaluations, dimensions=32, row=window, workers=Threads().workers),
    }


def start() -> dict[str, float]:
    """Import time, and the first fit of a process."""
    nothing = timed(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True), 5)
    imported = timed(lambda: subprocess.run([sys.executable, "-c", "import tocsin"], check=True), 5)
    numpy_alone = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 5)
    reference = np.random.default_rng(0).standard_normal((1000, 20))
    fits = []
    for _ in range(2):
        began = time.perf_counter()
        Detector(ert=ERT, seed=0).fit(reference)
        fits.append(time.perf_counter() - began)
    return {
        "import": imported - numpy_alone, "of_it_numpy": nothing - numpy_alone, "first_fit": fits[0],
        "second_fit": fits[1],
    }  # fmt: skip


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "paper": paper,
    "family": family,
    "single": single,
    "interval": interval,
    "large": large,
    "start": start,
}


def live(detector: Detector, stream: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> dict[str, float]:
    """Seconds per observation of update and update_many."""
    few = stream[:3000]
    for x in few[:100]:
        detector.update(x)
    return {
        "update": timed(lambda: [detector.update(x) for x in few], 3) / len(few),
        "update_many": timed(lambda: detector.update_many(stream), 3) / len(stream),
    }


def part(name: str) -> dict[str, float]:
    """One part, in a process of its own."""
    return run([sys.executable, "-m", "benchmarks.speed", "--part", name])


def peer() -> dict[str, float]:
    """alibi-detect on the paper's configuration."""
    return run([str(peer_python()), str(HERE / "peer.py")])


def peer_python() -> Path:
    """The Python of an environment with alibi-detect, which is installed there the first time."""
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True)
        for packages in (["torch==2.13.0"], ["alibi-detect==0.13.0"]):
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def run(command: list[str]) -> dict[str, float]:
    """The JSON that a command ends its output with."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE.parent)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def timed(work: Callable[[], object], times: int) -> float:
    """Median seconds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def peak() -> float:
    """Largest resident size so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
