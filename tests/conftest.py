"""What all tests share: reproducible hypothesis runs, and both implementations of the hot functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tocsin import compute
from tocsin.calibration import run

settings.register_profile("tocsin", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("tocsin")


@pytest.fixture(params=["numba", "numpy"])
def functions(request: pytest.FixtureRequest) -> compute.Functions:
    """The hot functions, compiled and in plain NumPy."""
    return compute.load(request.param)


@pytest.fixture(scope="module")
def short_pilot() -> Iterator[None]:
    """Few pilot paths, for tests that fit many detectors: they only balance the channels against each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "PILOT_PATHS", 100)
        yield
