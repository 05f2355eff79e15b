"""`watch`: a stateful operator over buckets of keys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tocsin._detector.detector import Detector
from tocsin._integrations.spark.kept import KeptStates
from tocsin._integrations.spark.keyed import ANSWER, Keyed, table_of
from tocsin._integrations.spark.observations import layout_for, spread
from tocsin._integrations.spark.sessions import frame_must_be, states_must_last
from tocsin._integrations.spark.shipping import Rules, ship

BUCKETS = 200


def watch(
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
    before: Sequence[Detector | str | os.PathLike[str]] = (),
    buckets: int = BUCKETS,
) -> DataFrame:
    """Watch a streaming frame: a detector for every key, alarms and refused rows as a streaming frame.

    The answer has a row for each alarm (`kind` 'alarm') and for each row that was not taken in (`kind` 'refused', with
    its values as JSON); `spark.alarms` and `refused` part them. An alarm is named by (key, count): if a batch is
    replayed, the same alarms come again under the same names.

    Parameters
    ----------
    frame
        A streaming frame with a row for each observation.
    detector
        A fitted detector, or its file, for all keys; or a folder with one for each key, as `spark.fit` writes
        it, that all machines can read.
    key
        The column that tells streams apart.
    order
        A column of whole numbers or timestamps that grows within a key. Rows are put in its order within a
        micro-batch; a row that is not after the last of its key is refused.
    columns
        Those that an observation is made of: several names, or the name of one column, which may hold arrays of
        numbers. Default: those of the detector's reference, if they had names, or else all others.
    reset
        A column of truth values: where it is true, the key begins a new run with this row, as after a repair.
    ert, for_all
        Another promise than the detector's, and how many keys share it, as in `Fleet`.
    rest
        Observations that a key is left alone for after an alarm. 0: a new run begins at once; None: only with a reset.
    gapless
        Whether `order` counts 1, 2, 3, ... within a key, so that a gap is refused.
    explain
        Whether alarms carry explanations, as JSON.
    before
        Detectors, or folders of them, that this one replaces: states in the checkpoint that they wrote are taken over,
        windows included.
    buckets
        Over how many groups keys are spread; the states of a group are read and written together. It cannot change
        while a checkpoint lives.
    """
    spark = frame_must_be(frame, "watch", streaming=True)
    states_must_last(spark)
    rules = Rules(ert, for_all, rest, gapless, explain)
    detectors, example = ship(spark.sparkContext, detector, before, rules)
    layout = layout_for(frame, example, key=key, order=order, columns=columns, reset=reset)
    bundles = spread(frame, layout, key=key, order=order, buckets=buckets)
    watching = Watching(Keyed(detectors, layout), buckets)
    # Without event time: a watermark would drop late rows before they can be refused.
    return bundles.groupBy("bucket").transformWithStateInPandas(watching, ANSWER, "Append", "None")


@dataclass
class Watching(StatefulProcessor):  # type: ignore[misc]
    """The keys of a bucket, whose states are read and written together."""

    keyed: Keyed
    buckets: int

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._kept = KeptStates(handle, self.buckets, repr(self.keyed))

    def handleInputRows(  # noqa: N802
        self, key: tuple[int], rows: Iterator[pd.DataFrame], timerValues: object
    ) -> Iterator[pd.DataFrame]:
        """Watch what a micro-batch has for a bucket."""
        bundles = [bundle for frame in rows for bundle in frame["rows"]]
        states, changes = self._kept.read(key[0]), dict[str, bytes]()
        answers = self.keyed.step(bundles, states, changes)
        if changes:
            self._kept.write(key[0], states, changes)
        if answers:
            yield table_of(answers)

    def close(self) -> None:
        """Nothing is held open."""
