"""`history`: what `watch` would have told of rows that are on disk already."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import pandas as pd
from pyspark.sql import DataFrame

from tocsin._detector.detector import Detector
from tocsin._integrations.spark.keyed import ANSWER, Keyed, table_of
from tocsin._integrations.spark.observations import layout_for, spread
from tocsin._integrations.spark.sessions import frame_must_be
from tocsin._integrations.spark.shipping import Rules, ship
from tocsin._integrations.spark.streams import BUCKETS


def history(
    frame: DataFrame,
    detector: Detector | str | os.PathLike[str],
    *,
    key: str,
    order: str,
    columns: str | Sequence[str] | None = None,
    reset: str | None = None,
    ert: float | None = None,
    for_all: int | None = None,
    rest: int | None = 0,
    gapless: bool = False,
    explain: bool = False,
    buckets: int = BUCKETS,
) -> DataFrame:
    """Watch a frame that is not streaming, from its first row to its last: the same answer as from `watch`.

    Parameters are those of `watch`. All rows of a bucket are held in memory together, so long histories need more
    buckets; their number changes nothing else.
    """
    spark = frame_must_be(frame, "history", streaming=False)
    detectors, example = ship(spark.sparkContext, detector, (), Rules(ert, for_all, rest, gapless, explain))
    layout = layout_for(frame, example, key=key, order=order, columns=columns, reset=reset)
    bundles = spread(frame, layout, key=key, order=order, buckets=buckets)
    return bundles.groupBy("bucket").applyInPandas(_whole(Keyed(detectors, layout)), ANSWER)


def _whole(keyed: Keyed) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def watched(bundles: pd.DataFrame) -> pd.DataFrame:
        return table_of(keyed.step(list(bundles["rows"]), {}))

    return watched
