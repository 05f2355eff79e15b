"""alibi-detect on the paper's configuration. Runs in an environment of its own, and prints one line of JSON.

python benchmarks/peer.py
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
    """Fit and update its online MMD detector (PyTorch on the CPU)."""
    warnings.simplefilter("ignore")
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
    json.dump({"fit": fit, "memory": memory, "update": update}, sys.stdout)


def peak() -> float:
    """Largest resident size so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
