"""Plans of ordinary training: jobs as a user has them, at the prices of a list."""
