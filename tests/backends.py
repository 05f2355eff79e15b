"""The backends under test: PyTorch is one where it is installed; on the CPU, or where TOCSIN_TEST_DEVICE says."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import pytest

from tocsin import _compute as compute

HAS_TORCH = find_spec("torch") is not None

BACKENDS: list[compute.Backend] = ["numba", "numpy", "torch"] if HAS_TORCH else ["numba", "numpy"]
"""Those that are installed, for tests that go through them in a loop."""

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed: pip install 'tocsin[torch]'")

with_torch: list[Any] = ["numba", "numpy", pytest.param("torch", marks=needs_torch)]
"""All of them, to parametrize by."""


DEVICE = os.environ.get("TOCSIN_TEST_DEVICE", "cpu")
"""Where PyTorch computes."""


def on_device(backend: compute.Backend) -> compute.Functions:
    """The hot functions of a backend; PyTorch's on the device under test, whatever there is."""
    return compute.load(backend, DEVICE if backend == "torch" else "cpu")
