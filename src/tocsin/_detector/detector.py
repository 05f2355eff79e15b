"""The detector: how it takes in a stream, and how it is fitted to a reference.

A long file, since what every option means is written here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeVar, get_args

import numpy as np

from tocsin import _compute as compute
from tocsin._calibration.plan import Mode, Precision
from tocsin._calibration.result import Calibration
from tocsin._common.checks import one_of
from tocsin._common.errors import InputError, Option
from tocsin._data import validation
from tocsin._data.contextual import Contextual, Taken
from tocsin._data.intake import Represented
from tocsin._data.representations import restore
from tocsin._data.tables import Kind
from tocsin._detector import storage
from tocsin._detector.base import DetectorBase, must_have_baselines, now, options_rule, taken_in
from tocsin._detector.checking import parts_rule
from tocsin._detector.fitting import Fit
from tocsin._detector.options import (
    Given,
    baseline_given,
    learned_from,
    options_given,
    statistics_given,
    windows_for,
)
from tocsin._detector.schema import Many, Of, Rule, text
from tocsin._detector.sizes import Sizes
from tocsin._detector.starting import places_of, warm_run
from tocsin._detector.stepping import (
    advance,
    advance_in_place,
    advance_until_alarm,
    advance_with_resets,
    entered,
    judged,
    listened,
    settle,
)
from tocsin._execution.cluster import joined
from tocsin._execution.progress import progress_bar
from tocsin._explain.result import Explanation
from tocsin._power.result import Power
from tocsin._samplers import Sampler
from tocsin._state import Fitted, Run, Start
from tocsin._state.fitted import C
from tocsin._state.outcomes import Outcome, Outcomes
from tocsin._statistics.base import Parts, Points, Statistic
from tocsin._statistics.family import LiveFamily
from tocsin._statistics.views import Views

D = TypeVar("D", bound="Detector")


class Watcher(DetectorBase[C]):
    """How every detector steps, however it was fitted.

    An alarm ends a run: the next observation begins a new one (unless the detector was told not to). Until then the run
    can be looked at and explained.
    """

    def update(self, x: object) -> Outcome:
        """Take in one observation and test.

        After an alarm it is the first of a new run: time counts from 1 again, windows start anew with reference points
        (or empty, after a cold start), and a change that stays is heard again. With `Views` the run goes on with the
        windows of the one before, is silent until they are its own, and rings for what exceeds the alarms before it.
        Not so with `reset_on_alarm=False`.
        Whatever goes wrong, or interrupts it, the observation is taken in or it is not: nothing is left half-way.
        """
        with self._held:
            fitted, run, beside = self._ready(), self._run, None
            if isinstance(fitted.intake, Contextual):
                point, beside = fitted.intake.taken_one(x)
                if point[0, 0] != point[0, 0]:
                    self._run = run.after(run, beside[:0], 1)
                    return Outcome(run.time, False, np.nan, np.nan, np.nan, None, unseen=True)
                beside = run.with_beside(beside)
            else:
                point = fitted.intake.one(x)
            if run.alarm is not None and fitted.resets:
                run = self._begin(fitted, run)
                run.unseen = self._run.unseen
            elif not fitted.live.at_once or fitted.live.learns(run.windows):
                run = run.copy()  # a user's function may fail, or Ctrl-C come, and the run must not have moved then
            else:
                return advance_in_place(fitted, run, point, beside)
            learning = fitted.live.learns(run.windows) > 0
            values = entered(fitted, run, fitted.live.observe(point, None), 0, 1)
            news = None if fitted.ear is None else listened(fitted.ear, run, point)
            outcome = judged(fitted, compute.on_host(values), run.number, run.time + 1, news, learning=learning)
            run.remember(point)
            settle(run, outcome, news, beside)
            self._run = run
            return outcome

    def update_many(self, block: object) -> Outcomes:
        """Take in a block of observations, in order: the same outcomes as repeated `update`, at array speed.

        So a block may hold several runs: the observation after an alarm begins the next, and time counts from 1 again.
        Whatever goes wrong, or interrupts it, all of the block is taken in or nothing.
        """
        with self._held:
            fitted = self._ready()
            if isinstance(fitted.intake, Contextual):
                return self._given(fitted, fitted.intake.taken(block))
            points = taken_in(fitted, block, tensors=fitted.live.takes_tensors)
            outcomes, self._run = self._through(fitted, self._run, points)
            return outcomes

    def _through(self, fitted: Fitted[C], run: Run, points: Points) -> tuple[Outcomes, Run]:
        """Outcomes of all points, and the run as it is then; the one given stays as it is."""
        run, observed = run.copy(), fitted.live.observe(points, None) if len(points) else []
        if fitted.resets:
            return advance_with_resets(fitted, run, points, observed, partial(self._begin, fitted))
        return advance(fitted, run, points, observed, 0, len(points)), run

    def _given(self, fitted: Fitted[C], taken: Taken, *, to_alarm: bool = False) -> Outcomes:
        """The same where observations have a context: those are left out whose like the reference lacks.

        to_alarm: whether to stop at the first alarm, as `update_until_alarm` does.
        """
        before, known = self._run, taken.known
        through = self._to_alarm if to_alarm else self._through
        outcomes, run = through(fitted, before, taken.points[known])
        if to_alarm and outcomes.alarm.any():
            known = known[: int(np.flatnonzero(known)[len(outcomes) - 1]) + 1]
        judged = np.cumsum(known)[~known]
        outcomes = outcomes.among(known, np.concatenate([[before.time], outcomes.time])[judged])
        self._run = run.after(before, taken.beside[: len(known)][known], len(judged))
        return outcomes

    def update_until_alarm(self, block: object) -> Outcomes:
        """Take in observations of a block up to the first alarm, the one that rings included.

        The outcomes are as many as were taken in. After an alarm the detector can explain it, and then take the rest of
        the block.
        """
        with self._held:
            fitted = self._ready()
            if isinstance(fitted.intake, Contextual):
                return self._given(fitted, fitted.intake.taken(block), to_alarm=True)
            points = taken_in(fitted, block, tensors=fitted.live.takes_tensors)
            outcomes, self._run = self._to_alarm(fitted, self._run, points)
            return outcomes

    def _to_alarm(self, fitted: Fitted[C], run: Run, points: Points) -> tuple[Outcomes, Run]:
        """Outcomes up to the first alarm, and the run as it is then; the one given stays as it is."""
        if len(points) and run.alarm is not None and fitted.resets:
            run = self._begin(fitted, run)
        return advance_until_alarm(fitted, run, points)

    def reset(self, *, baseline: bool = False) -> None:
        """Start a new run: forget recent observations and start the clock anew.

        `Views` remember what they have heard, and are silent until their windows hold observations of the new run. A
        stream with a level of its own keeps it.

        Parameters
        ----------
        baseline
            Whether a new recording begins, such as after the machine was changed for another: all that was heard is
            forgotten, and its baseline is taken from the next observations. For detectors with a `baseline`.
        """
        with self._held:
            fitted = self._ready()
            if baseline:
                must_have_baselines(fitted)
            begun = self._begin(fitted, self._run, anew=baseline)
            if self._run.beside is not None:
                begun = begun.after(self._run, self._run.beside[:0], 0)
            self._run = begun


class Detector(Watcher[Calibration]):
    """Rings when the distribution behind a stream changes; when nothing changes, once in `ert` observations on average.

    False alarms come at a constant rate: the time to the next is geometric, whatever happened before. Its mean is `ert`
    on average over reference sets; that of this one detector lies in `calibration_.interval()`, nine times in ten.

    Where the reference depends on its order, columns are watched one by one by `Views`, and their thresholds are
    rehearsed on it: `calibration_.rehearsal` has what that showed, and which columns wander. False alarms then come
    once in `ert` observations too, but not whatever happened before: every run is silent at first.

    Threads may share a detector: observations are taken in one at a time, and none is lost; in which order is up to the
    threads. Copies go their own ways.

    Parameters
    ----------
    ert
        Expected run time: observations between false alarms, on average over reference sets.
    statistic
        `MMD()`, `LSDD()`, `MeanShift()`, `Custom(D)`, or a list of these to run together under one promise; or
        `Views()` alone. Default: `MMD()`, or `Views()` where a test finds that the reference depends on its order.
    window
        Recent observations to compare with the reference: a number, or several to run together. Default: 8, 25 and
        100, without those longer than a tenth of the reference (a wide window on a small reference loosens the
        promise) or than three times `ert`. Of views: 5 and 25, or less where the reference has fewer than 250 rows or
        `ert` is below 100.
    sampler
        How null streams are drawn from the reference. 'auto' (the default): `Independent()`, where no test finds that
        the reference depends on its order. Where one does, `Views` make streams of their own, and for statistics that
        were chosen it is `Blocks()`.
    guarantee
        A probability, such as 0.9: thresholds are set so that the true expected run time is `ert` or more with this
        probability over reference sets. None: it is `ert` on average over them.
    interval
        Whether to estimate how far the true expected run time may be from `ert` for this reference set
        (`calibration_.interval()`).
    kinds
        For tables, the kind of each column that is not what it seems, by name: 'number', 'category', 'time' (of day and
        week), 'elapsed' (a time as a number), 'text', 'ignore', 'auto'. The name '*' stands for all other columns.
    given
        Columns of the context, by name (of an array, by place): the hour, the load, the kind of customer. The others
        are watched relative to what these let expect, and a change of the context alone does not ring. A column of
        times gives hour, weekday and season. Observations whose context the reference lacks are left out, and told.
        'auto': the column that says when rows came, if there is one, and if that helps.
    context_model
        A scikit-learn regressor that says where columns of numbers are expected given the context, or one for each, by
        name. Default: shrunken levels of categories, smooth functions of numbers and times, and of pairs of these.
    preprocess
        What makes rows of numbers of observations: any function of a batch, a scikit-learn transformer, a PyTorch
        module, the path of an ONNX file, or one of `tocsin.representations`.
    preprocess_share
        The part of the reference to which `preprocess` is fitted, if it has to be. That part leaves the reference.
    mode
        How thresholds are set. 'steady': tests run on past the transient and are pooled (the default). 'paper':
        Algorithm 3 of the paper. 'fixed': its Algorithm 2, one threshold that ignores the dependence between tests (for
        comparison: its false alarms are rarer than promised, and not at a constant rate).
    start
        'warm': tests from the first observation on; windows begin with reference points. 'cold': the first test is
        made when the widest window is full. `Views` are cold always.
    reset_on_alarm
        Whether the observation after an alarm begins a new run; false alarms then come at the promised rate. If not,
        the run goes on and rings as long as its windows show the change, until `reset`.
    error
        Monte Carlo error of the false alarm rate to calibrate to (relative; mode 'steady'). "auto": a third of what the
        reference's own finite size does to the rate, between 3 and 5 %, so that the interval is hardly wider for it.
    paths
        Number of null streams to simulate, instead of as many as `error` asks for; of `Views`, of references to
        simulate with a stream each, of which they need few.
    baseline
        Rows from which a stream's own level and spread are learnt before it is watched relative to these: for machines,
        patients or days that each have a level of their own. `fit` then needs `groups`, the recording of each row: what
        recordings differ by is learnt from them, and the promise is for a further one. A run of the detector takes the
        baseline first (`outcome.learning`), in which it is compared with all recordings together. With `Views` alone.
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
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(200, 2)))
    >>> outcomes = detector.update_many(rng.normal(loc=3, size=(20, 2)))
    >>> bool(outcomes.alarm.any())
    True
    """

    _apart = ("statistic", "preprocess", "context_model")
    _rests_on = Calibration
    _watching: list[Statistic]
    """The statistics in use: those given, or what the fit has chosen."""

    _power: Power | None = None
    """What it can see, once that was simulated."""

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
        given: Given = None,
        context_model: object = None,
        preprocess: object = None,
        preprocess_share: float = 0.25,
        mode: Mode = "steady",
        start: Start = "warm",
        reset_on_alarm: bool = True,
        error: Precision = "auto",
        paths: int | None = None,
        baseline: int | None = None,
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
        self.given = given
        self.context_model = context_model
        self.preprocess = preprocess
        self.preprocess_share = preprocess_share
        self.mode = mode
        self.start = start
        self.reset_on_alarm = reset_on_alarm
        self.error = error
        self.paths = paths
        self.baseline = baseline
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
            observations with the same label belong together, and neither blocks nor views cross from one to the next.
        workers
            Threads to use; all cores by default. Their number changes nothing in the result.
        cluster
            A Dask cluster to simulate null streams on: the address of its scheduler, such as 'tcp://host:8786', or a
            `distributed.Client`. It changes nothing in the result, nor do workers that die. For CPU backends;
            `Views` rehearse on this machine.
        progress
            Whether to show a progress bar on standard error; by default, on a terminal when it takes long.
        """
        one_of(Option("start", self.start), self.start, get_args(Start))
        one_of(Option("mode", self.mode), self.mode, get_args(Mode))
        statistics = statistics_given(self.statistic)
        seed = validation.seed_number(self.seed)
        functions = compute.load(self.backend, self.device)
        with joined(cluster, functions) as executor:
            learned = learned_from(
                reference, groups, self.kinds, statistics, self.preprocess, self.preprocess_share, seed, progress,
                self.given, self.context_model,
            )  # fmt: skip
            windows = windows_for(self.window, len(learned.points), self.ert)
            fit = Fit(
                ert=validation.expected_run_time(self.ert, windows[-1]),
                statistics=statistics,
                windows=windows,
                default_windows=self.window is None,
                default_statistic=self.statistic is None,
                mode=self.mode,
                start=self.start,
                resets=bool(self.reset_on_alarm),
                sampler=validation.sampler(self.sampler),
                guarantee=validation.guarantee(self.guarantee, interval=self.interval),
                interval=bool(self.interval),
                error=validation.precision(self.error),
                paths=validation.positive_integer("paths", self.paths),
                seed=seed,
                functions=functions,
                workers=validation.positive_integer("workers", workers),
                cluster=executor,
                baseline=baseline_given(self.baseline),
            )
            fitted = fit.run(learned, progress)
        self._watching = [Views()] if fitted.live.goes_on else statistics
        self._power = None
        self._deploy(fitted)
        return self

    # What it can see

    def power(
        self, columns: Sequence[str] | None = None, *, workers: int | None = None, progress: bool | None = None
    ) -> Power:
        """Simulate changes on the reference, and tell which would be found, how soon, and which would not.

        Each column moves up and down by 1, 3 and 10 spreads, gets noisier and quieter, stops at its last value, goes
        missing, holds a category never seen, or goes its own way; and all of them move a little, or stop. A spread is
        the distance between a column's quartiles over 1.35, which of a normal law is its standard deviation; of the
        whole reference, so that a level that wanders makes it wide. `amount` has it in the column's units.

        Where rows depend on those before them (`calibration_.rehearsal`), changes begin in rows of the reference, in
        order, each judged by the rows before it; else the rows of a trial are drawn from it, and none is compared with
        itself. A delay counts observations from the first that is changed up to the alarm. What happens after the
        reference is not in it: a stream that moves on is followed less sharply.

        It takes less time than the fit: where there are many columns some of them are tried, spread out over all. Some
        of what is not found is tried again, to tell what would find it (`would_help`). The run stays as it is, and the
        same seed gives the same answer. It is kept in `power_`, and in the file.

        Parameters
        ----------
        columns
            Names of those to try. Default: all, or as many as there is time for.
        workers
            Threads to use; all cores by default. Their number changes nothing in the result.
        progress
            Whether to show a progress bar on standard error; by default, on a terminal when it takes long.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> detector = Detector(ert=500, window=10, seed=1).fit(rng.normal(size=(300, 2)))
        >>> [change.column for change in detector.power().changes if change.size == 10 and not change.found]
        []
        """
        from tocsin._power.measure import measure

        fitted = self._ready()
        workers = validation.positive_integer("workers", workers)
        places = None if fitted.live.goes_on else places_of(fitted)
        with progress_bar("simulating changes", progress) as report:
            self._power = measure(fitted, places, workers, report, columns)
        return self._power

    @property
    def power_(self) -> Power | None:
        """What `power` found when it was last asked; None if it was not, since the fit."""
        self._ready()
        return self._power

    # Explaining

    def explain(self, rows: object = None, *, keep: Sequence[str] = ()) -> Explanation:
        """What the alarm of this run means: when the change began, which columns moved, which examples show it.

        Call it after an alarm and before the next observation. Without `reset_on_alarm` it can wait, and observations
        taken in since then help. It changes nothing.

        Parameters
        ----------
        rows
            The latest observations of the stream, as they were given, up to the one that was taken in last: what a
            detector does not watch is told from them. If they have a column of times, or an index of them in pandas,
            the alarm, its onset and examples are told with it; texts are told in full.
        keep
            Names of columns of these that are shown with the alarm and examples, to find a record again by. They need
            not be watched.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> detector = Detector(ert=500, window=10, seed=1).fit([{"flow": x} for x in rng.normal(size=200)])
        >>> stream = [{"flow": x, "id": f"no. {k}"} for k, x in enumerate(rng.normal(5, 1, size=20))]
        >>> outcomes = detector.update_until_alarm([{"flow": row["flow"]} for row in stream])
        >>> detector.explain(stream[: len(outcomes)], keep=["id"]).kept == {"id": f"no. {len(outcomes) - 1}"}
        True
        """
        from tocsin._explain.alarm import Alarm  # needs scipy, which watching does not

        fitted, run = now(self)
        explanation = Alarm.of(fitted, run).explain()
        if rows is None and not keep:
            return explanation
        from tocsin._explain.rows import beside_run

        return explanation.found_by(beside_run(fitted.intake, rows, keep, run.time, run.recent[-1]))

    def report(
        self,
        stream: object,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        keep: Sequence[str] = (),
        progress: bool | None = None,
    ) -> Path:
        """Watch a stream, and write what was seen as one page for a browser; returns its path.

        The page is that of `tocsin report`: the verdict, the promise, the path, every alarm explained, data quality.
        Observations are counted from 1. If the stream has a column of times, or an index of them in pandas, whether
        that is watched or not, alarms, onsets and axes are told with it.
        The stream goes on from where the detector is, a new run begins after each alarm, and the detector itself stays
        where it is. Trouble leaves no page, and one that was there before as it was.

        Parameters
        ----------
        stream
            Observations, as `update_many` takes them.
        path
            The .html file to write.
        title
            What the page is called. Default: the name of the file.
        keep
            Names of columns that are shown with alarms and examples, to find a record again by. They need not be
            watched.
        progress
            Whether to show a progress bar on standard error; by default, on a terminal when it takes long.
        """
        from tocsin._report.writing import report

        return report(self, stream, Path(path), title, progress, keep)

    def _begin(self, fitted: Fitted[Calibration], before: Run | None, *, anew: bool = False) -> Run:
        if fitted.start == "cold":
            return super()._begin(fitted, before, anew=anew)
        return warm_run(fitted, 0 if before is None else before.number + 1)

    # Files

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        statistic: Statistic | Sequence[Statistic] | None = None,
        preprocess: object = None,
        *,
        context_model: object = None,
        backend: compute.Backend | None = None,
        device: str | None = None,
    ) -> Self:
        """Read a detector; it goes on where it was saved, bit for bit.

        statistic
            The statistic that it was made with, if that holds a function of your own: no file can hold those.
        preprocess
            The same for a `preprocess` that no file can hold: the object as it was fitted (`intake_.representation`).
        context_model
            The regressors that it was made with, fitted, by column (`intake_.models`).
        backend, device
            To go on with another backend than it was made with, or on another device.
        """
        place = {"backend": backend, "device": device}
        given = {name: value for name, value in place.items() if value is not None}
        return from_content(cls, storage.read(path, cls.__name__), path, statistic, preprocess, context_model, **given)

    def _go_on(self, content: storage.Content, path: str | os.PathLike[str]) -> None:
        found = content.part("names", Many(text))
        self._watching = (
            [Views()] if self.statistic is None and found == [Views().name] else statistics_given(self.statistic)
        )
        names = [statistic.name for statistic in self._watching]
        if names != found:
            raise InputError(f"{path} was fitted with {content['names']}, and {names} are given; give the same.")
        super()._go_on(content, path)
        if "power" in content:
            self._power = content.part("power", Of((Power,)))
        fitted = self._ready()
        if isinstance(fitted.intake, Represented):
            intake = Represented.by(restore(fitted.intake.parts, self.preprocess))
            self.preprocess = intake.representation
            self._deploy(replace(fitted, intake=intake), self._run)
        elif isinstance(fitted.intake, Contextual):
            expectation = fitted.intake.expectation.again(self.context_model)
            self._deploy(replace(fitted, intake=replace(fitted.intake, expectation=expectation)), self._run)
        elif self.context_model is not None:
            raise InputError(f"{path} was made without a context; leave context_model out.")
        elif self.preprocess is not None:
            raise InputError(f"{path} was made without a preprocess step; leave it out.")

    def _description(self) -> Parts:
        return {
            "names": [statistic.name for statistic in self._watching],
            "statistic": self.statistic,
            **({} if self._power is None else {"power": self._power}),
        }

    def _rules(self, sizes: Sizes) -> list[Rule]:
        return [parts_rule(statistic, sizes) for statistic in self._watching]

    def _restore(self, parts: list[Parts], windows: tuple[int, ...], functions: compute.Functions) -> LiveFamily:
        members = zip(self._watching, parts, strict=True)
        return LiveFamily([member.restore(own, windows, functions) for member, own in members])


def from_content(
    kind: type[D],
    content: storage.Content,
    path: str | os.PathLike[str],
    statistic: Statistic | Sequence[Statistic] | None = None,
    preprocess: object = None,
    context_model: object = None,
    **place: object,
) -> D:
    """The detector that a file holds, by itself or within a bank; place: where to compute, if not as before."""
    options = content.part("options", options_rule(kind))
    with content.explained():
        own = statistic or content["statistic"]
        detector = kind(**options, statistic=own, preprocess=preprocess, context_model=context_model)
        options_given(detector.get_params())
    if place:
        detector.set_params(**place)
    detector._go_on(content, path)
    return detector
