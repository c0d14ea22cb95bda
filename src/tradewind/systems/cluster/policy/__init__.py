"""The policies."""
