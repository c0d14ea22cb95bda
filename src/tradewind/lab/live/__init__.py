"""Figures measured on real training and real traffic."""
