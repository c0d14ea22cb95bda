"""Checks for authors of policies, workloads and worlds."""
