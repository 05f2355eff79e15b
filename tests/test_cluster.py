"""A Dask cluster gives what one thread gives, to the last bit, whatever befalls its workers; or it says why not."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from test_laboratory import UNITS, done, drawn, notes, toy, undisturbed, until  # noqa: F401
from tocsin import (
    LSDD,
    MMD,
    Blocks,
    Custom,
    Detector,
    Gaussian,
    InputError,
    Landmarks,
    MeanShift,
    MissingExtraError,
    NotFittedError,
    TocsinError,
)
from tocsin._cli import app
from tocsin._execution import cluster as module
from tocsin._execution.cluster import Cluster
from tocsin._execution.threads import Executor, OneAtATime, Threads
from tocsin._experiments.base import Options, Table
from tocsin._experiments.laboratory import Laboratory, read_table

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'tocsin[dask]'")
pytestmark = pytest.mark.usefixtures("quick_fits")

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 3))
COINS = (RNG.random((400, 1)) < 0.1).astype(float)
MEMORY = np.cumsum(RNG.normal(size=(1500, 2)), axis=0)
MEMORY[20:] -= MEMORY[:-20].copy()
"""Sums of twenty, so each observation resembles those before it."""


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """Two worker processes of one thread each, that come back when they are killed.

    Unless told to wait longer, Dask closes one for good that is not there 15 seconds after a death, be it for another.
    """
    dask: Any = importlib.import_module("dask")
    with (
        warnings.catch_warnings(),
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0", silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def address(workers: Any) -> str:
    """The scheduler's, with all its workers there."""
    with distributed.Client(workers, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=30)
    return str(workers.scheduler_address)


def median_gap(X: Any, Y: Any) -> float:
    """A statistic of a user's."""
    return float(abs(np.median(X) - np.median(Y)))


FITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "default family": (ROWS, {"ert": 300, "window": (8, 25)}),
    "paper": (ROWS, {"statistic": MMD(Gaussian()), "window": 10, "mode": "paper", "paths": 3000}),
    "fixed": (ROWS, {"statistic": MeanShift(), "window": 10, "mode": "fixed", "paths": 3000}),
    "LSDD": (ROWS, {"statistic": LSDD(), "window": (5, 20)}),
    "several statistics": (ROWS, {"statistic": [MMD(), MeanShift()], "window": 10}),
    "blocks": (MEMORY, {"sampler": Blocks(), "window": 8}),
    "discrete": (COINS, {"ert": 300, "window": 10}),
    "landmarks": (ROWS, {"statistic": MMD(Gaussian(), Landmarks(20)), "window": 10}),
    "kernel of the user's": (ROWS, {"statistic": MMD(lambda X, Y: np.asarray(X) @ np.asarray(Y).T), "window": 8}),
    "custom": (ROWS[:200], {"ert": 50, "statistic": Custom(median_gap), "window": (3, 4), "paths": 200}),
    "custom lambda": (ROWS[:200], {"ert": 50, "statistic": Custom(lambda X, Y: Y.mean()), "window": 5, "paths": 400}),
}


def fitted(name: str, **options: Any) -> Detector:
    """A detector as in the table."""
    reference, given = FITS[name]
    return Detector(**{"ert": 200, "error": 0.05, "seed": 3, **given}).fit(reference, **options)


def bits(detector: Detector) -> list[Any]:
    """All that a calibration found, to the last bit."""
    calibration = detector.calibration_
    assert detector._fitted is not None
    assert detector._fitted.rang is not None
    return [
        calibration.thresholds.tobytes(),
        repr(calibration.errors),
        repr(calibration.curve),
        detector._fitted.rang.tobytes(),
        repr(detector._fitted.normaliser),
    ]


# The same bits


@pytest.mark.parametrize("name", FITS)
def test_executors_change_nothing(name: str, address: str) -> None:
    """One thread, two, and a cluster of two processes."""
    expected = bits(fitted(name, workers=1))
    assert bits(fitted(name, workers=2)) == expected
    assert bits(fitted(name, cluster=address)) == expected


def test_a_client_serves_as_well_as_an_address(workers: Any) -> None:
    """And is left open. One worker gives what two give."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=3, processes=False, memory_limit=0, dashboard_address=":0", silence_logs=50
    ) as one, distributed.Client(one, set_as_default=False) as client:  # fmt: skip
        assert bits(fitted("default family", cluster=client)) == bits(fitted("default family", workers=1))
        assert client.submit(abs, -1).result() == 1


@pytest.mark.parametrize("batch_seconds", [0.0, 0.02])
def test_results_come_in_order(address: str, batch_seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, though later ones are done earlier, whatever the batches."""
    monkeypatch.setattr(module, "BATCH_SECONDS", batch_seconds)
    with Cluster(address) as cluster:
        assert list(cluster.map(partial(_later_is_faster, 40), range(40))) == [i * i for i in range(40)]
        assert sorted(cluster.as_done(partial(_later_is_faster, 6), range(6))) == [0, 1, 4, 9, 16, 25]
        assert list(cluster.map(partial(_later_is_faster, 40), [])) == []


