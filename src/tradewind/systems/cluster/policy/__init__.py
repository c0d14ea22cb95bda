"""The schedulers."""
