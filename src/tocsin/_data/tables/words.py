"""Values written as words: how truth values, numbers and times are read, in files and in columns of strings."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable

import numpy as np

from tocsin._data.tables.table import EPOCH, Holds, Values

Field = str | float | None | list["Field"] | dict[str, "Field"]
"""What JSON can hold; CSV has strings."""

GAPS = ("", "na", "n/a", "nan", "null", "none")
"""Fields that say that a number, truth value or time is missing, in any case. Among strings only an empty one does."""

TRUTHS = {"true": 1.0, "false": 0.0}

MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
TIME_OF_DAY = r"(?:[ ,T]+\d{1,2}[:.]\d{2}.*)?"
NUMBERED_DATE = re.compile(rf"(?:\d{{4}}([-/. ])(\d\d?)\1(\d\d?)|(\d\d?)([-/. ])(\d\d?)\5(?:\d\d){{1,2}}){TIME_OF_DAY}")
NAMED_DATE = re.compile(
    rf"(?:[a-z]{{3,9}},? +)?(?:\d\d?(?:st|nd|rd|th)?[-/. ]*{MONTH}|{MONTH} *\d\d?(?:st|nd|rd|th)?)[-/., ]*"
    rf"(?:\d\d){{1,2}}{TIME_OF_DAY}",
    re.IGNORECASE,
)
"""Dates as people write them: 2024/03/07, 07.03.2024, 3/7/24 12:30; 7 Mar 2024, Thu, March 7th, 2024."""

LOOKED_AT = 1000
"""Strings of a column that are looked at to see whether they may be dates."""


def guessed(fields: Iterable[Field]) -> Holds | None:
    """What fields hold: truth values, numbers or times if all are such, gaps apart; None if they are something else."""
    there = [field for field in fields if not is_gap(field)]
    if not there:
        return "nothing"
    return next((holds for holds, read in READERS.items() if all(read(field) is not None for field in there)), None)


def times_in(strings: Values) -> tuple[Values, str | None]:
    """The times that strings are, and the first string that is none; it, and all after it, are missing then."""
    data = np.full(len(strings), np.nan)
    for i, text in enumerate(strings.as_strings().tolist()):
        if not is_gap(text):
            value = _seconds(text)
            if value is None:
                return Values.of_numbers(data, "times"), text
            data[i] = value
    return Values.of_numbers(data, "times"), None


def look_like_dates(strings: Values) -> bool:
    """Whether most strings seem to be dates, be they as ISO 8601 writes them or not: no more than a hint."""
    there = [text for text in strings.as_strings().tolist() if not is_gap(text)]
    some = there[:: len(there) // LOOKED_AT + 1]
    return 2 * sum(map(_seems_a_date, some)) > len(some)


def _seems_a_date(text: str) -> bool:
    text = text.strip()
    numbered = NUMBERED_DATE.fullmatch(text)
    if numbered:
        low, high = sorted(int(part) for part in (numbered[2] or numbered[4], numbered[3] or numbered[6]))
        return 1 <= low <= 12 and high <= 31
    return NAMED_DATE.fullmatch(text) is not None or (number(text) is None and _seconds(text) is not None)


def is_gap(field: Field) -> bool:
    """Whether it says that a value is missing."""
    if isinstance(field, str):
        return field.strip().lower() in GAPS
    return field is None or (isinstance(field, float) and field != field)


def number(field: Field) -> float | None:
    """The number that a field is."""
    if field is None or isinstance(field, list | dict):
        return None
    try:
        return float(field)
    except (ValueError, OverflowError):
        return None


def _truth(field: Field) -> float | None:
    if isinstance(field, bool):
        return float(field)
    return TRUTHS.get(field.strip().lower()) if isinstance(field, str) else None


def _seconds(field: Field) -> float | None:
    """Seconds since 1970 of a time as ISO 8601 writes it."""
    found = time_in(field) if isinstance(field, str) else None
    return None if found is None else found[0]


def time_in(text: str) -> tuple[float, bool] | None:
    """The time that a string is, as ISO 8601 writes it: seconds since 1970, and whether it names its zone."""
    try:
        time = datetime.datetime.fromisoformat(text.strip())
        naive = time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (naive - EPOCH).total_seconds(), time.tzinfo is not None


READERS: dict[Holds, Callable[[Field], float | None]] = {"truth values": _truth, "numbers": number, "times": _seconds}
"""How fields become what columns hold, the strictest first."""
