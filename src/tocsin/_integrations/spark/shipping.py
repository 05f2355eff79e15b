"""How detectors reach Spark's workers: as files that Spark hands out, opened once in each worker."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from pyspark import SparkContext, SparkFiles, TaskContext, cloudpickle

from tocsin._common.errors import InputError, StorageError
from tocsin._detector.detector import Detector
from tocsin._streams.fleet import Fleet

SUFFIX = ".tocsin"
LONGEST_NAME = 200
OPEN_FILES = 10_000
"""Detectors of single keys that a worker keeps open."""


@dataclass(frozen=True)
class Rules:
    """What is asked of every key, as `Fleet` takes it."""

    ert: float | None = None
    for_all: int | None = None
    rest: int | None = 0
    gapless: bool = False
    explain: bool = False


@dataclass(frozen=True)
class Shared:
    """One detector for all keys, and those that it replaces, by the names of the files that Spark hands out."""

    file: str
    before: tuple[str, ...]
    rules: Rules

    def fleets(self, keys: Sequence[str]) -> Iterator[tuple[Fleet | None, list[int]]]:
        """Which keys go together, and what watches them."""
        yield _shared_fleet(self), list(range(len(keys)))


@dataclass(frozen=True)
class PerKey:
    """A folder with a file for each key, and folders of those that these replace."""

    folder: str
    before: tuple[str, ...]
    rules: Rules

    def fleets(self, keys: Sequence[str]) -> Iterator[tuple[Fleet | None, list[int]]]:
        """Each key on its own, with its detector if it has one."""
        for k, key in enumerate(keys):
            yield _fleet_of_key(self, key), [k]


Detectors = Shared | PerKey


def file_of(folder: str | os.PathLike[str], key: str) -> Path:
    """Where the detector of a key is."""
    name = quote(key, safe="")
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}-{blake2b(key.encode(), digest_size=8).hexdigest()}"
    return Path(folder, f"{name}{SUFFIX}")


def ship(
    context: SparkContext,
    detector: Detector | str | os.PathLike[str],
    before: Sequence[Detector | str | os.PathLike[str]],
    rules: Rules,
) -> tuple[Detectors, Detector]:
    """What workers need to know, and a detector whose intake is that of all."""
    given = [detector, *before]
    folders = [not isinstance(each, Detector) and Path(each).is_dir() for each in given]
    if any(folders):
        if not all(folders):
            raise InputError(
                "detector and before must all be folders, with a detector for each key, or all be single detectors: "
                f"{detector!r}, {list(before)!r}."
            )
        paths = [str(Path(folder).resolve()) for folder in given if not isinstance(folder, Detector)]
        files = sorted(Path(paths[0]).glob(f"*{SUFFIX}"))
        if not files:
            raise InputError(
                f"The folder {detector} holds no {SUFFIX} files. tocsin.integrations.spark.fit(...) writes them."
            )
        detectors: Detectors = PerKey(paths[0], tuple(paths[1:]), rules)
        first = Detector.load(files[0])
    else:
        opened = [each if isinstance(each, Detector) else Detector.load(each) for each in given]
        names = [_handed_out(context, each) for each in opened]
        detectors, first = Shared(names[0], tuple(names[1:]), rules), opened[0]
    # Here rather than in a worker, where an error is wrapped in pages of Java.
    Fleet(first, **vars(rules))
    return detectors, first


def _handed_out(context: SparkContext, detector: Detector) -> str:
    """Give a detector to Spark; the name of its file."""
    file = _folder() / "detector"
    detector.save(file)
    try:
        Detector.load(file)
        content, suffix = file.read_bytes(), SUFFIX
    except StorageError:
        # It holds a function of the user's, which travels as Spark's own functions do.
        content, suffix = cloudpickle.dumps(detector), ".pickle"
    # Named by content: Spark refuses a second file of the same name, and workers know what they have open.
    named = _folder() / f"tocsin-{blake2b(content, digest_size=16).hexdigest()}{suffix}"
    if not named.exists():
        named.write_bytes(content)
    context.addFile(str(named))
    return named.name


@cache
def _folder() -> Path:
    """Where files are while the driver lives: executors that join later fetch them from here."""
    folder = tempfile.mkdtemp(prefix="tocsin-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _received(name: str) -> Detector:
    path = Path(SparkFiles.get(name))
    if path.suffix == SUFFIX:
        return Detector.load(path)
    detector: Detector = cloudpickle.loads(path.read_bytes())
    return detector


@lru_cache(maxsize=8)
def _shared_fleet(shared: Shared) -> Fleet:
    return _fleet(_received(shared.file), [_received(name) for name in shared.before], shared.rules)


@lru_cache(maxsize=OPEN_FILES)
def _fleet_of_key(per_key: PerKey, key: str) -> Fleet | None:
    file = file_of(per_key.folder, key)
    if not file.exists():
        return None
    earlier = [file_of(folder, key) for folder in per_key.before]
    before = [Detector.load(path) for path in earlier if path.exists()]
    return _fleet(Detector.load(file), before, per_key.rules)


def _fleet(detector: Detector, before: Sequence[Detector], rules: Rules) -> Fleet:
    """With as many threads as its task has cores: the other cores run tasks of their own."""
    task = TaskContext.get()
    return Fleet(detector, before=before, workers=1 if task is None else task.cpus(), **vars(rules))
