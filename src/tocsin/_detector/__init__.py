"""The detector: how it is fitted, steps, and lives in a file."""
