"""The audit: one function per rule, named after what it protects. It shares no code with policies, worlds or the engine."""

from tradewind.audit.audit import Audit, AuditReport, compare

__all__ = ["Audit", "AuditReport", "compare"]
