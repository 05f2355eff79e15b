"""Sessions that `watch` can run in: Java, RocksDB, and workers with the driver's Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import tocsin
from tocsin._common.errors import InputError, MissingExtraError

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
OLDEST_JAVA = 17


def session(name: str = "tocsin", master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session with all that `watch` needs: RocksDB for states, this Python for workers, a partition for each core.

    Parameters
    ----------
    name
        Of the application.
    master
        Where it runs: 'local[2,4]' is this machine with two cores, and up to four tries of a task. Default: what
        spark-submit was told, or else this machine with all its cores.
    settings
        Spark's own, by name.
    """
    java_must_do()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).config(PROVIDER, ROCKSDB).config(CHANGELOG, "true")
    if master is not None:
        builder = builder.master(master)
    for setting, value in (settings or {}).items():
        builder = builder.config(setting, value)
    spark = builder.getOrCreate()
    if not spark.sparkContext.getConf().contains(PARTITIONS) and PARTITIONS not in (settings or {}):
        # Spark's own 200 would open as many stores in every micro-batch.
        spark.conf.set(PARTITIONS, str(spark.sparkContext.defaultParallelism))
    return spark


def java_must_do() -> None:
    """Refuse a machine without the Java that Spark needs."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    remedy = f"Install Java {OLDEST_JAVA} or later, and let JAVA_HOME or PATH lead to it."
    if java is None or not Path(java).exists():
        where = f"JAVA_HOME={home} holds no bin/java" if home else "There is no java on the PATH"
        raise InputError(f"{where}, and Spark runs on Java. {remedy}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version[1]) < OLDEST_JAVA:
        first = next(iter(said.splitlines()), "nothing")
        raise InputError(f"{java} says {first!r}, and Spark 4 needs Java {OLDEST_JAVA} or later. {remedy}")


def frame_must_be(frame: DataFrame, caller: str, *, streaming: bool) -> SparkSession:
    """The session of a frame of the right kind, on workers that have this Tocsin."""
    if not isinstance(frame, DataFrame) or not hasattr(frame.sparkSession, "_jsparkSession"):
        raise InputError(
            f"{caller} got a {type(frame).__module__}.{type(frame).__name__}; it takes a pyspark.sql.DataFrame of a "
            "classic session. Over Spark Connect no files reach the workers: run it where the driver is."
        )
    if frame.isStreaming != streaming:
        is_, are, instead = ("streaming", " not", "watch") if frame.isStreaming else ("not streaming", "", "history")
        raise InputError(
            f"The frame is {is_}, and {caller} is for frames that are{are}. Use tocsin.integrations.spark.{instead}."
        )
    workers_must_agree(frame.sparkSession)
    return frame.sparkSession


def states_must_last(spark: SparkSession) -> None:
    """Refuse a session whose states are kept by something other than RocksDB, and one that cannot reach states."""
    try:
        import_module("google.protobuf")
    except ImportError as error:  # Spark speaks it with the store of states, and does not bring it along
        raise MissingExtraError("protobuf", "spark", "tocsin.integrations.spark.watch") from error
    provider = spark.conf.get(PROVIDER)
    if provider is None or "RocksDB" not in provider:
        raise InputError(
            f"This session keeps states in {provider}, and transformWithState needs RocksDB. Before watch, do:\n"
            f'    spark.conf.set("{PROVIDER}",\n        "{ROCKSDB}")\n'
            "or make the session with tocsin.integrations.spark.session()."
        )


def workers_must_agree(spark: SparkSession) -> None:
    """Refuse workers with another Python or Tocsin, as far as one of them can tell."""
    context = spark.sparkContext
    if shutil.which(context.pythonExec) == sys.executable:
        return
    try:
        found = context.parallelize([0], 1).map(_versions).first()
    except Exception as error:
        if "ModuleNotFoundError" not in str(error) and "PYTHON_VERSION_MISMATCH" not in str(error):
            raise
        found = str(error).strip().splitlines()[-1]
    if found != _versions():
        raise InputError(
            f"Spark's workers run {context.pythonExec} ({found}), and the driver runs {sys.executable} "
            f"({_versions()}): they must have the same Python and Tocsin, since the workers do the watching. Before "
            "the session is made, set the variable PYSPARK_PYTHON to a Python that has both, on every machine."
        )


def _versions(_: object = None) -> str:
    return f"Python {sys.version_info.major}.{sys.version_info.minor}, Tocsin {tocsin.__version__}"
