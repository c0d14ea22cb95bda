"""`tradewind serve`: jobs come in over HTTP while the engine runs (docs/service.md)."""
