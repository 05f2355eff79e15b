"""Sensors with a memory, recorded in several runs: a bearing's vibration, until the bearing wears.

Needs: pip install 'tocsin[data]' pandas
"""

import warnings

import numpy as np
import pandas as pd

import tocsin

rng = np.random.default_rng(0)


def recording(count: int, *, wear: float) -> pd.DataFrame:
    """Temperature and vibration in two directions; each depends on what it was a moment before."""
    rows = np.zeros((count, 3))
    for t in range(1, count):
        temperature, across, along = rows[t - 1]
        load = 0.05 * temperature
        rows[t] = [
            0.9 * temperature + rng.normal(0, 0.4),
            0.6 * across + load + rng.normal(0, 1 + wear),
            0.6 * along + load + rng.normal(0, 1),
        ]
    return pd.DataFrame(rows, columns=["temperature", "across", "along"])


# Five recordings of a healthy bearing. What a reading is compared with never comes from another recording.
runs = [recording(1500, wear=0.0) for _ in range(5)]
reference, groups = pd.concat(runs), np.repeat(np.arange(5), 1500)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    detector = tocsin.Detector(ert=2000, seed=1).fit(reference, groups=groups)
print(*(warning.message for warning in told), sep="\n")
print(detector.calibration_.rehearsal)

outcomes = detector.update_many(recording(2000, wear=0.0))
print(f"A healthy run of 2000: {outcomes.alarm.sum()} alarms")
detector.reset()
detector.update_many(recording(200, wear=0.0))
outcomes = detector.update_until_alarm(recording(5000, wear=1.0))
print(f"A worn one: it rings after {len(outcomes)} observations.")
print(detector.explain())
