"""What the figures in docs/results were measured with."""
