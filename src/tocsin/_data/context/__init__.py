"""What rows are like given their context: the hour, the load, the kind of customer."""

from tocsin._data.context.basis import Surrounding
from tocsin._data.context.design import Design
from tocsin._data.context.expectation import Expectation, Relative
from tocsin._data.context.laws import Law

__all__ = ["Design", "Expectation", "Law", "Relative", "Surrounding"]
