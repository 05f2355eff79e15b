"""Statistics: numbers that grow when window and reference look less alike."""

from tocsin._statistics.custom import Custom
from tocsin._statistics.landmarks import Landmarks
from tocsin._statistics.lsdd import LSDD
from tocsin._statistics.mean_shift import MeanShift
from tocsin._statistics.mmd import MMD
from tocsin._statistics.views import Views

__all__ = ["LSDD", "MMD", "Custom", "Landmarks", "MeanShift", "Views"]
