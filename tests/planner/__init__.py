"""Plans of ordinary training."""
