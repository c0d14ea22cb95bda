"""Welfare by load and policy against the certified bound, with our targets as claims. Ours; no paper."""
