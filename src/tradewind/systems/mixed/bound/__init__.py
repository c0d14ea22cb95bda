"""What no plan of a whole scenario exceeds."""
