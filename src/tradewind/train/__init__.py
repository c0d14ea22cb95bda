"""The reference trainer: synchronous training with a parameter server or a ring, on PyTorch over gloo.

`python -m tradewind.train` is one rank of a job. docs/jobs.md is the contract between a rank and the program that starts
it; docs/live.md is the guide. This package imports nothing else of Tradewind, so a rank starts as fast as PyTorch does.
"""
