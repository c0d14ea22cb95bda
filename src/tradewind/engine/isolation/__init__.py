"""A policy in a process of its own: it gets what happened as data and answers with decisions as data (docs/isolation.md)."""
