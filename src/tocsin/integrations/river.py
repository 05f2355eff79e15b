"""A detector as river knows drift detectors, and as a step of its pipelines. Needs the extra `river`."""

from tocsin._integrations.river import ChangeDetector

__all__ = ["ChangeDetector"]
