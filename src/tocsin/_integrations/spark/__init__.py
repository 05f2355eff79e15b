"""Detectors on keyed streams in Apache Spark."""

from __future__ import annotations

from tocsin._common.errors import MissingExtraError

try:
    from tocsin._integrations.spark.fits import fit
    from tocsin._integrations.spark.past import history
    from tocsin._integrations.spark.sessions import session
    from tocsin._integrations.spark.sinks import alarms, refused, to_folders
    from tocsin._integrations.spark.streams import watch
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name).partition(".")[0], "spark", "tocsin.integrations.spark") from error

__all__ = ["alarms", "fit", "history", "refused", "session", "to_folders", "watch"]
