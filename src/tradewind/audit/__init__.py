"""THE LAW: one function per rule, named after what it protects. Shares no code with policies, worlds or the ledger."""

from tradewind.audit.audit import Audit, Report, compare

__all__ = ["Audit", "Report", "compare"]
