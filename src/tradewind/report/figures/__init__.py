"""Charts of runs, drawn with matplotlib."""
