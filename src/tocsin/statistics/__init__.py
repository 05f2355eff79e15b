"""Statistics: numbers that grow when window and reference look less alike."""

from tocsin.statistics.custom import Custom
from tocsin.statistics.landmarks import Landmarks
from tocsin.statistics.lsdd import LSDD
from tocsin.statistics.mean_shift import MeanShift
from tocsin.statistics.mmd import MMD

__all__ = ["LSDD", "MMD", "Custom", "Landmarks", "MeanShift"]
