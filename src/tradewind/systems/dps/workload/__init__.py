"""The generator of DPS's market."""
