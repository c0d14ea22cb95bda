"""The engine: the control loop, the ledger behind a policy's view, the journal, and the accounts of a run."""
