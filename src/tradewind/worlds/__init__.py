"""Worlds carry out decisions: the simulated world, and live processes on this machine."""
