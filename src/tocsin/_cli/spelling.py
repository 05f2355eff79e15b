"""Options as they are typed: what Python calls window=[8, 25] is --window 8,25 here."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tocsin._common.errors import Code, Option, in_short

FLAGS = {
    "Blocks.length": "--sampler blocks --block-length",
    "Gaussian.width": "--width",
    "LSDD.width": "--width",
    "Landmarks.count": "--landmarks",
    "approximation": "--landmarks",
    "backend": "--backend",
    "baseline": "--baseline",
    "cluster": "--cluster",
    "columns": "--columns",
    "data": "--data",
    "device": "--device",
    "draw_only": "--draw-only",
    "error": "--error",
    "ert": "--ert",
    "folder": "--output",
    "given": "--given",
    "groups": "--groups",
    "guarantee": "--guarantee",
    "interval": "--interval",
    "keep": "--keep",
    "kinds": "--kinds",
    "mode": "--mode",
    "paths": "--paths",
    "sampler": "--sampler",
    "seed": "--seed",
    "start": "--start",
    "statistic": "--statistic",
    "window": "--window",
    "workers": "--workers",
}
"""By the name of the option, after that of its class if it has one."""

WORDS = {
    "": "",
    "Blocks()": "blocks",
    "Independent()": "independent",
    "LSDD()": "lsdd",
    "Landmarks(...)": "",
    "MMD()": "mmd",
    "MeanShift()": "mean",
    "Views()": "views",
}
"""For values that are objects in Python, and for none."""

NUMBER = re.compile(r"[-+.\de]+")
"""One that is told with a few digits."""


def spelled(option: Option, flags: Mapping[str, str] = FLAGS) -> str:
    """An option as it is typed; one that cannot be is told as Python's.

    >>> spelled(Option("window", [8, 25])), spelled(Option("length", 9, of="Blocks")), spelled(Option("kernel", ...))
    ('--window 8,25', '--sampler blocks --block-length 9', 'kernel=... (in Python)')
    """
    flag = flags.get(f"{option.of}.{option.name}" if option.of else option.name)
    value = _typed(in_short(option.value))
    if flag is None or value is None:
        return f"{option} (in Python)"
    return f"{flag} {value}".rstrip()


def _typed(value: object) -> str | None:
    """A value as it is typed after its flag; None for one that only Python has."""
    if isinstance(value, Code):
        return WORDS.get(value, value if NUMBER.fullmatch(value) else None)
    if value is ... or value is True:
        return ""
    if isinstance(value, list | tuple):
        words = [word for word in map(_typed, value) if word is not None]
        return ",".join(words) if len(words) == len(value) else None
    if isinstance(value, Mapping):
        return ",".join(f"{name}={part}" for name, part in value.items())
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value) if isinstance(value, str | int) else None
