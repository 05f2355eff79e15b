"""An alarm explained: the columns that changed and how, the reference beside what came since, and examples."""

from __future__ import annotations

from tocsin._common.wording import counted, listed
from tocsin._explain.result import MOST_COLUMNS, MOST_EXAMPLES, Example, Explanation, Moved
from tocsin._plots.samples import cut
from tocsin._report.charts import comparison, contribution
from tocsin._report.gathering import Alarm
from tocsin._report.html import Markup, join, table, tag

LONGEST_VALUE, LONGEST_NAME = 60, 40
"""Characters of a value and of a column's name that are shown."""

MOST_VALUES = 8
"""Columns of an example."""

MOST_ROWS = 4 * MOST_COLUMNS
"""Columns of a table."""


def explained(alarm: Alarm) -> Markup:
    """Which columns changed and how, and examples that show it."""
    return join(_columns(alarm.explanation), _comparisons(alarm), _examples(alarm))


def _columns(why: Explanation) -> Markup | None:
    if not why.columns:
        return None
    rest = [column for column in why.columns if not column.changed]
    if why.one_by_one:
        told = "Columns are heard one by one; these were louder than the threshold, as in a false alarm one is too."
        shown, hidden = list(why.changed), rest
    elif why.changed:
        told = f"Named as changed; some column is so named in at most {why.rate:.0%} of false alarms."
        shown, hidden = list(why.changed), rest
    else:
        told = "No single column stands out: what changed is spread over several of them, or lies between them."
        shown, hidden = rest[:MOST_COLUMNS], rest[MOST_COLUMNS:]
    scale, others = _scale(why.columns), "column" if len(hidden) == 1 else f"{len(hidden):,} columns"
    return join(
        tag("h4", "What changed"),
        tag("p", told),
        *(tag("p", tag("b", f"{sentence[0].upper()}{sentence[1:]}.")) for sentence in why.given),
        _beyond(why),
        _column_table(shown, scale, why),
        tag(
            "details",
            tag("summary", f"The other {others}, {'quieter' if why.one_by_one else 'of which nothing can be said'}"),
            _column_table(hidden, scale, why),
        )
        if hidden
        else None,
    )


def _beyond(why: Explanation) -> Markup | None:
    if not why.beyond:
        return None
    names = [cut(name, LONGEST_NAME) for name in why.beyond]
    more = len(names) - MOST_COLUMNS
    shown = listed([*names[:MOST_COLUMNS], f"{more:,} more"] if more > 0 else names)
    return tag("p", tag("b", "Beyond all that the reference has: "), f"{shown}.")


def _scale(columns: tuple[Moved, ...]) -> tuple[float, float]:
    ends = [0.0, *(end for column in columns for end in (column.contribution, *column.usual))]
    room = (max(ends) - min(ends)) * 0.02 or 1.0
    return min(ends) - room, max(ends) + room


def _column_table(columns: list[Moved], scale: tuple[float, float], why: Explanation) -> Markup:
    rows: list[list[object]] = [
        [
            tag(
                "th",
                cut(column.name, LONGEST_NAME),
                tag("span", f" {column.how}", class_="how") if column.how else None,
                scope="row",
            ),
            tag("td", contribution(column.contribution, column.usual, *scale, column.changed), class_="chart"),
            tag("td", f"{column.contribution:.3g}", class_="number"),
            tag("td", column.before, class_="words", data_label="Before"),
            tag("td", column.after, class_="words", data_label="Since"),
        ]
        for column in columns[:MOST_ROWS]
    ]
    more = f" {len(columns) - MOST_ROWS:,} more are not shown." if len(columns) > MOST_ROWS else None
    part, grey = f"Contribution to {why.measure or 'the statistic'}", "Grey: usual at false alarms."
    if why.one_by_one:
        part, grey = "Loudness", "Grey: up to the threshold."
    head: list[object] = ["Column", part, "", "Before", "Since"]
    return join(table(head, rows, "columns"), tag("p", grey, more, class_="key"))


def _comparisons(alarm: Alarm) -> Markup | None:
    if not alarm.samples:
        return None
    return join(
        tag("h4", "Reference and since the change"),
        tag(
            "p",
            tag("span", "reference", class_="key-before"),
            tag("span", "since the change began", class_="key-after"),
            class_="key",
        ),
        tag("div", *(comparison(name, sample) for name, sample in alarm.samples.items()), class_="comparisons"),
    )


def _examples(alarm: Alarm) -> Markup:
    why = alarm.explanation
    kinds = (
        ("Typical of what is new", "Observation", why.recent),
        ("Typical of what is gone", "Reference row", why.missed),
    )
    order = [column.name for column in why.columns]
    return join(
        *(
            join(tag("h4", title), _example_table(word, examples[:MOST_EXAMPLES], order))
            for title, word, examples in kinds
            if examples
        )
    )


def _example_table(word: str, examples: tuple[Example, ...], order: list[str]) -> Markup:
    kept = list(dict.fromkeys(name for example in examples for name in example.kept))
    timed = ["Time"] if any(example.when for example in examples) else []
    named = {name for example in examples for name in example.values}
    others = dict.fromkeys(name for example in examples for name in example.values if name not in order)
    names = [*(name for name in order if name in named), *others][:MOST_VALUES]
    left = len(named) - len(names)
    rows: list[list[object]] = [
        [
            tag("td", f"{example.place:,}" if example.place > 0 else "before", class_="number"),
            *(tag("td", example.when or "", class_="number") for _ in timed),
            *(tag("td", cut(example.kept.get(name, ""), LONGEST_VALUE), class_="kept") for name in kept),
            *(cut(example.values.get(name, ""), LONGEST_VALUE) for name in names),
        ]
        for example in examples
    ]
    return join(
        table([word, *timed, *(cut(name, LONGEST_NAME) for name in (*kept, *names))], rows, "examples"),
        tag("p", f"{counted(left, 'further column')} not shown.", class_="key") if left > 0 else None,
    )
