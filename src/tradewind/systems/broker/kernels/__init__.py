"""Compiled numerics: arrays in, arrays out."""
