"""Errors become one line on stderr and an exit code: 2 for wrong input, 1 for a failure or violation. No tracebacks."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tradewind.cli.terminal import say
from tradewind.model.errors import InputError, InputWarning, Refused, TradewindError


def _shown(others: Callable[..., Any]) -> Callable[..., Any]:
    """Shows warnings about input in one line on stderr, and all others as before."""

    def show(message: Warning | str, category: type[Warning], *more: Any) -> None:
        if issubclass(category, InputWarning):
            say(f"tradewind: {message}", file=sys.stderr)
        else:
            others(message, category, *more)

    return show


class _Notices(logging.Handler):
    """Shows what the package logs in one line on stderr, for people who watch a terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        say(f"tradewind: {record.getMessage()}", file=sys.stderr)


def _show_notices() -> None:
    log = logging.getLogger("tradewind")
    if sys.stderr.isatty() and not any(isinstance(handler, _Notices) for handler in log.handlers):
        log.addHandler(_Notices())
        log.setLevel(logging.INFO)


def guarded(call: Callable[[], Any]) -> int:
    """Run a command and return its exit code; print errors as one line on stderr."""
    _show_notices()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _shown(warnings.showwarning)
            call()
    except InputError as error:
        say(f"tradewind: {error}", file=sys.stderr)
        return 2
    except Refused as error:
        say("tradewind: the audit refused a decision; nothing of it was applied", file=sys.stderr)
        for violation in error.violations[:10]:
            say(f"  {violation}", file=sys.stderr)
        return 1
    except TradewindError as error:
        say(f"tradewind: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("tradewind: stopped; nothing half-written was left", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        say("tradewind: out of memory; try a smaller scenario", file=sys.stderr)
        return 1
    except OSError as error:
        say(f"tradewind: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0
