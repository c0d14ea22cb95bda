"""Generated markets and jobs."""
