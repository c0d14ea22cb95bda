"""Schedulers and rivals that our systems are compared with, one small file each."""
