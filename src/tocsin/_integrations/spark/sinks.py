"""What becomes of the answer: alarms to one place, refused rows to another, each once."""

from __future__ import annotations

import os
from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

ALARM = ["key", "order", "count", "run", "time", "statistic", "threshold", "rarity", "channel", "explanation"]
REFUSED = ["key", "order", "reason", "message", "row"]


def alarms(answer: DataFrame) -> DataFrame:
    """The alarms in what `watch` or `history` returned."""
    return answer.where(sql.col("kind") == "alarm").select(ALARM)


def refused(answer: DataFrame) -> DataFrame:
    """The rows that were not taken in, and why: dead letters."""
    return answer.where(sql.col("kind") == "refused").select(REFUSED)


def to_folders(
    alarms_to: str | os.PathLike[str], refused_to: str | os.PathLike[str], *, file_format: str = "parquet"
) -> Callable[[DataFrame, int], None]:
    """A sink for `writeStream.foreachBatch` that writes each alarm and each refused row exactly once.

    A batch goes to the folder `batch=N`, which is replaced if the batch is replayed: after a crash nothing is lost and
    nothing is there twice.
    """

    def write(answer: DataFrame, batch: int) -> None:
        # Kept, or every use of the answer would watch the batch again.
        answer = answer.persist()
        try:
            for part, folder in ((alarms(answer), alarms_to), (refused(answer), refused_to)):
                if not part.isEmpty():
                    part.coalesce(1).write.format(file_format).mode("overwrite").save(
                        f"{os.fspath(folder)}/batch={batch}"
                    )
        finally:
            answer.unpersist()

    return write
