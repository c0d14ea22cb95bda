"""A library of named instances with best known values and certified bounds, which anybody may improve."""
