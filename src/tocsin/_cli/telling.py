"""What a watch saw, told as it happens: to people, to programs and to a file."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import typer
from rich.console import Console
from rich.text import Text

from tocsin._cli import describe
from tocsin._cli.actions import Actions
from tocsin._cli.live import View, by_chance
from tocsin._common.wording import counted, rounded
from tocsin._explain.result import Explanation
from tocsin._report.gathering import EXPLAINED_IN_SERIES, closeness
from tocsin._state.outcomes import Outcome, Outcomes


@dataclass
class Report:
    """What was seen of a stream, and everyone who is to know of it.

    last_alarm: its row.  in_series: alarms that followed each other closely, up to that one.
    """

    detector: str
    stream: str
    ert: float
    out: Console
    quiet: bool
    as_json: bool
    view: View | None = None
    log: IO[str] | None = None
    actions: Actions | None = None
    rows: int = 0
    alarms: int = 0
    last_alarm: int = 0
    in_series: int = 0

    def saw_one(self, outcome: Outcome) -> None:
        """A row was tested."""
        self.rows += 1
        if self.view is not None:
            self.view.saw_one(outcome.statistic, outcome.threshold)

    def saw(self, outcomes: Outcomes) -> None:
        """Rows were tested."""
        self.rows += len(outcomes)
        if self.view is not None:
            self.view.saw(outcomes.statistic, outcomes.threshold)

    def alarm(self, outcome: Outcome, explain: Callable[[], Explanation]) -> None:
        """The latest row rang."""
        close = self.alarms > 0 and self.rows - self.last_alarm <= closeness(self.ert)
        self.alarms += 1
        self.last_alarm, self.in_series = self.rows, self.in_series + 1 if close else 1
        before = self.rows - outcome.time  # of this stream, when the run began
        explanation = explain().moved_on(before) if self._explains else None
        now = datetime.now().astimezone()
        values = f"statistic {outcome.statistic:.5g} > threshold {outcome.threshold:.5g} ({outcome.channel})"
        rarity = "how rare that is by chance is not known"
        if math.isfinite(outcome.rarity):
            rarity = f"by chance once in {rounded(outcome.rarity)} observations"
        facts = {
            "event": "alarm",
            "detector": self.detector,
            "stream": self.stream,
            "timestamp": now.isoformat(timespec="milliseconds"),
            "row": self.rows,
            **describe.alarm_facts(outcome),
            "text": f"{self.detector} rang at observation {self.rows} of {self.stream}: {values}; {rarity}",
            **({} if explanation is None else {"explanation": _facts(explanation)}),
        }
        if self.as_json:
            self._print(json.dumps(facts))
        elif self.view is None:
            self._print(_ringing(f"at observation {self.rows}: run length {outcome.time}, {values}; {rarity}"))
            if explanation is not None and not self.quiet:
                self._print(f"  {self._why(explanation, before)}")
        else:
            why = None if explanation is None else str(explanation)
            self.view.rang(f"observation {self.rows:,}, {rarity}: {values}", why)
            self._print(_ringing(f"{now:%H:%M:%S} observation {self.rows:,}, {rarity} ({outcome.channel})"))
        if self.log is not None:
            self.log.write(json.dumps(facts) + "\n")
            self.log.flush()
        if self.actions is not None:
            self.actions.ring(facts)

    @property
    def _explains(self) -> bool:
        """Whether anyone is to be told why it rang: people need not read it each time that a change rings again."""
        if self.as_json or self.view is not None or self.log is not None or self.actions is not None:
            return True
        return not self.quiet and self.in_series <= EXPLAINED_IN_SERIES

    def _why(self, explanation: Explanation, before: int) -> str:
        """When the change began, and which columns changed, in a sentence."""
        when = f"began {explanation.began}"
        if self.in_series > 1 and explanation.began.low <= before + 1:
            when = "goes on since the alarm before"
        names = describe.changed(explanation)
        if names:
            return f"The change {when}, in {names}."
        return f"The change {when}{'; no single column stands out' * (len(explanation.columns) > 1)}."

    def summary(self, *, interrupted: bool, saved_to: Path | None) -> None:
        """All of it, at the end."""
        if self.as_json:
            facts = {"rows": self.rows, "alarms": self.alarms, "expected_false_alarms": self.rows / self.ert}
            state = {"interrupted": interrupted, "state_saved": saved_to is not None}
            self._print(json.dumps({"event": "summary", **facts, **state}))
            return
        stopped = "Stopped after " if interrupted else ""
        self._print(
            f"{stopped}{counted(self.rows, 'observation')}: {counted(self.alarms, 'alarm')}, where chance "
            f"alone would give {by_chance(self.rows, self.ert)}."
        )
        if saved_to is not None:
            self._print(f"State saved to {saved_to}: the next watch goes on from here.")

    def tell(self, text: str) -> None:
        """Something for standard error: trouble with an alarm's action, or what it printed."""
        if self.view is not None and sys.stderr.isatty():
            self.view.print(text)
        else:
            typer.echo(text, err=True)

    def _print(self, line: str | Text) -> None:
        if self.view is not None:
            self.view.print(line)
        elif not self.quiet:
            # Lines for people are wrapped between words where they are read, and nowhere else.
            self.out.print(line, markup=False, soft_wrap=self.as_json or not self.out.is_terminal)


def _ringing(line: str) -> Text:
    return Text.assemble(("ALARM", "bold red"), f" {line}")


def _facts(explanation: Explanation) -> object:
    return describe.finite({**explanation.to_dict(), "text": str(explanation)})
