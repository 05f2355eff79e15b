"""What a detector can see: changes simulated on its own reference."""
