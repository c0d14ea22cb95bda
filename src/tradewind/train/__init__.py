"""The reference trainer: synchronous training with a parameter server or a ring, on PyTorch over gloo.

`python -m tradewind.train` is one rank of a job; docs/jobs.md is the contract between it and whoever starts it, docs/live.md
explains it. Nothing here imports the rest of Tradewind: a rank starts as quickly as PyTorch does.
"""
