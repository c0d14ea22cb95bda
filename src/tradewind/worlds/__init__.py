"""Where decisions come true."""
