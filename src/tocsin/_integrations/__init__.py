"""Detectors as other libraries expect them."""
