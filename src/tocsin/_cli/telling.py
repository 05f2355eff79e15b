"""What a watch saw, told as it happens: to people, to programs and to a file."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from tocsin._cli import describe
from tocsin._cli.actions import WAY, Actions
from tocsin._cli.cleaning import clean, silence_standard_output
from tocsin._cli.data import Data
from tocsin._cli.ledger import Ledger
from tocsin._cli.live import View, by_chance
from tocsin._cli.outbox import MOST, Outbox
from tocsin._cli.places import printed
from tocsin._common.wording import counted, rounded
from tocsin._data.tables import Table
from tocsin._explain.beside import Beside
from tocsin._explain.result import Explanation, beside_it
from tocsin._report.gathering import EXPLAINED_IN_SERIES
from tocsin._state.outcomes import Outcome, Outcomes


@dataclass
class Report:
    """What was seen of a stream, and everyone who is to know of it.

    apart: rows within which an alarm follows the one before in the same series.
    before: rows of the stream that earlier watches took in.  beside: what stands beside the latest rows.
    keep: is called with each alarm in the outbox, before it is told.  last_alarm: its row.
    in_series: alarms that followed each other closely, up to that one.
    data: whether the rows are as the reference's; None if nobody is to be told.
    power: what the detector can see, in sentences, if that is known.
    unheard: whether whoever read standard output has left.
    """

    detector: str
    stream: str
    ert: float
    apart: float
    out: Console
    quiet: bool
    as_json: bool
    power: Sequence[str] = ()
    data: Data | None = None
    view: View | None = None
    log: Ledger | None = None
    actions: Actions | None = None
    outbox: Outbox = field(default_factory=lambda: Outbox(["output"]))
    keep: Callable[[], None] = lambda: None
    before: int = 0
    beside: Beside = field(default_factory=Beside)
    rows: int = 0
    alarms: int = 0
    last_alarm: int = 0
    in_series: int = 0
    unheard: bool = False
    _failing: bool = False
    _unwritten: bool = False

    def saw_one(self, outcome: Outcome, aside: Table | None = None) -> None:
        """A row was tested; aside: what stands beside it."""
        self.rows += 1
        self.beside.add(aside, 1)
        if self.view is not None:
            self.view.saw_one(outcome.statistic, outcome.threshold)

    def saw(self, outcomes: Outcomes, aside: Table | None = None) -> None:
        """Rows were tested."""
        self.rows += len(outcomes)
        self.beside.add(aside, len(outcomes))
        if self.view is not None:
            self.view.saw(outcomes.statistic, outcomes.threshold)

    @property
    def row(self) -> int:
        """The latest row's number in its stream."""
        return self.before + self.rows

    def alarm(self, outcome: Outcome, run: int, explain: Callable[[], Explanation], line: int = 0) -> None:
        """The latest row rang; run: how many runs came before.  line: where the row is in its file."""
        row = self.row
        when, kept = self.beside.when(row), self.beside.kept(row)
        close = self.alarms > 0 and row - self.last_alarm <= self.apart
        self.alarms += 1
        self.last_alarm, self.in_series = row, self.in_series + 1 if close else 1
        before = row - outcome.time  # of this stream, when the run began
        explanation = explain().moved_on(before).found_by(self.beside) if self._explains else None
        now = datetime.now().astimezone()
        values = f"statistic {outcome.statistic:.5g} > threshold {outcome.threshold:.5g} ({outcome.channel})"
        rarity = "how rare that is by chance is not known"
        if math.isfinite(outcome.rarity):
            rarity = f"by chance once in {rounded(outcome.rarity)} observations"
        beside = "".join(beside_it(when, kept))
        found = f" ({beside.removeprefix(', ')})" if beside else ""
        own = f"{self.stream} {run} {outcome.time} {outcome.statistic!r} {outcome.threshold!r}"
        facts = {
            "event": "alarm",
            "id": printed(own.encode())[:16],
            "detector": self.detector,
            "stream": self.stream,
            "timestamp": now.isoformat(timespec="milliseconds"),
            "row": row,
            "line": line or None,
            "when": when,
            "kept": kept,
            **describe.alarm_facts(outcome),
            "text": f"{self.detector} rang at observation {row:,} of {self.stream}{found}: {values}; {rarity}",
            **({} if explanation is None else {"explanation": _facts(explanation)}),
        }
        if self.view is None:
            lines = [_ringing(f"at observation {row:,}{beside}: run length {outcome.time:,}, {values}; {rarity}")]
            if explanation is not None and not self.as_json and not self.quiet:
                lines.append(Text(f"  {self._why(explanation, before)}"))
        else:
            why = None if explanation is None else str(explanation)
            self.view.rang(f"observation {row:,}{beside}, {rarity}: {values}", why)
            lines = [_ringing(f"{now:%H:%M:%S} observation {row:,}{beside}, {rarity} ({outcome.channel})")]
        room = not self.outbox.pushed_out
        self.outbox.add(facts)
        if room and self.outbox.pushed_out:
            self.tell(f"tocsin: {MOST} alarms wait to be told, and new ones push out the oldest.")
        self.keep()
        self._act()
        self._log()
        self._show({facts["id"]: lines})

    def tell_what_waits(self) -> None:
        """Alarms that an earlier watch could not tell, or was killed over."""
        self._act()
        self._log()
        self._show({})

    def tell_again(self) -> None:
        """Once more, at the end, what could not be written."""
        self._log()
        self._show({})

    def leave(self, *, saved: bool) -> None:
        """Tell of alarms that came to nothing; saved: or that the next watch tells."""
        if self._unwritten:
            silence_standard_output()
        for way, option in (("file", "--alarms"), ("output", "standard output")):
            if left := len(self.outbox.waiting(way)):
                self.tell(f"tocsin: {counted(left, 'alarm')} could not be written to {option}.")
        if left := len(self.outbox.waiting(WAY)):
            then = "the next watch tries again" if saved else "nobody tries again (without --save-state)"
            self.tell(f"tocsin: {counted(left, 'alarm')} had no effect by --on-alarm; {then}.")
        if pushed := self.outbox.pushed_out:
            self.tell(f"tocsin: {counted(pushed, 'alarm')} came to nothing: too many waited to be told.")

    @property
    def others_listen(self) -> bool:
        """Whether anyone but standard output is told."""
        return self.log is not None or self.actions is not None

    # Ways of telling: each fails on its own

    def _act(self) -> None:
        if self.actions is not None:
            self.actions.ring()

    def _log(self) -> None:
        if self.log is None:
            return
        for alarm in self.outbox.waiting("file"):
            try:
                self.log.add(alarm)
            except OSError as error:
                row, why = alarm["row"], error.strerror or error
                self.tell(f"tocsin: --alarms failed for the alarm at observation {row}, and is tried again: {why}.")
                return
            self.outbox.told(alarm, "file")

    def _show(self, lines: dict[object, list[Text]]) -> None:
        for alarm in self.outbox.waiting("output"):
            again = self._unwritten
            shown: list[str | Text] = [*lines.get(alarm["id"], [_ringing(f"before: {alarm['text']}")])]
            if not self._print(*([json.dumps(alarm)] if self.as_json else shown)):
                return
            self.outbox.told(alarm, "output")
            if again:
                self._show(lines)
                return

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
        left = describe.left(explanation)
        if names:
            return f"The change {when}, in {names}.{f' {left}' if left else ''}"
        return f"The change {when}{'; no single column stands out' * (len(explanation.columns) > 1)}."

    def summary(self, *, interrupted: bool, saved_to: Path | None, bad_rows: int, kept_in: str | None) -> None:
        """All of it, at the end."""
        if self.as_json:
            facts = {"rows": self.rows, "alarms": self.alarms, "expected_false_alarms": self.rows / self.ert}
            seen = {"power": list(self.power)} if self.power and not self.alarms else {}
            state = {"interrupted": interrupted, "state_saved": saved_to is not None}
            data = {} if self.data is None else {"data": self.data.findings()}
            self._print(json.dumps({"event": "summary", **facts, "bad_rows": bad_rows, **state, **seen, **data}))
            return
        stopped = "Stopped after " if interrupted else ""
        self._print(
            f"{stopped}{counted(self.rows, 'observation')}: {counted(self.alarms, 'alarm')}, where chance "
            f"alone would give {by_chance(self.rows, self.ert)}."
        )
        if not self.alarms:
            self._print(*self.power)
        if self.data is not None and self.rows:
            self._print(*filter(None, [clean(self.data.told(self.alarms))]))
        if bad_rows:
            kept = "left out" if kept_in is None else f"kept in {kept_in}"
            self._print(
                f"{counted(bad_rows, 'row')} could not be taken in, and {'is' if bad_rows == 1 else 'are'} {kept}."
            )
        if saved_to is not None:
            self._print(f"State saved to {saved_to}: the next watch goes on from here.")

    def tell(self, text: str) -> None:
        """Something for standard error: trouble with an alarm's action, or what it printed."""
        if self.view is not None and sys.stderr.isatty():
            self.view.print(clean(text))
        else:
            with suppress(OSError):  # nobody is left to be told
                typer.echo(clean(text), err=True)

    def _print(self, *lines: str | Text) -> bool:
        """Print lines; whether that can be told."""
        if self.view is not None:
            for line in lines:
                self.view.print(line)
        elif not self.quiet and not self.unheard:
            try:
                if self._unwritten:
                    self.out.file.flush()  # what failed before is still there
                    self._unwritten = self._failing = False
                    return True
                # Lines for people are wrapped between words where they are read, and nowhere else.
                with self.out.capture() as text:
                    for line in lines:
                        self.out.print(line, markup=False, soft_wrap=self.as_json or not self.out.is_terminal)
                self.out.file.write(text.get())
                self.out.file.flush()
            except BrokenPipeError:
                self.unheard = True
                silence_standard_output()
            except OSError as error:
                if not self._failing:
                    self.tell(f"tocsin: Standard output failed, and is tried again: {error.strerror or error}.")
                self._failing = True
                # A buffer holds on to what it could not write; where there is none (python -u) it is gone.
                self._unwritten = not isinstance(getattr(self.out.file, "buffer", None), io.RawIOBase)
                return False
            self._failing = False
        return True


def _ringing(line: str) -> Text:
    return Text.assemble(("ALARM", "bold red"), f" {line}")


def _facts(explanation: Explanation) -> object:
    return describe.finite({**explanation.to_dict(), "text": str(explanation)})
