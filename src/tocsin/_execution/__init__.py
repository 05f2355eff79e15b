"""How work is run: threads, a cluster, memory, progress."""
