"""Ranks as processes of this machine."""
