"""Our policies: `eris` (posted.py) and `eris-preemptive` (preemptive.py, critical.py)."""
