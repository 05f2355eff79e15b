"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable

LONGEST = 40
"""Characters of a value that a message shows."""

LARGE = 1e13
"""Numbers from which on a power of ten is easier to read than commas."""


def rounded(number: float) -> str:
    """Three digits of a number that is not known better.

    >>> rounded(123456), rounded(0.0123456), rounded(3e15)
    ('123,000', '0.0123', '3e+15')
    """
    if not math.isfinite(number):
        return "∞" if number > 0 else f"{number:g}"
    return f"{float(f'{number:.3g}'):,.10g}" if abs(number) < LARGE else f"{number:.3g}"


def shown(value: object) -> str:
    """The beginning of a value, for a message: whatever it is, the message can be made.

    >>> shown("a" * 100) == repr("a" * 40), shown(7)
    (True, "'7'")
    """
    try:
        return repr(str(value)[:LONGEST])
    except Exception:  # of a user's class, or nested too deep
        return f"one that cannot be shown, of type {type(value).__name__}"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def called(column: str) -> str:
    """A column's name, in a text where a bare number would be taken for a value.

    >>> called("flow"), called("2")
    ('flow', 'column 2')
    """
    return f"column {column}" if column.isdigit() else column


def listed(items: Iterable[object]) -> str:
    """Items in a sentence.

    >>> listed([8, 25, 100])
    '8, 25 and 100'
    """
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def few(number: float) -> str:
    """Two digits of a number below ten, all before the point of others.

    >>> few(0.16), few(12345.6)
    ('0.16', '12,346')
    """
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def share(part: float) -> str:
    """In percent, with a digit more if it is small.

    >>> share(0.5), share(0.012), share(0.00001), share(0.0)
    ('50%', '1.2%', '<0.1%', '0%')
    """
    if 0 < part < 0.001:
        return "<0.1%"
    return f"{part:.1%}" if 0 < part < 0.1 else f"{part:.0%}"
