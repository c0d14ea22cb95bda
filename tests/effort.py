"""How many random cases tests try: those of every change, or with TRADEWIND_TESTS=full as many as a night allows."""

from __future__ import annotations

import os

IS_FULL = os.environ.get("TRADEWIND_TESTS") == "full"


def tries(quick: int, full: int) -> int:
    """The number of cases of a test that is written for any number of them."""
    return full if IS_FULL else quick
