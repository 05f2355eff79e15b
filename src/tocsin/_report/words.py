"""Numbers as people read them."""

from __future__ import annotations

from tocsin._common.wording import rounded


def count(number: float) -> str:
    """With commas between thousands; four digits of a number that is none of things counted.

    >>> count(12345.0), count(0.25)
    ('12,345', '0.25')
    """
    return f"{number:,.0f}" if number >= 1000 else f"{number:,.4g}"


def times(number: int) -> str:
    """How often.

    >>> times(1), times(2), times(12)
    ('once', 'twice', '12 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def chance(probability: float) -> str:
    """A probability in words.

    >>> chance(0.25), chance(0.0004), chance(1e-12)
    ('25%', 'one in 2,500', 'less than one in a million')
    """
    if probability < 1e-6:
        return "less than one in a million"
    return f"one in {rounded(1 / probability)}" if probability < 0.01 else f"{probability:.0%}"
