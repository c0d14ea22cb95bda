"""General numerical tools: arrays in, arrays out; no terms of scheduling."""
