"""Detectors on keyed streams in Apache Spark. Needs the extra `spark`, and Java 17 or later.

watch     a streaming frame of observations in, a streaming frame of alarms out
history   the same for frames that are on disk already
fit       a detector for each key, many small fits side by side
"""

from tocsin._integrations.spark import alarms, fit, history, refused, session, to_folders, watch

__all__ = ["alarms", "fit", "history", "refused", "session", "to_folders", "watch"]
