"""What the detector can see: beside no alarm, what would have rung, and what would not."""

from __future__ import annotations

from tocsin._power.result import Power
from tocsin._power.words import finds, heading, in_short, lines, misses, remarks
from tocsin._report.html import Markup, join, table, tag

SIGNS = {"found": "found", "partly": "in part", "unseen": "not found"}


def power_section(power: Power | None) -> Markup:
    """What was simulated on the reference, kind by kind; or how to have it simulated."""
    if power is None:
        return tag(
            "p",
            "Not simulated. ",
            tag("code", "tocsin fit"),
            " does so, and in Python ",
            tag("code", "detector.power()"),
            ": what would be found, how soon, and what would not.",
        )
    if not power.trials:
        return tag("p", " ".join(in_short(power)))
    return join(
        tag("p", tag("b", finds(power)), f" {misses(power)}"),
        tag("p", heading(power), class_="quiet-text"),
        table(
            ["Change", "", "In which columns, how soon"],
            [[line.label, SIGNS[line.level], line.verdict] for line in lines(power)],
        ),
        *(tag("p", sentence, class_="key") for sentence in remarks(power)),
    )
