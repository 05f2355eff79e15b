"""Types of what calls return, to read about and to annotate with; those that people meet most are in `tocsin`."""

from tocsin._calibration.rehearsal import Rehearsal
from tocsin._calibration.tail import RateCurve, Tail
from tocsin._calibration.uncertainty import Errors
from tocsin._common.errors import Option
from tocsin._compare.result import ComparisonFacts, DifferingColumn
from tocsin._data.intake import Intake, Objects, Represented, Rows, Tabular
from tocsin._data.tables import Column, Columns, Table, Values
from tocsin._explain.result import Began, Example, ExplanationFacts, Moved
from tocsin._power.result import Power, PowerFacts, Remedy, SimulatedChange
from tocsin._statistics.base import Statistic

__all__ = [
    "Began",
    "Column",
    "Columns",
    "ComparisonFacts",
    "DifferingColumn",
    "Errors",
    "Example",
    "ExplanationFacts",
    "Intake",
    "Moved",
    "Objects",
    "Option",
    "Power",
    "PowerFacts",
    "RateCurve",
    "Rehearsal",
    "Remedy",
    "Represented",
    "Rows",
    "SimulatedChange",
    "Statistic",
    "Table",
    "Tabular",
    "Tail",
    "Values",
]
