"""Generators of mlBroker scenarios."""
