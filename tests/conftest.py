"""What all tests share: reproducible hypothesis runs, and all implementations of the hot functions."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy and PyTorch: over small products threads only fight

from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from backends import on_device, with_torch
from tocsin import _compute as compute
from tocsin._calibration import dependence, plan, run
from tocsin._detector import fitting

settings.register_profile("tocsin", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("tocsin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark's tests come first: idle workers steal from the end, and would have to start a Spark of their own."""
    items.sort(key=lambda item: item.path.name != "test_spark.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A long test that skips fails: where the extras are, CI leaves long ones out, so it would never run."""
    report = yield
    if report.skipped and item.get_closest_marker("long"):
        report.outcome, report.longrepr = "failed", "Long tests must not skip: leave the mark `long` out here."
    return report


@pytest.fixture(params=with_torch)
def functions(request: pytest.FixtureRequest) -> compute.Functions:
    """The hot functions: compiled, in plain NumPy, and in PyTorch."""
    return on_device(request.param)


@pytest.fixture(scope="module")
def quick_fits() -> Iterator[None]:
    """Quick fits, for tests that make many of them and are not about what this leaves out.

    Few pilot paths, which only balance the channels against each other; few streams against all pseudo-references, so
    intervals are rough; few windows to look for atoms in; and so few random orders that no reference is found to depend
    on its own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "PILOT_PATHS", 100)
        patch.setattr(plan, "SPREAD_ALARMS", 10)
        patch.setattr(dependence, "MOST_ORDERS", 19)
        patch.setattr(fitting, "ATOM_WINDOWS", 1000)
        yield
