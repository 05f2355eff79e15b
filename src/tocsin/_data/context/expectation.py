"""What rows are like given their context, learned from a reference; and rows relative to that.

The reference is cut into contiguous stretches (or groups), and each is compared with what the others expect of it: so
its residuals are like those of rows that come later. New rows are compared with what all of it expects. What is not
known of an expectation counts into the spread, and is more where the reference has few rows of a context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tocsin._common.errors import InputError, Option
from tocsin._compute.arrays import Float64Array, Int64Array
from tocsin._data.context import laws
from tocsin._data.context.design import Design
from tocsin._data.context.laws import Law
from tocsin._data.context.prepared import Prepared
from tocsin._data.context.regressors import PROBES, Regressor, answers_of, left_out, must_answer, rows_of
from tocsin._data.context.ridge import Functions
from tocsin._data.tables import Kind, Table, Values, kind_given, values_of
from tocsin._data.tables.column import NUMERIC, Column

FOLDS = 10
"""Stretches that a reference is cut into."""

FEWEST_ROWS = 50
"""Of a reference that expectations can be learned from."""

MOST_LEVELS = 20
"""Categories of a watched column that are followed one by one, the commonest; a level must come so often, too:"""

SELDOM = 5

NEVER_SEEN = "never seen"

GRAIN = 2.0**24
"""Parts of a spread that a regressor's answers are rounded to: last bits depend on how many are asked at once."""


class Relative(NamedTuple):
    """Rows relative to what is expected of them, law by law, (n, laws).

    beside: what is expected and the spread around it, law by law, and the context, (n, 2 laws + columns).
    """

    residuals: Float64Array
    beside: Float64Array


@dataclass(frozen=True, eq=False)
class Expectation:
    """What columns are like given the context.

    watched: the columns that are, as they were in the reference; of categories, those that are known.
    laws: of their numbers, column by column.
    """

    design: Design
    watched: tuple[Column, ...]
    laws: tuple[Law, ...]

    def by(self, models: Mapping[str, Regressor]) -> Expectation:
        """The same, by regressors of the user's for some columns."""
        expectation = replace(self)
        expectation.__dict__["models"] = dict(models)
        return expectation

    def again(self, given: object) -> Expectation:
        """The same as a file has it, with the regressors that it was made with, if there were any."""
        foreign = [law for law in self.laws if law.is_foreign]
        if not foreign and given is not None:
            raise InputError(Option("context_model"), " was given, and the file's detector has none; leave it out.")
        return self.by(
            {law.column: must_answer(given, law.column, law.probes, law.answers, law.typical) for law in foreign}
        )

    @cached_property
    def models(self) -> dict[str, Regressor]:
        """Regressors of the user's, by column."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the numbers that rows become."""
        news = tuple(f"{own.name}: {NEVER_SEEN}" for own in self.categories)
        return (*(law.name for law in self.laws), *news)

    def of(self, context: Table) -> tuple[Float64Array, Float64Array]:
        """What is expected of rows of a context that is known, and the spread around it; (n, laws) each."""
        count = len(self.laws)
        nothing = np.zeros((len(context), count))
        beside = self.relative(self.design.kept(context), nothing, self.foretold(context)).beside
        return beside[:, :count], beside[:, count : 2 * count]

    def foretold(self, context: Table) -> Float64Array:
        """What regressors of the user's expect of rows of a context that is known, (n, laws); 0 for other laws."""
        told = np.zeros((len(context), len(self.laws)))
        for k, law in enumerate(self.laws):
            if law.is_foreign and len(context):
                grain = law.typical / GRAIN
                answers = answers_of(self.models[law.column], rows_of(self.design, context), law.column)
                told[:, k] = np.round(answers / grain) * grain
        return told

    def relative(self, context: Float64Array, values: Float64Array, foretold: Float64Array | None = None) -> Relative:
        """Rows whose context is known, relative to what is expected of them.

        context: as numbers, (n, columns).  values: what the laws are of, (n, laws), NaN where one is missing.
        foretold: by regressors of the user's, if there are any.
        """
        count = len(self.laws)
        beside = np.zeros((len(context), 2 * count + context.shape[1]))
        if foretold is not None:
            beside[:, :count] = foretold
        return Relative(self._prepared.relative(context, values, beside), beside)

    @cached_property
    def _prepared(self) -> Prepared:
        return Prepared.of(self.design, self.laws, _filled(self.laws))

    @cached_property
    def is_foreign(self) -> bool:
        """Whether a regressor of the user's says what is expected of any column."""
        return any(law.is_foreign for law in self.laws)

    def numbers(self, table: Table) -> Float64Array:
        """What the laws are of, (n, laws): NaN where a value is missing."""
        return np.column_stack(self._numbers(table)) if self.laws else np.zeros((len(table), 0))

    def _numbers(self, table: Table) -> list[Float64Array]:
        held = {own.name: values_of(own.name, own.holds, table) for own in self.watched}
        return [_number(law.what, law.level, held[law.column]) for law in self.laws]

    def news(self, table: Table) -> Float64Array:
        """Whether categories are none that the reference has; (n, columns of categories)."""
        news = np.zeros((len(table), len(self.categories)))
        for k, own in enumerate(self.categories):
            words = values_of(own.name, own.holds, table).as_strings().tolist()
            known = {None, *own.values}
            news[:, k] = [word not in known for word in words]
        return news

    @cached_property
    def categories(self) -> tuple[Column, ...]:
        """The columns that hold such."""
        return tuple(own for own in self.watched if own.kind == "category")


