"""A detector of views in words: what it hears, and of what its thresholds were made."""

from __future__ import annotations

import numpy as np

from tocsin._common.wording import counted, listed
from tocsin._detector.base import fitted_of
from tocsin._detector.detector import Detector
from tocsin._statistics.base import Channel
from tocsin._statistics.view_model import NEWS
from tocsin._statistics.views import ViewsLive

DRAWN = "simulated streams, each column made of its last rows and of what these left unforeseen in the reference"
"""How null streams are made where they are not drawn from the reference."""


def channels(detector: Detector) -> str:
    """How many channels, and what they are: not one by one, since there are many."""
    own = [channel for channel in detector.channels_ if channel.statistic != NEWS]
    views = list(dict.fromkeys(str(channel.view) for channel in own))
    heard = len(dict.fromkeys(channel.column for channel in own))
    names = detector.intake_.names
    what = counted(heard, "column")
    if not {channel.column for channel in own} & set(names):
        what = f"{counted(heard, 'principal direction')} of {counted(len(names), 'column')}"
    spread = list(dict.fromkeys(str(channel.view) for channel in own if channel.statistic == "spread"))
    return (
        f"{len(own):,}: {counted(len(views), 'view')} of {what} ({listed(views)}), means over "
        f"{listed(detector.windows_)} observations, and spreads ({listed(spread)}) over {detector.windows_[-1]}"
        f"{and_news(detector)}{_and_stops(detector)}"
    )


def and_news(detector: Detector) -> str:
    """What is heard besides, if anything is."""
    beside = _stops(detector)
    news = {own.column for own in detector.channels_ if own.statistic == NEWS and own not in beside}
    return f"; and what the reference never shows, in {counted(len(news), 'column')}" if news else ""


def _and_stops(detector: Detector) -> str:
    """What may stop."""
    beside = _stops(detector)
    return f"; and numbers that stop, in {counted(len(beside), 'column')}" if beside else ""


def _stops(detector: Detector) -> tuple[Channel, ...]:
    """Channels of columns that stop, beside views."""
    fitted = fitted_of(detector)
    return fitted.ear.channels if fitted.ear is not None and fitted.live.goes_on else ()


def silence(detector: Detector) -> str:
    """Where it does not test: until its windows hold rows of that run alone."""
    return f"each run is silent for its first {counted(detector.windows_[-1], 'observation')}"


def baseline(detector: Detector) -> str:
    """From what a stream's own level is learnt, and how far its spread is its own."""
    (member,) = fitted_of(detector).live.members
    assert isinstance(member, ViewsLive)
    assert member.own is not None
    shares = member.own.share[np.unique(np.arange(member.model.width)[~member.news[: member.model.width]])]
    low, high = (f"{share:.0%}" for share in (shares.min(), shares.max()))
    part = low if low == high else f"{low} to {high}"
    return (
        f"a stream's first {counted(member.model.spans.own, 'observation')} say what is usual for it: its own "
        f"level, and {part} of what its spread differs by from that of recordings of the reference; until then it is "
        "compared with all of these"
    )
