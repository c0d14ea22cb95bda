"""What the schedulers have in common."""
