"""How a block of observations enters a run: all of it, up to an alarm, or with a new run after each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tocsin._compute import on_host
from tocsin._compute.arrays import Array, BoolArray, Float64Array
from tocsin._state.fitted import C, Fitted
from tocsin._state.news import Ear, Found
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._state.rule import ALONE
from tocsin._state.run import RECENT_WINDOWS, Run
from tocsin._statistics.base import Parts, Points

News = tuple[Float64Array, Found]
"""What a run keeps of news after some points, and what they ring."""

SHORTEST_PIECE = 32
"""Observations tested at once after a reset; twice as many each time, since what follows an alarm is tested again."""


def entered(fitted: Fitted[C], run: Run, observed: list[Any], start: int, stop: int) -> Array:
    """The channels of observed points start..stop, which enter the windows of a run; its clock does not move.

    While the run is young, points meet a reference without those that it began with: the first W of them alone, and
    then the windows that hold some of these.
    """
    live, left = fitted.live, run.left
    if left is None:
        return live.advance(run.windows, observed, start, stop)
    ages = [fitted.widest - run.time, RECENT_WINDOWS * fitted.widest - run.time]
    lacking, young = (min(max(start + age, start), stop) for age in ages)
    pieces = []
    if lacking > start:
        seen = live.lacking(left, observed, start, lacking)
        pieces.append(on_host(live.advance(run.windows, seen, 0, lacking - start)))
    if young > lacking:
        pieces.append(on_host(live.advance(run.windows, observed, lacking, young)))
    due = live.due(left) * live.share(np.arange(run.time + 1, run.time + 1 + young - start))
    values: Array = np.concatenate(pieces) + due
    if stop > young:
        values = np.concatenate([values, on_host(live.advance(run.windows, observed, young, stop))])
    return values


def learnt_from(fitted: Fitted[C], run: Run, count: int) -> BoolArray | None:
    """Of the next observations, so many, from which the stream's own level is learnt; None if from none."""
    left = fitted.live.learns(run.windows)
    return np.arange(count) < left if left else None


def with_learning(outcomes: Outcomes, learning: BoolArray | None) -> Outcomes:
    """The same outcomes, some of them of observations from which a level is learnt."""
    return outcomes if learning is None else replace(outcomes, learns=learning)


def listened(ear: Ear, run: Run, points: Points) -> News:
    """News of these points; the run stays as it is."""
    heard = ear.begun() if run.heard is None else run.heard.copy()
    return heard, ear.watch(heard, points)


def advance(fitted: Fitted[C], run: Run, points: Points, observed: list[object], start: int, stop: int) -> Outcomes:
    """Let points start..stop, which were observed, enter the windows of a run, and test each."""
    count = stop - start
    learning = learnt_from(fitted, run, count)
    values = entered(fitted, run, observed, start, stop) if count else np.empty((0, len(fitted.live.channels)))
    time = np.arange(run.time + 1, run.time + 1 + count)
    outcomes = with_learning(fitted.rule(values, ALONE, np.array([run.number]), time), learning)
    if fitted.ear is not None and count:
        run.heard, found = listened(fitted.ear, run, points[start:stop])
        outcomes = fitted.ear.told(outcomes, found)
    run.age(run.time + count)
    run.remember(points[start:stop])
    if run.alarm is None and outcomes.alarm.any():
        run.alarm = outcomes[int(np.flatnonzero(outcomes.alarm)[0])]
    return outcomes


def advance_in_place(fitted: Fitted[C], run: Run, point: Points, beside: Float64Array | None = None) -> Outcome:
    """Let one point enter a run as it is, without a copy, and test it. beside: what the run then keeps beside points.

    What interrupts it (Ctrl-C, say) before the first window has moved leaves the run as it was; afterwards it waits
    until the rest has followed.
    """
    live, windows, time, kept = fitted.live, run.windows, run.time + 1, point[0].copy()
    values, places = np.empty((1, len(live.channels))), live.places(windows)
    lacking, due = (None, None) if run.left is None else _lacked(fitted, run, run.left, time)
    news = None if fitted.ear is None else listened(fitted.ear, run, point)
    try:
        live.enter(windows, point, values, places, lacking)
        outcome = judged(fitted, values if due is None else values + due, run.number, time, news)
        run.recent.append(kept)
        settle(run, outcome, news, beside)
    except BaseException:
        if live.places(windows) != places:
            live.enter(windows, point, values, places, lacking)
            outcome = judged(fitted, values if due is None else values + due, run.number, time, news)
            if not (run.recent and run.recent[-1] is kept):
                run.recent.append(kept)
            settle(run, outcome, news, beside)
        raise
    return outcome


def _lacked(fitted: Fitted[C], run: Run, left: list[Parts], time: int) -> tuple[list[Parts] | None, Float64Array]:
    """What the reference lacks that this observation of a run meets, and what is to be added to the channels."""
    if run.due is None:
        run.due = fitted.live.due(left)
    if time <= fitted.widest:
        return left, run.due  # all that windows hold has met such a reference
    return None, run.due * fitted.live.share(np.array([time]))


