"""What many streams share of a detector, and what they are watched together by."""

from __future__ import annotations

from typing import Protocol

from tocsin._calibration.result import Calibration
from tocsin._common.errors import InputError
from tocsin._compute import Functions
from tocsin._compute.arrays import BoolArray, Float64Array, Int64Array
from tocsin._state import Fitted
from tocsin._statistics.base import Parts, Points, WindowState
from tocsin._statistics.mmd_bank import GaussianBank
from tocsin._statistics.mmd_gaussian import GaussianLive
from tocsin._statistics.views import ViewsLive
from tocsin._statistics.views_bank import ViewsBank


class Bank(Protocol):
    """What is kept of many streams, all of them a step at a time."""

    @property
    def compute(self) -> Functions:
        """Where steps are made."""

    @property
    def takes_tensors(self) -> bool:
        """Whether `step` takes points that are on a GPU as they are."""

    def step(self, chosen: Int64Array, points: Points) -> tuple[Float64Array, Int64Array | None]:
        """Let one point enter each of these streams: channels as a rule takes them, and which of them spoke."""

    def learning(self, chosen: Int64Array) -> BoolArray | None:
        """Which of these streams still give observations for their own levels; None if none does."""

    def clear(self, chosen: Int64Array) -> None:
        """Let these streams begin, with no points of their own."""

    def renew(self, chosen: Int64Array) -> bool:
        """Let these streams begin new runs that go on with what they have heard; whether they do so."""

    def recent(self, stream: int) -> Float64Array:
        """The latest points of a stream, oldest first, as far as they are kept."""

    def heard(self, stream: int) -> list[WindowState]:
        """What an explanation asks of the windows of a detector alone."""

    def state(self) -> Parts:
        """What steps change."""

    def resume(self, state: Parts) -> None:
        """Go on from what `state` gave."""


def shared_by(fitted: Fitted[Calibration]) -> GaussianLive | ViewsLive:
    """The live statistic of a detector that has no other, and can watch many streams."""
    members = fitted.live.members
    if len(members) == 1 and isinstance(members[0], GaussianLive | ViewsLive):
        return members[0]
    names = ", ".join(sorted({channel.statistic for channel in fitted.channels}))
    raise InputError(
        "Many streams are watched together by MMD with Gaussian kernels, or by Views, alone; this detector has "
        f"{names}. Fit Detector(ert, MMD()), or keep a detector for each stream."
    )


def bank_of(live: GaussianLive | ViewsLive, count: int) -> Bank:
    """For so many streams."""
    return ViewsBank(live, count) if isinstance(live, ViewsLive) else GaussianBank(live, count)
