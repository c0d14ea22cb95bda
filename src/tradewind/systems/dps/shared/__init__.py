"""What all sellers of DPS's market have in common."""