def _later_is_faster(count: int, number: int) -> int:
    time.sleep(0.02 * (count - number) / count)
    return number * number


def test_arguments_travel_once(address: str) -> None:
    """However many pieces of work, and maps, they are used in."""
    with Cluster(address) as cluster:
        thing = Counted()
        for _ in range(2):
            assert list(cluster.map(partial(_with, thing), range(20))) == list(range(20))
        assert thing.pickled == 1


class Counted:
    """Knows how often it was pickled here."""

    pickled = 0

    def __reduce__(self) -> tuple[type[Counted], tuple[()]]:
        self.pickled += 1
        return Counted, ()


def _with(thing: Counted, number: int) -> int:
    return number


def test_functions_that_are_not_made_for_threads() -> None:
    """Are called one at a time, by however many threads."""
    assert max(Threads(4).map(OneAtATime(Crowd()), range(20))) == 1
    assert max(Threads(4).map(Crowd(), range(20))) > 1


class Crowd:
    """How many are at it at the same time."""

    now = 0

    def __call__(self, number: int) -> int:
        self.now += 1
        time.sleep(0.01)
        seen, self.now = self.now, self.now - 1
        return seen


# Workers that die


def slow_gap(X: Any, Y: Any) -> float:
    """As `median_gap`, and slower."""
    time.sleep(0.0005)
    return median_gap(X, Y)


def slower_gap(X: Any, Y: Any) -> float:
    """So slow that a calibration by it takes half a minute."""
    time.sleep(0.01)
    return median_gap(X, Y)


@pytest.mark.parametrize("victims", [1, 2])
def test_workers_that_die_change_nothing(victims: int, workers: Any, address: str) -> None:
    """One of them, or all that hold what was sent, in the midst of a calibration."""
    detector = Detector(50, Custom(slow_gap), window=4, paths=200, seed=3)
    expected = bits(Detector(50, Custom(median_gap), window=4, paths=200, seed=3).fit(ROWS[:200]))
    processes = [worker.pid for worker in workers.workers.values()][:victims]
    killer = threading.Timer(0.5, _kill, [processes])
    killer.start()
    detector.fit(ROWS[:200], cluster=address)
    assert not killer.is_alive(), "the fit was over before a worker died"
    assert bits(detector) == expected


def _kill(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def test_a_piece_of_work_that_kills_its_workers(address: str) -> None:
    """Is given up after a few, with advice; and those that come after them work."""
    with Cluster(address) as cluster, pytest.raises(TocsinError, match=r"4 workers died over the same piece.*memory"):
        list(cluster.map(partial(_deadly, 3), range(6)))


def _deadly(victim: int, number: int) -> int:
    if number == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


# Trouble, told


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without a scheduler is refused soon, with the command that starts one; so is what is no address."""
    monkeypatch.setattr(module, "PATIENCE", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(InputError, match=rf"cluster='{nobody}': no Dask scheduler answered.*'dask scheduler'"):
        fitted("default family", cluster=nobody)
    assert time.monotonic() - began < 5
    for wrong in (8786, object()):
        with pytest.raises(InputError, match=r"is not a cluster; give a scheduler's address"):
            fitted("default family", cluster=wrong)


def test_nobody_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler without workers is told of, and how to start some."""
    monkeypatch.setattr(module, "PATIENCE", 1)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as idle,
        pytest.raises(InputError, match=r"had no workers for 1 seconds.*Start some: 'dask worker tcp://"),
    ):
        Cluster(idle.scheduler_address)


def test_versions_must_agree(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any work, naming what differs; and for workers that join later too."""
    ours = module.environment()
    monkeypatch.setattr(module, "environment", lambda: {**ours, "numpy": "0.1"})
    with pytest.raises(InputError, match=rf"tcp://\S+ has numpy {ours['numpy']} instead of 0\.1\. Results"):
        Cluster(address)
    monkeypatch.setattr(Cluster, "_must_agree", lambda cluster: None)
    with Cluster(address) as cluster, pytest.raises(InputError, match=r"a worker that joined later has numpy"):
        list(cluster.map(abs, range(3)))


def test_the_environment_is_told() -> None:
    """Versions, and what the sources are."""
    told = module.environment()
    assert list(told) == ["tocsin", "python", "numpy", "numba"]
    assert told["numpy"] == np.__version__
    assert "(sources " in told["tocsin"]
    assert module._report()() == told


def test_what_cannot_travel(address: str) -> None:
    """Is told before it is tried; what a worker cannot load, when it tries; errors of the user's come as they are."""
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"cannot be sent to a cluster: .*lock.*no open files, locks"):
        fitted_custom(lambda X, Y: float(lock.locked()), cluster=address)
    with pytest.raises(InputError, match=r"must return a finite number"):
        fitted_custom(lambda X, Y: float("nan"), cluster=address)
    with Cluster(address) as cluster, pytest.raises(InputError, match=r"cannot load what it was sent: .*nowhere"):
        list(cluster.map(partial(_with, Elsewhere()), range(3)))  # type: ignore[arg-type]


