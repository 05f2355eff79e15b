"""The verdict of a report: whether chance alone would do this."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tocsin._explain.result import Began
from tocsin._report import gathering
from tocsin._report.quality import Finding
from tocsin._report.verdict import HARDLY, SELDOM, verdict


def seen_alarms(
    rang: list[int],
    tests: int,
    rarest: float = 0.0,
    interval: Any = None,
    mode: str = "steady",
    columns: tuple[list[Finding], ...] = (),
    beyond: tuple[str, ...] = (),
    wandering: tuple[str, ...] | None = None,
) -> Any:
    """What a verdict looks at, with alarms at these tests, and columns of which this is told.

    beyond: columns that had left the reference at the last alarm.  wandering: those whose levels move on in it.
    """
    rehearsal = None if wandering is None else SimpleNamespace(wandering=wandering)
    calibration = SimpleNamespace(mode=mode, nominal=1000.0, ert=1000.0, interval=lambda: interval, rehearsal=rehearsal)
    close = sum(second - first <= 1000 / gathering.SERIES for first, second in pairwise(rang))
    quality = {
        f"c{i}": SimpleNamespace(known=SimpleNamespace(name=f"c{i}"), findings=lambda own=own: own)
        for i, own in enumerate(columns)
    }
    series = []
    if rang:
        why = SimpleNamespace(
            began=Began(rang[-1] - 5, rang[-1] - 9, rang[-1] - 2, 0.9), changed=(), columns=("a", "b"), beyond=beyond,
            where=f"observation {rang[-1]:,}",
        )  # fmt: skip
        series = [gathering.Series(rang[-1], rang[-1], count=1, alarms=[SimpleNamespace(explanation=why)])]  # type: ignore[list-item]
    return SimpleNamespace(
        detector=SimpleNamespace(calibration_=calibration, windows_=(25,), intake_=None), unseen=0,
        rows=tests, tests=tests, alarms=len(rang),
        close=close, rarest=rarest, rarest_row=rang[-1] if rang else 0, rarest_when=None, series=series,
        quality=SimpleNamespace(columns=quality),
    )  # fmt: skip


EMPTY, FAR, GAPS = Finding("empty", "c0 is empty", 0), Finding("far", "c1 is far", 5), Finding("gaps", "c2 has gaps", 2)


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (seen_alarms([], 5000), "quiet", "Quiet: no alarm in 5,000 observations."),
        (seen_alarms([], 5000, columns=([], [])), "quiet",
         "Quiet: no alarm in 5,000 observations, and all columns are as in the reference."),
        (seen_alarms([500], 5000, 1500), "unsure",
         "It rang once in 5,000 observations, which chance alone can explain."),
        (seen_alarms([*range(9, 3000, 99)], 5000, 1500), "rang",
         "It rang 31 times in 5,000 observations: hardly by chance."),
        (seen_alarms([500], 5000, 1e8), "rang", "It rang once in 5,000 observations: hardly by chance."),
        (seen_alarms([1000, 1010, 1020, 1030], 5000, 1500), "rang",
         "It rang 4 times in 5,000 observations: hardly by chance."),
        (seen_alarms([9], 10, 1500, mode="fixed"), "rang", "It rang once in 10 observations."),
        (seen_alarms([], 10, mode="fixed"), "quiet", "Quiet: no alarm in 10 observations."),
        (seen_alarms([], 0), "unsure", "There was nothing to watch: the stream has no observations."),
        (seen_alarms([1], 1, 1500), "rang", "It rang once in 1 observation: hardly by chance."),
        (seen_alarms([500], 5000, 3e5), "unsure",
         "It rang once in 5,000 observations: chance alone does as much in at most 5% of such streams."),
        (seen_alarms([*range(300, 4900, 300)], 5000, 1500, interval=(450.0, 2200.0)), "unsure",
         "It rang 16 times in 5,000 observations: hardly by chance if the true run time is 1,000, but it may be "
         "shorter."),
        (seen_alarms([], 5000, columns=([EMPTY], [])), "unsure", "No alarm in 5,000 observations, but c0 is empty."),
        (seen_alarms([], 5000, columns=([], [FAR], [GAPS]), mode="fixed"), "unsure",
         "No alarm in 5,000 observations, but c2 has gaps and 1 more column is not as in the reference."),
        (seen_alarms([500], 5000, 1500, columns=([EMPTY], [FAR], [GAPS])), "unsure",
         "It rang once in 5,000 observations. Chance alone can explain that, but c0 is empty and 2 more columns are "
         "not as in the reference."),
        (seen_alarms([500], 5000, 1500, columns=([], [FAR]), beyond=("c1",)), "unsure",
         "It rang once in 5,000 observations. Chance alone can explain that, but c1 had left all that the reference "
         "has when it rang."),
        (seen_alarms([500], 5000, 1500, columns=([], []), beyond=("c1",), wandering=("c1",)), "unsure",
         "It rang once in 5,000 observations, which chance alone can explain."),
    ],
)  # fmt: skip
def test_verdicts(seen: Any, level: str, words: str) -> None:
    """By the number of alarms, by how close they are, and by how rare."""
    said = verdict(seen)
    assert (said.level, said.sentence) == (level, words)
    # What to do next is said always, and never that nothing is to be done where something is told.
    assert said.next
    assert (said.next == "There is nothing to do.") == (level == "quiet")


def test_what_to_do_next() -> None:
    """Where to look, and which columns to check; the alarm, and not the table of data, says where a change is."""
    sure = verdict(seen_alarms([500], 5000, 1e8, columns=([EMPTY], [], [GAPS]))).next
    assert sure == (
        "Look at the alarm at observation 500: the change began at about observation 495, in no single column. "
        "Besides, c0 is empty and 1 more column is not as in the reference."
    )
    unsure = verdict(seen_alarms([100, 500], 5000, 1500, columns=([EMPTY], [], [GAPS]))).next
    assert unsure == (
        "Look first at the alarm at observation 500: if there was a change, it began at about observation 495, in no "
        "single column. Check how c0 and c2 are measured and recorded (see Data quality); if they are to stay so, fit "
        "again with such rows in the reference."
    )
    alone = verdict(seen_alarms([500], 5000, 1500, columns=([],), beyond=("c0",))).next
    assert "Data quality" not in alone


def test_a_stream_that_ends_before_the_first_test_is_not_quiet() -> None:
    """Nothing is known of it."""
    seen = seen_alarms([], 0)
    seen.rows = 12
    said = verdict(seen)
    assert (said.level, said.sentence) == ("unsure", "Nothing was tested: the stream ended after 12 observations.")
    assert "of 25 observations" in said.next


def test_an_interval_is_given_the_benefit_of_the_doubt() -> None:
    """Eleven alarms where five are promised are hardly chance, unless the true run time may be half as long."""
    rang = list(range(400, 4900, 440))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "unsure"
    rang = list(range(300, 4900, 300))
    assert verdict(seen_alarms(rang, 5000, 1500)).level == "rang"
    assert verdict(seen_alarms(rang, 5000, 1500, interval=(450.0, 2200.0))).level == "unsure"


def test_what_is_told_agrees_with_the_verdict() -> None:
    """The probabilities that are told are those that the verdict rests on, and say what they are for."""
    more = verdict(seen_alarms([*range(300, 4900, 300)], 5000, 1.04e5, interval=(450.0, 2200.0))).more
    many, rare = stats.binom.sf(15, 5000, 1 / 450), 5000 / 1.04e5 * 1000 / 450
    assert more == (
        "While nothing changes, chance alone gives 5 alarms on average in as many observations. The strongest "
        "evidence, at observation 4,800, comes by chance once in 104,000 observations. With a true run time of 450, "
        f"the lower end of its interval, chance alone gives 16 or more with a probability of {many:.0%} and evidence "
        f"as strong as that with {rare:.0%}."
    )
    close = verdict(seen_alarms([1000, 1010, 1020, 1030], 5000, 1500, columns=([EMPTY],))).more
    assert "Chance alone gives 4 or more with a probability of 74%, 3 within 50 observations of the one before" in close


def test_chance_is_seldom_taken_for_a_change() -> None:
    """Of 2000 quiet streams at most 1 % are; fails falsely once in 10^6 if that is so, and sees a rate of 4 %.

    And of at most 10 % it is said that chance does as much in so few; a rate of 16 % is seen.
    """
    rng = np.random.default_rng(0)
    wrong, seldom, streams = 0, 0, 2000
    for _ in range(streams):
        times = np.cumsum(rng.geometric(1e-3, size=200))
        rang = times[times <= 20_000].tolist()
        rarest = 1000 / rng.random(len(rang)).min() if rang else 0.0
        said = verdict(seen_alarms(rang, 20_000, rarest))
        wrong += said.level == "rang"
        seldom += said.level == "rang" or "at most" in said.sentence
    assert wrong <= stats.binom.isf(1e-6, streams, HARDLY)
    assert wrong < seldom <= stats.binom.isf(1e-6, streams, SELDOM)
