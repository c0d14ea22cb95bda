"""A testbed: a wide area network on one machine, made of network namespaces."""
