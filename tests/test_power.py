"""Every detector has a card, which tells in words what it can see, and is kept in its file."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powering import FITS, every, independent, made, remembering
from tocsin import MMD, Detector, InputError, MeanShift, Views
from tocsin._detector.base import fitted_of
from tocsin._execution.progress import no_progress
from tocsin._power import plan
from tocsin._power.measure import measure
from tocsin._power.result import Power, SimulatedChange
from tocsin._power.trials import at_run_time
from tocsin._power.words import finds, in_short, lines, misses
from tocsin.types import Power as PublicPower

pytestmark = pytest.mark.usefixtures("quick_fits")


@every
def test_every_detector_has_a_card(name: str) -> None:
    """The same whatever the number of threads; and the run stays where it is."""
    detector = made(name)
    before = copy.copy(detector)
    card = detector.power(progress=False)
    assert isinstance(card, PublicPower)
    assert detector.power(workers=1, progress=False) == card == detector.power_
    own = name in ("kernel", "custom")
    assert card.trials >= (plan.FEWEST_OWN if own else plan.FEWEST_TRIALS)
    assert card.columns == len(detector.intake_.names)
    assert card.rows == ("stretches" if detector.calibration_.rehearsal else "draws")
    assert {change.column for change in card.changes} - {None} == set(card.tried)
    for change in card.changes:
        assert 0 <= change.share <= 1
        assert 1 <= change.low <= change.high
        assert change.delay <= card.horizon or not change.found
        assert str(change)
    assert str(card).count("\n") >= 2
    assert card.to_json()
    stream = FITS[name][1][:30]
    assert list(map(repr, before.update_many(stream))) == list(map(repr, detector.update_many(stream)))


@every
def test_what_is_large_is_found(name: str) -> None:
    """Ten spreads in a column that is watched by itself or with few others, but for directions and short windows."""
    if name in ("directions", "represented", "views of a table"):
        pytest.skip("not so there")
    card = made(name).power(progress=False)
    large = [change for change in card.changes if change.size == 10.0]
    assert large
    assert all(change.found and change.delay <= 6 for change in large)


def test_what_changes_the_representation() -> None:
    """Nothing can be said of columns, and so it is said that nothing is; objects can only stop."""
    rows = independent(200, 3)
    detector = Detector(100, window=10, seed=1, paths=300, preprocess=lambda x: np.asarray(x)).fit(rows, progress=False)
    card = detector.power(progress=False)
    assert {(change.kind, change.column) for change in card.changes} == {("shifted", None), ("stuck", None)}
    assert "numbers of a representation" in str(card)
    words = ["ab", "ba", "abc", "cab"] * 15
    kernel = MMD(lambda X, Y: np.array([[float(len(set(x) & set(y))) for y in Y] for x in X]))
    card = Detector(30, kernel, window=4, seed=1, paths=100).fit(words, progress=False).power(progress=False)
    assert [(change.kind, change.column) for change in card.changes] == [("stuck", None)]
    assert "no row of numbers" in str(card)


def test_short_references_say_that_nothing_can_be_simulated() -> None:
    """Whatever is told of a card can be told of this one too."""
    detector = Detector(100, Views(), window=[2, 4], seed=1, paths=6)
    detector.fit(remembering(128, 1), groups=np.repeat(np.arange(8), 16), progress=False)
    card = detector.power(progress=False)
    assert (card.trials, card.horizon, card.changes) == (0, 0, ())
    assert "128 rows in order" in str(card)
    assert card.to_dict()["changes"] == []
    with pytest.raises(InputError, match="nothing to draw"):
        card.plot("nothing.png")


def test_short_run_times() -> None:
    """Where a change must be found in a row or two, and what would help is fewer still."""
    rows = np.concatenate([remembering(120, 1), independent(120, 1)], axis=1)
    told = Detector(40, Views(), window=4, seed=1, paths=6).fit(rows, progress=False).power(progress=False)
    assert told.horizon == 8
    assert told.trials > 0
    own = fitted_of(made("views"))
    for ert in (3.0, 10.0):
        few = measure(at_run_time(own, ert), None, 1, no_progress)
        assert few.horizon == max(int(ert / 4), 1)
        assert all(change.delay <= few.horizon or not change.found for change in few.changes)


def test_some_columns_by_name() -> None:
    detector = made("views of a table")
    card = detector.power(["gaps"], progress=False)
    assert card.tried == ("gaps",)
    assert not any("further" in why for why in card.not_simulated)
    with pytest.raises(InputError, match="'pressure'"):
        detector.power(["pressure"])
    assert detector.power_ is card


def test_many_columns_are_sampled() -> None:
    """Spread out over all, and it is said."""
    detector = Detector(50, MeanShift(), window=5, seed=1, paths=200).fit(independent(60, 900), progress=False)
    card = detector.power(progress=False)
    places = [int(name) for name in card.tried]
    assert places[0] == 1
    assert places[-1] == 900
    assert len(places) < 300
    assert np.diff(places).max() <= 2 * np.diff(places).min() + 1
    assert f"{900 - len(places)} further columns" in str(card)


# What is told


def change(kind: Any, column: str | None, size: float | None, delay: float) -> SimulatedChange:
    return SimulatedChange(kind, column, size, None, 0.5, delay, 1.0, math.inf)


def card(*changes: SimulatedChange, **parts: Any) -> Power:
    names = tuple(dict.fromkeys(own.column for own in changes if own.column is not None))
    told: dict[str, Any] = {"ert": 500.0, "horizon": 60, "trials": 40, "chance": 0.1, "rows": "stretches"}
    return Power(changes, **{**told, "columns": len(names), "tried": names, **parts})


def test_words_name_what_is_not_seen() -> None:
    """A shift counts in a column if it is found both ways; what is missed goes by name."""
    told = card(
        *(change(way, name, 3.0, 7.0 + len(name)) for way in ("higher", "lower") for name in ("flow", "heat")),
        change("higher", "flow", 1.0, 20.0),
        change("lower", "flow", 1.0, 30.0),
        change("higher", "heat", 1.0, 25.0),
        change("lower", "heat", 1.0, math.inf),
        change("stuck", "flow", None, math.inf),
        change("stuck", "heat", None, math.inf),
        change("missing", "flow", 1.0, 5.0),
        change("missing", "heat", 0.3, math.inf),
        change("shifted", None, 0.5, math.inf),
    )
    assert finds(told) == "Finds a shift of 3 spreads in one column within 11 rows half of the time."
    assert misses(told) == (
        "Does not find: a shift of 1 spread (heat); a column that stops (flow and heat); 30% of values missing (heat); "
        "all columns moved by half a spread."
    )
    verdicts = {line.label: line.verdict for line in lines(told)}
    assert verdicts["a column moves up or down by 1 spread"] == "in 1 of 2, within 30 rows; not in heat"
    assert verdicts["a column moves up or down by 3 spreads"] == "in both columns, within 11 rows"
    assert verdicts["a column stops at its last value"] == "not found in flow and heat"
    assert verdicts["all columns move, each up or down, by half a spread"] == "not found"
    assert "40 trials of each change" in str(told)
    assert "10% ring in as many rows" in str(told)
    assert repr(told) == "<Power: 8 of 13 simulated changes of 2 columns found within 60 rows, ERT 500>"


def test_words_of_little() -> None:
    everything = card(change("higher", "flow", 1.0, 4.0), change("lower", "flow", 1.0, 4.0))
    assert in_short(everything)[1] == "Nothing of what was simulated is missed."
    assert "in the column within 4 rows" in finds(everything)
    assert finds(card(change("stuck", "flow", None, math.inf))) == "Finds nothing of what was simulated within 60 rows."
    stops = card(change("stuck", "flow", None, 5.0))
    assert finds(stops) == "Finds, half of the time: a column stops at its last value (in flow, within 5 rows)."
    some = card(change("higher", "flow", 1.0, 4.0), change("lower", "flow", 1.0, 4.0), columns=70)
    assert "the one column that was tried" in finds(some)
    assert (
        str(change("higher", "2", 1.0, 4.0))
        == "column 2 moves up by 1 spread: within 4 rows half of the time (1 to more)"
    )
    assert (
        str(change("unseen", "c", 1.0, math.inf))
        == "c holds a category never seen in all rows: not found (50% of trials)"
    )


# Kept


def test_the_card_is_kept_in_the_file(tmp_path: Path) -> None:
    """With infinite delays; a copy has it; another fit does not, and files without one load."""
    detector = copy.copy(made("views"))
    told = detector.power(progress=False)
    assert told.unseen
    detector.save(tmp_path / "a.tocsin")
    again = Detector.load(tmp_path / "a.tocsin")
    assert again.power_ == told == copy.deepcopy(detector).power_
    assert again.power(progress=False) == told
    again.save(tmp_path / "b.tocsin")
    assert (tmp_path / "a.tocsin").read_bytes() == (tmp_path / "b.tocsin").read_bytes()
    again.fit(FITS["views"][1], progress=False)
    assert again.power_ is None
    again.save(tmp_path / "c.tocsin")
    assert Detector.load(tmp_path / "c.tocsin").power_ is None


def test_plain_facts() -> None:
    """JSON has no word for infinite."""
    told = made("views").power(progress=False)
    facts = told.to_dict()
    assert [own["delay"] for own in facts["changes"]] == [c.delay if c.found else None for c in told.changes]
    assert facts["text"] == str(told)
    assert "Infinity" not in told.to_json()


@pytest.mark.parametrize("ending", [".png", ".svg"])
def test_plots(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    for name in ("views of a table", "represented"):
        made(name).power(progress=False).plot(tmp_path / f"card{ending}")
        assert (tmp_path / f"card{ending}").stat().st_size > 3000
