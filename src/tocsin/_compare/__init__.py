"""Do two tables differ? One test, with the false rate that is asked for."""
