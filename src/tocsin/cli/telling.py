"""What a watch saw, told as it happens: to people, to programs and to a file."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import typer
from rich.console import Console
from rich.text import Text

from tocsin.cli import describe
from tocsin.cli.actions import Actions
from tocsin.cli.live import View, by_chance
from tocsin.outcomes import Outcome, Outcomes
from tocsin.wording import counted, rounded

Explanation = dict[str, Any]


@dataclass
class Report:
    """What was seen of a stream, and everyone who is to know of it."""

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

    @property
    def explains(self) -> bool:
        """Whether anyone is to be told why it rang; a plain line has no room for that."""
        return self.as_json or self.view is not None or self.log is not None or self.actions is not None

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

    def alarm(self, outcome: Outcome, explanation: Explanation | None) -> None:
        """The latest row rang."""
        self.alarms += 1
        now = datetime.now().astimezone()
        values = f"statistic {outcome.statistic:.5g} > threshold {outcome.threshold:.5g} ({outcome.channel})"
        rarity = f"by chance once in {rounded(outcome.rarity)} rows"
        facts = {
            "event": "alarm",
            "detector": self.detector,
            "stream": self.stream,
            "timestamp": now.isoformat(timespec="milliseconds"),
            "row": self.rows,
            **describe.alarm_facts(outcome),
            "text": f"{self.detector} rang at row {self.rows} of {self.stream}: {values}; {rarity}",
            **({} if explanation is None else {"explanation": describe.finite(explanation)}),
        }
        if self.as_json:
            self._print(json.dumps(facts))
        elif self.view is None:
            self._print(_ringing(f"at row {self.rows}: run length {outcome.time}, {values}; {rarity}"))
        else:
            why = None if explanation is None else explanation["text"]
            self.view.rang(f"row {self.rows:,}, {rarity}: {values}", why)
            self._print(_ringing(f"{now:%H:%M:%S} row {self.rows:,}, {rarity} ({outcome.channel})"))
        if self.log is not None:
            self.log.write(json.dumps(facts) + "\n")
            self.log.flush()
        if self.actions is not None:
            self.actions.ring(facts)

    def summary(self, *, interrupted: bool, saved_to: Path | None) -> None:
        """All of it, at the end."""
        if self.as_json:
            facts = {"rows": self.rows, "alarms": self.alarms, "expected_false_alarms": self.rows / self.ert}
            state = {"interrupted": interrupted, "state_saved": saved_to is not None}
            self._print(json.dumps({"event": "summary", **facts, **state}))
            return
        stopped = "Stopped after " if interrupted else ""
        self._print(
            f"{stopped}{counted(self.rows, 'row')}: {counted(self.alarms, 'alarm')}, where chance "
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