def fitted_custom(function: Callable[[Any, Any], float], **options: Any) -> Detector:
    """A small fit of a user's statistic."""
    return Detector(50, Custom(function), window=4, paths=200, seed=3).fit(ROWS[:100], **options)


class Elsewhere:
    """Can be pickled, but not loaded."""

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return importlib.import_module, ("nowhere",)


def test_pytorch_stays_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results depend on the device."""
    pytest.importorskip("torch", reason="needs PyTorch")
    with pytest.raises(InputError, match=r"torch on cpu do not go together.*Give backend='numba'"):
        Detector(50, backend="torch", device="cpu").fit(ROWS, cluster="tcp://host:8786")


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"cluster='tcp://host:8786' needs .* pip install 'tocsin\[dask\]'"):
        fitted("default family", cluster="tcp://host:8786")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """As in a terminal: what is started in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_fit_leaves_no_trace(address: str) -> None:
    """The detector is unfitted, the workers have nothing left to do, and the next fit is as ever."""
    detector = Detector(50, Custom(slower_gap), window=4, paths=200, seed=3)
    with distributed.Client(address, set_as_default=False) as client:

        def interrupt() -> None:
            until(lambda: any(client.processing().values()))
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            detector.fit(ROWS[:200], cluster=address)
    with pytest.raises(NotFittedError):
        detector.update(ROWS[0])
    with distributed.Client(address, set_as_default=False) as client:
        until(lambda: not any(client.processing().values()))
    assert bits(fitted("paper", cluster=address)) == bits(fitted("paper"))


# Experiments


def test_experiments_on_a_cluster(
    tmp_path: Path, notes: Path, undisturbed: Table, address: str, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:  # fmt: skip
    """The table that one process gives; each piece was done once, by the workers, and is kept."""
    (notes / "slowly").write_text("0.05")
    Laboratory(tmp_path / "there", cluster=address).run(toy(notes), Options(seed=3))
    assert read_table(tmp_path / "there" / "toy.csv") == undisturbed
    assert set(drawn(notes).values()) == {1}
    processes = {note.name.split()[2] for note in notes.glob("drawn *")}
    assert len(processes) == 2
    assert str(os.getpid()) not in processes
    assert {note.read_text() for note in notes.glob("drawn *")} == {"1"}


def test_a_failure_on_a_cluster_keeps_what_was_done(
    tmp_path: Path, notes: Path, undisturbed: Table, address: str  # noqa: F811
) -> None:  # fmt: skip
    """And the next run does the rest."""
    (notes / "slowly").write_text("0.05")
    (notes / "break 9").touch()
    laboratory = Laboratory(tmp_path / "there", cluster=address)
    with pytest.raises(RuntimeError, match="broken"):
        laboratory.run(toy(notes), Options(seed=3))
    assert 0 < done(tmp_path / "there") < UNITS
    (notes / "break 9").unlink()
    laboratory.run(toy(notes), Options(seed=3))
    assert read_table(tmp_path / "there" / "toy.csv") == undisturbed


# The command line


def test_fit_on_the_command_line(tmp_path: Path, address: str) -> None:
    """The same thresholds; and trouble in a line."""
    np.save(tmp_path / "reference.npy", ROWS)
    arguments = ["fit", str(tmp_path / "reference.npy"), "--ert", "200", "--seed", "3", "--error", "0.05"]
    runner, thresholds = CliRunner(), []
    for extra in ([], ["--cluster", address]):
        file = tmp_path / f"{len(extra)}.tocsin"
        result = runner.invoke(app, [*arguments, "-o", str(file), *extra])
        assert result.exit_code == 0, result.output
        thresholds.append(Detector.load(file).thresholds_.tobytes())
    assert thresholds[0] == thresholds[1]
    result = runner.invoke(app, ["reproduce", "problems", "--workers", "2", "--cluster", address])
    assert result.exit_code == 2
    assert "Give one of the two" in result.output


def test_a_cluster_is_an_executor(address: str) -> None:
    """As the type checker sees it too."""
    with Cluster(address) as cluster:
        executor: Executor = cluster
        assert list(executor.map(abs, [-1, 2])) == [1, 2]
