"""What an alarm means: when the change began, which columns changed, which observations show it. Numbers in and out."""

from tocsin.explaining.columns import ColumnChanges, ColumnTest
from tocsin.explaining.contributions import Contributions, column_contributions
from tocsin.explaining.examples import Examples, find_examples
from tocsin.explaining.kernel import gaussian
from tocsin.explaining.onset import Onset, find_onset

__all__ = [
    "ColumnChanges",
    "ColumnTest",
    "Contributions",
    "Examples",
    "Onset",
    "column_contributions",
    "find_examples",
    "find_onset",
    "gaussian",
]
