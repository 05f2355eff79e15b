"""What happens after an alarm: incidents, and how they end."""
