"""The states of a bucket are those that the store has, whatever becomes of the copies beside it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tocsin import Detector, Fleet, MissingExtraError, StorageError

pytest.importorskip("tocsin.integrations.spark", exc_type=MissingExtraError)
kept = importlib.import_module("tocsin._integrations.spark.kept")

KEYS, BUCKET, BUCKETS = ["a", "b", "c"], 4, 7
States = dict[str, bytes]


class Store:
    """A partition's store as Spark has it: a task sees one version, and makes another of it, or nothing."""

    def __init__(self) -> None:
        self.versions: list[dict[Any, Any]] = [{}]
        self.reads = 0

    def task(self, version: int = -1, owner: str = "watch") -> tuple[Any, dict[Any, Any]]:
        """States in the hands of a task, and what it would commit."""
        changed = deepcopy(self.versions[version])

        def read(place: tuple[int]) -> Any:
            self.reads += 1
            return changed[place]

        entries = SimpleNamespace(getValue=read, updateValue=changed.__setitem__)
        head = SimpleNamespace(get=lambda: changed.get("head"), update=lambda value: changed.__setitem__("head", value))
        handle = SimpleNamespace(getMapState=lambda *_: entries, getValueState=lambda *_: head)
        return kept.KeptStates(handle, BUCKETS, owner), changed


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    """One that rings often, so that windows move on, or begin anew."""
    reference = np.random.default_rng(1).normal(size=(200, 2))
    return Fleet(Detector(100, window=10, seed=1, interval=False, paths=1000).fit(reference, progress=False))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """The local disk of an executor; from then on, tasks run on that one."""
    task = SimpleNamespace(getLocalProperty=lambda _: "a query")
    monkeypatch.setattr(kept.TaskContext, "get", lambda: task)

    def of(executor: str) -> Path:
        (tmp_path / executor).mkdir(exist_ok=True)
        monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / executor))
        return tmp_path / executor

    of("one")
    return of


