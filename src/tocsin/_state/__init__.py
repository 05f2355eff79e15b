"""What a detector is once it is fitted, and where it is in its stream: one that never changes, one that does."""

from tocsin._state.fitted import Fitted, Start
from tocsin._state.rule import ALONE, Rule
from tocsin._state.run import Run

__all__ = ["ALONE", "Fitted", "Rule", "Run", "Start"]
