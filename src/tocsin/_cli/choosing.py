"""How often may it ring? Three answers to choose from, each with what it would find on the reference at hand."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import typer

from tocsin._cli import describe
from tocsin._common.errors import InputError, Option, ReferenceWarning
from tocsin._common.wording import few
from tocsin._compute.arrays import Array
from tocsin._data.tables import Table
from tocsin._detector.base import fitted_of
from tocsin._detector.detector import Detector
from tocsin._detector.starting import places_of
from tocsin._execution.progress import progress_bar
from tocsin._power.measure import measure
from tocsin._power.result import Power
from tocsin._power.trials import at_run_time
from tocsin._power.words import in_short

TRIED = 5000.0
"""The expected run time with which the reference is looked at first."""

CHOICES = (500.0, TRIED, 50_000.0)

SHARE = 0.9
"""Of the work that a power card takes, for each choice: less than all of it, so that nothing is tried again."""

MEANS = (
    "The expected run time (--ert) is how many observations come between false alarms, on average, while nothing "
    "changes. A short one finds more, and sooner; a long one leaves you in peace."
)


@dataclass(frozen=True)
class Choice:
    """An expected run time, and what it would find."""

    ert: float
    power: Power

    def told(self, rows: int) -> list[str]:
        """In words. rows: of the reference."""
        false = rows / self.ert
        alarms = f"{few(false)} false alarm{'' if few(false) == '1' else 's'}"
        return [f"{alarms} in as many observations as the reference has ({rows:,}).", *in_short(self.power)]


def choose(detector: Detector, table: Table, labels: Array | None, workers: int | None, *, asks: bool) -> float:
    """The expected run time that someone chooses who sees what each would find; refused where nobody can be asked."""
    choices, rows = _choices(detector, table, labels, workers), len(table)
    if not (choices and asks and _can_ask()):
        offered = f" For this reference:\n\n{_listed(choices, rows, '  ')}\n\n" if choices else " "
        raise InputError(
            "There is no ", Option("ert"), f". {MEANS}{offered}Give a number, such as ", Option("ert", TRIED), "."
        )  # fmt: skip
    typer.echo(f"{MEANS}\n\n{_listed(choices, rows, '')}\n")
    while True:
        answer = typer.prompt(f"Which (1, 2 or 3), or another number of observations (from {LEAST:g} on)", default="2")
        number = _number(answer)
        if number in (1.0, 2.0, 3.0):
            return choices[int(number) - 1].ert
        if number is not None and number >= LEAST:
            return number
        typer.echo(f"{answer} is none of them.")


LEAST = 10.0
"""Numbers below are not taken for an expected run time: they may be meant for a place in the list."""


def _can_ask() -> bool:
    """Whether someone is there to answer."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _choices(detector: Detector, table: Table, labels: Array | None, workers: int | None) -> list[Choice]:
    if detector.mode != "steady":  # no other is there for its thresholds at other run times
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)  # the fit that follows says it
        detector.fit(table, groups=labels, workers=workers)
    fitted, choices = fitted_of(detector), []
    places = None if fitted.live.goes_on else places_of(fitted)
    for ert in CHOICES:
        with progress_bar("simulating changes", None) as report:
            choices.append(Choice(ert, measure(at_run_time(fitted, ert), places, workers, report, share=SHARE)))
    return choices


def _listed(choices: Sequence[Choice], rows: int, before: str) -> str:
    blocks = []
    for number, choice in enumerate(choices, 1):
        first, *rest = choice.told(rows)
        head = f"{before}{number}  --ert {describe.count(choice.ert).replace(',', '')}: {first}"
        blocks.append("\n".join([head, *(f"{before}   {sentence}" for sentence in rest)]))
    return "\n".join(blocks)


def _number(answer: str) -> float | None:
    try:
        return float(answer.replace(",", "").replace("_", ""))
    except ValueError:
        return None
