"""What happens while the code under test waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest


def instead_of_waiting(monkeypatch: pytest.MonkeyPatch, happen: Callable[[float], object]) -> None:
    """Call this where this thread would sleep; others, which may be other libraries', go on as they do."""
    sleep, here = time.sleep, threading.current_thread()

    def slept(seconds: float) -> None:
        (happen if threading.current_thread() is here else sleep)(seconds)

    monkeypatch.setattr(time, "sleep", slept)
