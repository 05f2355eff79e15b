"""What a kill (SIGKILL) leaves of a file that is saved again and again: the whole of one save or of another."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin import Detector, TocsinError
from tocsin._common.files import PREFIX, replacing

LATEST = 0.2
"""Seconds after which a process is killed, at most."""

MOST_SAVES = 10_000
"""More than are made until then."""

SAVER = """
import sys
from benchmarks.hostile_saves import go_on
from tocsin import Detector
detector = Detector.load(sys.argv[1])
print("saving", flush=True)
while True:
    go_on(detector)
    detector.save(sys.argv[1])
"""


@dataclass
class Saves:
    """What became of files: those that cannot be read, those that hold what was never saved, and parts that stay."""

    tries: int = 0
    unreadable: int = 0
    torn: int = 0
    left: int = 0


def go_on(detector: Detector) -> None:
    """Observations that depend only on where the detector is."""
    detector.update_many(np.random.default_rng([detector.run, detector.time]).normal(size=(7, 2)))


def saves(tries: int) -> Saves:
    """So many processes that save a detector, each killed at another moment."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as pool:
        fitted = Path(folder) / "fitted.tocsin"
        reference = np.random.default_rng(0).normal(size=(200, 2))
        Detector(300, window=[5, 20], paths=500, seed=1).fit(reference, progress=False).save(fitted)
        found = list(pool.map(lambda seed: _killed(fitted.read_bytes(), seed), range(tries)))
    return Saves(tries, *(sum(column) for column in zip(*found, strict=True)))


def _killed(content: bytes, seed: int) -> tuple[bool, bool, bool]:
    """Whether the file cannot be read, is torn, and whether a part of one stays once another is written."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "d.tocsin"
        file.write_bytes(content)
        states = _states(Detector.load(file), Path(name))
        with subprocess.Popen([sys.executable, "-c", SAVER, str(file)], stdout=subprocess.PIPE) as saver:
            assert saver.stdout is not None
            saver.stdout.readline()
            time.sleep(np.random.default_rng(seed).uniform(0, LATEST))
            saver.send_signal(signal.SIGKILL)
        now = file.read_bytes()
        try:
            Detector.load(file)
        except TocsinError:
            return True, False, False
        with replacing(Path(name) / "other"):
            pass  # whoever writes the next file there removes what is left of others
        torn = now != content and now not in states
        return False, torn, any(path.name.startswith(PREFIX) for path in Path(name).iterdir())


def _states(twin: Detector, folder: Path) -> Iterator[bytes]:
    """Files that one that is not killed writes, in order."""
    for _ in range(MOST_SAVES):
        go_on(twin)
        twin.save(folder / "twin.tocsin")
        yield (folder / "twin.tocsin").read_bytes()
