"""A detector as scikit-learn knows outlier detectors. Needs the extra `sklearn`."""

from tocsin._integrations.sklearn import ChangeDetector

__all__ = ["ChangeDetector"]
