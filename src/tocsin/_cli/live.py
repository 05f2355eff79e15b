"""A watch as a picture in the terminal: the statistic against its threshold as it runs, and what has been seen."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tocsin._cli import describe, plot
from tocsin._common.wording import counted, few, rounded
from tocsin._compute.arrays import Float64Array

PER_SECOND = 5
"""Pictures a second, whatever the speed of the stream."""

WIDEST, TALLEST = 100, plot.HEIGHT
"""Characters of the whole picture across, and of the chart down."""

FACTS, REASONS = 6, 4
"""Lines of the picture besides the chart, and at most those of an explanation."""

LATEST = 1 << 16
"""Observations that the chart can reach back."""

SPAN, RATE_SPAN = 30.0, 5.0
"""Seconds of the stream that the chart shows, if a column is to be at least one observation, and of those that the rate
is taken over."""

MOST_LINES = 5
"""Lines printed at once above the picture."""


class Trace:
    """The latest statistics in units of their thresholds, in a ring buffer."""

    def __init__(self, size: int = LATEST) -> None:
        self._ring = np.full(size, np.nan)
        self.count = 0

    def add_one(self, ratio: float) -> None:
        """The next one."""
        self._ring[self.count % len(self._ring)] = ratio
        self.count += 1

    def add(self, ratios: Float64Array) -> None:
        """The next ones."""
        kept = ratios[-len(self._ring) :]
        first = self.count + len(ratios) - len(kept)
        self._ring[np.arange(first, first + len(kept)) % len(self._ring)] = kept
        self.count += len(ratios)

    def columns(self, width: int, each: int) -> list[float]:
        """The largest of every `each` observations, for the latest `width` columns; NaN where there are none.

        Columns begin at multiples of `each`, so that they move as the stream does and do not change on the way.
        """
        count = self.count
        first = (max(count - 1, 0) // each - width + 1) * each
        index = np.arange(first, first + width * each)
        known = (index >= 0) & (index < count)
        values = np.where(known, self._ring[index % len(self._ring)], np.nan)
        return [float(level) for level in np.fmax.reduce(values.reshape(width, each), axis=1)]


class View:
    """The picture, drawn a few times a second by a thread of its own; a context manager."""

    def __init__(self, out: Console, title: str, ert: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._title, self._ert, self._clock = out, title, ert, clock
        self._trace = Trace()
        self._alarms = 0
        self._last_alarm: tuple[float, str, str | None] | None = None
        self._each = 1
        self._rates: deque[tuple[float, int]] = deque(maxlen=int(PER_SECOND * RATE_SPAN) + 1)
        self._latest_row = self._began = clock()
        self._lines: list[str | Text] = []
        self._lock, self._done = Lock(), Event()
        self._live = Live(
            console=out, auto_refresh=False, get_renderable=self.picture, redirect_stdout=False, redirect_stderr=False
        )
        self._thread = Thread(target=self._draw_on, daemon=True)

    # What is told to it

    def saw_one(self, statistic: float, threshold: float) -> None:
        """An observation was tested."""
        self._trace.add_one(statistic / threshold if threshold > 0 else math.nan)

    def saw(self, statistics: Float64Array, thresholds: Float64Array) -> None:
        """Observations were tested."""
        self._trace.add(statistics / np.where(thresholds > 0, thresholds, np.nan))

    def rang(self, line: str, explanation: str | None) -> None:
        """An alarm, in words."""
        self._alarms += 1
        self._last_alarm = self._clock(), line, explanation

    def print(self, line: str | Text) -> None:
        """Print a line above the picture when it is drawn next; where too many come at once, some are left out."""
        with self._lock:
            self._lines.append(line)
        if self._done.is_set():
            self._print_lines()

    # Drawing

    def __enter__(self) -> Self:
        self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        try:
            self._print_lines()
        finally:
            self._live.stop()

    def _draw_on(self) -> None:
        while not self._done.wait(1 / PER_SECOND):
            self._print_lines()
            self._live.refresh()

    def _print_lines(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        left_out = len(lines) - MOST_LINES
        if left_out > 0:
            lines = [*lines[: MOST_LINES - 1], f"... and {left_out + 1} more lines like these"]
        for line in lines:
            self._out.print(line, markup=False)

    def picture(self) -> RenderableType:
        """All of it, as of now."""
        now = self._clock()
        rate = self._rate(now)
        width = min(self._out.width - len("^C") - 1, WIDEST)  # an echoed Ctrl-C must not scroll the picture
        facts = self._facts(now, rate)
        height = min(max(self._out.height - FACTS - facts.row_count, 3), TALLEST)
        body = Group(self._chart(max(width - 4 - plot.MARGIN, 1), height, rate), facts)
        return Panel(body, title=Text(self._title), title_align="left", width=width, border_style="dim")

    def _rate(self, now: float) -> float:
        """Rows a second, lately."""
        if not self._rates or self._trace.count > self._rates[-1][1]:
            self._latest_row = now
        self._rates.append((now, self._trace.count))
        seconds, rows = now - self._rates[0][0], self._trace.count - self._rates[0][1]
        return rows / seconds if seconds > 0 else 0.0

    def _chart(self, width: int, height: int, rate: float) -> Text:
        needed = min(rate * SPAN, self._trace.count, LATEST / 2) / width
        while self._each < needed:
            self._each *= 2
        while rate and self._each > max(3 * needed, 1):
            self._each //= 2
        levels = self._trace.columns(width, self._each)
        chart = plot.bars(levels, lambda _: "green", height)
        marks = Text(" " * plot.MARGIN)
        for level in levels:
            marks.append(*("▲", "bold red") if level > 1 else ("─", "dim"))
        each = "" if self._each == 1 else f", {self._each} to a column"
        span = f"the latest {counted(width * self._each, 'observation')}{each}"
        return Text.assemble(chart, marks, "\n", (f"{span:>{plot.MARGIN + width}}", "dim"))

    def _facts(self, now: float, rate: float) -> Table:
        silent = now - self._latest_row
        speed = f"{rounded(rate)} a second" if rate else f"no more for {duration(silent)}"
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        rows = f"{self._trace.count:,}, {speed}" if self._trace.count else "waiting for the first"
        table.add_row("Seen", f"{rows}; watching for {duration(now - self._began)}")
        table.add_row(
            "Alarms", f"{self._alarms:,}, where chance alone would give {by_chance(self._trace.count, self._ert)}"
        )
        if self._last_alarm is not None:
            when, line, explanation = self._last_alarm
            table.add_row("Last", f"{duration(now - when)} ago, at {line}")
            for i, reason in enumerate((explanation or "").splitlines()[:REASONS]):
                table.add_row("" if i else "Why", Text(reason))
        return table


def by_chance(rows: int, ert: float) -> str:
    """False alarms in so many observations.

    >>> by_chance(200, 1000), by_chance(12_345_000, 1000)
    ('0.2 on average (one in 1,000)', '12,345 on average (one in 1,000)')
    """
    return f"{few(rows / ert)} on average (one in {describe.count(ert)})"


def duration(seconds: float) -> str:
    """A time in its two largest units.

    >>> duration(7.9), duration(125), duration(7300), duration(200_000)
    ('7 s', '2 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    whole = int(seconds)
    units = [(whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s")]
    first = next((i for i, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2])
