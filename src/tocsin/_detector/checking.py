"""What the parts of a detector's file must be to each other: the reference, its statistics, and the run."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from tocsin._calibration.normalise import Normaliser
from tocsin._calibration.result import Calibration, Thresholds
from tocsin._common.seeds import LARGEST as LARGEST_SEED
from tocsin._compute.arrays import FARTHEST
from tocsin._data.contextual import Contextual
from tocsin._data.intake import Objects, Represented, Rows, Tabular
from tocsin._detector.checking_views import views_parts
from tocsin._detector.declared import POSITIVE
from tocsin._detector.schema import (
    Array,
    Choice,
    Many,
    Maybe,
    Number,
    Of,
    Record,
    Rule,
    Whole,
    anything,
    must,
    truth,
)
from tocsin._detector.sizes import Sizes
from tocsin._state import Start
from tocsin._statistics import LSDD, MMD, Custom, MeanShift, Views
from tocsin._statistics.features import LARGEST as LARGEST_FEATURE

MODERATE = 1e30
"""Mean kernels, and sums of them in float32."""

WIDEST_RATIO = 1e18
"""Of the widest to the narrowest width: its square is a number in float32."""


def check_fitted(saved: Any, at: str, kind: type[Thresholds]) -> None:
    """What a fit made. kind: of its thresholds."""
    index = Array("i8", (None,), 0)
    rules: Mapping[str, Rule] = {
        "normaliser": Of((Normaliser,)),
        "calibration": Of((kind,)),
        "windows": Many(Whole(2), 1, 1000),
        "intake": Of((Contextual, Objects, Represented, Rows, Tabular)),
        "reference": anything,
        "kept": Maybe(index),
        "start": Choice(get_args(Start)),
        "seed": Whole(0, LARGEST_SEED),
        "resets": truth,
        "edges": Maybe(Array("i8", (None,), 0, rising=True)),
        "rows": Maybe(index),
        "rang": Maybe(Array("i4", (None, None), 0)),
        "hears": truth,
    }
    Record(rules, frozenset(("resets", "edges", "rows", "rang", "hears")))(saved, at)
    sizes = sizes_of(saved, at)
    _check_indices(saved, sizes, at)
    calibration, intake = saved["calibration"], saved["intake"]
    must(len(calibration.thresholds) > 0, f"{at}.calibration.thresholds", 0, "one at least")
    if isinstance(calibration, Calibration):
        rehearsed = calibration.rehearsal is not None
        least = sizes.widest + 1 if rehearsed else 2 * sizes.widest + 2
        must(sizes.points >= least, f"{at}.reference", sizes.points, f"{least} points or more, for such windows")
        must(calibration.block <= sizes.points, f"{at}.calibration.block", calibration.block, "within the reference")
        must(calibration.guard <= sizes.points, f"{at}.calibration.guard", calibration.guard, "within the reference")
        must(calibration.block == 1 or saved.get("edges") is not None, f"{at}.edges", None, "there: blocks need them")
        must(not rehearsed or not sizes.warm, f"{at}.start", saved["start"], "cold: it goes on from the reference")
        columns = not isinstance(intake, Objects | Represented) and not (rehearsed and isinstance(intake, Contextual))
        alone = calibration.block == 1 and columns
        must(not saved.get("hears") or alone, f"{at}.hears", True, "false, but of columns, independent or with views")
        explained = sizes.columns is None or rehearsed or saved.get("rang") is not None
        must(explained, f"{at}.rang", None, "there: explanations need them")
    else:
        must(not sizes.warm, f"{at}.start", saved["start"], "cold")
        must(not saved.get("hears"), f"{at}.hears", True, "false")


def sizes_of(saved: Any, at: str) -> Sizes:
    """Of what a fit made."""
    windows, reference, intake = tuple(saved["windows"]), saved["reference"], saved["intake"]
    must(sorted(set(windows)) == list(windows), f"{at}.windows", windows, "rising")
    columns = None
    if isinstance(intake, Objects):
        Many(anything, 1)(reference, f"{at}.reference")
    else:
        columns = intake.columns.width if isinstance(intake, Tabular) else int(intake.width)
        Array("f8", (None, columns))(reference, f"{at}.reference")
    beside = intake.width_beside if isinstance(intake, Contextual) else 0
    must(windows[-1] <= len(reference), f"{at}.windows", windows, "no wider than the reference has points")
    kept = len(reference) if saved["kept"] is None else len(saved["kept"])
    must(kept > 0, f"{at}.kept", kept, "some points")
    return Sizes(windows, len(reference), columns, kept, saved["start"] == "warm", beside)


def _check_indices(saved: Any, sizes: Sizes, at: str) -> None:
    kept, edges, rows, rang = (saved.get(name) for name in ("kept", "edges", "rows", "rang"))
    n = sizes.points
    if kept is not None:
        once = len(kept) <= n and len(np.unique(kept)) == len(kept)
        must(once and int(kept.max()) < n, f"{at}.kept", kept, "places in the reference, each once")
    if edges is not None:
        ends = len(edges) > 1 and edges[0] == 0 and edges[-1] == n
        must(bool(ends), f"{at}.edges", edges, "from the first to the last point of the reference")
    if rows is not None:
        must(len(rows) == n, f"{at}.rows", len(rows), "as many as the reference has points")
    if rang is not None:
        fits = rang.shape[1] == sizes.widest and (rang.size == 0 or int(rang.max()) < n)
        must(fits, f"{at}.rang", rang.shape, "windows of places in the reference")


# Statistics


def parts_rule(statistic: object, sizes: Sizes) -> Rule:
    """What a statistic keeps of the reference; of one that is a user's own, anything."""
    if isinstance(statistic, MMD):
        return lambda value, at: _kernel_parts(value, at, sizes)
    if isinstance(statistic, LSDD):
        return lambda value, at: _bumps(value, at, sizes)
    if isinstance(statistic, MeanShift):
        return lambda value, at: _means(value, at, sizes, signed=statistic.direction is not None)
    if isinstance(statistic, Views):
        return lambda value, at: views_parts(value, at, sizes)
    if isinstance(statistic, Custom):
        return Record({"reference": sizes.rows(sizes.compared)})
    return anything


