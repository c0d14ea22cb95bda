"""Compiled numerics of mixed."""
