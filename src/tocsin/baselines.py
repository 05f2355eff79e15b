"""The detectors that the paper compares with, behind the same face as `tocsin.Detector`.

`ScanB` (Li, Xie, Dai and Song 2019) and `LSDDInc` (Bu, Alippi and Zhao 2017) each hold one threshold, which ignores the
dependence between tests or approximates it. So does the paper's Algorithm 2: `Detector(..., mode="fixed")`.
None of them keeps the promise that `Detector` makes; they are here to compare with.
"""

from tocsin._baselines.lsdd_inc import LSDDInc, LSDDIncThreshold
from tocsin._baselines.scan_b import ScanB, ScanBThreshold

__all__ = ["LSDDInc", "LSDDIncThreshold", "ScanB", "ScanBThreshold"]
