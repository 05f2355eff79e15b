"""What the options of a detector mean, before anything is computed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from tocsin import _compute as compute
from tocsin._calibration.plan import Mode
from tocsin._common.checks import one_of
from tocsin._common.errors import InputError, Option, ReferenceWarning
from tocsin._data import validation
from tocsin._data.contextual import learn_given, learn_with_time
from tocsin._data.intake import Learned, learn, learn_represented
from tocsin._data.tables import Kind, ignored_by
from tocsin._state import Start
from tocsin._statistics.base import Statistic
from tocsin._statistics.mmd import MMD

Given = Sequence[str | int] | Literal["auto"] | None
"""Columns of the context."""

BY_ITSELF = "auto"
FEWEST_BASELINE = 10
"""Rows from which a stream's own level can be learnt."""


def statistics_given(statistic: object) -> list[Statistic]:
    """One statistic or several, as a list; MMD if there is none."""
    given: Any = MMD() if statistic is None else statistic
    statistics: list[Statistic] = list(given) if isinstance(given, list | tuple) else [given]
    for each in statistics:
        if isinstance(each, type) or not hasattr(each, "prepare"):
            raise InputError(
                Option("statistic", each),
                " is not a statistic; give MMD(), LSDD(), MeanShift(), Custom(D), or a list of these.",
            )
        each.check()
    if not statistics:
        raise InputError(Option("statistic", []), " names no statistic; leave it out for MMD().")
    return statistics


def options_given(options: Mapping[str, Any]) -> None:
    """Refuse options that no fit would take, before a reference is at hand; those of a file, say."""
    statistics_given(options["statistic"])
    for name, choices in (("start", Start), ("mode", Mode), ("backend", compute.Backend)):
        one_of(Option(name, options[name]), options[name], get_args(choices))
    for name in ("interval", "reset_on_alarm"):
        if not isinstance(options[name], bool):
            raise InputError(Option(name, options[name]), " must be True or False.")
    validation.seed_number(options["seed"])
    windows = (2,) if options["window"] is None else validation.windows_given(options["window"])
    validation.expected_run_time(options["ert"], windows[-1])
    validation.sampler(options["sampler"])
    validation.guarantee(options["guarantee"], interval=options["interval"])
    validation.precision(options["error"])
    validation.positive_integer("paths", options["paths"])
    baseline_given(options["baseline"])
    validation.fraction("preprocess_share", options["preprocess_share"], 0.05, 0.95)
    ignored_by(options["kinds"])
    for name, kind in (options["kinds"] or {}).items():
        one_of(Option("kinds", {name: kind}), kind, get_args(Kind))
    given = options["given"]
    named = isinstance(given, list | tuple) and all(type(name) in (str, int) for name in given)
    if not (given is None or named or (isinstance(given, str) and given == BY_ITSELF)):
        raise InputError(Option("given", given), " must be names of columns, in a list.")
    if options["device"] is not None and not isinstance(options["device"], str):
        raise InputError(Option("device", options["device"]), " must be the name of a device.")


def baseline_given(baseline: object) -> int | None:
    """Rows from which the level of a stream is learnt; None if it has none of its own."""
    rows = validation.positive_integer("baseline", baseline)
    if rows is not None and rows < FEWEST_BASELINE:
        raise InputError(
            Option("baseline", rows),
            f" is too short: a level and a spread are learnt from at least {FEWEST_BASELINE} rows, better 50.",
        )
    return rows


def learned_from(
    reference: object,
    groups: object,
    kinds: Mapping[str, Kind] | None,
    statistics: list[Statistic],
    preprocess: object,
    share: object,
    seed: int,
    progress: bool | None,
    given: Given = None,
    model: object = None,
) -> Learned:
    """Reference points, and how observations become points from now on."""
    if isinstance(given, str) and given == BY_ITSELF:
        plain = preprocess is None and not all(statistic.takes_objects for statistic in statistics)
        found = learn_with_time(reference, groups, kinds, model, seed) if plain else None
        if found is not None:
            return found
        given = model = None
    if given is not None:
        if preprocess is not None:
            raise InputError(
                Option("given"), " is for columns, and ", Option("preprocess"),
                " makes rows without names of them. Give one or the other.",
            )  # fmt: skip
        if len(statistics) == 1 and statistics[0].takes_objects:
            raise InputError(
                Option("given"), ": what is watched is rows of numbers then, and the statistic is a function of yours "
                "that takes observations as they are. Leave one of the two out.",
            )  # fmt: skip
        return learn_given(reference, groups, kinds, given, model, seed)
    if model is not None:
        raise InputError(
            Option("context_model"), " needs to know the context: name its columns by ", Option("given"), "."
        )
    if preprocess is None:
        objects_allowed = all(statistic.takes_objects for statistic in statistics)
        return learn(reference, groups, kinds, objects_allowed=objects_allowed)
    if kinds is not None:
        raise InputError(
            Option("kinds"),
            " is for tables, and ",
            Option("preprocess"),
            " makes rows of numbers of them. Give one or the other.",
        )
    part = validation.fraction("preprocess_share", share, 0.05, 0.95)
    return learn_represented(reference, groups, preprocess, part, seed, progress)


def windows_for(given: object, count: int, ert: object) -> tuple[int, ...]:
    """The windows asked for, or the default ones that the reference is large enough for."""
    return validation.default_windows(count, ert) if given is None else validation.windows_given(given)


def tell_left_out(windows: tuple[int, ...], count: int) -> None:
    """Say which default windows a reference of so many points is too small for."""
    dropped = [str(w) for w in validation.DEFAULT_WINDOWS if w not in windows]
    if dropped:
        told = ReferenceWarning(
            f"Default windows left out: {', '.join(dropped)}. A window needs {validation.POINTS_PER_WINDOW} "
            f"times as many reference points (there are {count}), or the promise gets loose, and is at most 3 times ",
            Option("ert"),
            ". Longer windows find fainter changes: collect more points, or give ",
            Option("window", ...),
            " to choose yourself.",
        )
        warnings.warn(told, stacklevel=4)
