"""Offline references: a certified bound of the whole horizon, and the exact optimum of small ones."""
