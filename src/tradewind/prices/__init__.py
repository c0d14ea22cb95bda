"""Price lists of machines and egress, and measured bandwidth between regions: dated tables, importers, contracts."""
