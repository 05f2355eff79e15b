"""What a detector is once it is fitted, and where it is in its stream: one that never changes, one that does."""

from tocsin.state.fitted import Fitted, Start
from tocsin.state.rule import ALONE, Rule
from tocsin.state.run import Run

__all__ = ["ALONE", "Fitted", "Rule", "Run", "Start"]
