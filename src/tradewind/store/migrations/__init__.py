"""Migrations of the store's schema."""
