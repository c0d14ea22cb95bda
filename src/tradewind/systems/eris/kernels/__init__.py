"""Numerics of Eris, most of them compiled: arrays in, arrays out."""
