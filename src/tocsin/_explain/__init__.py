"""What an alarm means: when the change began, which columns changed, which observations show it. Numbers in and out."""
