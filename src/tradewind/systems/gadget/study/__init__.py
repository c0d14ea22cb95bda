"""The figures of the GADGET paper and tables of our own, each with its verdict."""