class Bucket:
    """A bucket in a store, and what its states should be in each version."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.store, self.rng = fleet, Store(), np.random.default_rng(0)
        self.states: list[States] = [{}]

    def read(self, version: int = -1) -> States:
        """What a task gets."""
        states: States = self.store.task(version)[0].read(BUCKET)
        return states

    def step(self, version: int = -1, rows: int = 8) -> tuple[States, dict[Any, Any]]:
        """What a task makes of a version."""
        task, changed = self.store.task(version)
        states = task.read(BUCKET)
        assert states == self.states[version]
        keys = list(self.rng.permutation(KEYS)[: self.rng.integers(1, 4)])
        given, changes = [states.get(key) for key in keys], dict[str, bytes]()
        points = self.rng.normal(size=(rows, 2)) + 2 * (self.rng.random() < 0.2)
        orders = 100 * len(self.states) + np.arange(rows)
        step = self.fleet.step(keys, given, points, self.rng.integers(0, len(keys), rows), orders, changes=True)
        states.update(zip(keys, step.states, strict=True))
        changes.update(zip(keys, step.changes, strict=True))
        task.write(BUCKET, states, changes)
        return states, changed

    def commit(self, made: tuple[States, dict[Any, Any]]) -> None:
        """Make what a task has made the next version."""
        self.states.append(made[0])
        self.store.versions.append(made[1])


def spoil(folder: Path, how: Callable[[bytes], bytes]) -> None:
    """Change all copies."""
    for file in folder.iterdir():
        file.write_bytes(how(file.read_bytes()))


FATES = ("done", "dies", "replayed", "late", "elsewhere", "away", "cut", "bent", "stale")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fates=st.lists(st.sampled_from(FATES), max_size=25))
def test_states_are_those_of_the_store(fleet: Fleet, disk: Callable[[str], Path], fates: list[str]) -> None:
    """Tasks that die before the commit, batches that are replayed, tasks that come late, executors by turns, copies
    that are lost, cut, bent or put back."""
    bucket, folder = Bucket(fleet), disk("one")
    spoil(folder, lambda _: b"")
    earlier = dict[Path, bytes]()
    for fate in ["done", *fates]:
        if fate == "dies":
            bucket.step()
        elif fate == "replayed" and len(bucket.states) > 2:
            bucket.states.pop()
            bucket.store.versions.pop()
        elif fate == "late" and len(bucket.states) > 2:
            bucket.step(version=-2)
        elif fate == "elsewhere":
            disk("two")
        elif fate == "away":
            spoil(folder, lambda _: b"")
        elif fate == "cut":
            spoil(folder, lambda content: content[: len(content) // 2])
        elif fate == "bent":
            spoil(folder, lambda content: content[:-1] + bytes([content[-1] ^ 1]) if content else content)
        elif fate == "stale":
            for file, content in earlier.items():
                file.write_bytes(content)
        earlier = {file: file.read_bytes() for file in folder.iterdir()}
        bucket.commit(bucket.step())
        disk("one")
    assert bucket.read() == bucket.states[-1]


@pytest.mark.parametrize("fate", ["dies", "replayed"])
def test_a_copy_that_is_believed_blindly_would_be_seen(
    fleet: Fleet, disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    """The token is what keeps states right: without it they are those of a task that never was."""
    bucket = Bucket(fleet)
    bucket.commit(bucket.step())
    made = bucket.step()
    if fate == "replayed":
        bucket.commit(made)
        bucket.states.pop()
        bucket.store.versions.pop()
    assert bucket.read() == bucket.states[-1]
    monkeypatch.setattr(kept, "copied", lambda file, _: file.read_bytes()[kept.TOKEN + 4 :])
    assert bucket.read() == made[0] != bucket.states[-1]


def test_a_copy_saves_reading_the_store(fleet: Fleet, disk: Callable[[str], Path]) -> None:
    """In the next micro-batch, and not on another executor, nor where there is no disk."""
    bucket = Bucket(fleet)
    for _ in range(5):
        bucket.commit(bucket.step())
    assert bucket.store.reads == 0
    assert len(list(disk("one").iterdir())) == 1
    disk("two").rmdir()
    bucket.commit(bucket.step())
    assert bucket.store.reads > 0


def test_copies_are_for_tasks(fleet: Fleet, disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Spark names no folder, or nothing is known of a task, there are none."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    bucket = Bucket(fleet)
    for _ in range(3):
        bucket.commit(bucket.step())
    assert bucket.store.reads > 0
    disk("one")
    monkeypatch.setattr(kept.TaskContext, "get", lambda: None)
    bucket.commit(bucket.step())
    assert not list(disk("one").iterdir())


@pytest.mark.parametrize(("rows", "copies"), [(1, True), (8, False), (60, True)])
def test_entries_stay_few(fleet: Fleet, disk: Callable[[str], Path], rows: int, copies: bool) -> None:
    """However little changes in a micro-batch, or much."""
    bucket = Bucket(fleet)
    for _ in range(150):
        bucket.commit(bucket.step(rows=rows))
        if not copies:
            spoil(disk("one"), lambda _: b"")
    entries = [version["head"][1] for version in bucket.store.versions[1:]]
    assert entries.count(1) > 1
    assert max(entries) <= kept.MOST_CHANGES + 1
    store = bucket.store.versions[-1]
    states = sum(map(len, bucket.states[-1].values()))
    assert sum(len(value[0]) for place, value in store.items() if place != "head") < 8 * states + 20_000


def test_another_number_of_buckets_is_refused(fleet: Fleet, disk: Callable[[str], Path]) -> None:
    """From a copy as from the store."""
    bucket = Bucket(fleet)
    bucket.commit(bucket.step())
    task, _ = bucket.store.task()
    task._buckets = 8
    with pytest.raises(StorageError, match="begun with 7"):
        task.read(BUCKET)
    spoil(disk("one"), lambda _: b"")
    with pytest.raises(StorageError, match="begun with 7"):
        task.read(BUCKET)


def test_owners_have_copies_of_their_own(disk: Callable[[str], Path]) -> None:
    """Two fleets in one query do not take each other's place."""
    files = {Store().task(owner=owner)[0]._copy(b) for owner in "xy" for b in (1, 2)}
    assert len(files) == 4
    assert {file.parent for file in files} == {Path(os.environ["SPARK_LOCAL_DIRS"])}
