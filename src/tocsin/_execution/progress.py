"""Progress bars for long work, on terminals only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

PATIENCE = 1.0
"""Seconds before a bar appears."""


def no_progress(done: int, total: int) -> None:
    """Say nothing."""


@contextmanager
def progress_bar(what: str, wanted: bool | None) -> Iterator[Progress]:
    """A function (done, total) that draws a bar on standard error once the work has taken a while.

    wanted: True for a bar at once, False for none, None for one on a terminal.
    """
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True,
    )  # fmt: skip
    task = bar.add_task(what, total=None)
    began = time.monotonic()

    def report(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not bar.live.is_started and (wanted or time.monotonic() - began > PATIENCE):
            bar.start()

    try:
        yield report
    finally:
        bar.stop()
