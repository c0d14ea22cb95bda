"""The audit: one function per rule, named after what it protects. It shares no code with policies, worlds or the engine."""

from tradewind.audit.audit import Audit, AuditReport, compare
from tradewind.audit.script import Script

__all__ = ["Audit", "AuditReport", "Script", "compare"]
