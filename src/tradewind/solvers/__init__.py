"""Numerical tools without domain nouns: arrays in, arrays out."""
