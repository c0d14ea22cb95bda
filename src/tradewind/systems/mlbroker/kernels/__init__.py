"""Numerics of mlBroker on arrays; the inner loops are compiled."""