def _number(what: laws.What, level: str, values: Values) -> Float64Array:
    """One of the numbers that a column is made into."""
    if what == "value":
        numbers: Float64Array = values.data
        return numbers
    gone = values.missing
    if what == "gap":
        return np.asarray(gone, np.float64)
    words = values.as_strings()
    return np.where(gone, np.nan, np.array([word == level for word in words], np.float64))


def _filled(known: Sequence[Law]) -> list[bool]:
    """Of which numbers what is missing is as expected: where gaps are watched by themselves."""
    gappy = {law.column for law in known if law.what == "gap"}
    return [law.column in gappy and law.what != "gap" for law in known]


def folds_of(edges: Int64Array) -> Int64Array:
    """Stretches of a reference: whole groups if there are enough of them."""
    count = int(edges[-1])
    if len(edges) - 1 >= FOLDS:
        middles = (edges[:-1] + edges[1:]) / 2
        return np.repeat((middles * FOLDS / count).astype(np.int64), np.diff(edges))
    return np.arange(count) * FOLDS // count


def learn(
    table: Table, design: Design, edges: Int64Array, kinds: dict[str, Kind] | None, model: object = None, seed: int = 0
) -> tuple[Expectation, Table]:
    """From a reference whose contexts are all known: what is expected, and the reference relative to it.

    table: with the columns of the context, and those that are watched.
    model: a regressor of the user's that says what is expected of numbers, or one for each column.
    """
    context = design.held(table)
    rows = None if model is None else rows_of(design, context)
    models = dict[str, Regressor]()
    functions = Functions(design.rows(context), folds_of(edges), design.places, design.first_pair - 1)
    names = [name for name in table.names if name not in context.columns]
    watched, found = [], list[laws.Learned]()
    for name in names:
        values = table.columns[name]
        own = Column.learn(name, values, kind_given(kinds, name))
        watched.append(own)
        for what, level in _followed(own, values):
            numbers = _number(what, level, values)
            if rows is None or what != "value":
                found.append(laws.learn(name, what, level, numbers, functions))
                continue
            models[name], foretold = left_out(model, name, rows, numbers, functions.folds, seed)
            own_law = laws.learn(name, what, level, numbers, functions, foretold)
            probes = rows[np.linspace(0, len(rows) - 1, PROBES).astype(np.int64)]
            law = replace(own_law.law, probes=probes, answers=answers_of(models[name], probes, name))
            found.append(laws.Learned(law, own_law.residuals))
    expectation = Expectation(design, tuple(watched), tuple(each.law for each in found)).by(models)
    filled = zip(found, _filled(expectation.laws), strict=True)
    residuals = [np.nan_to_num(each.residuals, nan=0.0) if fill else each.residuals for each, fill in filled]
    columns = zip(expectation.names, [*residuals, *expectation.news(table).T], strict=True)
    return expectation, Table({name: Values.of_numbers(own) for name, own in columns})


def _followed(own: Column, values: Values) -> list[tuple[laws.What, str]]:
    """The numbers that a column is made into."""
    followed = list[tuple[laws.What, str]]()
    if own.kind in NUMERIC:
        followed.append(("value", ""))
    elif own.kind == "category":
        words = values.as_strings().tolist()
        common = [level for level in own.values if words.count(level) >= SELDOM][:MOST_LEVELS]
        followed += [("level", level) for level in (common[1:] if len(own.values) == 2 else common)]
    else:
        what = "texts" if own.kind == "text" else "times of day"
        raise InputError(
            f"Column {own.name!r} holds {what}, of which nothing can be expected given a context. Leave it out by ",
            Option("kinds", {own.name: "ignore"}),
            ", or turn it into numbers or categories.",
        )
    if 0 < own.missing < 1:
        followed.append(("gap", ""))
    return followed
