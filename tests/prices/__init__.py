"""Price lists, contracts, importers, bandwidth."""
