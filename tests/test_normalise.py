"""Channels on one scale: what is as rare is as loud."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from tocsin._calibration.normalise import Normaliser
from tocsin._compute import Functions
from tocsin._compute.arrays import Float32Array

COUNT, TAIL = 20_000, 0.002


def channels(reached: float) -> Float32Array:
    """Paths (2, COUNT, 1) of a channel with a normal law, and of one that is 1 so often and else 0."""
    normal = [NormalDist().inv_cdf((i + 0.5) / COUNT) for i in range(COUNT)]
    atoms = np.arange(COUNT) < round(reached * COUNT)
    return np.array([normal, atoms], dtype=np.float32)[:, :, None]


@pytest.mark.parametrize("reached", [0.01, 0.1, 0.3])
def test_an_atom_is_as_loud_as_a_normal_value_of_its_rarity(functions: Functions, reached: float) -> None:
    """It would else speak as loudly as what is as rare as the quantile, and drown the other channels."""
    learned = Normaliser.learn(channels(reached), 2 * TAIL, functions, discrete=False)
    values = np.array([[NormalDist().inv_cdf(1 - reached), 1.0]])
    normal, atom = ((values - learned.centre) / learned.scale)[0]
    assert atom == pytest.approx(normal, rel=0.01)
    (quantile, _) = ((np.array([NormalDist().inv_cdf(1 - TAIL), 1.0]) - learned.centre) / learned.scale).tolist()
    assert quantile == pytest.approx(1, abs=0.01)


def test_an_atom_of_half_the_law_never_speaks(functions: Functions) -> None:
    """However far it is from the mean."""
    learned = Normaliser.learn(channels(0.6), 2 * TAIL, functions, discrete=False)
    assert (1 - learned.centre[1]) / learned.scale[1] < 0.01


def test_an_atom_that_is_rare_enough_speaks_as_any_channel(functions: Functions) -> None:
    """At its quantile the score is 1."""
    learned = Normaliser.learn(channels(1.5 * TAIL), 2 * TAIL, functions, discrete=False)
    assert (1 - learned.centre[1]) / learned.scale[1] == pytest.approx(1)
