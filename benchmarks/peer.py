"""alibi-detect, in an environment of its own; prints one line of JSON.

python benchmarks/peer.py                      # speed and memory, on the paper's configuration
python benchmarks/peer.py RECORDING OPTIONS    # a file with `reference` and `stream`, and options as JSON
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
import warnings

import numpy as np

POINTS, COLUMNS, WINDOW, PATHS, ERT, STREAM = 1000, 20, 25, 25_000, 1024.0, 1000


def main() -> None:
    """One of the two."""
    warnings.simplefilter("ignore")
    json.dump(watch(*sys.argv[1:]) if sys.argv[1:] else measure(), sys.stdout)


def measure() -> dict[str, float]:
    """Fit and update its online MMD detector (PyTorch on the CPU)."""
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((POINTS, COLUMNS)).astype(np.float32)
    stream = rng.standard_normal((STREAM, COLUMNS)).astype(np.float32)
    online_mmd = importlib.import_module("alibi_detect.cd").MMDDriftOnline
    before = peak()
    began = time.perf_counter()
    detector = online_mmd(reference, ert=ERT, window_size=WINDOW, n_bootstraps=PATHS, backend="pytorch", verbose=False)
    fit = time.perf_counter() - began
    memory = peak() - before
    for x in stream[:100]:
        detector.predict(x)
    began = time.perf_counter()
    for x in stream:
        detector.predict(x)
    update = (time.perf_counter() - began) / STREAM
    return {"fit": fit, "memory": memory, "update": update}


def watch(file: str, options: str) -> dict[str, float]:
    """Alarms on a stream; its state is reset after each."""
    importlib.import_module("torch").manual_seed(0)
    asked, recording = json.loads(options), np.load(file)
    reference, stream = (recording[name].astype(np.float32) for name in ("reference", "stream"))
    began = time.perf_counter()
    detector = importlib.import_module("alibi_detect.cd").MMDDriftOnline(
        reference, asked["ert"], asked["window"], n_bootstraps=asked["bootstraps"], backend="pytorch", verbose=False
    )
    fit, alarms = time.perf_counter() - began, 0
    for x in stream:
        if detector.predict(x)["data"]["is_drift"]:
            alarms += 1
            detector.reset_state()
    return {"fit": fit, "alarms": alarms}


def peak() -> float:
    """Largest resident size so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
