"""Reproduction of the papers: studies, the tour, the gallery. No product code imports it."""
