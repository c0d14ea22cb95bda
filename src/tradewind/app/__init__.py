"""The doors: command line, Python API, files, reports."""
