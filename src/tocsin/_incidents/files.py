"""What a file holds of a monitor, besides its detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any, get_args

from tocsin._calibration.result import Calibration
from tocsin._compute.numpy_view_streams import LOUDEST
from tocsin._detector.checking_runs import check_run, state_rule
from tocsin._detector.schema import Array, Choice, Many, Maybe, Number, Of, Record, Whole, must, truth
from tocsin._detector.sizes import Sizes
from tocsin._incidents.incident import Incident, State
from tocsin._incidents.place import REMEMBERED, Place, Scene
from tocsin._state import Fitted, Run
from tocsin._state.outcomes import Outcome
from tocsin._statistics.base import Parts

EVER = 2**62
"""Observations that nothing exceeds."""

INCIDENT = Record(
    {
        "number": Whole(1),
        "row": Whole(1, EVER),
        "outcome": Of((Outcome,)),
        "state": Choice(get_args(State)),
        "ended": Maybe(Whole(1, EVER)),
        "returns": Many(Whole(1, EVER)),
        "peak": Number(),
        "peak_row": Whole(1, EVER),
        "muted": truth,
    }
)


def parts_of(place: Place, after: str, *, numeric: bool) -> Parts:
    """What is written. numeric: whether points are rows of numbers."""
    plain = {own.name: getattr(place, own.name) for own in fields(place) if own.name not in ("incidents", "scenes")}
    return {
        **plain,
        "after": after,
        "incidents": [{own.name: getattr(each, own.name) for own in fields(each)} for each in place.incidents],
        "scenes": [
            {"number": number, "before": scene.before, "run": scene.run.parts(numeric=numeric)}
            for number, scene in place.scenes.items()
        ],
    }


def check_monitor(
    value: Any, at: str, sizes: Sizes, fitted: Fitted[Calibration], run: Run, after: Sequence[str]
) -> None:
    """run: where the detector is."""
    a_run = partial(check_run, sizes=sizes, live=fitted.live, ear=fitted.ear, state_rule=state_rule)
    Record(
        {
            "after": Choice(tuple(after)),
            "before": Whole(-EVER, EVER),
            "hears": truth,
            "calm": Whole(0, EVER),
            "scene_at": Whole(0, EVER),
            "taught": Maybe(Array("f4", (1, len(fitted.live.channels)), 1.0, LOUDEST)),
            "muted_until": Whole(0, EVER),
            "incidents": Many(INCIDENT),
            "scenes": Many(Record({"number": Whole(1), "before": Whole(-EVER, EVER), "run": a_run}), most=REMEMBERED),
        }
    )(value, at)
    numbers = [each["number"] for each in value["incidents"]]
    must(numbers == list(range(1, len(numbers) + 1)), f"{at}.incidents", numbers, "numbered from 1 on")
    must(not value["hears"] or run.alarm is not None, f"{at}.hears", True, "false, since its detector has not rung")
    must(not value["hears"] or bool(numbers), f"{at}.incidents", numbers, "with the one that is heard")
    shown = [scene["number"] for scene in value["scenes"]]
    must(set(shown) <= set(numbers), f"{at}.scenes", shown, "those of incidents")
    for scene in value["scenes"]:
        must(scene["run"]["alarm"] is not None, f"{at}.scenes", "a quiet run", "runs that rang")
    waits = value["hears"] and value["scene_at"]
    must(not waits or value["scene_at"] > run.time, f"{at}.scene_at", value["scene_at"], "a time that is still to come")
    must(not waits or numbers[-1] in shown, f"{at}.scenes", shown, "with that of the incident that is heard")


def place_of(saved: Parts, widest: int) -> Place:
    """What `parts_of` has written."""
    known = {name: value for name, value in saved.items() if name != "after"}
    incidents = tuple(Incident(**{**each, "returns": tuple(each["returns"])}) for each in known.pop("incidents"))
    scenes = {each["number"]: Scene(Run.restored(each["run"], widest), each["before"]) for each in known.pop("scenes")}
    return Place(**known, incidents=incidents, scenes=scenes)