def judged(
    fitted: Fitted[C], values: Float64Array, run: int, time: int, news: News | None, *, learning: bool = False
) -> Outcome:
    """The outcome of an observation, from its channels and what it rings besides; learning: whether a level is."""
    outcome = fitted.rule.one(values, run, time, learning=learning)
    return outcome if news is None or fitted.ear is None else fitted.ear.told_one(outcome, news[1])


def settle(run: Run, outcome: Outcome, news: News | None, beside: Float64Array | None = None) -> None:
    """Be where this outcome says, and keep what was heard with it, and what was expected."""
    if news is not None:
        run.heard = news[0]
    if beside is not None:
        run.beside = beside
    run.settle(outcome)


def advance_until_alarm(fitted: Fitted[C], run: Run, points: Points) -> tuple[Outcomes, Run]:
    """Outcomes up to the first alarm, and the run as it is then; the one given stays as it is."""
    pieces, position, size = [advance(fitted, run.copy(), points, [], 0, 0)], 0, SHORTEST_PIECE
    while position < len(points) and not pieces[-1].alarm.any():
        piece, ahead = points[position : position + size], run.copy()
        observed = fitted.live.observe(piece, None)
        outcomes = advance(fitted, ahead, piece, observed, 0, len(piece))
        rang = np.flatnonzero(outcomes.alarm)
        if len(rang) and rang[0] < len(piece) - 1:
            ahead = run.copy()
            outcomes = advance(fitted, ahead, piece, observed, 0, int(rang[0]) + 1)
        pieces.append(outcomes)
        run, position, size = ahead, position + len(outcomes), 2 * size
    return Outcomes.join(pieces), run


def advance_going_on(
    fitted: Fitted[C], run: Run, points: Points, observed: list[Any], begin: Callable[[Run], Run]
) -> tuple[Outcomes, Run]:
    """`advance_with_resets` where a new run goes on with the windows of the one before: all points in one go, but for
    those that ring by news, with which a piece ends."""
    ear = fitted.ear
    if ear is None or not len(points):
        return _heard_through(fitted, run, points, observed)
    heard, found = listened(ear, run, points)
    pieces, position = list[Outcomes](), 0
    for stop in [*(np.flatnonzero(found.slot >= 0) + 1).tolist(), len(points)]:
        if stop == position:
            continue
        if run.alarm is not None:
            run = begin(run)  # after an alarm of news, windows do not know that they begin anew
        here = slice(position, stop)
        outcomes, run = _heard_through(fitted, run, points[here], [own[here] for own in observed])
        outcomes = ear.told(outcomes, Found(found.slot[here], found.log_rate[here]))
        if outcomes.alarm[-1]:
            run.alarm = outcomes[len(outcomes) - 1]
        pieces.append(outcomes)
        position = stop
    run.heard = heard
    return Outcomes.join(pieces), run


def _heard_through(fitted: Fitted[C], run: Run, points: Points, observed: list[Any]) -> tuple[Outcomes, Run]:
    """All points in one go, through alarms of statistics."""
    count = len(points)
    learning = learnt_from(fitted, run, count)
    values, spoke = fitted.live.listen(run.windows, observed) if count else (np.empty((0, 1)), np.empty(0, np.int64))
    rang: BoolArray = values[:, 0] > fitted.calibration.threshold
    begins = np.concatenate([[run.alarm is not None], rang[:-1]])[:count]
    places = np.arange(count)
    since = np.maximum.accumulate(np.where(begins, places, -1))
    time = places - since + np.where(since < 0, run.time, 1)
    number = run.number + np.cumsum(begins)
    outcomes = fitted.rule(values, ALONE, number if count else np.array([run.number]), time, spoke)
    outcomes = with_learning(outcomes, learning)
    if count:
        if begins.any():
            run.recent.clear()
            run.begun_with, run.alarm = None, None
        run.number, run.time = int(number[-1]), int(time[-1])
        run.remember(points[max(int(since[-1]), 0) :])
        if rang[-1]:
            run.alarm = outcomes[count - 1]
    return outcomes, run


def advance_with_resets(
    fitted: Fitted[C], run: Run, points: Points, observed: list[object], begin: Callable[[Run], Run]
) -> tuple[Outcomes, Run]:
    """Outcomes of all points, and the last run; `begin` makes the one after a run, with the point after its alarm."""
    if fitted.live.goes_on:
        return advance_going_on(fitted, run, points, observed, begin)
    pieces, position, size = [advance(fitted, run, points, observed, 0, 0)], 0, SHORTEST_PIECE
    while position < len(points):
        if run.alarm is not None:
            run, size = begin(run), SHORTEST_PIECE
        piece = advance(fitted, run, points, observed, position, min(position + size, len(points)))
        rang = np.flatnonzero(piece.alarm)
        if len(rang):
            # What was taken in after the alarm is forgotten with the rest of the run.
            piece = piece[: int(rang[0]) + 1]
        pieces.append(piece)
        position, size = position + len(piece), 2 * size
    return Outcomes.join(pieces), run
