"""Fleets: where ranks run (protocol: tradewind.worlds.fleet)."""
