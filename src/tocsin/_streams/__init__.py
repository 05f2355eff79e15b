"""Many streams at once: banks and fleets."""
