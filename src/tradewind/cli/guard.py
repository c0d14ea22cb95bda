"""Every mistake becomes a line on stderr and an exit code: 2 for a user's, 1 for ours or an audit's, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from tradewind.model.errors import InputError, Refused, TradewindError


def guarded(call: Callable[[], Any]) -> int:
    """Runs a command; every mistake becomes a line on stderr and an exit code."""
    try:
        call()
    except InputError as error:
        print(f"tradewind: {error}", file=sys.stderr)
        return 2
    except Refused as error:
        print("tradewind: the audit refused a decision; nothing of it was applied", file=sys.stderr)
        for violation in error.violations[:10]:
            print(f"  {violation}", file=sys.stderr)
        return 1
    except TradewindError as error:
        print(f"tradewind: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tradewind: stopped; nothing half-written was left", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print("tradewind: out of memory; try a smaller scenario", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"tradewind: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
