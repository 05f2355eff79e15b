"""What a context explains, in words."""

from __future__ import annotations

from tocsin._common.wording import called, counted, listed
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Intake

LITTLE = 0.01
"""Part of a column's variance that is hardly worth a context."""

MOST_NAMED = 8


def given_lines(intake: Intake) -> list[str]:
    """What each column's context explains of it; nothing where there is no context."""
    if not isinstance(intake, Contextual):
        return []
    explained = {law.column: law.explained for law in intake.expectation.laws if law.what == "value"}
    most = sorted(explained, key=lambda name: -explained[name])
    told = [f"{explained[name]:.0%} of {called(name)}" for name in most if explained[name] >= LITTLE]
    nothing = [called(name) for name in most if explained[name] < LITTLE]
    shown = told[:MOST_NAMED] + ([f"less of {len(told) - MOST_NAMED} more"] if len(told) > MOST_NAMED else [])
    lines = [
        f"{listed(called(name) for name in intake.given)}, which "
        + (f"explain{'s' if len(intake.given) == 1 else ''} {listed(shown)}" if shown else "explain nothing of numbers")
        + " (variance, in stretches left out)"
    ]
    if nothing and shown:
        few = nothing if len(nothing) <= MOST_NAMED else [*nothing[:MOST_NAMED], f"{len(nothing) - MOST_NAMED} more"]
        lines.append(f"nothing of {listed(few)}")
    return lines


def unseen_told(unseen: int, rows: int, *, intake: Intake) -> str | None:
    """How many observations were left out since the reference lacks their context; None if none were."""
    if not unseen or not isinstance(intake, Contextual):
        return None
    names = listed(called(name) for name in intake.given)
    was = "was" if unseen == 1 else "were"
    told = (
        f"{counted(unseen, 'observation')} ({unseen / max(rows, 1):.0%}) {was} not judged: the reference lacks the "
        f"like of their context ({names})."
    )
    if 2 * unseen > rows:
        return f"MOST OF THIS STREAM WAS NOT JUDGED. {told} Fit to a reference that has such contexts."
    return told
