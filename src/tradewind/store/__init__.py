"""The store: every instant of a run in an SQL database, in a chain of checksums, with snapshots."""
