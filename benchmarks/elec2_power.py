"""What a card says of half-hourly electricity prices (Harries 1999), and what then comes of changes in the stream.

    python -m benchmarks.elec2_power elec2.parquet

The default detector, ERT 5000, is fitted to the first thirty days (1440 rows) and watches what follows. At 24 rows of
the next sixty days, in copies of the stream, a price becomes three times as high, a sensor stops at its last value,
30 % of rows have a category that was never seen, or lack a value. Each should be found within two days (96 rows) half
of the time, or the card should name it as not found.
"""

from __future__ import annotations

import argparse
import warnings
from copy import copy
from typing import Any

import numpy as np

from tocsin import Detector

REFERENCE, AFTER, ONSETS, DAYS = 1440, 2880, 24, 96
NUMBERS = ("nswprice", "nswdemand")


def changed(rows: Any, before: Any, what: str, column: str, rng: np.random.Generator) -> Any:
    """The rows of a frame, changed."""
    rows = rows.copy()
    some = rng.random(len(rows)) < 0.3
    if what == "three times as high":
        rows[column] = 3 * rows[column]
    elif what == "stopped":
        rows[column] = before[column].iloc[-1]
    elif what == "30% never seen":
        rows[column] = np.where(some, "SIDEWAYS", rows[column])
    elif what == "30% missing":
        rows[column] = rows[column].where(~some)
    return rows


def main() -> None:
    """Print the card, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--ert", type=float, default=5000)
    options = parser.parse_args()
    import pandas

    frame = pandas.read_parquet(options.file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = Detector(options.ert, seed=0).fit(frame[:REFERENCE], progress=False)
    card = detector.power()
    print(f"{card}\n")
    rng = np.random.default_rng(0)
    onsets = np.sort(rng.integers(REFERENCE, REFERENCE + AFTER, ONSETS)).tolist()
    states, place, watching = [], REFERENCE, copy(detector)
    for onset in onsets:
        watching.update_many(frame[place:onset])
        states.append(copy(watching))
        place = onset
    tried: list[tuple[str, str, str, float | None]] = [
        ("three times as high", "nswprice", "higher", None),
        ("nothing", "", "", None),
    ]
    tried += [("stopped", name, "stuck", None) for name in (*NUMBERS, "class")]
    tried += [("30% never seen", "class", "unseen", 0.3)]
    tried += [("30% missing", name, "missing", 0.3) for name in (*NUMBERS, "class", "vicprice")]
    print("| change | median delay | within 96 rows | on the card |\n|---|---|---|---|")
    for what, column, kind, size in tried:
        delays = []
        for state, onset in zip(states, onsets, strict=True):
            rows = changed(frame[onset : onset + 4 * DAYS], frame[:onset], what, column, rng)
            outcomes = copy(state).update_until_alarm(rows)
            delays.append(len(outcomes) if outcomes.alarm.any() else np.inf)
        named = [own for own in card.changes if (own.kind, own.column) == (kind, column) and size in (None, own.size)]
        said = "; ".join(dict.fromkeys(str(own) for own in named)) or "-"
        share = np.mean(np.array(delays) <= DAYS)
        print(f"| {column} {what} | {np.sort(delays)[(ONSETS - 1) // 2]:.0f} | {share:.0%} | {said} |")


if __name__ == "__main__":
    main()
