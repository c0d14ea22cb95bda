"""Nouns: frozen data and validation."""
