"""Real traffic on a testbed, compared with the model."""
