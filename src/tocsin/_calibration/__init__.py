"""Calibration: null paths in, thresholds out. Nothing here knows which statistic it serves."""
