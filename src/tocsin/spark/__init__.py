"""Detectors on keyed streams in Apache Spark. Needs the extra `spark`, and Java 17 or later.

watch     a streaming frame of observations in, a streaming frame of alarms out
history   the same for frames that are on disk already
fit       a detector for each key, many small fits side by side
"""

from __future__ import annotations

from tocsin.errors import MissingExtraError

try:
    from tocsin.spark.fits import fit
    from tocsin.spark.past import history
    from tocsin.spark.sessions import session
    from tocsin.spark.sinks import alarms, refused, to_folders
    from tocsin.spark.streams import watch
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name).partition(".")[0], "spark", "tocsin.spark") from error

__all__ = ["alarms", "fit", "history", "refused", "session", "to_folders", "watch"]
