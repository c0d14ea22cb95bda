"""Recorded cluster traces as scenarios."""
