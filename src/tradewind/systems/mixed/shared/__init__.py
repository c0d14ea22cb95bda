"""What the mixed policies share."""
