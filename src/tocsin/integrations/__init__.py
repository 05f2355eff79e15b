"""Detectors as other libraries expect them: `river`, `sklearn` and `spark`, each with an extra of that name."""
