"""Text from data, made fit for a terminal: names of columns may hold what would move its cursor, or worse."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, but for tabs and ends of lines, those that turn the direction of writing, and halves of some."""


def clean(text: str) -> str:
    """Text without control characters.

    >>> clean("flow\\x1b[2J rate\\n")
    'flow[2J rate\\n'
    """
    return CONTROL.sub("", text)


class CleanConsole(Console):
    """Prints text without the control characters in it. gone: whether whoever read standard output has left."""

    gone = False

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Go on in silence: that nobody reads is no answer, and others may still be told."""
        self.gone = self.quiet = True
        silence_standard_output()


def silence_standard_output() -> None:
    """Let what is still to be printed go nowhere, rather than fail at the very end."""
    with suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
