"""Scenarios of ring jobs: generated, or read from a trace."""
