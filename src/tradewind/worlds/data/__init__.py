"""Carries out the flows of plans: shards of a job's data are stored, moved and listed at sites (docs/jobs.md)."""
