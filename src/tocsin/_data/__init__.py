"""How what users have becomes points: checks, tables, representations."""
