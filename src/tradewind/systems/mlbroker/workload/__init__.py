"""Generators and readers of scenarios."""
