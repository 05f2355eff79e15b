"""What the reference never shows: first gaps, categories never seen, constants that move.

Bounds on counts are crossed by chance less than once in 10^6. Seeds are fixed and were not chosen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tocsin import Detector, Views
from tocsin import _compute as compute
from tocsin._compute.arrays import Float64Array
from tocsin._statistics.news import MOST_NEWS, SHARE, rows_that_ring
from tocsin._statistics.view_model import Model, Spans

Record = dict[str, Any]
ROWS, SILENT, QUIET = 400, 25, 60


def remembering(count: int, columns: int, seed: int) -> Float64Array:
    """Rows of an autoregression."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += 0.6 * rows[t - 1]
    return rows[50:]


def records(count: int, seed: int) -> list[Record]:
    """A number, a category and a constant."""
    rows = remembering(count, 2, seed)
    return [{"flow": flow, "state": "on" if state > 0 else "off", "mode": 3.0} for flow, state in rows.tolist()]


REFERENCE, STREAM = records(ROWS, 0), records(200, 1)


def fitted(reference: Any = REFERENCE, **options: Any) -> Detector:
    return Detector(**{"ert": 500, "statistic": Views(), "paths": 6, "seed": 1, **options}).fit(reference)


def with_news(places: Any, news: Record) -> list[Record]:
    """The stream with other values in these rows."""
    return [{**row, **news} if t in places else row for t, row in enumerate(STREAM)]


NEWS = [
    ({"state": "stuck"}, "state", "values never seen before"),
    ({"flow": None}, "(newly missing)", "missing where nothing was missing"),
    ({"mode": 4.0}, "mode", "higher"),
]


@pytest.mark.parametrize(("news", "column", "how"), NEWS)
def test_news_is_heard_in_a_few_rows_and_told(news: Record, column: str, how: str, tmp_path: Path) -> None:
    """As such, in its column, with when it began; and a file remembers that it came."""
    detector, stream = fitted(), with_news(range(QUIET, 200), news)
    outcomes = detector.update_until_alarm(stream)
    assert QUIET < len(outcomes) <= QUIET + 4, "the second row, or the fourth where three are asked for"
    channel = outcomes[len(outcomes) - 1].channel
    assert channel is not None
    assert (channel.statistic, channel.column) == ("news", column)
    assert str(channel) == f"news in {column}, window {channel.window}"
    explanation = detector.explain()
    assert QUIET - 2 <= explanation.began.time <= QUIET + 2
    assert (explanation.changed[0].name, explanation.changed[0].how) == (column, how)
    detector.save(tmp_path / "a.tocsin")
    other = Detector.load(tmp_path / "a.tocsin")
    rest = stream[len(outcomes) :]
    assert [repr(each) for each in other.update_many(rest)] == [repr(detector.update(row)) for row in rest]


@pytest.mark.parametrize("news", [*(each[0] for each in NEWS), {"flow": None, "state": None, "mode": None}])
def test_one_row_of_news_does_not_ring(news: Record) -> None:
    """Be everything in it new: what comes once in a thousand rows is not in every reference of a thousand."""
    assert not fitted().update_many(with_news({QUIET}, news)).alarm[QUIET : QUIET + SILENT].any()


def test_what_brings_no_news_is_heard_as_without() -> None:
    """A constant changes nothing for the others, bit for bit."""
    varying, stream = remembering(ROWS, 2, 2), remembering(300, 2, 3)
    stream[150:] += 3
    alone, beside = fitted(varying), fitted(np.insert(varying, 1, 7.0, axis=1))
    expected, found = alone.update_many(stream), beside.update_many(np.insert(stream, 1, 7.0, axis=1))
    assert expected.alarm.any()
    for name in ("alarm", "statistic", "threshold"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    names = [None if channel is None else (channel.view, channel.column) for channel in expected.channel]
    renamed = [("3" if each[1] == "2" else each[1]) if each else None for each in names]
    assert [None if channel is None else channel.column for channel in found.channel] == renamed
    assert {own.statistic for own in alone.channels_ if own.view != "stopped"} == {"mean", "spread"}


def test_news_beside_directions() -> None:
    """Where there are so many columns that their directions are watched, a constant is heard by its name."""
    rows = remembering(600, 70, 4)
    rows[:, 5] = -1.0
    detector, stream = fitted(rows, ert=5000), remembering(80, 70, 5)
    stream[:, 5] = np.where(np.arange(80) < 50, -1.0, 0.0)
    outcomes = detector.update_until_alarm(stream)
    assert 51 < len(outcomes) < 56
    assert str(outcomes[len(outcomes) - 1].channel).startswith("news in 6, window ")


def test_directions_are_as_wide_for_new_rows_as_they_are_said_to_be() -> None:
    """On average; by the rows that they were made of, the first would seem wide and the last narrow."""
    points, edges, functions = remembering(300, 80, 6), np.array([0, 300]), compute.load("numba")
    made = Model.learn(points, edges, Spans.of((5, 25), 300), functions)
    new = remembering(20_000, 80, 7)
    for model, low, high in ((made, 0.7, 1.3), (made.for_new_rows(points, functions), 0.9, 1.1)):
        spreads = model.rows(new, functions).std(0)
        first, last = spreads[:16].mean(), spreads[-16:].mean()
        assert (low < first < high and low < last < high) == (model is not made), (first, last)


def test_new_words_of_texts_are_no_news() -> None:
    """They come whatever happens. A first text that is missing is."""
    rng = np.random.default_rng(0)
    texts = [{"note": " ".join(rng.choice(["pump", "valve", "tank", "leak"], 3))} for _ in range(120)]
    news = {channel.column for channel in fitted(texts).channels_ if channel.statistic == "news"}
    assert news == {"(newly missing)"}


def test_no_more_news_than_can_be_watched() -> None:
    """Of more constants, the first."""
    rows = np.column_stack([remembering(100, 1, 0), np.ones((100, MOST_NEWS + 5))])
    news = [own for own in fitted(rows).channels_ if own.statistic == "news"]
    assert len({own.column for own in news if own.view != "stopped"}) == MOST_NEWS
    assert [own.column for own in news if own.view == "stopped"] == ["1"], "what stands in the reference cannot stop"


@pytest.mark.parametrize(("window", "count", "ert"), [(5, 100, 50), (25, 100, 50), (5, 40, 200), (25, 300, 20)])
def test_chance_brings_few_alarms(window: int, count: int, ert: int) -> None:
    """On average over references, of events as likely as that a number is above all of theirs: no more than its part.

    Not simulated but integrated: that probability is distributed as Beta(1, N), whatever the law.
    """
    enough = rows_that_ring(window, count, ert, channels=1)
    assert enough is not None

    def rate(rows: int) -> float:
        """Of rows that are news, and the last of so many at least within a window."""
        p, weight = np.polynomial.legendre.leggauss(2000)
        p, weight = (p + 1) / 2, weight / 2
        return float((weight * stats.beta.pdf(p, 1, count) * p * stats.binom.sf(rows - 2, window - 1, p)).sum())

    assert rate(enough) <= SHARE / ert
    assert enough == 2 or rate(enough - 1) > SHARE / ert / 2, "one row fewer would be too few"


def test_one_row_is_never_enough() -> None:
    """However long the reference, and however often alarms may come."""
    assert rows_that_ring(5, 10**6, 50, channels=1) == 2


def test_where_no_number_is_safe_nothing_rings() -> None:
    """A tiny reference, and very rare alarms."""
    assert rows_that_ring(2, 30, 1e9, 10) is None
    detector = fitted(remembering(60, 1, 0), ert=1e6)
    assert detector.channels_
