"""Code shared by the mlBroker policies."""
