"""What an alarm of views is said to mean: which column, in which form, since when, and what has never been."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin import Detector, InputError, Views
from tocsin._compute.arrays import Float64Array
from tocsin._detector.base import fitted_of
from tocsin._statistics.view_model import MOST_COLUMNS
from tocsin._statistics.views import ViewsLive


def remembering(count: int, columns: int = 3, seed: int = 0) -> Float64Array:
    """Rows of an autoregression."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count + 50, columns))
    for t in range(1, len(rows)):
        rows[t] += 0.6 * rows[t - 1]
    return rows[50:]


def fit(reference: Any, **options: Any) -> Detector:
    return Detector(3000, Views(), **{"paths": 12, "seed": 1, **options}).fit(reference)


@pytest.fixture(scope="module")
def watching() -> Detector:
    """After rows that are as usual."""
    detector = fit(remembering(600))
    assert not detector.update_many(QUIET).alarm.any()
    return detector


QUIET, LATER = np.split(remembering(300, seed=1), [150])


def heard(watching: Detector, column: Float64Array, path: Path) -> Detector:
    """A detector that goes on from there, with another second column, until it rings."""
    watching.save(path / "a.tocsin")
    detector = Detector.load(path / "a.tocsin")
    stream = LATER.copy()
    stream[:, 1] = column
    detector.update_until_alarm(stream)
    assert detector.alarm is not None
    return detector


NOISE = np.random.default_rng(5).standard_normal(len(LATER))
CHANGES = {
    "up": (LATER[:, 1] + 8, ("higher",), True),
    "down": (LATER[:, 1] - 8, ("lower",), True),
    "far": (LATER[:, 1] + 1e6, ("higher",), True),
    "still": (0.1 + LATER[:, 1] * 1e-6, ("smaller", "ceased"), False),
    "noise": (LATER[:, 1] + 6 * NOISE, ("times as large", "foretells", "before"), None),
    "steps": (LATER[:, 1] + 8 * (np.arange(len(LATER)) % 2), ("times as large", "foretells", "before"), None),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_said(watching: Detector, tmp_path: Path, name: str) -> None:
    """The column first, in words for what it did, with its numbers before and after, and when it began.

    beyond: whether all that it now has lies outside of what the reference has.
    """
    column, words, beyond = CHANGES[name]
    detector = heard(watching, column, tmp_path)
    explained = detector.explain()
    first = explained.columns[0]
    assert (first.name, first.changed) == ("2", True)
    assert any(word in first.how for word in words), first.how
    assert [other.changed for other in explained.columns[1:]] == [False, False]
    assert first.contribution >= detector.calibration_.threshold
    assert first.contribution == pytest.approx(detector.alarm.statistic)  # type: ignore[union-attr]
    contributions = [own.contribution for own in explained.columns]
    assert contributions == sorted(contributions, reverse=True)
    assert first.p_value <= 1
    assert first.p_value <= min(own.p_value for own in explained.columns)
    assert explained.began.low - 3 <= len(QUIET) + 1 <= explained.began.high + 3
    if beyond is not None:
        assert (explained.beyond == ("2",)) == beyond
    assert explained.outcome.channel is not None
    assert explained.outcome.channel.column == "2"
    said = str(explained)
    assert f" of {explained.outcome.channel.view} of 2" in said
    assert ("Beyond all that the reference has: column 2." in said) == (explained.beyond == ("2",))


def test_it_can_be_asked_again(watching: Detector, tmp_path: Path) -> None:
    """And changes nothing; a file of the alarm, and a detector that went on, say the same of it or more."""
    detector = heard(watching, LATER[:, 1] + 8, tmp_path)
    said = str(detector.explain())
    assert str(detector.explain()) == said
    detector.save(tmp_path / "b.tocsin")
    other = Detector.load(tmp_path / "b.tocsin")
    assert str(other.explain()) == said
    facts = json.loads(json.dumps(other.explain().to_dict()))
    assert facts["columns"][0]["name"] == "2"
    assert facts["beyond"] == ["2"]
    assert facts["channel"]["column"] == "2"


def test_late_questions(tmp_path: Path) -> None:
    """Where a run goes on after its alarm: of the alarm, by the rows up to it; after the memory of rows, of nothing."""
    detector = fit(remembering(600), reset_on_alarm=False)
    detector.update_many(QUIET)
    stream = LATER.copy()
    stream[:, 1] += 8
    rang = len(detector.update_until_alarm(stream))
    said = detector.explain()
    detector.update_many(stream[rang : rang + 10])
    later = detector.explain()
    assert later.columns[0].name == "2"
    assert (later.outcome.time, later.began.time, later.began.high) == (
        said.outcome.time,
        said.began.time,
        said.began.high,
    )
    detector.update_many(stream[rang + 10 :])
    with pytest.raises(InputError, match="ago"):
        detector.explain()


def test_directions_have_no_columns() -> None:
    """Of very many columns, the direction is named in the channel."""
    detector = fit(remembering(200, MOST_COLUMNS + 3), window=(3, 5))
    stream = remembering(100, MOST_COLUMNS + 3, seed=2)
    stream[40:] += 6
    detector.update_until_alarm(stream)
    explained = detector.explain()
    assert explained.columns == ()
    assert explained.outcome.channel is not None
    assert str(explained.outcome.channel.column).startswith("direction ")
    assert str(explained.outcome.channel) in str(explained)


def test_how_loud_each_column_is(watching: Detector, tmp_path: Path) -> None:
    """A contribution is that of the loudest channel of a column at the alarm."""
    detector = heard(watching, LATER[:, 1] + 8, tmp_path)
    (live,) = fitted_of(detector).live.members
    assert isinstance(live, ViewsLive)
    loud = detector._run.windows[0]["loud"][0]
    expected = {
        name: max(loud[k] for k, channel in enumerate(live.channels) if channel.column == name) for name in "123"
    }
    assert {own.name: own.contribution for own in detector.explain().columns} == expected
