"""Certified bound, and the exact program of tiny cases."""
