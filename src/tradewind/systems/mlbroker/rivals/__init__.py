"""Baselines of the mlBroker paper, and `selfish`."""
