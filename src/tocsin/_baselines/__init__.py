"""The detectors that the paper compares with."""
