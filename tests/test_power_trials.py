"""Trials of power cards are what the detector does."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from powering import FITS, closeness, independent, made, remembering, stage
from tocsin import MMD, Detector, Views
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._detector.base import fitted_of
from tocsin._power.changes import Cells, Change
from tocsin._power.draws import Draws
from tocsin._power.stretches import Stretches, some_columns
from tocsin._power.trials import at_run_time, stage_of
from tocsin._statistics.mmd_callable import CallableLive

pytestmark = pytest.mark.usefixtures("quick_fits")


@pytest.mark.parametrize("level", [1.0, 0.3], ids=["as it is", "with many false alarms"])
def test_a_column_alone_is_heard_as_with_all(level: float) -> None:
    """Bit for bit: until the first alarm no channel knows of the others. With false alarms before it, too."""
    rows = remembering(300, 4) + 2 * np.arange(4)
    detector = Detector(60, Views(), seed=1, paths=6).fit(rows, progress=False)
    own = at_run_time(fitted_of(detector), 60)
    place = stage_of(own, None, Cells(own.intake, own.reference))
    assert isinstance(place, Stretches)
    place = replace(place, live=replace(place.live, level=level * place.live.level))
    changes = [change for j in range(4) for change in place.cells.changes(j)]
    found = []
    for trial, onset in enumerate(place.onsets(12).tolist()):
        alone = place.delays(onset, trial, changes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Stretches, "_watched", lambda *_: None)
            together = place.delays(onset, trial, changes)
        assert alone.tolist() == together.tolist()
        found.append(alone)
    share = np.isfinite(np.array(found)).mean()
    assert 0.2 < share <= 1
    assert len(some_columns(place.live, np.array([1])).unit) == len(place.live.unit) // 4


def test_a_stretch_is_judged_by_what_came_before_it() -> None:
    """Channels are those of the definition, measured from the mean of rows before the stretch, in units of the fit; and
    more strictly where the reference might have ended not long before."""
    rows = remembering(240, 2)
    detector = Detector(500, Views(), seed=1, paths=6).fit(rows, progress=False)
    place = stage(detector)
    assert isinstance(place, Stretches)
    model, live = place.live.model, place.live
    channels = model.channels(model.rows(rows, live.compute), live.compute)  # from the row `history` on
    clocks: list[tuple[int, int]] = []
    for trial, onset in enumerate(place.onsets(10).tolist()):
        judging, state = place.state(onset, trial)
        ends = [k for k in range(1, len(channels)) if np.allclose(channels[:k].mean(0), judging.middle)]
        assert len(ends) == 1
        assert 0.4 * len(channels) - 1 <= ends[0] <= onset - model.spans.history
        values = judging.advance(place_copy(state), rows, onset, onset + 1)[0]
        off = (channels[onset - model.spans.history] - judging.middle) / judging.unit
        scale = state["scale"][0]  # as it was; a row counts once it has left the widest window
        before = onset - model.spans.widest - model.spans.history
        heard = ((channels[before] - judging.middle) / judging.unit) ** 2
        memory = judging.pace.memory
        after = np.maximum(scale + (np.minimum(heard, (judging.pace.cap * judging.level) ** 2) - scale) / memory, 1.0)
        if int(state["clock"][0, 1]) < model.spans.widest:
            after = scale  # the rows that count now came before the stream
        since = onset - model.spans.history - ends[0]  # rows since the reference might have ended
        clock = int(state["clock"][0, 1])
        assert since <= clock <= since + memory
        clocks.append((since, clock - since))
        stricter = 1 + judging.pace.early * math.exp(-clock / judging.pace.fade)
        # Streams keep 16 binary digits of rows, and 8 of those that have part in baselines alone.
        assert np.allclose(values, np.abs(off) / np.sqrt(after) / stricter, rtol=1e-3, atol=1e-3)
    assert all(len(set(own)) > 5 for own in zip(*clocks, strict=True))


def place_copy(state: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(state)


def test_stretches_stay_within_their_group() -> None:
    """With enough before them; and rows from another time are of one group, too."""
    rows, labels = remembering(400, 1), np.repeat([0, 1, 2], [150, 60, 190])
    detector = Detector(60, Views(), seed=1, paths=6).fit(rows, groups=labels, progress=False)
    place = stage(detector)
    assert isinstance(place, Stretches)
    onsets = place.onsets(200)
    ends = np.array([150, 210, 400])
    history = place.live.model.spans.history
    for onset in onsets.tolist():
        group = int(labels[onset])
        assert onset + place.horizon <= ends[group]
        assert onset - history > ends[group] - [150, 60, 190][group]
    assert len(np.unique(onsets)) > 30
    rng = np.random.default_rng(0)
    for _ in range(50):
        first = int(np.flatnonzero((rows == place.elsewhere(300, rng)[0]).all(1))[0])
        assert labels[first] == labels[first + place.horizon - 1]


def test_no_row_is_compared_with_the_point_that_it_is_or_was_made_of() -> None:
    """By the definition: in the windows of a trial, rows that are quiet and rows that have moved, one by one."""
    detector = made("kernel")
    place, (live,) = stage(detector), fitted_of(detector).live.members
    assert isinstance(place, Draws)
    assert isinstance(live, CallableLive)
    (width,), rows, seen = detector.windows_, FITS["kernel"][1], list[Float64Array]()

    def heard(_: Draws, values: Float64Array, rows: Int64Array, trial: int) -> Any:
        seen.append(values[:, 0])
        return np.zeros(len(values), dtype=bool)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draws, "_rings", heard)
        delays = place.delays(0, 3, [Change("higher", 0, 1.0)])
        assert np.isinf(delays).all()
        count = len(seen)
        drawn, _ = place._begun(generator(place.seed, Purpose.POWER, 4), 3)
    lead, values = seen[0], np.concatenate(seen[1:count])
    quiet, moved = values[: place.horizon], values[place.horizon :]
    for after, found in ((rows[drawn[width:]], quiet), (rows[drawn[width:]] + [place.cells.spread[0], 0.0], moved)):
        points = np.concatenate([rows[drawn[:width]], after])
        for end in range(width, len(points) + 1):
            window, own = points[end - width : end], drawn[end - width : end]
            among, against = closeness(window, window), closeness(window, rows)
            pairs = (among.sum() - np.trace(among)) / (width * (width - 1))
            apart = np.mean([np.delete(against[k], own[k]).mean() for k in range(width)])
            expected = live.offset + pairs - 2 * apart
            assert (lead[-1] if end == width else found[end - width - 1]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["mmd", "landmarks", "lsdd", "mean", "custom", "kernel"])
def test_quiet_rows_ring_as_seldom_as_promised(name: str) -> None:
    """Rows of the reference, none compared with itself: with no change trials ring as often as runs do.

    Six standard deviations of so many trials, and a quarter for a small reference: fails by chance once in 10^8 cards,
    and sees rates that are off by a factor of two.
    """
    detector = made(name)
    place, horizon = stage(detector), 12
    place = replace(place, wanted=horizon)
    trials = 100 if name in ("custom", "kernel") else 600
    rang = np.mean([np.isfinite(place.delays(0, trial, [])[0]) for trial in range(trials)])
    expected = 1 - (1 - 1 / detector.ert) ** horizon
    noise = math.sqrt(expected * (1 - expected) / trials)
    assert abs(rang - expected) < 6 * noise + expected / 4


@pytest.mark.parametrize("name", ["mmd", "kernel", "custom"])
def test_what_hardly_moves_is_not_compared_with_itself_either(name: str) -> None:
    """A row that has moved by nothing is as quiet as it was, to the last bit."""
    place = stage(made(name))
    nothing = Change("higher", 0, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cells, "changed", lambda _, changes, here: np.tile(here.after, (len(changes), 1)))
        delays = np.array([place.delays(0, trial, [nothing]) for trial in range(30)])
    assert delays[:, 0].tolist() == delays[:, 1].tolist()


def test_trials_have_distinct_rows() -> None:
    """Also where the reference hardly has as many."""
    detector = Detector(100, MMD(), window=20, seed=1, paths=200).fit(independent(45, 1), progress=False)
    place = stage(detector)
    assert isinstance(place, Draws)
    assert place.horizon == 25
    drawn, _ = place._begun(np.random.default_rng(0), 0)
    assert sorted(drawn.tolist()) == list(range(45))
