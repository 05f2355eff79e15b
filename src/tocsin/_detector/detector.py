"""The detector: fit it to a reference, feed it a stream."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar, get_args

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.plan import Mode
from tocsin._calibration.result import Calibration
from tocsin._common.checks import one_of
from tocsin._common.errors import Code, InputError, Option
from tocsin._common.seeds import Purpose, generator
from tocsin._compute.arrays import Int64Array
from tocsin._data import validation
from tocsin._data.intake import Learned, Represented, learn, learn_represented
from tocsin._data.representations import restore
from tocsin._data.tables import Kind
from tocsin._detector import storage
from tocsin._detector.fitting import Fit, windows_for
from tocsin._detector.watching import Watcher, now
from tocsin._execution.cluster import joined
from tocsin._explain.result import Explanation
from tocsin._samplers import InBlocks, Sampler
from tocsin._state import Fitted, Run, Start
from tocsin._statistics.base import Parts, Statistic, choose
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.mmd import MMD

D = TypeVar("D", bound="Detector")

MOST_STARTS = 10_000


def _warm_window(fitted: Fitted[Calibration], rng: np.random.Generator) -> Int64Array:
    """Reference points to start with, drawn as null streams are, and after them their neighbours within the guard."""
    widest, block, guard = fitted.widest, fitted.calibration.block, fitted.calibration.guard
    if block == 1:
        return rng.choice(len(fitted.reference), widest, replace=False)
    assert fitted.edges is not None
    source = InBlocks(fitted.edges, block, guard)
    chosen = source.distinct(rng, 1, widest, compute.load("numpy"))[0].astype(np.int64)
    near = np.unique(np.clip(chosen[:, None] + np.arange(-guard, guard + 1), 0, len(fitted.reference) - 1))
    return np.concatenate([chosen, np.setdiff1d(near, chosen)])


def places_of(fitted: Fitted[Calibration]) -> Int64Array | None:
    """Where each reference point is among those compared with (-1: it is not); None in a discrete reference.

    A warm start draws from all reference points. As in the null streams, none of them meets itself, but for those of a
    discrete reference.
    """
    if fitted.calibration.references == "direct":
        return None
    everyone = np.arange(len(fitted.reference))
    if fitted.kept is None:
        return everyone
    place = np.full(len(everyone), -1)
    place[fitted.kept] = np.arange(len(fitted.kept))
    return place


class Detector(Watcher[Calibration]):
    """Rings when the distribution behind a stream changes; when nothing changes, once in `ert` observations on average.

    False alarms come at a constant rate: the time to the next is geometric, whatever happened before.

    Threads may share a detector: observations are taken in one at a time, and none is lost; in which order is up to the
    threads. Copies go their own ways.

    Parameters
    ----------
    ert
        Expected run time: observations between false alarms, on average.
    statistic
        `MMD()`, `LSDD()`, `MeanShift()`, `Custom(D)`, or a list of these to run together under one promise.
    window
        Recent observations to compare with the reference: a number, or several to run together. Default: 8, 25 and
        100, without those longer than a tenth of the reference (a wide window on a small reference loosens the
        promise) or than three times `ert`.
    sampler
        How null streams are drawn from the reference. 'auto' (the default): `Independent()`, or `Blocks()` where a test
        finds that the reference depends on its order.
    guarantee
        A probability, such as 0.9: thresholds are set so that the true expected run time is `ert` or more with this
        probability over reference sets. None: it is `ert` on average.
    interval
        Whether to estimate how far the true expected run time may be from `ert` for this reference set
        (`calibration_.interval()`).
    kinds
        For tables, the kind of each column that is not what it seems, by name: 'number', 'category', 'time' (of day and
        week), 'elapsed' (a time as a number), 'text', 'ignore', 'auto'. The name '*' stands for all other columns.
    preprocess
        What makes rows of numbers of observations: any function of a batch, a scikit-learn transformer, a PyTorch
        module, the path of an ONNX file, or one of `tocsin.representations`.
    preprocess_share
        The part of the reference to which `preprocess` is fitted, if it has to be. That part leaves the reference.
    calibration
        'steady': tests run on past the transient and are pooled (the default). 'paper': Algorithm 3 of the paper.
        'fixed': its Algorithm 2, one threshold that ignores the dependence between tests (for comparison: its false
        alarms are rarer than promised, and not at a constant rate).
    start
        'warm': tests from the first observation on; windows begin with reference points. 'cold': the first test is
        made when the widest window is full.
    error
        Monte Carlo error of the false alarm rate to calibrate to (relative; mode 'steady').
    paths
        Number of null streams to simulate, instead of as many as `error` asks for.
    seed
        Whole number for reproducible thresholds; None for a fresh one, kept in `seed_`.
    backend
        What computes: 'numba' (CPUs), 'torch' (GPUs, and CPUs to compare), 'numpy' (slow, to be read). 'auto': 'torch'
        if PyTorch is there and sees a GPU, else 'numba'. `repr` says which it was. A GPU makes the fit and long blocks
        fast; single observations stay on the CPU, which is done with them sooner.
    device
        Where 'torch' computes: 'cpu', 'cuda', 'cuda:0', ...; by default on a GPU if there is one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> outcomes = detector.update_many(rng.normal(loc=3, size=(20, 2)))
    >>> bool(outcomes.alarm.any())
    True
    """

    options = (
        "ert",
        "window",
        "sampler",
        "guarantee",
        "interval",
        "kinds",
        "preprocess_share",
        "calibration",
        "start",
        "error",
        "paths",
        "seed",
        "backend",
        "device",
    )

    def __init__(
        self,
        ert: float,
        statistic: Statistic | Sequence[Statistic] | None = None,
        *,
        window: int | Sequence[int] | None = None,
        sampler: Sampler | Literal["auto"] = "auto",
        guarantee: float | None = None,
        interval: bool = True,
        kinds: Mapping[str, Kind] | None = None,
        preprocess: object = None,
        preprocess_share: float = 0.25,
        calibration: Mode = "steady",
        start: Start = "warm",
        error: float = 0.02,
        paths: int | None = None,
        seed: int | None = None,
        backend: compute.Backend = "auto",
        device: str | None = None,
    ) -> None:
        self.ert = ert
        self.statistic = statistic
        self.window = window
        self.sampler = sampler
        self.guarantee = guarantee
        self.interval = interval
        self.kinds = kinds
        self.preprocess = preprocess
        self.preprocess_share = preprocess_share
        self.calibration = calibration
        self.start = start
        self.error = error
        self.paths = paths
        self.seed = seed
        self.backend = backend
        self.device = device

    # Fitting

    def fit(
        self,
        reference: object,
        *,
        groups: object = None,
        workers: int | None = None,
        cluster: object = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn the reference and set the thresholds; the detector is then at the start of a run.

        Parameters
        ----------
        reference
            Observations from the time when all was well, in the order in which they came: an array or tensor with a
            row each, a data frame (pandas, polars, Arrow) or a list of dicts, with columns of any kind and with gaps; a
            sparse matrix; a list of strings; a list of any objects for statistics that take them. Columns of a table
            are brought to one scale; those of an array are taken as they are.
        groups
            A label per observation where the reference is made of several recordings, or has gaps: consecutive
            observations with the same label belong together, and blocks never cross from one to the next.
        workers
            Threads to use; all cores by default. Their number changes nothing in the result.
        cluster
            A Dask cluster to simulate null streams on: the address of its scheduler, such as 'tcp://host:8786', or a
            `distributed.Client`. It changes nothing in the result, nor do workers that die. For CPU backends.
        progress
            Whether to show a progress bar on standard error; by default, on a terminal when it takes long.
        """
        one_of(Option("start", self.start), self.start, get_args(Start))
        statistics = self._statistics()
        seed = validation.seed_number(self.seed)
        functions = compute.load(self.backend, self.device)
        with joined(cluster, functions) as executor:
            learned = self._learn(reference, groups, statistics, seed, progress)
            windows = windows_for(self.window, len(learned.points), self.ert)
            fit = Fit(
                ert=validation.expected_run_time(self.ert, windows[-1]),
                statistics=statistics,
                windows=windows,
                default_windows=self.window is None,
                mode=self.calibration,
                start=self.start,
                sampler=validation.sampler(self.sampler),
                guarantee=validation.guarantee(self.guarantee, interval=self.interval),
                interval=bool(self.interval),
                error=validation.fraction("error", self.error, 1e-4, 1.0),
                paths=validation.positive_integer("paths", self.paths),
                seed=seed,
                functions=functions,
                workers=validation.positive_integer("workers", workers),
                cluster=executor,
            )
            fitted = fit.run(learned, progress)
        self._deploy(fitted)
        return self

    def _learn(
        self, reference: object, groups: object, statistics: list[Statistic], seed: int, progress: bool | None
    ) -> Learned:
        if self.preprocess is None:
            objects_allowed = all(statistic.takes_objects for statistic in statistics)
            return learn(reference, groups, self.kinds, objects_allowed=objects_allowed)
        if self.kinds is not None:
            raise InputError(
                Option("kinds"),
                " is for tables, and ",
                Option("preprocess"),
                " makes rows of numbers of them. Give one or the other.",
            )
        share = validation.fraction("preprocess_share", self.preprocess_share, 0.05, 0.95)
        return learn_represented(reference, groups, self.preprocess, share, seed, progress)

    def _statistics(self) -> list[Statistic]:
        given: Any = MMD() if self.statistic is None else self.statistic
        statistics: list[Statistic] = list(given) if isinstance(given, list | tuple) else [given]
        for statistic in statistics:
            if isinstance(statistic, type) or not hasattr(statistic, "prepare"):
                raise InputError(
                    Option("statistic", statistic),
                    " is not a statistic; give MMD(), LSDD(), MeanShift(), Custom(D), or a list of these.",
                )
        if not statistics:
            raise InputError(Option("statistic", []), " names no statistic; leave it out for MMD().")
        return statistics

    # Explaining

    def explain(self) -> Explanation:
        """What the alarm of this run means: when the change began, which columns moved, which examples show it.

        Call it after an alarm and before `reset`; observations taken in since then help. It changes nothing.
        """
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        return Alarm.of(*now(self)).explain()

    # Starting

    def _begin(self, fitted: Fitted[Calibration], number: int) -> Run:
        if fitted.start == "cold":
            return super()._begin(fitted, number)
        # The prepended window of the paper: reference points, drawn until the test that they alone make is quiet.
        rng, places = generator(fitted.seed, Purpose.START, number), places_of(fitted)
        for _ in range(MOST_STARTS):
            chosen = _warm_window(fitted, rng)
            points, own = choose(fitted.reference, chosen), None if places is None else places[chosen]
            windows = fitted.live.begin(number)
            values = fitted.live.advance(windows, fitted.live.observe(points, own), 0, fitted.widest)[-1:]
            if fitted.rule.quiet_at_first(values, rng.random(1))[0]:
                return Run.begun(windows, fitted.widest, number, choose(points, np.arange(fitted.widest)))
        raise InputError(
            f"{MOST_STARTS} windows drawn from the reference all rang at once, so no quiet start exists: ",
            Option("ert", Code(f"{fitted.calibration.ert:g}")),
            " is too small for this reference. Ask for a longer one, or ",
            Option("start", "cold"),
            ".",
        )

    # Files

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        statistic: Statistic | Sequence[Statistic] | None = None,
        preprocess: object = None,
        *,
        backend: compute.Backend | None = None,
        device: str | None = None,
    ) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit.

        statistic
            The statistic that it was made with, if that holds a function of your own: no file can hold those.
        preprocess
            The same for a `preprocess` that no file can hold: the object as it was fitted (`intake_.representation`).
        backend, device
            To go on with another backend than it was made with, or on another device.
        """
        place = {"backend": backend, "device": device}
        given = {name: value for name, value in place.items() if value is not None}
        return from_content(cls, storage.read(path, cls.__name__), path, statistic, preprocess, **given)

    def _go_on(self, content: storage.Content, path: str | os.PathLike[str]) -> None:
        names = [statistic.name for statistic in self._statistics()]
        if names != content["names"]:
            raise InputError(f"{path} was fitted with {content['names']}, and {names} are given; give the same.")
        super()._go_on(content, path)
        fitted = self._ready()
        if isinstance(fitted.intake, Represented):
            intake = Represented.by(restore(fitted.intake.parts, self.preprocess))
            self.preprocess = intake.representation
            self._deploy(replace(fitted, intake=intake), self._run)
        elif self.preprocess is not None:
            raise InputError(f"{path} was made without a preprocess step; leave it out.")

    def _description(self) -> Parts:
        return {"names": [statistic.name for statistic in self._statistics()], "statistic": self.statistic}

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        members = zip(self._statistics(), parts, strict=True)
        return LiveFamily([member.restore(own, windows, functions) for member, own in members])


def from_content(
    kind: type[D],
    content: storage.Content,
    path: str | os.PathLike[str],
    statistic: Statistic | Sequence[Statistic] | None = None,
    preprocess: object = None,
    **place: object,
) -> D:
    """The detector that a file holds, by itself or within a bank; place: where to compute, if not as before."""
    options = {**content["options"], **place}
    detector = kind(**options, statistic=statistic or content["statistic"], preprocess=preprocess)
    detector._go_on(content, path)
    return detector
