"""Pure functions and solver doors: arrays in, arrays out; no state, no domain nouns."""
