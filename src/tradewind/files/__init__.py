"""Scenario and run files: reading, writing, schemas."""
