"""Figures: how they look, and what they show."""
