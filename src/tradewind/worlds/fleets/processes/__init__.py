"""Runs ranks as processes of this machine."""