def _kernel_parts(value: Any, at: str, sizes: Sizes) -> None:
    kind = value.get("kind") if isinstance(value, dict) else None
    Choice(("gaussian", "landmarks", "callable"))(kind, f"{at}.kind")
    if kind == "callable":
        guard, reference = Whole(0, sizes.points), sizes.rows(sizes.compared)
        Record({"kind": anything, "reference": reference, "offset": Number(), "guard": guard})(value, at)
    else:
        gaussian_parts(value, at, sizes)


def gaussian_parts(value: Any, at: str, sizes: Sizes) -> None:
    """Of MMD with Gaussian kernels, by landmarks or by all points."""
    must(sizes.columns is not None, at, "of objects", "of rows of numbers")
    landmarks = isinstance(value, dict) and value.get("kind") == "landmarks"
    widths = value.get("widths") if isinstance(value, dict) else None
    Many(POSITIVE, 1, 64)(widths, f"{at}.widths")
    assert isinstance(widths, list | tuple)
    falling = all(narrow < wide for wide, narrow in pairwise(widths)) and widths[0] <= WIDEST_RATIO * widths[-1]
    must(falling, f"{at}.widths", widths, "widths, the widest first")
    w, rows = len(widths), len(widths) * len(sizes.windows)
    rules: dict[str, Rule] = {
        "kind": Choice(("gaussian", "landmarks")),
        "points": Array("f4", (None if landmarks else sizes.compared, sizes.columns), -FARTHEST, FARTHEST),
        "offset": Array("f8", (w,), -MODERATE, MODERATE),
        "centre": Array("f8", (sizes.columns,)),
        "widths": anything,
        "heard": Array("i8", (None,), 0, rows - 1, rising=True),
        "typical": Whole(-1, w - 1),
        "guard": Whole(0, sizes.points),
    }
    Record({**rules, **({"weights": anything, "left_out": anything} if landmarks else {})})(value, at)
    must(len(value["points"]) > 0, f"{at}.points", 0, "some points")
    must(len(value["heard"]) > 0, f"{at}.heard", 0, "some channels")
    if landmarks:
        Array("f4", (w, len(value["points"])), -MODERATE, MODERATE)(value["weights"], f"{at}.weights")
        Array("f8", (w, sizes.points), -MODERATE, MODERATE)(value["left_out"], f"{at}.left_out")


def _bumps(value: Any, at: str, sizes: Sizes) -> None:
    _features(value, at, sizes, {"centres": Array("f8", (None, sizes.columns)), **BUMPS})
    bumps, m = value["features"], len(value["centre"])
    must(bumps["factor"].shape == (len(bumps["centres"]), m), f"{at}.features", bumps["factor"].shape, "one per bump")


BUMPS: dict[str, Rule] = {"width": Number(1e-140, 1e140), "factor": Array("f8", (None, None), -1e60, 1e60)}


def _means(value: Any, at: str, sizes: Sizes, *, signed: bool) -> None:
    _features(value, at, sizes, {"weights": Array("f8", (sizes.columns,))})
    m = len(value["centre"])
    must(m == (1 if signed else sizes.columns), f"{at}.centre", m, "as many numbers as there are features")


def _features(value: Any, at: str, sizes: Sizes, own: Mapping[str, Rule]) -> None:
    must(sizes.columns is not None, at, "of objects", "of rows of numbers")
    Record(
        {
            "centre": Array("f8", (None,), -LARGEST_FEATURE, LARGEST_FEATURE),
            "count": Whole(sizes.compared, sizes.compared),
            "guard": Whole(0, sizes.points),
            "features": Record(own),
        }
    )(value, at)
